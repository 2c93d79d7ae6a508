package calibrate_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
)

// noisyLosses are losses of settings over n images that differ from the first's by
// shift and noise of its own.
func noisyLosses(rng *rand.Rand, n int, shifts ...float64) [][]float64 {
	out := make([][]float64, len(shifts))
	for s := range out {
		out[s] = make([]float64, n)
	}
	for i := range n {
		image := rng.ExpFloat64()
		for s, shift := range shifts {
			out[s][i] = image + shift + 0.1*rng.NormFloat64()
		}
	}
	return out
}

// A setting that is better is chosen and said to be so; among settings that are
// equal hardly ever is one said to be better than the standard, however many there
// are to choose from.
func TestChoose(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 7))
	losses := noisyLosses(rng, 500, 0, 0, 0.03, -0.05, 0.01)
	for _, held := range [][][]float64{losses, nil} {
		c := calibrate.Choose(losses, held, 1, 1)
		if c.Best != 3 || !(c.Gain.High < 0) || math.Abs(c.Gain.Mean+0.05) > 0.02 /* three standard errors */ || c.Shares[3] < 0.99 || held == nil && c.Halves != [2]int{3, 3} {
			t.Errorf("measured on others %v: %+v", held != nil, c)
		}
	}
	false95, best := 0, 0.0
	const repeats = 100
	for k := range repeats {
		losses := noisyLosses(rng, 200, make([]float64, 12)...)
		c := calibrate.Choose(losses, nil, 1, uint64(k))
		if c.Gain.High < 0 {
			false95++
		}
		best += c.Shares[c.Best] / repeats
	}
	// 2.5 % of 100 and five standard errors more.
	if false95 > 10 {
		t.Errorf("%d of %d choices among equals were said to be better", false95, repeats)
	}
	if best > 0.6 {
		t.Errorf("the best of twelve equals is said to be so in %.0f %% of resamples", 100*best)
	}
	// The standard setting wins ties.
	equal := [][]float64{{1, 2, 3}, {1, 2, 3}, {1, 2, 3}}
	if c := calibrate.Choose(equal, nil, 1, 1); c.Best != 1 || c.Gain.High < 0 || c.Shares[1] < 0.999 {
		t.Errorf("equal settings: %+v", c)
	}
}

// What a half chose is measured on the other: a setting that is good on the first
// images only must not gain by them.
func TestChooseIsHeldOut(t *testing.T) {
	validation, test := noisyLosses(rand.New(rand.NewPCG(1, 1)), 400, 0, 0, -0.2), noisyLosses(rand.New(rand.NewPCG(2, 2)), 400, 0, 0, 0.1)
	if c := calibrate.Choose(validation, test, 1, 1); c.Best != 2 || math.Abs(c.Gain.Mean-0.1) > 0.03 {
		t.Errorf("chosen on validation data, measured on test data: %+v", c)
	}
	// Each of 400 settings is best on one image.
	losses := make([][]float64, 401)
	for s := range losses {
		losses[s] = slices.Repeat([]float64{1}, 400)
		if s > 1 {
			losses[s][s-2] = 0
		}
	}
	if c := calibrate.Choose(losses, nil, 1, 1); c.Gain.Mean != 0 {
		t.Errorf("a setting gains %v from the images that chose it", c.Gain.Mean)
	}
}

// There is no other half to measure a single image on.
func TestChooseOfOneImage(t *testing.T) {
	if c := calibrate.Choose([][]float64{{2}, {3}}, nil, 1, 1); c.Best != 0 || c.Gain != (calibrate.Interval{}) || c.Halves != [2]int{} || c.Shares[0] != 1 {
		t.Errorf("%+v", c)
	}
}
