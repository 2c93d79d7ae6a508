package task_test

import (
	"math"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/task"
)

// The task none is never inferred. Its outcomes average to means and standard deviations.
func TestNone(t *testing.T) {
	t.Parallel()
	for _, s := range []task.OutputSpec{{Count: 3}, {Count: 1}, {Count: 3, Activation: "sigmoid"}, {Count: 3, Activation: "softmax"}} {
		if got, err := task.New("", s); err == nil && task.Scoreless(got.About().Name) {
			t.Errorf("%+v is of the task none", s)
		}
	}
	none, err := task.New(task.None, task.OutputSpec{Output: "boxes", Count: 3})
	if err != nil {
		t.Fatal(err)
	}
	sum := make([]float64, none.About().Width)
	rows := [][]float32{{1, -2, 1e4}, {3, -2, 1e4 + 1}, {8, -2, 1e4 + 2}, {4, -2, 1e4 + 3}}
	for _, row := range rows {
		one := make([]float64, len(sum))
		if _, err := none.Outcome(one, row); err != nil {
			t.Fatal(err)
		}
		for i, v := range one {
			sum[i] += v / float64(len(rows))
		}
	}
	mean, std := task.Moments(sum)
	for i, want := range [][2]float64{{4, math.Sqrt(6.5)}, {-2, 0}, {1e4 + 1.5, math.Sqrt(1.25)}} {
		if math.Abs(mean[i]-want[0]) > 1e-12*math.Abs(want[0]) || math.Abs(std[i]-want[1]) > 1e-7 {
			t.Errorf("number %d: %v ± %v, want %v", i, mean[i], std[i], want)
		}
	}
	if _, err := none.Outcome(make([]float64, 6), []float32{1, float32(math.NaN()), 2}); err == nil || !strings.Contains(err.Error(), "not finite") {
		t.Error(err)
	}
}

// The lines of PyTorch are those of the calibration, for each form of scores.
func TestPyTorch(t *testing.T) {
	t.Parallel()
	temperature := &task.Calibration{Method: task.ByTemperature, Temperature: 1.5}
	vector := &task.Calibration{Method: task.ByVector, Scale: []float64{2, 0.5}, Bias: []float64{0, 1}}
	for _, tt := range []struct {
		c    *task.Calibration
		name string
		form task.Form
		axis int
		want string
	}{
		{temperature, "classes", task.Logits, 0, "scores = model(x)\nprobabilities = torch.softmax(scores / 1.5, dim=-1)"},
		{temperature, "classes", task.Probabilities, 1, "scores = model(x).log()\nprobabilities = torch.softmax(scores / 1.5, dim=1)"},
		{temperature, "classes", task.LogProbabilities, -1, "scores = model(x)\nprobabilities = torch.softmax(scores / 1.5, dim=-1)"},
		{temperature, "binary", task.Logits, 0, "scores = model(x)\nprobabilities = torch.sigmoid(scores / 1.5)"},
		{temperature, "labels", task.Probabilities, 0, "scores = model(x).logit()\nprobabilities = torch.sigmoid(scores / 1.5)"},
		{vector, "classes", task.Logits, 0, "scores = torch.log_softmax(model(x), dim=-1)\nprobabilities = torch.softmax(scores * torch.tensor([2, 0.5]) + torch.tensor([0, 1]), dim=-1)"},
		{vector, "classes", task.Probabilities, 0, "scores = model(x).log()\nprobabilities = torch.softmax(scores * torch.tensor([2, 0.5]) + torch.tensor([0, 1]), dim=-1)"},
		{&task.Calibration{Method: task.ByPlatt, Scale: []float64{2, 0.5}, Bias: []float64{0, 1}}, "labels", task.Logits, 0, "scores = model(x)\nprobabilities = torch.sigmoid(scores * torch.tensor([2, 0.5]) + torch.tensor([0, 1]))"},
	} {
		if got := strings.Join(tt.c.PyTorch(tt.name, tt.form, tt.axis), "\n"); got != tt.want {
			t.Errorf("%s of %s, %s:\n%s\nwant\n%s", tt.c.Method, tt.form, tt.name, got, tt.want)
		}
	}
}
