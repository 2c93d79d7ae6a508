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
