package swag_test

import (
	"math"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// A member at a lower rank is that of a fit with this rank, bit for bit, however
// the deviations are defined and wherever they are kept.
//
// Kills: the first columns in place of the last, the divisor of all columns.
func TestRankIsThatOfAFit(t *testing.T) {
	t.Parallel()
	it := iterates(flat(t, 70_000), 6, noisy(1, 0.1)) // two blocks of Draw
	for name, opts := range map[string]swag.FitOptions{
		"running":             {},
		"running, referenced": {ReferToCheckpoints: true},
		"rising, referenced":  {Power: 2, ReferToCheckpoints: true},
		"final":               {Deviations: swag.Final},
		"final, referenced":   {Deviations: swag.Final, ReferToCheckpoints: true},
		"reference":           {Reference: true},
	} {
		t.Run(name, func(t *testing.T) {
			all := attach(t, fit(t, it, opts), it)
			for _, rank := range []int{2, 3, 4} {
				opts.Rank = rank
				refit := attach(t, fit(t, it, opts), it)
				for _, c := range []swag.Covariance{swag.LowRankPlusDiagonal, swag.Isotropic} {
					got := draw(t, all, swag.SampleOptions{Seed: 3, Scale: 0.5, Covariance: c, Rank: rank}, 7)[0]
					want := draw(t, refit, swag.SampleOptions{Seed: 3, Scale: 0.5, Covariance: c}, 7)[0]
					if !slices.Equal(got, want) {
						t.Errorf("%v at rank %d is not that of a fit", c, rank)
					}
					if whole := draw(t, all, swag.SampleOptions{Seed: 3, Scale: 0.5, Covariance: c}, 7)[0]; slices.Equal(got, whole) {
						t.Errorf("%v at rank %d is that of all columns", c, rank)
					}
				}
			}
		})
	}
}

// attach gives a posterior that refers to its checkpoints what it needs.
func attach(t *testing.T, p *swag.Posterior, it swag.Input) *swag.Posterior {
	t.Helper()
	needs := p.Needs()
	var vectors []weights.Vector
	for _, c := range it.Checkpoints[len(it.Checkpoints)-len(needs):] {
		vectors = append(vectors, c.Theta)
	}
	if len(needs) == 0 {
		return p
	}
	if err := p.Attach(vectors, nil); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRankRefuses(t *testing.T) {
	it := iterates(small(t), 4, noisy(0, 1))
	p, diagonal := fit(t, it, swag.FitOptions{}), fit(t, it, swag.FitOptions{DiagOnly: true})
	for _, rank := range []int{-1, 1, 5} {
		_, err := swag.NewSampler(p, swag.SampleOptions{Scale: 0.5, Rank: rank})
		wantError(t, err, "rank", "2 to 4, the columns of p.swag")
	}
	_, err := swag.NewSampler(diagonal, swag.SampleOptions{Scale: 0.5, Covariance: swag.Isotropic})
	wantError(t, err, "p.swag: holds the diagonal alone")
}

// Isotropic noise is √(α·tr(Σ)/d)·z1, and tr(Σ) is that of SWAG's covariance:
// here in closed form, from the iterates 0 and 2·s_i, whose mean is s_i, variance
// s_i², and only deviation that is not 0 is s_i, with the divisor 1.
func TestIsotropicClosedForm(t *testing.T) {
	const d, scale = 100_000, 0.5 // two blocks of the trace
	p := fit(t, iterates(flat(t, d), 2, func(t, i int) float64 { return float64(2 * t * (i % 5)) }), swag.FitOptions{})
	// The mean of s_i² over i mod 5 is 6, and so is that of the deviations'.
	want := math.Sqrt(scale * (6 + 6))
	z1 := make([]float64, d)
	swag.Normals(z1, 9, 6, 0)
	for i, got := range draw(t, p, swag.SampleOptions{Seed: 9, Scale: scale, Covariance: swag.Isotropic}, 6)[0] {
		if m := float64(i % 5); math.Abs(float64(got)-(m+want*z1[i])) > 1e-6*(m+math.Abs(want*z1[i])) { // float32
			t.Fatalf("weight %d: %v, want %v + %v·%v", i, got, m, want, z1[i])
		}
	}
}

// The same with noisy weights and five columns, of which three are used: the
// trace by its definition.
func TestIsotropicTrace(t *testing.T) {
	const rank = 3
	p := fit(t, iterates(flat(t, 2000), 5, noisy(0, 1)), swag.FitOptions{})
	mean, variance, deviations := contents(p)
	trace := 0.0
	for i, v := range variance {
		trace += v
		for _, column := range deviations[5-rank:] {
			trace += float64(column[i]) * float64(column[i]) / (rank - 1)
		}
	}
	sigma := math.Sqrt(2 * trace / 2000)
	z1 := make([]float64, 2000)
	swag.Normals(z1, 1, 0, 0)
	for i, got := range draw(t, p, swag.SampleOptions{Seed: 1, Scale: 2, Covariance: swag.Isotropic, Rank: rank}, 0)[0] {
		if want := mean[i] + sigma*z1[i]; math.Abs(float64(got)-want) > 1e-6*(math.Abs(mean[i])+math.Abs(sigma*z1[i])) {
			t.Fatalf("weight %d: %v, want %v", i, got, want)
		}
	}
}
