package calibrate_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
)

// cross returns what a scaler cross-fits, and checks that its NLL is that of the
// probabilities.
func (p problem) cross(t *testing.T, m calibrate.Scaler, folds int, seed uint64) ([]float64, *calibrate.Scaling) {
	t.Helper()
	probs, s, err := m.CrossFit(nil, p.logits, p.classes, p.labels, folds, seed)
	if err != nil {
		t.Fatal(err)
	}
	// At a bound a probability can be 0 whose logarithm is not infinite.
	if nll := calibrate.NegLogLikelihood(predictions(t, probs, p.classes, p.labels...)); !math.IsInf(nll, 1) {
		diff(t, "NLL", s.NLLAfter, nll)
	}
	diff(t, "NLL before", s.NLLBefore, p.nll(1))
	if !s.CrossFitted || s.Vector != nil {
		t.Errorf("%s: %+v", m, s)
	}
	return probs, s
}

// A scaler's fit is that of the function of its name, and what it applies too.
func TestScalerFit(t *testing.T) {
	p, _ := randomProblem(2)
	T, v := p.fit(t), p.fitVector(t)
	for _, tt := range []struct {
		m             calibrate.Scaler
		before, after float64
		probs         []float64
	}{
		{calibrate.ByTemperature, T.NLLBefore, T.NLLAfter, calibrate.Softmax(nil, p.logits, p.classes, T.T)},
		{calibrate.ByVector, v.NLLBefore, v.NLL, v.Apply(nil, p.logits)},
	} {
		s, err := tt.m.Fit(p.logits, p.classes, p.labels)
		if err != nil {
			t.Fatal(err)
		}
		if s.NLLBefore != tt.before || s.NLLAfter != tt.after || s.CrossFitted || s.AtBound || !slices.Equal(s.Apply(nil, p.logits, p.classes), tt.probs) {
			t.Errorf("%s: %+v, want the NLL %v", tt.m, s, tt.after)
		}
		z := slices.Clone(p.logits)
		if s.Apply(z, z, p.classes); !slices.Equal(z, tt.probs) {
			t.Errorf("%s: another result in place", tt.m)
		}
		if n := testing.AllocsPerRun(10, func() { s.Apply(z, p.logits, p.classes) }); n > 0 {
			t.Errorf("%s: %v allocations", tt.m, n)
		}
		copy(z, p.logits)
		want, _ := p.cross(t, tt.m, 3, 4)
		if got, _, err := tt.m.CrossFit(z, z, p.classes, p.labels, 3, 4); err != nil || !slices.Equal(got, want) || &got[0] != &z[0] {
			t.Errorf("%s: another cross-fit in place, error %v", tt.m, err)
		}
	}
}

// Both ways to fit warn in the same words.
func TestScalingWarnings(t *testing.T) {
	hopeless := problem{[]float64{3, 0, 0, 3, 3, 0, 0, 3, 3, 0, 0, 3}, 2, []int{1, 0, 1, 0, 1, 0}}
	separable := problem{[]float64{9, 0, 1, 0, 9, 1, 9, 5, 1, 0, 9, 1, 9, 0, 2}, 3, []int{0, 1, 0, 1, 0}}
	enough := problem{slices.Repeat([]float64{1, 0, 0, 1, 1, 0}, 40), 2, slices.Repeat([]int{0, 1, 1}, 40)}
	for _, tt := range []struct {
		name string
		m    calibrate.Scaler
		p    problem
		want []string
	}{
		{"always wrong", calibrate.ByTemperature, hopeless, []string{"T = 1000 is at its bound, so it only tells the direction: fit on more rows"}},
		{"always right", calibrate.ByTemperature, separable, []string{"T = 0.001 is at its bound"}},
		{"a class without labels", calibrate.ByVector, separable, []string{
			"all rows fitted on are right after scaling",
			"classes without a label among the rows fitted on: 1 of 3, the first is 2;",
			"6 numbers are fitted on ROWS rows: a temperature is safer below 60"}},
		{"enough", calibrate.ByVector, enough, nil},
		{"enough", calibrate.ByTemperature, enough, nil},
	} {
		s, err := tt.m.Fit(tt.p.logits, tt.p.classes, tt.p.labels)
		if err != nil {
			t.Fatal(err)
		}
		_, crossed := tt.p.cross(t, tt.m, 2, 1)
		for rows, s := range map[string]*calibrate.Scaling{"5": s, "2": crossed} {
			if atBound := tt.m == calibrate.ByTemperature && tt.want != nil; s.AtBound != atBound {
				t.Errorf("%s: at bound %v", tt.name, s.AtBound)
			}
			if len(s.Warnings) != len(tt.want) {
				t.Fatalf("%s: warnings %v, want %v", tt.name, s.Warnings, tt.want)
			}
			for i, w := range s.Warnings {
				if want := strings.Replace(tt.want[i], "ROWS", rows, 1); !strings.HasPrefix(w.Error(), want) {
					t.Errorf("%s: warning %q, want %q", tt.name, w, want)
				}
			}
		}
	}
}

func TestCrossFitNLL(t *testing.T) {
	p, _ := randomProblem(2)
	n := len(p.labels)

	// With as many folds as images the split is known, up to its order.
	_, s := p.cross(t, calibrate.ByTemperature, n, 1)
	nll, ts := s.NLLAfter, s.Temperatures
	var want float64
	var wantTs []float64
	for i := range n {
		lo, hi := i*p.classes, (i+1)*p.classes
		others := problem{slices.Concat(p.logits[:lo], p.logits[hi:]), p.classes, slices.Concat(p.labels[:i], p.labels[i+1:])}
		T := others.fit(t).T
		wantTs = append(wantTs, T)
		want += problem{p.logits[lo:hi], p.classes, p.labels[i : i+1]}.nll(T) / float64(n)
	}
	slices.Sort(ts)
	slices.Sort(wantTs)
	diff(t, "NLL, one image left out", nll, want)
	diff(t, "temperatures, one image left out", ts, wantTs)

	// Unseen labels are harder than seen ones.
	if fit := p.fit(t); nll < fit.NLLAfter {
		t.Errorf("cross-fitted NLL %v is below the fitted %v", nll, fit.NLLAfter)
	}
}

// Of three images in two folds one is alone, and each image counts the same.
func TestCrossFitNLLUnevenFolds(t *testing.T) {
	p := problem{[]float64{2, 0, 1, 0, 0, 3}, 2, []int{0, 1, 1}}
	pick := func(rows ...int) (q problem) {
		q.classes = 2
		for _, i := range rows {
			q.logits = append(q.logits, p.logits[2*i:2*i+2]...)
			q.labels = append(q.labels, p.labels[i])
		}
		return q
	}
	_, s := p.cross(t, calibrate.ByTemperature, 2, 1)
	got := s.NLLAfter
	for i := range 3 {
		one, two := pick(i), pick((i+1)%3, (i+2)%3)
		want := (one.nll(two.fit(t).T) + 2*two.nll(one.fit(t).T)) / 3
		if math.Abs(got-want) < 1e-9*want {
			return
		}
	}
	t.Errorf("NLL %v fits none of the three splits", got)
}

func TestCrossFitNLLSplit(t *testing.T) {
	p, _ := randomProblem(2)
	run := func(folds int, seed uint64) (float64, []float64) {
		t.Helper()
		_, s := p.cross(t, calibrate.ByTemperature, folds, seed)
		return s.NLLAfter, s.Temperatures
	}
	nll, ts := run(0, 1)
	if again, _ := run(2, 1); again != nll || len(ts) != 2 {
		t.Errorf("0 folds give %v and %d temperatures, 2 folds %v", nll, len(ts), again)
	}
	if other, _ := run(2, 2); other == nll {
		t.Error("the split does not depend on the seed")
	}
	if _, ts := run(7, 1); len(ts) != 7 {
		t.Errorf("7 folds give %d temperatures", len(ts))
	}
	if _, _, err := calibrate.ByTemperature.CrossFit(nil, p.logits[:p.classes], p.classes, p.labels[:1], 0, 1); err == nil {
		t.Error("one image in two folds: no error")
	}
}

// Each row's probabilities come from a fit that has not seen its label.
func TestCrossFitVector(t *testing.T) {
	p, _ := randomProblem(2)
	n := len(p.labels)
	// With one image left out the others are known.
	vector, _ := p.cross(t, calibrate.ByVector, n, 9)
	for _, i := range []int{0, n / 2, n - 1} {
		lo, hi := i*p.classes, (i+1)*p.classes
		others := problem{slices.Concat(p.logits[:lo], p.logits[hi:]), p.classes, slices.Concat(p.labels[:i], p.labels[i+1:])}
		v := others.fitVector(t)
		for c, x := range v.Apply(nil, p.logits[lo:hi]) {
			// Where the sums are in another order, the fit is the same to about 1e-8.
			if math.Abs(x-vector[lo+c]) > 1e-6 {
				t.Errorf("row %d, class %d: %v, want %v", i, c, vector[lo+c], x)
			}
		}
	}
}

// What nobody can tell from the labels of the fit: a fresh draw is worse than the
// fitting set says, and cross-fitting sees it.
func TestCrossFitVectorIsHonest(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 0))
	const n, classes = 60, 8
	z, labels := make([]float64, n*classes), make([]int, n)
	for i := range z {
		z[i] = rng.NormFloat64()
	}
	for i := range labels {
		labels[i] = rng.IntN(classes)
	}
	p := problem{z, classes, labels}
	v := p.fitVector(t)
	_, crossed := p.cross(t, calibrate.ByVector, 0, 1)
	if !(v.NLL < math.Log(classes) && crossed.NLLAfter > math.Log(classes)) {
		t.Errorf("NLL of noise: %.3f fitted and %.3f cross-fitted, of a guess %.3f", v.NLL, crossed.NLLAfter, math.Log(classes))
	}
}
