package infer_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/onnxio"
)

// The graph that adds up on a device gives what the tasks compute, for each of them.
func TestAddUp(t *testing.T) {
	t.Parallel()
	spec := func(head regression.VarianceHead, noise ...float64) *task.RegressionSpec {
		return &task.RegressionSpec{Head: head, Noise: noise, Units: []regression.Units{{Mean: 1, Std: 2}}}
	}
	for name, test := range map[string]struct {
		task  string
		spec  task.OutputSpec
		shape []int64
	}{
		"classes":       {"classes", task.OutputSpec{Count: 10}, []int64{4, 10}},
		"squeezed":      {"classes", task.OutputSpec{Count: 10}, []int64{4, 10, 1, 1}},
		"binary":        {"binary", task.OutputSpec{Count: 1}, []int64{4, 1}},
		"labels":        {"labels", task.OutputSpec{Count: 7}, []int64{4, 7}},
		"means":         {"regression", task.OutputSpec{Count: 3}, []int64{4, 3}},
		"noise":         {"regression", task.OutputSpec{Count: 2, Regression: spec("", 0.5, 3)}, []int64{4, 2}},
		"variances":     {"regression", task.OutputSpec{Count: 4, Regression: spec(regression.ByVariance)}, []int64{4, 4}},
		"log-variances": {"regression", task.OutputSpec{Count: 4, Regression: spec(regression.ByLogVariance)}, []int64{4, 4}},
		"softplus":      {"regression", task.OutputSpec{Count: 4, Regression: spec(regression.BySoftplus)}, []int64{4, 4}},
		"stds":          {"regression", task.OutputSpec{Count: 4, Regression: spec(regression.ByStd)}, []int64{4, 4}},
		"log-stds":      {"regression", task.OutputSpec{Count: 4, Regression: spec(regression.ByLogStd)}, []int64{4, 4}},
		"softplus-stds": {"regression", task.OutputSpec{Count: 4, Regression: spec(regression.BySoftplusStd)}, []int64{4, 4}},
		"pixels":        {"classes", task.OutputSpec{Count: 5, Axis: 1, Positions: 12, Sides: [3]int{3, 4}}, []int64{4, 5, 3, 4}},
		"masks":         {"labels", task.OutputSpec{Count: 2, Axis: 1, Positions: 12, Sides: [3]int{3, 4}}, []int64{4, 2, 3, 4}},
		"one mask":      {"binary", task.OutputSpec{Count: 1, Axis: 1, Positions: 12, Sides: [3]int{3, 4}}, []int64{4, 1, 3, 4}},
		"tokens":        {"classes", task.OutputSpec{Count: 9, Axis: -1, Positions: 6, Sides: [3]int{6}}, []int64{4, 6, 9}},
	} {
		of, err := task.New(test.task, test.spec)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		a, ok := task.AddingOf(of)
		if !ok {
			t.Fatalf("%s: logits cannot be added up", name)
		}
		how := onnxio.AddUp{How: a.How, Count: a.Count, First: test.spec.Axis == 1, Rank: len(test.shape), Head: string(a.Head), Variances: a.Variances}
		session, err := infertest.Runtime(t).NewBound(t.Context(), how.Model(), ort.Provider{Parameterized: true})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		defer session.Close()
		n := int64(1)
		for _, d := range test.shape {
			n *= d
		}
		rng := rand.New(rand.NewPCG(1, 2))
		scores := make([]float32, n)
		for i := range scores {
			scores[i] = float32(20 * (rng.Float64() - 0.5))
			if a.Head.Plain() {
				scores[i] = 1 + scores[i]*scores[i]
			}
		}
		checkSums(t, name, of, session, how, test.shape, scores)
	}
}

// checkSums compares the sums with what the task gives for each example.
func checkSums(t *testing.T, name string, of task.Task, session *ort.Session, how onnxio.AddUp, shape []int64, scores []float32) {
	t.Helper()
	const weight = 0.25
	rows, size := int(shape[0]), len(scores)/int(shape[0])
	positions, several := int64(task.Positions(of)), task.Large(of)
	width := of.About().Width
	if several {
		width = width/int(positions) - 1
	}
	n := int64(rows)
	inputs := []ort.Tensor{
		{Name: onnxio.SumScores, Shape: shape, F32: scores},
		{Name: onnxio.SumWeight, Shape: []int64{1}, F64: []float64{weight}},
		{Name: onnxio.SumOutcome, Shape: []int64{n, positions, int64(width)}, F64: make([]float64, n*positions*int64(width))},
		{Name: onnxio.SumEntropy, Shape: []int64{n, positions}, F64: make([]float64, n*positions)},
	}
	if how.HasEvidence() {
		inputs = append(inputs, ort.Tensor{Name: onnxio.SumEvidence, Shape: []int64{n, positions, 2}, F64: make([]float64, 2*n*positions)})
	}
	for i := range inputs[2].F64 {
		inputs[2].F64[i] = 1 // sums so far
	}
	got, err := session.RunBound(t.Context(), inputs, false)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	near := func(what string, i int, got, want float64) {
		if !(math.Abs(got-want) <= 1e-9*(1+math.Abs(want))) {
			t.Errorf("%s: %s %d is %v, want %v", name, what, i, got, want)
		}
	}
	for i := range rows {
		want := make([]float64, of.About().Width)
		entropy, err := of.Outcome(want, scores[i*size:][:size])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		mean := 0.0
		for p := range int(positions) {
			at := i*int(positions) + p
			row := want[p*width:]
			if several {
				row = want[p*(width+1):]
				near("entropy of a position", at, got[1].F64[at], weight*row[width])
			}
			for c, v := range row[:width] {
				near("outcome", at, got[0].F64[at*width+c], 1+weight*v)
			}
			mean += got[1].F64[at] / float64(positions)
		}
		near("entropy", i, mean, weight*entropy)
		if e, ok := of.(task.Evident); ok && e.Evident() {
			sum, most := e.Evidence(scores[i*size:][:size], int(positions))
			for k, want := range []float64{sum, most} {
				mean := 0.0
				for p := range int(positions) {
					mean += got[2].F64[2*(i*int(positions)+p)+k] / float64(positions)
				}
				near("evidence", k, mean, weight*want)
			}
		}
	}
	scores[0] = float32(math.Inf(1)) // no sum of the first example is finite in all parts
	bad, err := session.RunBound(t.Context(), inputs, false)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	finite := true
	for _, part := range bad {
		for _, v := range part.F64 {
			finite = finite && v-v == 0
		}
	}
	if finite {
		t.Errorf("%s: the sums of an infinite score are finite", name)
	}
}
