package ensemble

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/ort"
)

const models4x4 = "../../cmd/swagwrap/testdata/"

// What the outputs mean is read from the graph.
func TestNewTask(t *testing.T) {
	for _, tc := range []struct {
		file, output string
		want         Task
		err          string
	}{
		{"ckpt-1.onnx", "", Task{"logits", ""}, ""},
		{"softmax-1.onnx", "", Task{"logits", "softmax"}, ""},
		{"sigmoid-1.onnx", "", Task{"logits", "sigmoid"}, ""},
		{"labels-1.onnx", "", Task{"each", "sigmoid"}, ""},
		{"labels-1.onnx", "logits", Task{"logits", ""}, ""},
		{"labels-1.onnx", "probs", Task{"probs", "softmax"}, ""}, // through an Identity
		{"labels-1.onnx", "soft", Task{}, `no output "soft", want one of "each", "logits", "probs"`},
	} {
		got, err := newTask(open(t, models4x4+tc.file), tc.output)
		if tc.err != "" {
			wantError(t, err, tc.err)
			continue
		}
		if err != nil || got != tc.want {
			t.Errorf("%s, output %q: %+v, %v, want %+v", tc.file, tc.output, got, err, tc.want)
		}
	}
}

func TestDescribe(t *testing.T) {
	for want, task := range map[string]Task{
		`output "a": 10 classes, a logit for each`:       {"a", ""},
		`output "a": 10 classes, a probability for each`: {"a", "softmax"},
	} {
		if got := task.Describe(10); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for want, task := range map[string]Task{
		`output "a": the logit of class 1 of 2`:       {"a", ""},
		`output "a": the probability of class 1 of 2`: {"a", "sigmoid"},
	} {
		if got := task.Describe(1); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Expected values are those of the definitions, in float64; a few roundings
// may lie between.
func TestProbabilities(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	sigmoid := func(z float64) float64 { return 1 / (1 + math.Exp(-z)) }
	for _, tc := range []struct {
		activation string
		scores     []float32
		want       []float64
		err        string
	}{
		{"", []float32{0, 0}, []float64{0.5, 0.5}, ""},
		{"", []float32{2, -2}, []float64{sigmoid(4), sigmoid(-4)}, ""},
		{"", []float32{-300, 300}, []float64{math.Exp(-600), 1}, ""},
		{"", []float32{1.5}, []float64{sigmoid(-1.5), sigmoid(1.5)}, ""},
		{"", []float32{-40}, []float64{1, math.Exp(-40)}, ""}, // kills 1 − (1 − p)
		{"sigmoid", []float32{0.25}, []float64{0.75, 0.25}, ""},
		{"sigmoid", []float32{1}, []float64{0, 1}, ""},
		{"softmax", []float32{0.25, 0.7500001}, []float64{0.25 / 1.0000001, 0.7500001 / 1.0000001}, ""},
		{"", []float32{1, nan}, nil, "the network's output is not finite: class 1 has NaN"},
		{"", []float32{inf, 1}, nil, "class 0 has +Inf"},
		{"", []float32{0, 0, -inf}, nil, "class 2 has -Inf"},
		{"sigmoid", []float32{nan}, nil, "class 0 has NaN"},
		{"sigmoid", []float32{1.5}, nil, "its output is no probability: 1.5"},
		{"softmax", []float32{0.5, nan}, nil, "class 1 has NaN"},
		{"softmax", []float32{0.5, 0.6}, nil, "they add up to 1.1"},
		{"softmax", []float32{1.5, -0.5}, nil, "the least is -0.5"},
	} {
		got := make([]float64, classesOf(len(tc.scores)))
		err := Task{Activation: tc.activation}.probabilities(got, tc.scores)
		if tc.err != "" {
			wantError(t, err, tc.err)
			continue
		}
		if err != nil {
			t.Errorf("%q of %v: %v", tc.activation, tc.scores, err)
		}
		for c := range tc.want {
			if math.Abs(got[c]-tc.want[c]) > 1e-7*tc.want[c] { // float32's own rounding of 0.7500001
				t.Errorf("%q of %v: %v, want %v", tc.activation, tc.scores, got, tc.want)
			}
		}
	}
}

func TestScores(t *testing.T) {
	values := make([]float32, 24)
	for i := range values {
		values[i] = float32(i)
	}
	for _, tc := range []struct {
		shape      []int64
		n          int
		activation string
		columns    int
		err        string
	}{
		{[]int64{8, 3}, 8, "", 3, ""},
		{[]int64{8, 3}, 5, "", 3, ""}, // a batch that was filled up
		{[]int64{24}, 24, "", 1, ""},
		{[]int64{24, 1}, 24, "sigmoid", 1, ""},
		{[]int64{8, 3, 1, 1}, 8, "softmax", 3, ""}, // a classifier of convolutions
		{[]int64{8, 1, 3}, 8, "", 3, ""},
		{[]int64{2, 3, 4}, 2, "", 0, "output of shape [2 3 4] for 2 examples, want [2 classes]"},
		{[]int64{8, 3}, 9, "", 0, "output of shape [8 3] for 9 examples"},
		{[]int64{}, 1, "", 0, "output of shape []"},
		{[]int64{8, 3}, 8, "sigmoid", 0, "3 scores that each come out of a sigmoid"},
		{[]int64{24, 1}, 24, "softmax", 0, "a softmax over a single score"},
	} {
		columns, got, err := Task{"out", tc.activation}.scores(ort.Tensor{Shape: tc.shape, F32: values}, tc.n)
		if tc.err != "" {
			wantError(t, err, `tensor "out": `+tc.err)
			continue
		}
		if err != nil || columns != tc.columns || !slices.Equal(got, values) {
			t.Errorf("shape %v: %d columns, %v", tc.shape, columns, err)
		}
	}
	_, _, err := Task{Output: "out"}.scores(ort.Tensor{Name: "out", Shape: []int64{2}, I64: []int64{1, 2}}, 2)
	if err == nil || !strings.Contains(err.Error(), `tensor "out": int64, want a float type`) {
		t.Errorf("class numbers: %v", err)
	}
}
