package infer_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Sums of parts, scattered, are the sums of all examples. Members add up, and examples of no part stay 0.
func TestScatter(t *testing.T) {
	t.Parallel()
	const n, members = 23, 3
	of, err := task.New("classes", task.OutputSpec{Count: 4})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for trial := range 20 {
		order := rng.Perm(n)
		left := rng.IntN(3) // examples of no part
		cut := 1 + rng.IntN(n-left-2)
		parts := [][]int{order[:cut], order[cut : n-left]}
		outcome, entropy, evidence := make([]float64, 4*n), make([]float64, n), make([]float64, 2*n)
		var got infer.Sums
		for range members {
			for _, part := range parts {
				var own infer.Sums
				own.Init("a member", len(part), of)
				for k, i := range part {
					p, h := []float64{rng.Float64(), rng.Float64(), rng.Float64(), rng.Float64()}, rng.Float64()
					own.Add(k, p, h, 1)
					for c, v := range p {
						outcome[4*i+c] += v
					}
					entropy[i] += h
					if own.Evidence != nil {
						own.Evidence[2*k], own.Evidence[2*k+1] = p[0], p[1]
						evidence[2*i] += p[0]
						evidence[2*i+1] += p[1]
					}
				}
				got.Scatter(&own, part, n)
			}
			got.Members++
			got.Weight++
		}
		if got.Evidence == nil {
			t.Fatal("no evidence: the test shows less than it says")
		}
		if !slices.Equal(got.Outcome, outcome) || !slices.Equal(got.Entropy, entropy) || !slices.Equal(got.Evidence, evidence) || got.Weight != members {
			t.Fatalf("trial %d: %+v, want %v, %v, %v", trial, got, outcome, entropy, evidence)
		}
	}
}
