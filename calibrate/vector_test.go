package calibrate_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
)

func (p problem) fitVector(t *testing.T) calibrate.VectorScaling {
	t.Helper()
	v, err := calibrate.FitVectorScaling(p.logits, p.classes, p.labels)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// objective is what FitVectorScaling minimises, by way of Apply.
func (p problem) objective(v calibrate.VectorScaling) float64 {
	value := calibrate.NegLogLikelihood(calibrate.Predictions{Classes: p.classes, Probs: v.Apply(nil, p.logits), Labels: p.labels})
	for c := range v.Scale {
		u := v.Temperature*v.Scale[c] - 1
		value += v.Ridge / 2 * (u*u + v.Bias[c]*v.Bias[c])
	}
	return value
}

// The problem is convex: what is less than its neighbours in every coordinate of
// a smooth function is the minimum. And with the same scale for all classes it is
// temperature scaling, which must not do better.
func TestFitVectorScalingFindsMinimum(t *testing.T) {
	t.Parallel()
	alone := 0
	for seed := range uint64(60) {
		p, _ := randomProblem(seed)
		v := p.fitVector(t)
		if math.IsInf(v.Ridge, 1) {
			alone++
			if want := calibrate.Softmax(nil, p.logits, p.classes, v.Temperature); true {
				diff(t, "the temperature alone", v.Apply(nil, p.logits), want)
			}
			continue
		}
		best := p.objective(v)
		if !v.Converged || v.NLL > v.NLLBefore {
			t.Errorf("problem %d: %+v", seed, v)
		}
		if v.Steps > 80 {
			t.Errorf("problem %d: %d steps", seed, v.Steps)
		}
		for i := range 2 * p.classes {
			for _, d := range []float64{-1e-3, 1e-3} {
				w := calibrate.VectorScaling{Temperature: v.Temperature, Ridge: v.Ridge, Scale: slices.Clone(v.Scale), Bias: slices.Clone(v.Bias)}
				if i < p.classes {
					w.Scale[i] += d
				} else {
					w.Bias[i-p.classes] += d
				}
				if other := p.objective(w); other < best-1e-12 {
					t.Errorf("problem %d: %v, but %v with coordinate %d moved by %v", seed, best, other, i, d)
				}
			}
		}
		temperature := p.fit(t).T
		w := calibrate.VectorScaling{Temperature: v.Temperature, Ridge: v.Ridge, Bias: make([]float64, p.classes), Scale: make([]float64, p.classes)}
		for c := range w.Scale {
			w.Scale[c] = 1 / temperature
		}
		if other := p.objective(w); other < best-1e-12 {
			t.Errorf("problem %d: %v, but %v with the temperature %v", seed, best, other, temperature)
		}
		if same := calibrate.Softmax(nil, p.logits, p.classes, temperature); true {
			diff(t, "equal scales", w.Apply(nil, p.logits), same)
		}
	}
	if alone < 10 || alone > 50 {
		t.Errorf("in %d of 60 problems the temperature is best alone: this tests little", alone)
	}
}

func TestFitVectorScalingExtremes(t *testing.T) {
	inf := math.Inf(1)
	for name, p := range map[string]problem{
		"one row":          {[]float64{1, 2, 3}, 3, []int{0}},
		"equal logits":     {make([]float64, 12), 3, []int{0, 1, 2, 0}},
		"all one class":    {[]float64{3, 1, 2, 5, 0, 1}, 3, []int{0, 0}},
		"separable":        {[]float64{9, 0, 0, 9, 5, 1}, 2, []int{0, 1, 0}},
		"always wrong":     {[]float64{9, 0, 0, 9}, 2, []int{1, 0}},
		"far too sure":     {[]float64{800, 0, 0, 800, 700, 0}, 2, []int{0, 1, 1}},
		"far apart":        {[]float64{1e6, 0, 0, 1e6, 1e6, 2e6}, 2, []int{0, 1, 0}},
		"tiny":             {[]float64{1e-12, 0, 0, 1e-12, 1e-12, 0}, 2, []int{0, 1, 1}},
		"ruled out":        {[]float64{0, -1, -inf, -1, 0, -inf, -2, -1, -0.5}, 3, []int{0, 0, 2}},
		"always ruled out": {[]float64{0, -1, -inf, -1, 0, -inf}, 3, []int{0, 0}},
		"one class":        {[]float64{4, 5}, 1, []int{0, 0}},
	} {
		v := p.fitVector(t)
		if !v.Converged || v.NLL > v.NLLBefore {
			t.Errorf("%s: %+v", name, v)
		}
		probs := v.Apply(nil, p.logits)
		if p.classes == 1 {
			continue // no Predictions
		}
		got := calibrate.NegLogLikelihood(predictions(t, probs, p.classes, p.labels...))
		if math.Abs(got-v.NLL) > 1e-9*(1+v.NLL) && v.NLL < 700 { // beyond, probabilities are 0
			t.Errorf("%s: NLL %v, is %v", name, v.NLL, got)
		}
		for i, z := range p.logits {
			if math.IsInf(z, -1) && probs[i] != 0 {
				t.Errorf("%s: a class that is ruled out has probability %v", name, probs[i])
			}
		}
		in := slices.Clone(p.logits)
		diff(t, name+": in place", v.Apply(in, in), probs)
	}
	absent := problem{[]float64{3, 1, 2, 5, 0, 1}, 3, []int{0, 0}}.fitVector(t)
	if !slices.Equal(absent.Absent, []int{1, 2}) || !absent.Separated {
		t.Errorf("one class of three: %+v", absent)
	}
	if v := (problem{[]float64{2, 0, 2, 0}, 2, []int{0, 1}}).fitVector(t); v.Separated || v.Absent != nil {
		t.Errorf("not separable: %+v", v)
	}
}

// TestVectorGolden compares the chosen ridge and the fit with those of testdata/vector.py.
func TestVectorGolden(t *testing.T) {
	t.Parallel()
	var all []struct {
		Name           string
		Classes        int
		Logits         []float64
		Labels         []int
		Ridge          *float64 // nil for a temperature alone
		T, Before, NLL float64
		Scale, Bias    []float64
	}
	testfile.JSON(t, "testdata/vector.json", &all)
	ridges := map[float64]bool{}
	for _, want := range all {
		got, err := calibrate.FitVectorScaling(want.Logits, want.Classes, want.Labels)
		if err != nil {
			t.Fatal(err)
		}
		ridge := math.Inf(1)
		if want.Ridge != nil {
			ridge = *want.Ridge
		}
		if ridges[ridge] = true; got.Ridge != ridge {
			t.Errorf("%s: ridge %v, want %v", want.Name, got.Ridge, ridge)
		}
		for what, pair := range map[string][2][]float64{
			"T, NLL before": {{want.T, want.Before}, {got.Temperature, got.NLLBefore}}, "NLL": {{want.NLL}, {got.NLL}}, "scale": {want.Scale, got.Scale}, "bias": {want.Bias, got.Bias},
		} {
			if diff := cmp.Diff(pair[0], pair[1], cmpopts.EquateApprox(1e-6, 1e-6)); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", want.Name, what, diff)
			}
		}
		if !got.Converged || got.NLL > got.NLLBefore {
			t.Errorf("%s: %+v", want.Name, got)
		}
	}
	if len(ridges) < 4 {
		t.Errorf("the ridges %v alone: this tests little", ridges)
	}
}

// TestVectorFolds: rows of one unit stay together, and too few rows give a temperature alone.
func TestVectorFolds(t *testing.T) {
	p, _ := randomProblem(3)
	few := problem{p.logits[:9*p.classes], p.classes, p.labels[:9]}.fitVector(t)
	if !math.IsInf(few.Ridge, 1) || few.Warnings(9) == nil {
		t.Errorf("%+v of 9 rows", few)
	}
	n := len(p.labels)
	twice := problem{append(slices.Clone(p.logits), p.logits...), p.classes, append(slices.Clone(p.labels), p.labels...)}
	units := make([]int, 2*n)
	for i := range units {
		units[i] = i % n
	}
	distance := twice.fitVector(t)
	together, err := calibrate.FitVectorScalingFolds(twice.logits, p.classes, twice.labels, calibrate.UnitFolds(units, 2*n, calibrate.VectorFolds, 1))
	if err != nil || !(together.Ridge > distance.Ridge) {
		t.Errorf("ridge %v, want a larger one than %v, where folds share copies (%v)", together.Ridge, distance.Ridge, err)
	}
}
