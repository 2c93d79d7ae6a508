package task_test

import (
	"math"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// spread are n standard normal predictions of one target whose PIT values are (i + ½)/n,
// less what the rounding of quantiles takes.
func spread(t *testing.T, n int) (x task.Task, outcomes []float64, known target.Target) {
	t.Helper()
	x = must(t, "regression", task.OutputSpec{Output: "y", Count: 2, Regression: &task.RegressionSpec{Head: regression.ByVariance}})
	known.Width = 1
	for i := range n {
		outcomes = append(outcomes, 0, 0, 1)
		known.Values = append(known.Values, regression.Gaussian{Variance: 1}.Quantile((float64(i)+0.5)/float64(n)))
	}
	return x, outcomes, known
}

func figure(t *testing.T, e *task.Evaluation, key string) task.Figure {
	t.Helper()
	i := slices.IndexFunc(e.Figures, func(f task.Figure) bool { return f.Key == key })
	if i < 0 {
		t.Fatalf("no figure %q in %+v", key, e.Figures)
	}
	return e.Figures[i]
}

// Of 100 PIT values that are spread evenly a tenth is in each bin, and intervals hold what they
// are to hold. The limits are those of tables: Wilson's of 10 in 100, and those of χ² with 100
// degrees of freedom, to as many digits.
func TestRegressionFigures(t *testing.T) {
	x, outcomes, known := spread(t, 100)
	e, err := task.Evaluate(x, outcomes, known, task.EvaluateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	near := func(what string, got, want, by float64) {
		if !(math.Abs(got-want) <= by) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	pit := figure(t, e, "pit")
	for b := range 10 {
		near("PIT bin", pit.X[b], 0.05+float64(b)/10, 1e-12)
		near("density", pit.Y[b], 1, 1e-12)
		near("its lower limit", pit.Lower[b], 0.5523, 5e-5)
		near("its upper limit", pit.Upper[b], 1.7437, 5e-5)
	}
	coverage := figure(t, e, "coverage")
	for i, level := range coverage.X {
		near("level", level, float64(i+1)/20, 1e-12)
		near("coverage − level", coverage.Y[i], 0, 0.0101) // of 100 values one more or less
		if !(coverage.Lower[i] < coverage.Y[i] && coverage.Y[i] < coverage.Upper[i]) {
			t.Errorf("%v in [%v, %v]", coverage.Y[i], coverage.Lower[i], coverage.Upper[i])
		}
	}
	squares := 0.0
	for _, y := range known.Values {
		squares += y * y / 100
	}
	errors := figure(t, e, "error_0")
	if len(errors.X) != 1 || errors.X[0] != 1 { // equal variances are not parted
		t.Fatalf("%+v", errors)
	}
	near("RMSE/RMV", errors.Y[0], math.Sqrt(squares), 1e-12)
	near("its lower limit", errors.Lower[0], math.Sqrt(squares*100/129.561), 1e-5)
	near("its upper limit", errors.Upper[0], math.Sqrt(squares*100/74.222), 1e-5)
}

// The density of a mixture that is drawn out by √s about its mean is f(μ + (y − μ)/√s)/√s.
func TestRegressionMixtureScores(t *testing.T) {
	x := must(t, "regression", twoTargets)
	const n = 40
	outcomes, rows, all, known := mixtures(t, x, n)
	members := make([][]float32, 3)
	for _, row := range rows {
		for s := range members {
			members[s] = append(members[s], row[6*s:6*s+6]...)
		}
	}
	for _, factor := range []float64{1, 2.5} {
		e, err := task.Evaluate(x, outcomes, known, task.EvaluateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		gaussian := slices.Clone(e.Scores)
		var s *task.Calibration
		if factor != 1 {
			s = task.WithNumber("regression", factor)
		}
		if err := x.(task.Mixed).EvaluateMixture(e, members, []float64{0.5, 0.25, 0.25}, known, s); err != nil {
			t.Fatal(err)
		}
		var want, each [2]float64
		for i, m := range all {
			mean := m.Moments().Mean
			each[i%2] += (math.Log(factor)/2 - m.LogDensity(mean+(known.Values[i]-mean)/math.Sqrt(factor))) / n
		}
		want[0] = (each[0] + each[1]) / 2
		at := slices.IndexFunc(e.Scores, func(s task.Score) bool { return s.Optional })
		// members are in float32: 6e-8 of means that are some 10 standard deviations from 0
		if got := e.Scores[at].Value; math.Abs(got-want[0]) > 1e-5 {
			t.Errorf("s² = %v: NLL of the mixture %v, want %v", factor, got, want[0])
		}
		for k, p := range e.Parts {
			if math.Abs(p.Scores[at].Value-each[k]) > 1e-5 {
				t.Errorf("s² = %v, target %d: %v, want %v", factor, k, p.Scores[at].Value, each[k])
			}
		}
		if !slices.Equal(e.Scores[:at], gaussian[:at]) {
			t.Errorf("what was there is changed: %v, was %v", e.Scores, gaussian)
		}
	}
	e, _ := task.Evaluate(x, outcomes, known, task.EvaluateOptions{})
	if err := x.(task.Mixed).EvaluateMixture(e, [][]float32{members[0][1:]}, nil, known, nil); err == nil {
		t.Error("members of other examples are taken")
	}
}

// Recalibrated by itself, each of n true values has the PIT i/n, so that the 95 % interval holds
// those from 0.03 to 0.97 of 100; there is no likelihood. Rows that no part names stay as
// they are.
func TestRegressionRecalibrate(t *testing.T) {
	x, outcomes, known := spread(t, 100)
	for i := range known.Values {
		known.Values[i] *= 3 // three times as far out as stated
	}
	before, err := task.Evaluate(x, outcomes, known, task.EvaluateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	by, _ := task.Find(x, task.ByIsotonic)
	maps, err := by.On(outcomes, known)
	if err != nil {
		t.Fatal(err)
	}
	e, err := task.Evaluate(x, outcomes, known, task.EvaluateOptions{Maps: maps})
	if err != nil {
		t.Fatal(err)
	}
	if was, got := before.Value("coverage"), e.Value("coverage"); was > 0.5 || math.Abs(got-0.95) > 0.0101 {
		t.Errorf("coverage %v, was %v", got, was)
	}
	for _, key := range []string{"nll", "crps"} {
		if v := e.Value(key); v == v {
			t.Errorf("%s %v of what has none", key, v)
		}
	}
	if e.Value("rmse") != before.Value("rmse") {
		t.Error("the means are changed")
	}
	none := &task.Fitted{By: by, Each: maps.Each, Folds: [][]int{{}}}
	if e, err := task.Evaluate(x, outcomes, known, task.EvaluateOptions{Maps: none}); err != nil || e.Value("coverage") != before.Value("coverage") {
		t.Errorf("%v, %v", e, err)
	}
	if _, err := by.Fit(outcomes[:30], known); err == nil {
		t.Error("truth of other rows is taken")
	}
}
