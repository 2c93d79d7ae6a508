package chance

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
)

// The numbers are NumPy's and SciPy's 1.16: stats.ttest_1samp, stats.permutation_test, stats.binomtest and the formula of
// the variance in arrays.
func TestOverRuns(t *testing.T) {
	o := NewOverRuns([][]float64{{.1, -.2, .05, .3}, {-.1, -.4, 0, .1}, {-.3, -.25, .1, -.05}, {.02, -.3, -.2, .1}, {-.15, -.1, -.3, .05}}, 1)
	for what, v := range map[string][2]float64{
		"mean": {o.Mean, -0.0765}, "low": {o.Low, -0.30312549740902456}, "high": {o.High, 0.15277512311997235}, "standard error": {o.Standard, 0.07352833920786371},
		"degrees of freedom": {o.DoF, 3.1815211945878956}, "p": {o.P, 0.3729334310524748}, "paired t": {o.PairedT, 0.09610904304970942}, "sign flips": {o.SignFlip, 0.125},
		"share": {o.Better.Mean, 0.8}, "share, low": {o.Better.Low, 0.28358206388191054}, "share, high": {o.Better.High, 0.9949492366205319},
	} {
		if math.Abs(v[0]-v[1]) > 1e-9 { // quantiles are exact to 1e-10
			t.Errorf("%s: %.12g, want %.12g", what, v[0], v[1])
		}
	}
	if o.Bootstrap.Low < 0.2 || o.Bootstrap.High != 1 {
		t.Errorf("bootstrap %v", o.Bootstrap)
	}
	if o := NewOverRuns([][]float64{{0, math.Inf(1)}, {0, 0}}, 1); !math.IsNaN(o.Low) || !math.IsNaN(o.Better.Mean) {
		t.Errorf("an infinite loss: %+v", o)
	}
	same := NewOverRuns([][]float64{{0, 0}, {0, 0}}, 1)
	if same.P != 1 || same.Better.Mean != 0.5 || same.SignFlip != 1 || same.Low != 0 {
		t.Errorf("no difference: %+v", same)
	}
}

// TestOverRunsSkewed: a share of errors of 3 % makes the differences skewed. The interval holds in 93 to 97 % for 600 examples. P is
// below 0.05 where the interval excludes 0.
func TestOverRunsSkewed(t *testing.T) {
	const target = 0.03*0.6 + 0.97*0.02
	rng := rand.New(rand.NewPCG(5, 2))
	repeats := reliability.Figure(400, 8000)
	for _, runs := range []int{2, 4, 10} {
		covered := 0
		for range repeats {
			losses := make([][]float64, runs)
			for k := range losses {
				losses[k] = make([]float64, 600)
			}
			of := make([]float64, runs)
			for k := range of {
				of[k] = 0.004 * rng.NormFloat64()
			}
			for i := range 600 {
				size, width := 0.02, 0.01
				if rng.Float64() < 0.03 {
					size, width = 0.6, 0.5
				}
				base := size * rng.ExpFloat64()
				for k := range losses {
					losses[k][i] = base + of[k] + width*rng.NormFloat64()
				}
			}
			o := NewOverRuns(losses, 1)
			if o.Low <= target && target <= o.High {
				covered++
			}
			for k := range losses { // about 0
				for i := range losses[k] {
					losses[k][i] -= target + 0.004*of[0]
				}
			}
			if o := NewOverRuns(losses, 1); (o.P < 0.05) != (o.Low > 0 || o.High < 0) && math.Abs(o.P-0.05) > 1e-6 {
				t.Fatalf("%+v", o)
			}
		}
		share := float64(covered) / float64(repeats)
		t.Logf("%d runs: the interval holds in %.3f", runs, share)
		if slack := 3 * math.Sqrt(0.05*0.95/float64(repeats)); share < 0.93-slack || share > 0.975+slack {
			t.Errorf("%d runs: the interval holds in %.3f", runs, share)
		}
	}
}

// Intervals must hold for new runs and examples, and those of one run must not if runs differ.
func TestOverRunsCoverage(t *testing.T) {
	const target, repeats = -0.01, 800
	rng := rand.New(rand.NewPCG(1, 2))
	for _, test := range []struct {
		runs, examples         int
		ofRun, ofExample, both float64 // standard deviations
	}{
		{3, 200, 0.02, 0.1, 0.2}, {5, 300, 0.02, 0.3, 0.2}, {5, 300, 0, 0.3, 0.2}, {10, 100, 0.05, 0.2, 0.3},
	} {
		covered, one := 0, 0
		for range repeats {
			examples := make([]float64, test.examples)
			for i := range examples {
				examples[i] = test.ofExample * rng.NormFloat64()
			}
			var losses [][]float64
			for range test.runs {
				run, own := test.ofRun*rng.NormFloat64(), make([]float64, test.examples)
				for i := range own {
					own[i] = target + run + examples[i] + test.both*rng.NormFloat64()
				}
				losses = append(losses, own)
			}
			if o := NewOverRuns(losses, 1); o.Low <= target && target <= o.High {
				covered++
			}
			if d := NewDifference(losses[0], 0); d.Low <= target && target <= d.High {
				one++
			}
		}
		both, first := float64(covered)/repeats, float64(one)/repeats
		t.Logf("%+v: the interval holds in %.3f, that of the first run alone in %.3f", test, both, first)
		if both < 0.925 { // 0.94 at least, less two standard errors
			t.Errorf("%+v: the interval holds in %.3f", test, both)
		}
		if test.ofRun >= 0.05 && first > 0.8 {
			t.Errorf("%+v: the interval of one run holds in %.3f: the test shows nothing", test, first)
		}
	}
}
