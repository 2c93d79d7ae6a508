package task_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// twoMeans is a network with means alone of two targets in other units.
var twoMeans = task.OutputSpec{Output: "y", Count: 2, Regression: &task.RegressionSpec{Units: []regression.Units{{Mean: 20, Std: 3}, {Mean: -1, Std: 0.5}}}}

// With noise outcomes are those of a network whose noise was given at fit, and the noise that
// is fitted makes the targets likelier than any other.
func TestFitNoise(t *testing.T) {
	x := must(t, "regression", twoMeans)
	lacks := task.Missing(x)
	if lacks == nil || task.Missing(must(t, "regression", twoTargets)) != nil || task.Missing(must(t, "labels", task.OutputSpec{Count: 2})) != nil {
		t.Fatal("lacking noise is for regressions of means alone")
	}
	given := twoMeans
	given.Regression = &task.RegressionSpec{Units: twoMeans.Regression.Units, Noise: []float64{1.5, 0.2}}
	told := must(t, "regression", given)

	r := rand.New(rand.NewPCG(5, 6))
	var outcomes, want []float64
	known := target.Target{Width: 2}
	for range 300 {
		sum, sumTold, one := make([]float64, 6), make([]float64, 6), make([]float64, 6)
		centre := [2]float64{r.NormFloat64(), r.NormFloat64()}
		for range 3 {
			scores := []float32{float32(centre[0] + 0.3*r.NormFloat64()), float32(centre[1] + 0.3*r.NormFloat64())}
			for _, of := range []struct {
				task task.Task
				sum  []float64
			}{{x, sum}, {told, sumTold}} {
				h, err := of.task.Outcome(one, scores)
				if err != nil || math.IsInf(h, 0) {
					t.Fatal(h, err)
				}
				for i, v := range one {
					of.sum[i] += v / 3
				}
			}
		}
		outcomes, want = append(outcomes, sum...), append(want, sumTold...)
		known.Values = append(known.Values, 20+3*(centre[0]+0.4*r.NormFloat64()), -1+0.5*(centre[1]+0.2*r.NormFloat64()))
	}
	for i, v := range x.Apply(nil, &task.Calibration{Method: task.ByNoise, NoiseStd: []float64{1.5, 0.2}}, outcomes) {
		if !alike(v, want[i]) {
			t.Fatalf("outcome %d is %v, want %v", i, v, want[i])
		}
	}

	n, err := lacks.Fit(outcomes, known)
	if err != nil || n.Warnings != nil {
		t.Fatal(err, n.Warnings)
	}
	nll := func(n *task.Calibration) float64 {
		e, err := task.Evaluate(x, x.Apply(nil, n, outcomes), known, task.EvaluateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return e.Value("nll")
	}
	best := nll(n)
	for k, about := range []float64{1.2, 0.1} { // what was drawn, and some of the members' differing
		if n.NoiseStd[k] < about*0.7 || n.NoiseStd[k] > about*1.3 {
			t.Errorf("noise of target %d is %v, want about %v", k, n.NoiseStd[k], about)
		}
		for _, factor := range []float64{0.99, 1.01} {
			other := &task.Calibration{Method: task.ByNoise, NoiseStd: append([]float64{}, n.NoiseStd...)}
			other.NoiseStd[k] *= factor
			if nll(other) <= best {
				t.Errorf("noise %v is likelier than %v", other.NoiseStd, n.NoiseStd)
			}
		}
	}
	if twice := n.With(4); !alike(twice.NoiseStd[0], 2*n.NoiseStd[0]) || !alike(twice.NoiseStd[1], 2*n.NoiseStd[1]) {
		t.Errorf("4 times the variance of %v is %v", n.NoiseStd, twice.NoiseStd)
	}

	// Without noise there is no likelihood, and nothing that would be taken for one.
	if x.Likelihoods(outcomes, known) != nil || !math.IsNaN(x.Divergence(outcomes, outcomes)) {
		t.Error("likelihoods without noise")
	}
	if _, err := task.Evaluate(x, outcomes, known, task.EvaluateOptions{}); err == nil || !strings.Contains(err.Error(), "no likelihood") {
		t.Errorf("evaluated without noise: %v", err)
	}
	if got := x.Likelihoods(want, known); len(got) != 600 {
		t.Errorf("%d likelihoods", len(got))
	}
}

// Members that differ by more than they are wrong leave no room for noise.
func TestFitNoiseWarns(t *testing.T) {
	lacks := task.Missing(must(t, "regression", twoMeans))
	outcomes := slices.Repeat([]float64{0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0}, 5) // the first target's mean 0 ± 1
	n, err := lacks.Fit(outcomes, target.Target{Width: 2, Values: slices.Repeat([]float64{20.1, 0, 19.9, -2}, 5)})
	if err != nil || !strings.HasPrefix(n.Undetermined, "the noise of 1 of 2 targets is at its lower bound") {
		t.Fatal(err, n)
	}
	if !alike(n.NoiseStd[1], 1) {
		t.Errorf("noise %v, want the RMSE 1", n.NoiseStd[1])
	}
	outcomes = outcomes[:12]
	for _, tt := range []struct {
		known target.Target
		want  string
	}{
		{target.Target{Width: 2, Values: []float64{1, 2, 3, math.NaN()}}, "target 3 is NaN, want a finite number"},
		{target.Target{Width: 2, Values: []float64{1, 2}}, "2 targets of 1 examples, want 2 of 2"},
		{target.Target{Width: 2, Values: []float64{20, -1, 20, -1}}, "noise of target 0: every prediction is exact"},
	} {
		if _, err := lacks.Fit(outcomes, tt.known); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
}

// Rows without noise show means and what comes of members differing, and nothing of a scale.
func TestNoiselessColumns(t *testing.T) {
	x := must(t, "regression", twoMeans)
	want := task.RowOptions{Members: 2, Target: true}
	var shown []string
	for _, c := range x.Columns(want) {
		if !c.Hidden {
			shown = append(shown, c.Name)
		}
	}
	if got := strings.Join(shown, " "); got != "target mean epistemic_std member_mean" {
		t.Errorf("columns %s", got)
	}
	values := x.Values(nil, want, task.Average{Outcome: []float64{0, 0.25, 0, 1, 1, 0}, Members: []float32{-0.5, 0.25, 0, 1, 1, 0, 0.5, 0.25, 0, 1, 1, 0}}, target.Target{Width: 2, Values: []float64{21, 0}})
	total := 0
	for _, c := range x.Columns(want) {
		total += c.Len()
	}
	if len(values) != total || values[0] != 21 || values[2] != 20 || values[8] != 1.5 || !math.IsNaN(values[4]) || !math.IsNaN(values[6]) || !math.IsNaN(values[10]) {
		t.Fatalf("%d values for %d: %v", len(values), total, values)
	}
	s := task.NewEvaluator(x, task.EvaluateOptions{MainOnly: true})
	if !s.AddRow(values, -1, nil) || s.Evaluation().Warnings != nil {
		t.Error(s.Evaluation().Warnings)
	}
	var names []string
	for _, score := range computed(s.Evaluation()) {
		names = append(names, score.Key)
	}
	if got := strings.Join(names, " "); got != "rmse mae" {
		t.Errorf("scores %s", got)
	}
}
