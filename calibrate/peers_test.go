package calibrate_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
)

// peers is testdata/peers.json; testdata/peers.py says what is in it.
type peers struct {
	Seed uint64
	Sets []struct {
		Problem, Free                              int
		Kind                                       string
		Level, Penalty, Size, Coverage, Empty, Gap float64
		Thresholds                                 []*float64 // nil: infinite
	}
	Smooth []struct {
		Problem int
		Want    float64
	}
	Refinement []struct {
		Classes             int
		Probs               []float64
		Labels              []int
		NLL, Scaled, Mapped float64
	}
	Answering []struct {
		Confidence []float64 // nil: those of the problem before
		Right      []bool
		Risk       float64
		Want       *struct{ Threshold, Coverage, Wrong float64 } // nil: no threshold passes
	}
	Chance []struct {
		Level, Want float64
		Counts      []int
	}
	Range []struct {
		Level float64
		N     int
		Want  [2]float64
	}
}

func readPeers(t *testing.T) (p peers) {
	t.Helper()
	testfile.JSON(t, "testdata/peers.json", &p)
	if len(p.Sets) < 15 || len(p.Smooth) < 4 || len(p.Refinement) < 5 || len(p.Answering) < 9 || len(p.Chance) < 3 || len(p.Range) < 3 {
		t.Fatal("testdata/peers.json lacks problems")
	}
	return p
}

// Sets of classes equal TorchCP's on the same scores.
func TestSetsEqualTorchCP(t *testing.T) {
	t.Parallel()
	g, want := readGolden(t), readPeers(t)
	fits := map[string]func(calibrate.Predictions, float64, uint64) (calibrate.Conformal, error){"aps": calibrate.FitAPS, "raps": calibrate.FitRAPS, "classwise": calibrate.FitClasswise}
	for _, w := range want.Sets {
		source := g.Metrics[w.Problem]
		p := predictions(t, g.probs(source.Counts), source.Classes, source.Labels...)
		c, err := fits[w.Kind](p, w.Level, want.Seed)
		if err != nil {
			t.Fatalf("%s, %s of level %v: %v", source.Name, w.Kind, w.Level, err)
		}
		name := source.Name + ", " + w.Kind
		if c.Free != w.Free || c.Penalty != w.Penalty {
			t.Errorf("%s: rank %d, penalty %v, want %d, %v", name, c.Free, c.Penalty, w.Free, w.Penalty)
		}
		var thresholds []float64
		for _, x := range w.Thresholds {
			if x == nil {
				thresholds = append(thresholds, math.Inf(1))
			} else {
				thresholds = append(thresholds, *x)
			}
		}
		diff(t, name+": thresholds", c.Thresholds, thresholds)
		diff(t, name+": sets", c.Judge(p), calibrate.SetScores{Size: w.Size, Coverage: w.Coverage, Empty: w.Empty, ClassGap: w.Gap})
	}
	for _, w := range want.Chance {
		var labels []int
		for c, n := range w.Counts {
			labels = append(labels, slices.Repeat([]int{c}, n)...)
		}
		diff(t, "gap by chance", calibrate.ChanceGap(labels, w.Level), w.Want)
	}
	for _, w := range want.Range {
		low, high := calibrate.CoverageRange(w.Level, w.N)
		diff(t, "range of the coverage", [2]float64{low, high}, w.Want)
	}
}

// The smooth calibration error equals its definition. relplot's is held to the same in peers.py.
func TestSmoothECE(t *testing.T) {
	t.Parallel()
	g, want := readGolden(t), readPeers(t)
	for _, w := range want.Smooth {
		source := g.Metrics[w.Problem]
		p := predictions(t, g.probs(source.Counts), source.Classes, source.Labels...)
		if got := calibrate.Evaluate(p, calibrate.EvaluateOptions{}).SmoothECE; math.Abs(got-w.Want) > 2e-5 {
			t.Errorf("%s: smooth ECE %v, want %v", source.Name, got, w.Want)
		}
	}
	if got := calibrate.SmoothECE([]calibrate.TopLabel{{Confidence: 1, Correct: true}, {Confidence: 0}}); got > 1e-6 {
		t.Errorf("perfect predictions: smooth ECE %v", got)
	}
}

func TestRefinement(t *testing.T) {
	t.Parallel()
	want := readPeers(t)
	won := map[string]int{}
	for i, w := range want.Refinement {
		p := predictions(t, w.Probs, w.Classes, w.Labels...)
		best := min(w.NLL, w.Scaled, w.Mapped)
		diff(t, "NLL", calibrate.NegLogLikelihood(p), w.NLL)
		if got := calibrate.Refinement(p, want.Seed); !near(got, best) {
			t.Errorf("problem %d: refinement %v, want the least of %v, %v, %v", i, got, w.NLL, w.Scaled, w.Mapped)
		}
		won[map[float64]string{w.NLL: "itself", w.Scaled: "temperature", w.Mapped: "map"}[best]]++
	}
	if len(won) != 3 {
		t.Errorf("the least are %v, want each of the three once", won)
	}
	impossible := predictions(t, []float64{1, 0, 1, 0, 1, 0, 0.5, 0.5}, 2, 0, 1, 0, 1)
	if got := calibrate.Refinement(impossible, 1); !math.IsNaN(got) {
		t.Errorf("refinement %v of an impossible label", got)
	}
}

// Isotonic against values by hand; the maps of TestRefinement are against scikit-learn.
func TestIsotonic(t *testing.T) {
	for _, c := range []struct{ values, want []float64 }{
		{[]float64{1, 3, 5}, []float64{1, 3, 5}},
		{[]float64{3, 1}, []float64{2, 2}},
		{[]float64{6, 2, 3, 1, 4}, []float64{3, 3, 3, 3, 4}},
		{nil, nil},
	} {
		got := slices.Clone(c.values)
		if calibrate.Isotonic(got); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.values, got, c.want)
		}
	}
}

func TestFitAnswering(t *testing.T) {
	t.Parallel()
	var g []calibrate.TopLabel
	passed := 0
	for _, w := range readPeers(t).Answering {
		if w.Confidence != nil {
			g = nil
			for i, f := range w.Confidence {
				g = append(g, calibrate.TopLabel{Confidence: f, Correct: w.Right[i]})
			}
		}
		a, err := calibrate.FitAnswering(slices.Clone(g), w.Risk)
		if w.Want == nil {
			if err == nil {
				t.Errorf("risk %v: %+v, want an error", w.Risk, a)
			}
			continue
		}
		passed++
		diff(t, "rule", a, calibrate.Answering{Threshold: w.Want.Threshold, Coverage: w.Want.Coverage, Risk: w.Want.Wrong})
		coverage, risk := a.Judge(g)
		diff(t, "judged on the same examples", calibrate.Answering{Threshold: a.Threshold, Coverage: coverage, Risk: risk}, a)
	}
	if passed < 3 || passed == 9 {
		t.Errorf("%d of 9 have a threshold", passed)
	}
}

// Class-wise sets keep the guarantee for each class, where sets of one threshold do not: one class is hard.
func TestClasswiseKeepsItsGuarantee(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(32, 0))
	draw := func(n int) calibrate.Predictions {
		p := calibrate.Predictions{Classes: 3}
		for i := range n {
			label := i % 3
			z := []float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}
			if z[label] += 4; label == 2 {
				z[label] -= 4
			}
			p.Probs, p.Labels = append(p.Probs, calibrate.Softmax(nil, z, 3, 1)...), append(p.Labels, label)
		}
		return p
	}
	fit, use := draw(6000), draw(6000)
	each, err := calibrate.FitClasswise(fit, 0.9, 1)
	if err != nil {
		t.Fatal(err)
	}
	one, err := calibrate.FitAPS(fit, 0.9, 1)
	if err != nil {
		t.Fatal(err)
	}
	// A coverage of 2,000 by 2,000 examples has a standard error of 0.0095.
	if a, b := each.Judge(use), one.Judge(use); a.ClassGap > 0.03 || b.ClassGap < 0.05 || math.Abs(a.Coverage-0.9) > 0.03 || math.Abs(b.Coverage-0.9) > 0.03 {
		t.Errorf("class-wise %+v, one threshold %+v", a, b)
	}
}

// Of fits on n examples, 95 % cover as many new ones as [calibrate.CoverageRange] says.
func TestCoverageRange(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(33, 0))
	const n, fresh, draws = 60, 3000, 300
	low, high := calibrate.CoverageRange(0.9, n)
	inside := 0
	for seed := range uint64(draws) {
		c, err := calibrate.FitRAPS(sharpened(rng, n*10/7+1), 0.9, seed) // 70 % of them give the threshold
		if err != nil || c.N < n || c.N > n+1 {
			t.Fatal(c.N, err)
		}
		if got := c.Judge(sharpened(rng, fresh)).Coverage; low <= got && got <= high {
			inside++
		}
	}
	if share := float64(inside) / draws; math.Abs(share-0.95) > 0.05 {
		t.Errorf("%.3f of fits are in the range %v to %v", share, low, high)
	}
	if low, _ := calibrate.CoverageRange(0.99, 50); !math.IsNaN(low) {
		t.Errorf("from %v, with too few examples", low)
	}
}
