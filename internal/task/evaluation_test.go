package task_test

import (
	"math"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Three examples of three classes: right, wrong, right.
var (
	outcomes = []float64{0.7, 0.2, 0.1, 0.5, 0.3, 0.2, 0.1, 0.1, 0.8}
	labels   = target.Target{Classes: []int{0, 1, 2}}
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-15 } // a few roundings of numbers below 1

// Metrics, losses and likelihoods are those of their definitions, written out.
func TestEvaluate(t *testing.T) {
	x := must(t, "", task.OutputSpec{Count: 3})
	nll := []float64{-math.Log(0.7), -math.Log(0.3), -math.Log(0.8)}
	brier := []float64{0.3*0.3 + 0.2*0.2 + 0.1*0.1, 0.5*0.5 + 0.7*0.7 + 0.2*0.2, 0.1*0.1 + 0.1*0.1 + 0.2*0.2}
	mean := func(v []float64) float64 { return (v[0] + v[1] + v[2]) / 3 }
	opts := task.EvaluateOptions{EvaluateOptions: calibrate.EvaluateOptions{ECE: calibrate.ECEOptions{Bins: 1}}}
	for _, mainOnly := range []bool{false, true} {
		opts.MainOnly = mainOnly
		e, err := task.Evaluate(x, outcomes, labels, opts)
		if err != nil {
			t.Fatal(err)
		}
		// In a single bin, ECE is the difference of mean confidence and accuracy: both are 2/3.
		for key, want := range map[string]float64{"accuracy": 2. / 3, "nll": mean(nll), "brier": mean(brier), "ece": 0} {
			if got := e.Value(key); !near(got, want) {
				t.Errorf("%s: %v, want %v", key, got, want)
			}
		}
		for i, want := range map[string][]float64{"nll": nll, "error": {0, 1, 0}, "brier": brier} {
			if !slices.EqualFunc(e.Loss(i), want, near) {
				t.Errorf("loss %s: %v, want %v", i, e.Losses, want)
			}
		}
		var keys []string
		for _, s := range e.Main() {
			keys = append(keys, s.Key)
		}
		if want := []string{"accuracy", "nll", "ece", "brier"}; !slices.Equal(keys, want) {
			t.Errorf("main metrics %q, want %q", keys, want)
		}
		if math.IsNaN(e.Value("aurc")) != mainOnly || (e.Reliability == nil) != mainOnly || (e.RiskCoverage == nil) != mainOnly {
			t.Errorf("main metrics only: %v, and there is %+v", mainOnly, e)
		}
	}
	if got := x.Likelihoods(outcomes, labels); !slices.Equal(got, []float64{0.7, 0.3, 0.8}) {
		t.Errorf("likelihoods %v", got)
	}
	if _, err := task.Evaluate(x, outcomes, target.Target{Classes: []int{0, 1, 3}}, opts); err == nil {
		t.Error("a label that is no class is taken")
	}
	defer func() {
		if recover() == nil {
			t.Error("a metric that does not exist has a value")
		}
	}()
	(&task.Evaluation{}).Value("none")
}

// Sets of all methods are of one level, above the best of their accuracies: of one
// that is right in 80 % and one in 96 %, of 99 %. Alone the first has sets of 90 %.
func TestAlign(t *testing.T) {
	x := must(t, "", task.OutputSpec{Count: 3})
	evaluate := func(right int) *task.Evaluation {
		var p []float64
		var y []int
		for i := range 400 {
			p, y = append(p, 0.7, 0.2, 0.1), append(y, 0)
			if i%100 >= right {
				y[i] = 1
			}
		}
		e, err := task.Evaluate(x, p, target.Target{Classes: y}, task.EvaluateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	low, high := evaluate(80), evaluate(96)
	size := low.Value("set_size")
	if level := low.Value("set_level"); level != 0.9 {
		t.Errorf("alone: sets of %v", level)
	}
	task.Align(low, high)
	for _, e := range []*task.Evaluation{low, high} {
		if level, covered := e.Value("set_level"), e.Value("set_coverage"); level != 0.99 || math.Abs(covered-0.99) > 0.03 {
			t.Errorf("sets of %v, that hold the true class in %v", level, covered)
		}
	}
	if now := low.Value("set_size"); !(now > size) {
		t.Errorf("sets of 99 %% have %v classes, of 90 %% %v", now, size)
	}
}

// Examples that are added to two evaluators, which are then merged, have the evaluation of all. Without outcomes of
// all examples the main metrics are the same.
func TestMerge(t *testing.T) {
	classes, known := twoClasses(60)
	two, three := must(t, "regression", twoTargets), must(t, "labels", task.OutputSpec{Count: 3})
	numbers, _, _, targets := mixtures(t, two, 60)
	probs, _, of, _ := drawn(t, three, 60)
	for name, tt := range map[string]struct {
		task     task.Task
		outcomes []float64
		targets  target.Target
	}{
		"classes":    {must(t, "", task.OutputSpec{Count: 2}), classes, known},
		"binary":     {must(t, "", task.OutputSpec{Count: 1}), classes, known},
		"labels":     {three, probs, of},
		"regression": {two, numbers, targets},
	} {
		width := tt.task.About().Width
		for _, opts := range []task.EvaluateOptions{{}, {MainOnly: true}, {MainOnly: true, NoLosses: true}} {
			want, err := task.Evaluate(tt.task, tt.outcomes, tt.targets, opts)
			if err != nil {
				t.Fatal(err)
			}
			first, second := task.NewEvaluator(tt.task, opts), task.NewEvaluator(tt.task, opts)
			for i := range 60 {
				e := first
				if i >= 25 {
					e = second
				}
				if err := e.Add(tt.outcomes[i*width:][:width], tt.targets.At(i)); err != nil {
					t.Fatal(err)
				}
			}
			first.Merge(second)
			got := first.Evaluation()
			if (got.Losses == nil) != opts.NoLosses || !slices.EqualFunc(got.Losses, want.Losses, func(a, b task.Loss) bool { return a.Key == b.Key && slices.Equal(a.Values, b.Values) }) {
				t.Errorf("%s: losses %v, want %v", name, got.Losses, want.Losses)
			}
			for i, s := range got.Scores {
				if w := want.Scores[i]; s.Metric != w.Metric || math.Abs(s.Value-w.Value) > 1e-12 || math.IsNaN(s.Value) != math.IsNaN(w.Value) {
					t.Errorf("%s: %+v, want %v", name, s, w.Value)
				}
			}
		}
	}
}

// What is less certain has the larger number, by every measure.
func TestUncertainties(t *testing.T) {
	x := must(t, "", task.OutputSpec{Count: 3})
	h := func(p ...float64) (s float64) {
		for _, p := range p {
			s -= p * math.Log(p)
		}
		return s
	}
	entropies := []float64{h(0.7, 0.2, 0.1), h(0.5, 0.3, 0.2), h(0.1, 0.1, 0.8)}
	expected := []float64{0.5, 0.25, 0.125}
	want := map[string][]float64{
		"entropy":            entropies,
		"mutual_information": {entropies[0] - 0.5, entropies[1] - 0.25, entropies[2] - 0.125},
		"max_probability":    {0.3, 0.5, 0.2},
	}
	for _, u := range x.Uncertainties() {
		got := u.Of(outcomes, expected)
		if !slices.EqualFunc(got, want[u.Key], func(a, b float64) bool { return math.Abs(a-b) < 1e-14 }) {
			t.Errorf("%s: %v, want %v", u.Key, got, want[u.Key])
		}
		if u.Members != (u.Key == "mutual_information") {
			t.Errorf("%s: is zero for a single network: %v", u.Key, u.Members)
		}
	}
}

// Calibrators repair probabilities by their logarithms: at temperature 1/2 they
// are squared.
func TestCalibrators(t *testing.T) {
	x := must(t, "", task.OutputSpec{Count: 3})
	p := []float64{0.7, 0.2, 0.1}
	sum := 0.7*0.7 + 0.2*0.2 + 0.1*0.1
	got := x.Apply(nil, &task.Calibration{Method: task.ByTemperature, Temperature: 0.5}, p)
	for c, want := range []float64{0.49 / sum, 0.04 / sum, 0.01 / sum} {
		if math.Abs(got[c]-want) > 1e-14 {
			t.Errorf("%v, want %v", got, want)
		}
	}
	// Labels as often right as the probabilities say ask for no change.
	var many []float64
	var of target.Target
	for i := range 100 {
		many = append(many, p...)
		switch {
		case i < 70:
			of.Classes = append(of.Classes, 0)
		case i < 90:
			of.Classes = append(of.Classes, 1)
		default:
			of.Classes = append(of.Classes, 2)
		}
	}
	for _, by := range x.Calibrators() {
		s, err := by.Fit(many, of)
		if err != nil {
			t.Fatal(err)
		}
		most := 1e-4 // as far as the fit runs
		if by.Name == "SVS" || by.Name == "SMS" {
			most = 5e-4 // their penalties are fixed
		}
		repaired := x.Apply(nil, s, p)
		for c := range p {
			if math.Abs(repaired[c]-p[c]) > most {
				t.Errorf("%s: %v of probabilities that are right: %v", by.Name, repaired, p)
			}
		}
		plain := by
		plain.CrossFits = nil
		if want, _ := task.CrossFits(x, plain, many, of, 1); by.CrossFits != nil {
			if c, err := by.CrossFits(many, of, 1); c != want {
				t.Errorf("%s with less work: %+v, %v, want %+v", by.Name, c, err, want)
			}
		}
		if c, err := task.CrossFits(x, by, many, of, 1); err != nil || c.Splits != calibrate.Splits || c.Folds != 2 || !near(c.NLLBefore, task.NLL(x, many, of)) {
			t.Errorf("%s: %+v, %v", by.Name, c, err)
		}
		crossed, err := task.CrossFit(x, by, many, of, 2, 1)
		if err != nil || len(crossed.Apply(x, many)) != len(many) || len(crossed.Each) != 2 {
			t.Errorf("%s: %+v; %v", by.Name, crossed, err)
		}
	}
}

// Columns take as many bytes as their values do.
func TestColumnBytes(t *testing.T) {
	for kind, want := range map[task.Kind]int{task.Float32: 12, task.Class: 12, task.Ranked: 36} {
		if got := (task.Column{Kind: kind, Shape: []int{3}}).Bytes(); got != want {
			t.Errorf("kind %v: %d bytes, want %d", kind, got, want)
		}
	}
	if got := (task.Column{Name: "x"}).Bytes(); got != 8 {
		t.Errorf("%d bytes, want 8", got)
	}
}
