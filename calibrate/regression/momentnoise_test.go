package regression_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
)

// The noise found from moments is the one that SciPy finds.
func TestMomentNoise(t *testing.T) {
	var problems []struct {
		Name                string
		Y, Means, Epistemic []float64
		Variance            float64
		Bound               bool
	}
	testfile.JSON(t, "testdata/momentnoise.json", &problems)
	if len(problems) < 6 {
		t.Fatal("testdata/momentnoise.json lacks problems")
	}
	for _, want := range problems {
		got, bound, err := regression.FitMomentNoise(want.Y, want.Means, want.Epistemic)
		if err != nil {
			t.Fatal(want.Name, err)
		}
		diff(t, want.Name, got, want.Variance)
		if bound != want.Bound {
			t.Errorf("%s: at its bound %v, want %v", want.Name, bound, want.Bound)
		}
	}
}

// Without members that differ, moments say what a mixture says, and both the RMSE.
func TestMomentNoiseOfOneNetwork(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	var y, means []float64
	square := 0.0
	for range 100 {
		y, means = append(y, rng.NormFloat64()), append(means, rng.NormFloat64())
		d := y[len(y)-1] - means[len(means)-1]
		square += d * d / 100
	}
	moments, _, err := regression.FitMomentNoise(y, means, make([]float64, len(y)))
	if err != nil {
		t.Fatal(err)
	}
	mixture, err := regression.FitMixtureNoise(y, means, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "noise", []float64{moments, mixture}, []float64{square, square})
}

func TestMomentNoiseRefuses(t *testing.T) {
	nan := math.NaN()
	for _, tt := range []struct {
		y, means, epistemic []float64
		want                string
	}{
		{nil, nil, nil, "no rows, want at least one"},
		{[]float64{1, nan}, []float64{0, 0}, []float64{0, 0}, "row 1: target NaN, want a finite number"},
		{[]float64{1, 2}, []float64{0, nan}, []float64{0, 0}, "row 1: mean NaN, want a finite number"},
		{[]float64{1, 2}, []float64{0, 0}, []float64{0, -1}, "row 1: epistemic variance -1, want 0 or more"},
		{[]float64{1, 2}, []float64{1, 2}, []float64{1, 1}, "every prediction is exact: no variance is likeliest"},
		{[]float64{1e200}, []float64{0}, []float64{0}, "the mean squared error is too large for float64"},
		{[]float64{3}, []float64{1}, []float64{0}, ""}, // one row will do
	} {
		_, _, err := regression.FitMomentNoise(tt.y, tt.means, tt.epistemic)
		refused(t, err, tt.want)
	}
}
