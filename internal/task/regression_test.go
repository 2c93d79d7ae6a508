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

// twoTargets is a network with means and log-variances of two targets in other units.
var twoTargets = task.OutputSpec{Output: "y", Count: 4, Regression: &task.RegressionSpec{Head: regression.ByLogVariance, Units: []regression.Units{{Mean: 20, Std: 3}, {Mean: -1, Std: 0.5}}}}

// alike says that numbers are the same to some 1e-12 of their size.
func alike(a, b float64) bool { return math.Abs(a-b) <= 1e-12*(1+math.Abs(b)) }

// mixtures draws n examples of 3 members with the weights 1/2, 1/4 and 1/4: the averaged
// outcomes, the members' as floats, the mixtures in the targets' units, and true values.
func mixtures(t *testing.T, x task.Task, n int) (outcomes []float64, members [][]float32, all []regression.Mixture, known target.Target) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	weights, units := []float64{0.5, 0.25, 0.25}, twoTargets.Regression.Units
	one := make([]float64, 6)
	for range n {
		sum, kept := make([]float64, 6), []float32(nil)
		two := []regression.Mixture{{Weights: weights}, {Weights: weights}}
		for _, w := range weights {
			scores := []float32{float32(r.NormFloat64()), float32(r.NormFloat64()), float32(r.NormFloat64() - 2), float32(r.NormFloat64() - 2)}
			if _, err := x.Outcome(one, scores); err != nil {
				t.Fatal(err)
			}
			for i, v := range one {
				sum[i] += w * v
				kept = append(kept, float32(v))
			}
			for k, u := range units {
				two[k].Means = append(two[k].Means, u.Mean+u.Std*float64(scores[k]))
				two[k].Variances = append(two[k].Variances, u.Std*u.Std*math.Exp(float64(scores[2+k])))
			}
		}
		outcomes, members, all = append(outcomes, sum...), append(members, kept), append(all, two...)
		for k, u := range units {
			known.Values = append(known.Values, two[k].Moments().Mean+u.Std*r.NormFloat64())
		}
	}
	known.Width = 2
	return outcomes, members, all, known
}

func TestRegressionOf(t *testing.T) {
	x := must(t, "regression", twoTargets)
	if x.About().Width != 6 || x.About().Size != "2 targets" || x.About().Classes != 0 || task.TraitsOf("regression").Labels != target.Numbers || x.About().Meaning != `output "y": 2 targets, a mean and a variance (log-variance) for each` {
		t.Errorf("%d, %s, %s", x.About().Width, x.About().Size, x.About().Meaning)
	}
	if again, err := task.OfWidth("regression", 6, [3]int{}); err != nil || again.About().Size != x.About().Size {
		t.Errorf("%v, %v", again, err)
	}
	for _, tt := range []struct {
		s    task.OutputSpec
		want string
	}{
		{task.OutputSpec{Output: "y", Count: 3, Regression: twoTargets.Regression}, "3 numbers, want an even one"},
		{task.OutputSpec{Output: "y", Count: 6, Regression: twoTargets.Regression}, "3 targets, and units of 2"},
		{task.OutputSpec{Output: "y", Count: 2, Activation: "softmax"}, "gives probabilities of classes"},
	} {
		if _, err := task.New("regression", tt.s); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %s", tt.s, err, tt.want)
		}
	}
	for label, want := range map[float64]string{math.NaN(): "target 1 is NaN", 5: ""} {
		if err := x.CheckLabel(target.Target{Values: []float64{1, label}, Width: 2}); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", label, err, want)
		}
	}
	if err := x.CheckLabel(target.Target{Classes: []int{1}}); err == nil {
		t.Error("a class is taken for two numbers")
	}
	dst := make([]float64, 3)
	for head, variance := range map[regression.VarianceHead]float64{regression.ByVariance: 2, regression.ByLogVariance: math.Exp(2), regression.BySoftplus: math.Log1p(math.Exp(2)),
		regression.ByStd: 4, regression.ByLogStd: math.Exp(4), regression.BySoftplusStd: math.Pow(math.Log1p(math.Exp(2)), 2)} {
		one := must(t, "regression", task.OutputSpec{Count: 2, Regression: &task.RegressionSpec{Head: head}})
		entropy, err := one.Outcome(dst, []float32{-3, 2})
		if err != nil || !slices.Equal(dst[:2], []float64{-3, 9}) || !alike(dst[2], variance) || !alike(entropy, math.Log(2*math.Pi*math.E*variance)/2) {
			t.Errorf("%s: %v, entropy %v, %v", head, dst, entropy, err)
		}
	}
	one := must(t, "regression", task.OutputSpec{Count: 2, Regression: &task.RegressionSpec{Head: regression.ByVariance}})
	if _, err := one.Outcome(dst, []float32{1, -0.5}); err == nil || !strings.Contains(err.Error(), "target 0: variance -0.5") {
		t.Errorf("a negative variance: %v", err)
	}
	if _, err := one.Outcome(dst, []float32{float32(math.NaN()), 1}); err == nil {
		t.Error("a mean that is no number")
	}
	bare := must(t, "regression", task.OutputSpec{Count: 1, Regression: &task.RegressionSpec{Noise: []float64{6}, Units: []regression.Units{{Std: 3}}}})
	if _, err := bare.Outcome(dst, []float32{0.5}); err != nil || !slices.Equal(dst, []float64{0.5, 0.25, 4}) {
		t.Errorf("without a head: %v, %v", dst, err)
	}
}

// Rows and scores are those of calibrate/regression on the members' mixtures, in the
// targets' units, for members of unequal weights.
func TestRegressionValues(t *testing.T) {
	x := must(t, "regression", twoTargets)
	outcomes, members, all, known := mixtures(t, x, 50)
	e, err := task.Evaluate(x, outcomes, known, task.EvaluateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var scores []regression.Score
	want := task.RowOptions{Members: 3, Target: true}
	summary := task.NewEvaluator(x, task.EvaluateOptions{MainOnly: true})
	for i := range 50 {
		a := task.Average{Outcome: slices.Clone(outcomes[6*i:][:6]), Members: members[i], Weights: all[0].Weights}
		row := x.Values([]float64{-7}, want, a, known.At(i))[1:]
		got, at := map[string][]float64{}, 0
		for _, c := range x.Columns(want) {
			got[c.Name], at = row[at:at+c.Len()], at+c.Len()
		}
		if at != len(row) {
			t.Fatalf("%d values, and columns have %d", len(row), at)
		}
		for k := range 2 {
			m := all[2*i+k]
			score := m.Score(known.Values[2*i+k])
			scores = append(scores, score)
			for name, want := range map[string]float64{"target": score.Y, "mean": score.Moments.Mean, "std": score.Moments.Std(),
				"aleatoric_std": math.Sqrt(score.Moments.Aleatoric), "epistemic_std": math.Sqrt(score.Moments.Epistemic)} {
				if !alike(got[name][k], want) {
					t.Fatalf("%s of target %d of row %d: %v, want %v", name, k, i, got[name][k], want)
				}
			}
			for name, want := range map[string]float64{"mixture_low": score.Mixture.Low, "mixture_high": score.Mixture.High} {
				if math.Abs(got[name][k]-want) > 1e-5 { // members are kept in float32
					t.Fatalf("%s of target %d of row %d: %v, want %v", name, k, i, got[name][k], want)
				}
			}
			if v := got["member_std"][2*2+k]; math.Abs(v-math.Sqrt(m.Variances[2])) > 1e-6 {
				t.Fatalf("the third member's standard deviation %v, want %v", v, math.Sqrt(m.Variances[2]))
			}
		}
		if !summary.AddRow(row, -1, nil) {
			t.Fatal("a row with targets is not judged")
		}
	}
	m := regression.Evaluate(scores, 2).Mean
	for key, want := range map[string]float64{"nll": -m.Gaussian.LogLikelihood, "rmse": m.RMSE, "mae": m.MAE, "crps": m.Gaussian.CRPS, "coverage": m.Gaussian.Coverage,
		"width": m.Gaussian.Width, "ence": m.ENCE, "std": m.Std, "aleatoric": m.Aleatoric, "epistemic": m.Epistemic} {
		if got := e.Value(key); !alike(got, want) {
			t.Errorf("%s: %v, want %v", key, got, want)
		}
	}
	for k, want := range []float64{-m.Gaussian.LogLikelihood, m.Gaussian.CRPS} {
		mean := 0.0
		for _, v := range e.Losses[k].Values {
			mean += v / 50
		}
		if !alike(mean, want) {
			t.Errorf("losses %d have the mean %v, want %v", k, mean, want)
		}
	}
	for _, s := range computed(summary.Evaluation()) {
		want, tol := map[string]float64{"nll": -m.Gaussian.LogLikelihood, "nll_mixture": -m.Mixture.LogLikelihood, "crps_mixture": m.Mixture.CRPS, "coverage_mixture": m.Mixture.Coverage,
			"rmse": m.RMSE, "mae": m.MAE, "crps": m.Gaussian.CRPS, "coverage": m.Gaussian.Coverage, "ence": m.ENCE, "width": m.Gaussian.Width, "width_mixture": m.Mixture.Width}, 1e-6
		if w, ok := want[s.Key]; !ok || math.Abs(s.Value-w) > tol {
			t.Errorf("summary: %+v, want %v", s, w)
		}
	}
	unlabelled := x.Values(nil, task.RowOptions{}, task.Average{Outcome: slices.Clone(outcomes[:6])}, target.Target{})
	if task.NewEvaluator(x, task.EvaluateOptions{MainOnly: true}).AddRow(unlabelled, -1, nil) || !x.Columns(task.RowOptions{})[0].Hidden || x.Columns(task.RowOptions{})[5].Name != "gaussian_low" {
		t.Errorf("of an example without targets something is known: %v", unlabelled)
	}
	if low, high := unlabelled[10], unlabelled[12]; !alike(high-low, 2*1.96*unlabelled[4]) {
		t.Errorf("interval from %v to %v, with a standard deviation of %v", low, high, unlabelled[4])
	}
	if d := x.Divergence(outcomes, outcomes); d != 0 {
		t.Errorf("outcomes are %v from themselves", d)
	}
}

// The factor of the variances is in closed form; after it the mean of z² is 1, and the
// mixture has the scaled moments.
func TestRegressionCalibrators(t *testing.T) {
	x := must(t, "regression", twoTargets)
	outcomes, members, all, known := mixtures(t, x, 60)
	by := x.Calibrators()[0]
	s, err := by.Fit(outcomes, known)
	if err != nil {
		t.Fatal(err)
	}
	factor := 0.0
	for i, m := range all {
		mo := m.Moments()
		factor += math.Pow(known.Values[i]-mo.Mean, 2) / mo.Variance() / float64(len(all))
	}
	if !alike(s.Factors[0], factor) || !(task.NLL(x, x.Apply(nil, s, outcomes), known) < task.NLL(x, outcomes, known)) {
		t.Errorf("s² = %v, want %v; NLL %v after %v", s.Factors, factor, task.NLL(x, x.Apply(nil, s, outcomes), known), task.NLL(x, outcomes, known))
	}
	scaled := x.Apply(nil, s, outcomes)
	if again, err := by.Fit(scaled, known); err != nil || math.Abs(again.Factors[0]-1) > 1e-9 {
		t.Errorf("fitted again: %+v, %v", again, err)
	}
	average := task.Average{Outcome: slices.Clone(outcomes[:6]), Members: members[0], Weights: all[0].Weights, Calibrate: func(o []float64) { x.Apply(o, s, o) }}
	row := x.Values(nil, task.RowOptions{Members: 3}, average, target.Target{})
	for k := range 2 {
		low, high := regression.VarianceScaling{Factor: factor}.Mixture(all[k]).Interval(0.95)
		if math.Abs(row[10+k]-low) > 1e-5 || math.Abs(row[12+k]-high) > 1e-5 || !alike(row[4+k], math.Sqrt(factor)*all[k].Moments().Std()) {
			t.Errorf("target %d: [%v, %v] ± %v, want [%v, %v]", k, row[10+k], row[12+k], row[4+k], low, high)
		}
	}
	fit, err := task.CrossFit(x, by, outcomes, known, 2, 3)
	if err != nil || len(fit.Apply(x, outcomes)) != len(outcomes) || len(fit.Values()) != 2 {
		t.Errorf("%+v, %v", fit, err)
	}
	if several, err := task.CrossFits(x, by, outcomes, known, 3); err != nil || several.NLLBefore != task.NLL(x, outcomes, known) || !(several.Spread > 0) {
		t.Errorf("%+v, %v", several, err)
	}
	if _, ok := task.Find(x, task.ByVector); ok {
		t.Error("vector scaling of a regression")
	}
	if _, err := task.Evaluate(x, outcomes, target.Target{Classes: make([]int, 60)}, task.EvaluateOptions{}); err == nil {
		t.Error("classes are taken for numbers")
	}
}
