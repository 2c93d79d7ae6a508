package calibrate_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
)

// Against probmetrics and venn-abers; testdata/calibrators.py says more.
func TestCalibratorsGolden(t *testing.T) {
	t.Parallel()
	var problems []struct {
		Classes             int
		Logits, New         []float64
		Labels              []int
		Target              []int `json:"truth"`
		SVS, SMS, Quadratic float64
		VennAbers           []float64 `json:"venn_abers"`
	}
	testfile.JSON(t, "testdata/calibrators.json", &problems)
	if len(problems) < 7 {
		t.Fatal("testdata/calibrators.json lacks problems")
	}
	for k, p := range problems {
		check := func(name string, probs []float64, want float64) {
			if got := calibrate.NegLogLikelihood(calibrate.Predictions{Classes: p.Classes, Probs: probs, Labels: p.Target}); !(math.Abs(got-want) < 1e-4) {
				t.Errorf("problem %d: %s: NLL %v, want %v", k, name, got, want)
			}
		}
		v, err := calibrate.FitStructuredScaling(p.Logits, p.Classes, p.Labels)
		if err != nil || v.Undetermined() != "" {
			t.Fatal(err, v.Undetermined())
		}
		check("structured vector scaling", v.Apply(nil, p.New), p.SVS)
		m, err := calibrate.FitMatrixScaling(p.Logits, p.Classes, p.Labels)
		if err != nil || m.Undetermined() != "" {
			t.Fatal(err, m.Undetermined())
		}
		check("structured matrix scaling", m.Apply(nil, p.New), p.SMS)
		if p.Classes != 2 {
			continue
		}
		q, err := calibrate.FitQuadraticScaling(p.Logits, p.Labels)
		if err != nil || q.Undetermined() != "" {
			t.Fatal(err, q.Undetermined())
		}
		check("quadratic scaling", q.Apply(nil, p.New), p.Quadratic)
		a, err := calibrate.FitVennAbers(p.Logits, p.Labels)
		if err != nil || a.Undetermined() != "" {
			t.Fatal(err, a.Undetermined())
		}
		for i, got := range a.Apply(nil, p.New) {
			if i%2 == 1 && math.Abs(got-p.VennAbers[i/2]) > 1e-9 {
				t.Errorf("problem %d: Venn-Abers: row %d: %v, want %v", k, i/2, got, p.VennAbers[i/2])
			}
		}
	}
}

// Venn-Abers is the definition: two isotonic regressions for each score, with ties.
func TestVennAbersDefinition(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(57, 1))
	for range 200 {
		n := 1 + rng.IntN(12)
		scores, labels, logits := make([]float64, n), make([]int, n), make([]float64, 2*n)
		for i := range n {
			scores[i], labels[i] = float64(rng.IntN(5)), rng.IntN(2)
			logits[2*i+1] = scores[i]
		}
		v, err := calibrate.FitVennAbers(logits, labels)
		if err != nil {
			t.Fatal(err)
		}
		for s := -0.5; s < 6; s += 0.5 {
			p0, p1 := v.Interval(s)
			testfile.Near(t, "p0", p0, isotonicAt(append(slices.Clone(scores), s), append(slices.Clone(labels), 0)))
			testfile.Near(t, "p1", p1, isotonicAt(append(slices.Clone(scores), s), append(slices.Clone(labels), 1)))
		}
	}
}

// isotonicAt returns the isotonic regression at the last score: max over a ≤ s of min over b ≥ s of the mean label in [a, b].
func isotonicAt(scores []float64, labels []int) float64 {
	s, best := scores[len(scores)-1], math.Inf(-1)
	for _, a := range scores {
		if a > s {
			continue
		}
		least := math.Inf(1)
		for _, b := range scores {
			if b < s {
				continue
			}
			count, sum := 0.0, 0.0
			for i, x := range scores {
				if a <= x && x <= b {
					count, sum = count+1, sum+float64(labels[i])
				}
			}
			least = min(least, sum/count)
		}
		best = max(best, least)
	}
	return best
}

// The data do not determine some fits, and a matrix of too many classes is refused.
func TestCalibratorsUndetermined(t *testing.T) {
	t.Parallel()
	var logits []float64
	var right, one []int
	for i := range 40 {
		logits, right, one = append(logits, 0, float64(i)-19.5), append(right, i/20), append(one, 1)
	}
	for name, labels := range map[string][]int{"separated": right, "one label": one} {
		q, err := calibrate.FitQuadraticScaling(logits, labels)
		if err != nil || q.Undetermined() == "" {
			t.Errorf("%s: quadratic scaling: %v %v", name, q, err)
		}
		v, err := calibrate.FitStructuredScaling(logits, 2, labels)
		if err != nil || v.Undetermined() == "" {
			t.Errorf("%s: structured scaling: %v %v", name, v, err)
		}
	}
	if a, err := calibrate.FitVennAbers(logits, one); err != nil || a.Undetermined() == "" {
		t.Errorf("Venn-Abers of one label: %v", err)
	}
	if a, err := calibrate.FitVennAbers(logits[:8], right[:4]); err != nil || a.Undetermined() == "" {
		t.Errorf("Venn-Abers of few rows: %v", err)
	}
	if _, err := calibrate.FitStructuredScaling([]float64{math.NaN(), 0}, 2, []int{0}); err == nil {
		t.Error("no error for NaN")
	}
}
