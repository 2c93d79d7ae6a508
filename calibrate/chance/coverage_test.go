package chance_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/fixtures/reliability"
)

// sizes and wrongs are the numbers of examples and the shares of errors for which each printed interval must hold: in at least 93 % of
// 1,000 data sets, or it is not printed.
var (
	sizes  = []int{100, 300, 1000}
	wrongs = []float64{0.03, 0.1, 0.3}
)

// holds fails unless enough of the trials hold. A few trials allow for chance.
func holds(t *testing.T, what string, n int, wrong, held, shown float64) {
	t.Helper()
	if shown == 0 {
		t.Logf("%-34s n %4d, %2.0f %% wrong: not printed", what, n, 100*wrong)
		return
	}
	t.Logf("%-34s n %4d, %2.0f %% wrong: holds in %.3f of %.0f", what, n, 100*wrong, held/shown, shown)
	if least := 0.93 - 2.5*math.Sqrt(0.95*0.05/shown); held/shown < least {
		t.Errorf("%s: n = %d, %g wrong: holds in %.3f", what, n, wrong, held/shown)
	}
}

// The interval of a difference in NLL, where one of both makes at least FewErrors errors. Networks differ by noise, or by a temperature.
// The spread of the log-odds gives the share of errors.
func TestDifferenceOfLosses(t *testing.T) {
	t.Parallel()
	kinds := []struct {
		name  string
		apply func(r *rand.Rand, z float64) (a, b float64)
	}{
		{"noise", func(r *rand.Rand, z float64) (a, b float64) { return z + 0.5*r.NormFloat64(), z + 0.7*r.NormFloat64() }},
		{"a temperature of 2", func(_ *rand.Rand, z float64) (a, b float64) { return z, 2 * z }},
		{"a temperature of 1.05", func(_ *rand.Rand, z float64) (a, b float64) { return z / 1.05, z }},
	}
	trials := reliability.Figure(100, 1000)
	for _, kind := range kinds {
		for k, spread := range []float64{18, 5, 1.3} {
			r := rand.New(rand.NewPCG(72, uint64(k)))
			draw := func() (d float64, wrong [2]float64) {
				z := spread * r.NormFloat64()
				sign := 1.0
				if r.Float64() >= 1/(1+math.Exp(-z)) {
					sign = -1
				}
				a, b := kind.apply(r, z)
				for i, z := range []float64{a, b} {
					if sign*z < 0 {
						wrong[i] = 1
					}
				}
				return math.Log1p(math.Exp(-sign*a)) - math.Log1p(math.Exp(-sign*b)), wrong
			}
			real, of := 0.0, reliability.Figure(100_000, 2_000_000)
			for range of {
				d, _ := draw()
				real += d / float64(of)
			}
			for _, n := range sizes {
				held, shown := 0.0, 0.0
				for range trials {
					var losses []float64
					var wrong [2]float64
					for range n {
						d, w := draw()
						losses = append(losses, d)
						wrong[0], wrong[1] = wrong[0]+w[0], wrong[1]+w[1]
					}
					if max(wrong[0], wrong[1]) < chance.FewErrors {
						continue
					}
					shown++
					if i := chance.NewDifference(losses, 0); i.Low <= real && real <= i.High {
						held++
					}
				}
				if shown < float64(trials)/10 {
					shown = 0 // only data with many errors by chance show one
				}
				holds(t, "difference in NLL, "+kind.name, n, wrongs[k], held, shown)
			}
		}
	}
}

// The interval of the mean of shares: of the true labels of an example that its set has, and of a picture's pixels. By SciPy 1.17.1 the
// worth of 100 shares with mean 0.9 and variance 0.01 is 100·9·(1.959964/1.984217)²: beta.ppf gives the ends.
func TestExactMean(t *testing.T) {
	t.Parallel()
	variance := 0.01 * 99 // times n − 1
	if i := chance.ExactMean(90, variance+81, 100, 0.05); math.Abs(i.Low-0.8782262) > 1e-6 || math.Abs(i.High-0.9190429) > 1e-6 {
		t.Errorf("%+v", i)
	}
	if i := chance.ExactMean(100, 100, 100, 0.05); i.High != 1 || math.Abs(i.Low-0.9637833) > 1e-6 { // beta.ppf(0.025, 100, 1)
		t.Errorf("%+v", i)
	}
	r := rand.New(rand.NewPCG(72, 1))
	beta := func(a, b float64) float64 { x, y := gamma(r, a), gamma(r, b); return x / (x + y) }
	trials := reliability.Figure(300, 1000)
	for _, kind := range []struct {
		name string
		draw func(wrong float64) float64
	}{
		{"shares of labels", func(wrong float64) float64 {
			has, missed, p := 1+r.IntN(3), 0, beta(0.5, 0.5*(1-wrong)/wrong)
			for range has {
				if r.Float64() < p {
					missed++
				}
			}
			return 1 - float64(missed)/float64(has)
		}},
		{"shares of pixels", func(wrong float64) float64 { return 1 - beta(0.7, 0.7*(1-wrong)/wrong) }},
	} {
		for _, n := range sizes {
			for _, wrong := range wrongs {
				held := 0.0
				for range trials {
					sum, squares := 0.0, 0.0
					for range n {
						v := kind.draw(wrong)
						sum, squares = sum+v, squares+v*v
					}
					if i := chance.ExactMean(sum, squares, n, 0.05); i.Low <= 1-wrong && 1-wrong <= i.High {
						held++
					}
				}
				holds(t, kind.name, n, wrong, held, float64(trials))
			}
		}
	}
}

// gamma draws from the gamma distribution of any shape (Marsaglia and Tsang 2000).
func gamma(r *rand.Rand, shape float64) float64 {
	if shape < 1 {
		return gamma(r, shape+1) * math.Pow(r.Float64(), 1/shape)
	}
	d := shape - 1.0/3
	for {
		x := r.NormFloat64()
		if v := math.Pow(1+x/math.Sqrt(9*d), 3); v > 0 && math.Log(r.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}
