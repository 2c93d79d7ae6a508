package chance_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate/chance"
)

// drawPairs adds antithetic pairs of outcomes f(z) = b·z + c·(z² − 1) of some examples with numbers z of their own, whose odd
// part has the variance b² and whose even part 2c². Each outcome has a second number, scale times as large.
func drawPairs(a *chance.Antithetic, rng *rand.Rand, pairs int, b, c, scale float64) {
	const examples = 200
	z := make([]float64, examples)
	for range pairs {
		for i := range z {
			z[i] = rng.NormFloat64()
		}
		for _, sign := range []float64{1, -1} {
			var outcomes []float64
			for _, z := range z {
				f := b*sign*z + c*(z*z-1)
				outcomes = append(outcomes, f, scale*f)
			}
			a.Add(outcomes)
		}
	}
}

// The number of pairs is that whose error is the error of independent members, at least 3 and at most half as many.
func TestAntitheticPairs(t *testing.T) {
	for _, tc := range []struct {
		b, c  float64
		want  int
		enter int // pairs that are drawn
	}{
		{1, 0, 3, 3},    // linear: any pair has the average, and three tell so
		{1, 0.5, 11, 9}, // 30·0.5/1.5, as nine pairs estimate it
		{1, 0.5, 10, 10},
		{0, 1, 15, 14}, // nothing cancels
		{0, 1, 15, 15},
		{0, 0, 3, 3}, // all alike
	} {
		for _, different := range []bool{false, true} {
			a := chance.NewAntithetic(2, different)
			drawPairs(a, rand.New(rand.NewPCG(7, 0)), tc.enter, tc.b, tc.c, 100)
			if pairs, ok := a.Pairs(30); pairs != tc.want || ok != (tc.enter >= tc.want) {
				t.Errorf("%+v, units %v: %d pairs, enough %v", tc, different, pairs, ok)
			}
		}
	}
	a := chance.NewAntithetic(2, false)
	for _, fewer := range []int{0, 1, 2} {
		if _, ok := a.Pairs(30); ok {
			t.Errorf("%d pairs are enough", fewer)
		}
		drawPairs(a, rand.New(rand.NewPCG(7, uint64(fewer))), 1, 1, 0, 1)
	}
	if pairs, ok := a.Pairs(4); pairs != 2 || !ok {
		t.Errorf("%d pairs for four members", pairs)
	}
}

// A number with small units counts only if units differ.
func TestAntitheticUnits(t *testing.T) {
	want := map[bool]int{false: 1, true: 15} // of the second number nothing cancels
	for different, least := range want {
		a := chance.NewAntithetic(2, different)
		rng := rand.New(rand.NewPCG(3, 0))
		for range 15 {
			z, y := rng.NormFloat64(), rng.NormFloat64()
			a.Add([]float64{1000 * z, y*y - 1})
			a.Add([]float64{-1000 * z, y*y - 1})
		}
		if pairs, _ := a.Pairs(30); pairs != max(3, least) {
			t.Errorf("units differ %v: %d pairs", different, pairs)
		}
	}
}

// Pairs stopped by the rule have the error that 30 independent members have, on average.
func TestAntitheticError(t *testing.T) {
	const examples, b, c = 300, 1, 0.45
	rng := rand.New(rand.NewPCG(11, 0))
	squared, runs := 0.0, 300
	for range runs {
		a, sum, members, outcomes := chance.NewAntithetic(1, false), make([]float64, examples), 0, make([]float64, examples)
		for enough := false; !enough; _, enough = a.Pairs(30) {
			z := [4]float64{} // the examples share a few draws, as those of networks do
			for k := range z {
				z[k] = rng.NormFloat64()
			}
			for _, sign := range []float64{1, -1} {
				for i := range outcomes {
					outcomes[i] = b*sign*z[i%4] + c*(z[i%4]*z[i%4]-1)
					sum[i] += outcomes[i]
				}
				a.Add(outcomes)
				members++
			}
		}
		for _, s := range sum {
			squared += math.Pow(s/float64(members), 2) / examples / float64(runs)
		}
	}
	if ratio := squared / ((b*b + 2*c*c) / 30); !(ratio > 0.8 && ratio < 1.25) {
		t.Errorf("the squared error is %.2f of that of 30 independent members", ratio)
	}
}

// The average of a pair takes the place of a member.
func TestMonteCarloErrorOfPairs(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 0))
	var pairs, units [][]float64
	for range 12 {
		var first, second, mean []float64
		for range 50 {
			p, q := rng.Float64(), rng.Float64()
			first, second, mean = append(first, p), append(second, q), append(mean, (p+q)/2)
		}
		pairs, units = append(pairs, first, second), append(units, mean)
	}
	got, want := chance.NewMonteCarloError(pairs, true, 0.01), chance.NewMonteCarloError(units, false, 0.01)
	if math.Abs(got.Standard-want.Standard) > 1e-12 || math.Abs(got.Excess-want.Excess) > 1e-12 || got.Members != 24 || got.Enough != 2*want.Enough {
		t.Errorf("%+v, want that of %+v", got, want)
	}
	if _, err := chance.NLLByMembers(t.Context(), pairs[:5], true, 1); err != nil {
		t.Error(err)
	}
}
