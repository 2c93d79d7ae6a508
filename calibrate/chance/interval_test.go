package chance_test

import (
	"math"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate/chance"
)

func TestWilson(t *testing.T) {
	// From testdata/wilson.py; both use the same formula in float64.
	for _, tt := range []struct {
		right, n int
		lo, hi   float64
	}{
		{0, 10, 0.0, 0.27753279986288926},
		{10, 10, 0.7224672001371109, 1.0},
		{5, 10, 0.236593090512564, 0.7634069094874361},
		{190, 200, 0.910421851861224, 0.9726173543992361},
		{1, 1, 0.20654931437723745, 1.0},
		{4999, 5000, 0.9988679109191603, 0.9999646942165605},
	} {
		share := float64(tt.right) / float64(tt.n)
		if got := chance.Wilson(share, tt.n); got.Mean != share || math.Abs(got.Low-tt.lo) > 1e-12 || math.Abs(got.High-tt.hi) > 1e-12 {
			t.Errorf("%d of %d: %v, want [%v, %v]", tt.right, tt.n, got, tt.lo, tt.hi)
		}
	}
}

// TestMost: one-sided bounds, from testdata/most.py.
func TestMost(t *testing.T) {
	many := make([]float64, 100)
	many[7] = 0.4
	for _, tt := range []struct {
		losses []float64
		want   float64
	}{
		{[]float64{0, 0, 0, 1}, 1.0270383417086508},
		{[]float64{0.1, 0.2, 0.3}, 0.3685854460847049},
		{[]float64{3, 3, 3, 0}, 4.015022576101368},
		{many, 0.014854688900078966},
		{[]float64{-1, 0.5, 2, 2.5, 9}, 7.1965034899684515},
		{[]float64{0.25, 0.25}, 0.25},
		{[]float64{5}, math.Inf(1)},
		{[]float64{5, math.Inf(1)}, math.Inf(1)},
	} {
		if got := chance.MostMean(tt.losses); got != tt.want && !(math.Abs(got-tt.want) < 1e-12) {
			t.Errorf("%v: at most %v, want %v", tt.losses, got, tt.want)
		}
	}
	for _, tt := range []struct {
		seen, n int
		want    float64
	}{{0, 100, 0.02951304960715664}, {3, 2000, 0.0038722231501592988}, {5, 5, 1}} {
		if got := chance.MostShare(tt.seen, tt.n); math.Abs(got-tt.want) > 1e-10 {
			t.Errorf("%d of %d: at most %v, want %v", tt.seen, tt.n, got, tt.want)
		}
	}
}
