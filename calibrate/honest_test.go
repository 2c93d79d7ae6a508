package calibrate_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
)

// honest is testdata/honest.json; testdata/honest.py says what is in it.
type honest struct {
	Seed    uint64
	Crossed [][]struct {
		Folds, Splits         int
		Before, After, Spread float64
	}
	Metrics []struct {
		Name  string
		ECE15 float64
		Sets  []*struct{ Size, Coverage, Empty float64 } // nil: too few images
	}
	AUROC []struct {
		Name      string
		Low, High float64
	}
}

// Against SciPy, scikit-learn and torchmetrics: temperatures over random splits, the
// calibration error in 15 bins, sets of several levels, and the interval of an AUROC.
func TestHonest(t *testing.T) {
	t.Parallel()
	var h honest
	testfile.JSON(t, "testdata/honest.json", &h)
	g, e := readGolden(t), readExtended(t)
	if len(h.Crossed) != len(g.Temperature) || len(h.Metrics) != len(g.Metrics) || len(h.AUROC) != len(e.Detection) {
		t.Fatal("testdata/honest.json lacks problems")
	}
	for i, all := range h.Crossed {
		p := g.Temperature[i]
		for _, want := range all {
			got, err := problem{p.Logits, p.Classes, p.Labels}.crossFits(want.Folds, want.Splits, h.Seed)
			if err != nil {
				t.Fatal(err)
			}
			diff(t, "cross-fitted", got, calibrate.CrossFitted{Splits: want.Splits, Folds: want.Folds, NLLBefore: want.Before, NLLAfter: want.After, Spread: want.Spread})
			diff(t, "at best T", got.Best(), min(want.Before, want.After))
		}
	}
	for i, want := range h.Metrics {
		source := g.Metrics[i]
		p := predictions(t, g.probs(source.Counts), source.Classes, source.Labels...)
		m := calibrate.Evaluate(p, calibrate.EvaluateOptions{Seed: h.Seed})
		diff(t, want.Name+": ECE in 15 bins", m.ECE15, want.ECE15)
		for l, level := range calibrate.SetLevels() {
			nan := math.NaN()
			sets := calibrate.SetScores{Size: nan, Coverage: nan, Empty: nan}
			if w := want.Sets[l]; w != nil {
				sets = calibrate.SetScores{Size: w.Size, Coverage: w.Coverage, Empty: w.Empty}
			}
			got := m.Sets[l].APS
			sets.ClassGap = got.ClassGap // TestSetsEqualTorchCP checks it
			if m.Sets[l].Level != level || math.IsNaN(sets.Size) != math.IsNaN(got.Size) {
				t.Errorf("%s: sets %+v, want %+v", want.Name, m.Sets[l], sets)
			} else if !math.IsNaN(sets.Size) {
				diff(t, want.Name+": sets", got, sets)
			}
		}
	}
	for i, want := range h.AUROC {
		d := detect.Detect(e.Detection[i].In, e.Detection[i].Out)
		diff(t, want.Name+": interval of the AUROC", []float64{d.Low, d.High}, []float64{want.Low, want.High})
		if d.Reversed() {
			t.Errorf("%s: reversed, with the interval [%v, %v]", want.Name, d.Low, d.High)
		}
	}
	if d := detect.Detect([]float64{5, 6, 7, 8, 9, 10}, []float64{-1, 0, 1, 2, 3, 4}); !d.Reversed() {
		t.Errorf("an AUROC of 0 on six examples each is not reversed: [%v, %v]", d.Low, d.High)
	}
}

// The first split is that of CrossFit, a single image is in no two folds, and of
// probabilities that are right no temperature makes worse ones.
func TestCrossFits(t *testing.T) {
	p, _ := randomProblem(2)
	one, _ := p.cross(t, 2, 3)
	got, err := p.crossFits(0, 1, 3)
	if err != nil || got.NLLAfter != one || got.Folds != 2 || got.Spread != 0 {
		t.Errorf("%+v of one split, want %v; %v", got, one, err)
	}
	many, err := p.crossFits(0, 0, 3)
	if err != nil || many.Splits != calibrate.Splits || !(many.Spread > 0) {
		t.Errorf("%+v, %v", many, err)
	}
	if _, err := p.pick(0).crossFits(0, 0, 1); err == nil {
		t.Error("one image in two folds: no error")
	}

	// Labels drawn from the probabilities themselves: T = 1 is best, and what is fitted
	// costs 1/n for the two halves together. The mean over draws has that cost, within four
	// standard errors.
	const n, draws = 200, 150
	var sum, squares float64
	for seed := range uint64(draws) {
		q := fair(n, seed)
		c, err := q.crossFits(2, 0, seed)
		if err != nil {
			t.Fatal(err)
		}
		if c.Best() > c.NLLBefore {
			t.Fatalf("at its best temperature %v, without one %v", c.Best(), c.NLLBefore)
		}
		d := (c.NLLAfter - c.NLLBefore) * n
		sum, squares = sum+d, squares+d*d
	}
	mean := sum / draws
	if se := math.Sqrt((squares/draws - mean*mean) / draws); math.Abs(mean-1) > 4*se || se > 0.15 {
		t.Errorf("a temperature costs %.2f/n ± %.2f, want 1/n", mean, se)
	}
}

// fair has labels that are drawn from the softmax of its logits.
func fair(n int, seed uint64) problem {
	const classes = 3
	rng := rand.New(rand.NewPCG(seed, 43))
	q := problem{make([]float64, n*classes), classes, nil}
	for i := range q.logits {
		q.logits[i] = 1.5 * rng.NormFloat64()
	}
	for i := range n {
		q.labels = append(q.labels, draw(rng, calibrate.Softmax(nil, q.logits[i*classes:][:classes], classes, 1)))
	}
	return q
}
