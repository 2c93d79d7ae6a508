package infer_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/task"
)

// What the outputs mean is read from the graph.
func TestScoresOf(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		file, output string
		want         task.OutputSpec
		err          string
	}{
		{"ckpt-1.onnx", "", task.OutputSpec{Output: "logits", Activation: ""}, ""},
		{"softmax-1.onnx", "", task.OutputSpec{Output: "logits", Activation: "softmax"}, ""},
		{"sigmoid-1.onnx", "", task.OutputSpec{Output: "logits", Activation: "sigmoid"}, ""},
		{"labels-1.onnx", "", task.OutputSpec{Output: "each", Activation: "sigmoid"}, ""},
		{"labels-1.onnx", "logits", task.OutputSpec{Output: "logits", Activation: ""}, ""},
		{"labels-1.onnx", "probs", task.OutputSpec{Output: "probs", Activation: "softmax"}, ""}, // through an Identity
		{"labels-1.onnx", "soft", task.OutputSpec{}, `output "soft": want one of each, logits or probs`},
	} {
		got, err := infer.ScoresOf(infertest.Open(t, infertest.Path(infertest.Small, tc.file)), tc.output)
		if tc.err != "" {
			infertest.WantError(t, err, tc.err)
			continue
		}
		if err != nil || got != tc.want {
			t.Errorf("%s, output %q: %+v, %v, want %+v", tc.file, tc.output, got, err, tc.want)
		}
	}
}

func TestScores(t *testing.T) {
	t.Parallel()
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
		{[]int64{24}, 24, "", 1, ""},
		{[]int64{24, 1}, 24, "sigmoid", 1, ""},
		{[]int64{8, 3, 1, 1}, 8, "softmax", 3, ""}, // a classifier of convolutions
		{[]int64{8, 1, 3}, 8, "", 3, ""},
		{[]int64{2, 3, 4}, 2, "", 0, "output of shape [2 3 4] for 2 examples, want [2 classes]"},
		{[]int64{8, 3}, 5, "", 0, "output of shape [8 3] for 5 examples"},
		{[]int64{8, 3}, 2, "", 0, "8 rows of scores for 2 examples, want one for each"},
		{[]int64{8}, 4, "", 0, "8 rows of scores for 4 examples, want one for each"},
		{[]int64{2, 4, 3}, 4, "", 0, "output of shape [2 4 3] for 4 examples, want [4 classes]. The examples are not on the first axis but on axis 1"},
		{[]int64{8, 3}, 9, "", 0, "output of shape [8 3] for 9 examples"},
		{[]int64{}, 1, "", 0, "output of shape []"},
		{[]int64{8, 3}, 8, "sigmoid", 0, "3 scores that each come out of a sigmoid"},
		{[]int64{24, 1}, 24, "softmax", 0, "a softmax over a single score"},
	} {
		g := infer.GraphOf(task.OutputSpec{Output: "out", Activation: tc.activation})
		layout, got, err := g.Scores(ort.Tensor{Shape: tc.shape, F32: values}, tc.n)
		if err == nil {
			_, err = g.Task(layout)
		}
		if tc.err != "" {
			infertest.WantError(t, err, `tensor "out": `+tc.err)
			continue
		}
		if err != nil || layout.Count != tc.columns || !slices.Equal(got, values) {
			t.Errorf("shape %v: %d columns, %v", tc.shape, layout.Count, err)
		}
	}
	_, _, err := infer.GraphOf(task.OutputSpec{Output: "out"}).Scores(ort.Tensor{Name: "out", Shape: []int64{2}, I64: []int64{1, 2}}, 2)
	if err == nil || !strings.Contains(err.Error(), `tensor "out": int64, want a float type`) {
		t.Errorf("class numbers: %v", err)
	}
}
