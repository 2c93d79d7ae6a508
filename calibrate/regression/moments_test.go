package regression_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate/regression"
)

// Moments from sums are those of the mixture.
func TestMomentsOf(t *testing.T) {
	m := random(rand.New(rand.NewPCG(5, 6)), 30)
	var mean, square, variance float64
	for s, x := range m.Means {
		mean, square, variance = mean+x/30, square+x*x/30, variance+m.Variances[s]/30
	}
	want := m.Moments()
	diff(t, "from sums", regression.MomentsOf(mean, square, variance), want)
	diff(t, "paper's variance", want.Variance(), variance+square-mean*mean)
	if got := regression.MomentsOf(1e8, 1e16-2, 1).Epistemic; got != 0 {
		t.Errorf("rounding leaves %v, want 0", got)
	}
	if got := regression.MomentsOf(2, 3.9, 1).Epistemic; got >= 0 {
		t.Errorf("sums that do not belong together give %v", got)
	}
}

// Judged in the units of the network or in those of the user, a prediction differs by
// the units only.
func TestUnitsOfScores(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	z, u := random(rng, 6), regression.Units{Mean: -40, Std: 250}
	y := u.Mixture(z)
	diff(t, "moments", u.Moments(z.Moments()), y.Moments())
	for _, at := range []float64{-3, 0.2, 5} {
		got, in := y.Score(u.Target(at)), z.Score(at)
		diff(t, "log density", got.Mixture.LogLikelihood, in.Mixture.LogLikelihood-math.Log(250))
		diff(t, "CRPS", got.Mixture.CRPS, 250*in.Mixture.CRPS)
		diff(t, "PIT", got.Mixture.PIT, in.Mixture.PIT)
		diff(t, "interval", [2]float64{got.Mixture.Low, got.Mixture.High}, [2]float64{u.Target(in.Mixture.Low), u.Target(in.Mixture.High)})
		diff(t, "error", got.Error(), 250*in.Error())
		diff(t, "there and back", u.Network(u.Target(at)), at)
	}
}

func TestFitUnits(t *testing.T) {
	u, err := regression.FitUnits([]float64{1, 3, 5, 7})
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "units", u, regression.Units{Mean: 4, Std: math.Sqrt(5)})
	refused(t, u.Check(), "")
	refused(t, regression.Units{}.Check(), "standard deviation of the target 0, want a positive finite number")
	refused(t, regression.Units{Mean: math.NaN(), Std: 1}.Check(), "mean of the target NaN, want a finite number")
	for _, tt := range []struct {
		y    []float64
		want string
	}{
		{nil, "no rows, want at least one"},
		{[]float64{2, 2}, "all 2 targets are 2: they have no scale"},
		{[]float64{0.1, 0.1, 0.1, 0.1, 0.1, 0.1}, "all 6 targets are 0.1: they have no scale"}, // whose mean, rounded, is another
		{[]float64{2, math.NaN()}, "row 1: target NaN, want a finite number"},
	} {
		_, err := regression.FitUnits(tt.y)
		refused(t, err, tt.want)
	}
}

func TestVarianceHeadRefuses(t *testing.T) {
	for _, tt := range []struct {
		head regression.VarianceHead
		x    float64
		want string
	}{
		{regression.ByVariance, 1e-12, ""},
		{regression.ByVariance, -0.5, "variance -0.5, want a positive finite number"},
		{regression.ByVariance, 0, "variance 0, want a positive finite number"},
		{regression.ByVariance, math.NaN(), "variance NaN, want a positive finite number"},
		{regression.ByLogVariance, -800, "log-variance -800: variance 0, want a positive finite number"},
		{regression.ByLogVariance, 800, "log-variance 800: variance +Inf, want a positive finite number"},
		{regression.BySoftplus, math.NaN(), "softplus NaN: variance NaN, want a positive finite number"},
		{regression.BySoftplus, -700, ""},
		{regression.ByStd, 1e-12, ""},
		{regression.ByStd, -0.5, "std -0.5: variance -0.25, want a positive finite number"},
		{regression.ByLogStd, 400, "log-std 400: variance +Inf, want a positive finite number"},
	} {
		_, err := tt.head.Variance(tt.x)
		refused(t, err, tt.want)
	}
	for _, h := range regression.VarianceHeads() {
		refused(t, h.Check(), "")
	}
	refused(t, regression.VarianceHead("sigma").Check(), `variance head "sigma": want one of variance, log-variance, softplus, std, log-std or softplus-std`)
}
