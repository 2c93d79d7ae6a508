package compare

import (
	"math"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/task"
)

// The difference in errors is that of the accuracies. Pictures have shares of wrong pixels, which no count of pictures stands for.
func TestErrorDifference(t *testing.T) {
	t.Parallel()
	pixels := task.OutputSpec{Output: "y", Count: 2, Axis: 1, Positions: 4, Sides: [3]int{2, 2}}
	for name, of := range map[string]struct {
		spec      task.OutputSpec
		low, high float64
	}{
		"examples": {task.OutputSpec{Output: "y", Count: 2}, chance.ErrorDifference(2, 1, 4).Low, chance.ErrorDifference(2, 1, 4).High},
		"pixels":   {pixels, math.NaN(), math.NaN()},
	} {
		k, err := task.New("classes", of.spec)
		if err != nil {
			t.Fatal(err)
		}
		wrong, base := []float64{1, 1, 0, 0}, []float64{0, 0, 1, 0}
		if name == "pixels" {
			wrong, base = []float64{0.25, 0.5, 0, 0.25}, []float64{0, 0.25, 0.25, 0}
		}
		mean := (wrong[0] + wrong[1] + wrong[2] + wrong[3] - base[0] - base[1] - base[2] - base[3]) / 4
		method := func(errors []float64) *Method {
			return &Method{Evaluation: &task.Evaluation{Losses: []task.Loss{{Key: ErrorLoss, Values: errors}}}}
		}
		r := &Result{Comparison: &Comparison{}, Task: k}
		d := r.DifferenceTo(method(wrong), method(base), ErrorLoss)
		if math.Abs(d.Mean-mean) > 1e-15 || !(d.Low < mean && mean < d.High) {
			t.Errorf("%s: %+v, want the mean %v", name, d.Interval, mean)
		}
		if name == "examples" && (d.Low != of.low || d.High != of.high) {
			t.Errorf("%s: %+v, want that of discordant examples", name, d.Interval)
		}
	}
}
