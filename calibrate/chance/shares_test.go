package chance_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/swagwrap/swagwrap/calibrate/chance"
)

// The interval of a difference in errors has a width without any error, and holds the figure and the target. That of a share is exact.
func TestShares(t *testing.T) {
	t.Parallel()
	if i := chance.ErrorDifference(0, 0, 100); i.Mean != 0 || !(i.Low < -0.02 && i.High > 0.02) {
		t.Errorf("%+v", i)
	}
	// By statsmodels 0.14: proportion_confint(97, 100, method="beta").
	if i := chance.Exact(0.97, 100); math.Abs(i.Low-0.9148237) > 1e-6 || math.Abs(i.High-0.9937702) > 1e-6 {
		t.Errorf("%+v", i)
	}
	rng := rand.New(rand.NewPCG(72, 6))
	const trials = 1000
	for _, n := range []int{100, 300, 1000} {
		for _, p := range []float64{0.03, 0.1, 0.3} {
			held, exact := 0, 0
			count := func(p float64) int {
				return int(distuv.Binomial{N: float64(n), P: p, Src: rng}.Rand())
			}
			for range trials {
				more := count(p / 3)
				less := int(distuv.Binomial{N: float64(n - more), P: p / 4 / (1 - p/3), Src: rng}.Rand())
				if i := chance.ErrorDifference(more, less, n); i.Low <= p/12 && p/12 <= i.High && i.Low <= i.Mean && i.Mean <= i.High {
					held++
				}
				if i := chance.Exact(float64(count(p))/float64(n), n); i.Low <= p && p <= i.High {
					exact++
				}
			}
			if held < 0.93*trials || exact < 0.93*trials {
				t.Errorf("n = %d, %g wrong: the difference holds in %d of %d, the share in %d", n, p, held, trials, exact)
			}
		}
	}
}
