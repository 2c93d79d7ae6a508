package chance_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
)

// For the mean of many differences the interval is that of the normal
// approximation.
func TestPairedBootstrapAgainstNormal(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 0))
	const n = 300
	a, b := make([]float64, n), make([]float64, n)
	var mean, variance float64
	for i := range a {
		common := 10 * rng.NormFloat64() // cancels, if the pairs are kept
		a[i] = common + 0.3*rng.NormFloat64()
		b[i] = common + 0.4*rng.NormFloat64() + 0.1
		mean += (a[i] - b[i]) / n
	}
	for i := range a {
		variance += (a[i] - b[i] - mean) * (a[i] - b[i] - mean) / n
	}
	se := math.Sqrt(variance / n)
	for level, z := range map[float64]float64{0: 1.960, 0.5: 0.674, 0.99: 2.576} {
		got := chance.PairedBootstrap(a, b, chance.BootstrapOptions{Level: level, Resamples: 5000})
		testfile.Near(t, "mean", got.Mean, mean)
		// A quantile of 5,000 resamples is good to about 0.05 standard errors.
		if math.Abs(got.Low-(mean-z*se)) > 0.15*se || math.Abs(got.High-(mean+z*se)) > 0.15*se {
			t.Errorf("level %v: [%.4f, %.4f], want [%.4f, %.4f]", level, got.Low, got.High, mean-z*se, mean+z*se)
		}
	}
}

func TestPairedBootstrapSeedAndMirror(t *testing.T) {
	a := losses(100, 1)
	b := losses(100, 2)
	got := chance.PairedBootstrap(a, b, chance.BootstrapOptions{Seed: 1})
	if again := chance.PairedBootstrap(a, b, chance.BootstrapOptions{Seed: 1, Resamples: 2000, Level: 0.95}); again != got {
		t.Errorf("%v with zero options, %v with the defaults written out", got, again)
	}
	if other := chance.PairedBootstrap(a, b, chance.BootstrapOptions{Seed: 2}); other == got {
		t.Error("the interval does not depend on the seed")
	}
	mirror := chance.PairedBootstrap(b, a, chance.BootstrapOptions{Seed: 1})
	if want := (chance.Interval{Mean: -mirror.Mean, Low: -mirror.High, High: -mirror.Low}); got != want {
		t.Errorf("a−b gives %v, b−a %v", got, mirror)
	}
	if !(got.Low < got.Mean && got.Mean < got.High) {
		t.Errorf("mean outside the interval: %v", got)
	}
}

func TestPairedBootstrapExtremes(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, test := range []struct {
		name string
		a, b []float64
		want chance.Interval
	}{
		{"equal", []float64{1, 2, 3}, []float64{1, 2, 3}, chance.Interval{}},
		{"one pair", []float64{3}, []float64{1}, chance.Interval{Mean: 2, Low: 2, High: 2}},
		{"all infinite", []float64{inf, inf}, []float64{1, 2}, chance.Interval{Mean: inf, Low: inf, High: inf}},
		{"one infinite", []float64{inf, 1}, []float64{1, 1}, chance.Interval{Mean: inf, Low: 0, High: inf}},
		{"other infinite", []float64{1, 1}, []float64{inf, 1}, chance.Interval{Mean: -inf, Low: -inf, High: 0}},
		{"both infinite", []float64{inf, 1}, []float64{inf, 1}, chance.Interval{Mean: nan, Low: nan, High: nan}},
		{"opposite", []float64{inf, 1}, []float64{1, inf}, chance.Interval{Mean: nan, Low: nan, High: nan}},
		{"NaN", []float64{nan, 1}, []float64{1, 1}, chance.Interval{Mean: nan, Low: nan, High: nan}},
	} {
		got := chance.PairedBootstrap(test.a, test.b, chance.BootstrapOptions{})
		same := func(x, y float64) bool { return x == y || math.IsNaN(x) && math.IsNaN(y) }
		if !same(got.Mean, test.want.Mean) || !same(got.Low, test.want.Low) || !same(got.High, test.want.High) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
	// A level that leaves nothing between the ends still gives an interval.
	got := chance.PairedBootstrap([]float64{1, 2, 4, 8, 16}, make([]float64, 5), chance.BootstrapOptions{Resamples: 10, Level: 1e-9})
	if got.Low > got.High {
		t.Errorf("tiny level: %v", got)
	}
}

// Of one method, the other's losses are zeros.
func TestMeanBootstrap(t *testing.T) {
	losses := losses(80, 3)
	opts := chance.BootstrapOptions{Seed: 4, Resamples: 500}
	want := chance.MeanBootstrap(losses, opts)
	testfile.Near(t, "interval", chance.PairedBootstrap(losses, make([]float64, 80), opts), want)

	// Binomial: 30 wrong of 100 give 0.3 ± 1.96·√(0.3·0.7/100).
	wrong := make([]float64, 100)
	for i := range 30 {
		wrong[i] = 1
	}
	got := chance.MeanBootstrap(wrong, chance.BootstrapOptions{Resamples: 5000})
	if half := 1.96 * math.Sqrt(0.21/100); math.Abs(got.Low-0.3+half) > 0.015 || math.Abs(got.High-0.3-half) > 0.015 {
		t.Errorf("%v, want 0.3 ± %.3f", got, half)
	}
}

// losses returns NLLs of n predictions with probabilities drawn from [0, 1).
func losses(n int, seed uint64) []float64 {
	rng := rand.New(rand.NewPCG(seed, 0))
	out := make([]float64, n)
	for i := range out {
		out[i] = -math.Log(rng.Float64())
	}
	return out
}
