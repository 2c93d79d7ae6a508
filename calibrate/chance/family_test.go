package chance

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The numbers are SciPy's 1.16: stats.t, stats.skew and stats.binomtest(...).proportion_ci(method="exact").
func TestFamily(t *testing.T) {
	near := func(what string, got, want float64) {
		if !(math.Abs(got-want) < 1e-9) { // quantiles are exact to 1e-10
			t.Errorf("%s: %.12g, want %.12g", what, got, want)
		}
	}
	losses := []float64{0.1, 0.2, 0.05, 1.7, 0.3, 0.02, 0.4, 0.9, 0.01, 0.6}
	for k, want := range map[Family][2]float64{1: {0.14491372903440247, 1.9987503938211442}, 8: {0.023904333615590356, 2.427225053507359}} {
		got := k.Mean(losses)
		near("mean", got.Mean, 0.428)
		near("low", got.Low, want[0])
		near("high", got.High, want[1])
	}
	wrong := make([]float64, 40)
	wrong[3], wrong[5], wrong[30] = 1, 1, 1
	got := Family(8).Share(wrong, 40)
	near("share, low", got.Low, 0.007344884303972303)
	near("share, high", got.High, 0.2598266088174071)
	got = Family(1).Share(make([]float64, 25), 25)
	near("no errors, low", got.Low, 0)
	near("no errors, high", got.High, 0.1371851715307125)
	got = Family(1).Share([]float64{0.2, 0.1, 0, 0.5, 0.25, 0.3}, 100) // Korn and Graubard
	near("units, low", got.Low, 0.0727457441928601)
	near("units, high", got.High, 0.4611374986505928)
	got = Family(1).Share([]float64{0.3, 0.3001}, 20) // units that agree by chance are worth no more than their examples
	near("alike, low", got.Low, 0.11896532554277421)
	near("alike, high", got.High, 0.542839707910244)

	if i := Family(2).Mean([]float64{1}); !math.IsInf(i.High, 1) {
		t.Errorf("one loss: %v", i)
	}
	if i := Family(2).Mean([]float64{1, math.Inf(1)}); !math.IsNaN(i.Low) {
		t.Errorf("an infinite loss: %v", i)
	}
	if i := Family(2).Mean([]float64{2, 2, 2}); i.Low != 2 || i.High != 2 {
		t.Errorf("equal losses: %v", i)
	}
}

// The interval of the group with the highest mean must hold although the data chose it. Ten groups are alike, which is the
// hardest case, and losses are as skewed as NLLs: log(1 + exp(−z)) with z from N(3.5, 2²).
func TestWorstGroupCoverage(t *testing.T) {
	loss := func(normal float64) float64 { return math.Log1p(math.Exp(-3.5 - 2*normal)) }
	target := 0.0 // by the trapezoidal rule
	for z := -10.0; z <= 10; z += 0.001 {
		target += loss(z) * math.Exp(-z*z/2) / math.Sqrt(2*math.Pi) * 0.001
	}
	const groups, runs = 10, 1500
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{50, 200} {
		covered, plain, together := 0, 0, 0
		for range runs {
			var worst, usual Interval
			all := true
			for range groups {
				losses := make([]float64, n)
				for i := range losses {
					losses[i] = loss(rng.NormFloat64())
				}
				got := Family(groups).Mean(losses)
				all = all && got.Low <= target && target <= got.High
				if got.Mean > worst.Mean {
					worst, usual = got, NewDifference(losses, 0).Interval
				}
			}
			for of, i := range map[*int]Interval{&covered: worst, &plain: usual} {
				if i.Low <= target && target <= i.High {
					*of++
				}
			}
			if all {
				together++
			}
		}
		share := func(n int) float64 { return float64(n) / runs }
		t.Logf("%d losses in each of %d groups: the interval of the worst group holds in %.3f, all in %.3f; a usual interval of the worst in %.3f", n, groups, share(covered), share(together), share(plain))
		if share(covered) < 0.95 { // the standard error is 0.006, and at least 0.97 is expected
			t.Errorf("%d losses: the interval of the worst group holds in %.3f", n, share(covered))
		}
		if share(together) < 0.88 {
			t.Errorf("%d losses: all intervals hold in %.3f", n, share(together))
		}
	}
}

// Patients have 20 examples each that err together. Intervals by patient must hold, and those by example must not.
func TestShareOfUnits(t *testing.T) {
	const patients, each, runs, target = 60, 20, 600, 0.1
	rng := rand.New(rand.NewPCG(3, 4))
	covered, naive := 0, 0
	for range runs {
		var units, all []float64
		for range patients {
			p, sum := 0.0, 0.0
			if rng.Float64() < 0.2 {
				p = 0.5 // mean target
			}
			for range each {
				v := 0.0
				if rng.Float64() < p {
					v = 1
				}
				all, sum = append(all, v), sum+v
			}
			units = append(units, sum/each)
		}
		for of, i := range map[*int]Interval{&covered: Family(1).Share(units, patients*each), &naive: Family(1).Share(all, patients*each)} {
			if i.Low <= target && target <= i.High {
				*of++
			}
		}
	}
	t.Logf("by patient %.3f, by example %.3f", float64(covered)/runs, float64(naive)/runs)
	if float64(covered)/runs < 0.93 || float64(naive)/runs > 0.8 {
		t.Errorf("intervals hold in %.3f by patient, and in %.3f by example", float64(covered)/runs, float64(naive)/runs)
	}
}
