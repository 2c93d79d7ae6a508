package calibrate_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
)

// TestMatchTemperature: probabilities that are a softmax at some temperature give that temperature, labels give
// FitTemperature's, and an excluded class stays finite. The third case is scipy.optimize.minimize_scalar's (SciPy 1.16,
// bounded, xatol 1e-12).
func TestMatchTemperature(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const n, classes = 200, 4
	z := make([]float64, n*classes)
	for i := range z {
		z[i] = 3 * r.NormFloat64()
	}
	for _, want := range []float64{0.5, 1, 1.3, 4} {
		if got := calibrate.MatchTemperature(z, classes, calibrate.Softmax(nil, z, classes, want)); math.Abs(got.T-want) > 1e-9*want {
			t.Errorf("T = %v, want %v", got.T, want)
		}
	}

	labels, hard := make([]int, n), make([]float64, n*classes)
	for i := range labels {
		labels[i] = r.IntN(classes)
		hard[i*classes+labels[i]] = 1
	}
	want, err := calibrate.FitTemperature(z, classes, labels)
	if got := calibrate.MatchTemperature(z, classes, hard); err != nil || math.Abs(got.T-want.T) > 1e-9*want.T {
		t.Errorf("of labels T = %v, want %v (%v)", got.T, want.T, err)
	}

	got := calibrate.MatchTemperature([]float64{2, 0, -1, 0.5, 1, 3}, 3, []float64{0.7, 0.2, 0.1, 0.3, 0.3, 0.4})
	const scipy = 2.545494922
	if math.Abs(got.T-scipy) > 1e-6 {
		t.Errorf("T = %.9f, want %v", got.T, scipy)
	}
	if got := calibrate.MatchTemperature([]float64{0, math.Inf(-1), -1}, 3, []float64{0.6, 1e-6, 0.4 - 1e-6}); math.IsNaN(got.T) || got.T < 1 {
		t.Errorf("with an excluded class T = %v", got.T)
	}
}
