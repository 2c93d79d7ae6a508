package settling

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/task"
)

// TestFarFromZero: squares of means far from 0 lose the spread of the members in float32, and a rule is found all the same.
func TestFarFromZero(t *testing.T) {
	x, err := task.New("regression", task.OutputSpec{Count: 1, Regression: &task.RegressionSpec{Noise: []float64{1}}})
	if err != nil {
		t.Fatal(err)
	}
	s := &seen{task: x.(task.Settling), ensemble: &ensemble.Ensemble{Components: []ensemble.Component{{Members: members, Weight: 1}}}, seed: 1}
	r := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		centre, outcome := 50+r.NormFloat64(), make([]float64, 3)
		var outcomes []float32
		var entropies []float64
		for range members {
			h, err := x.Outcome(outcome, []float32{float32(centre + 0.01*r.NormFloat64())})
			if err != nil {
				t.Fatal(err)
			}
			entropies = append(entropies, h)
			for _, v := range outcome {
				outcomes = append(outcomes, float32(v))
			}
		}
		s.members, s.entropies = append(s.members, outcomes), append(s.entropies, entropies)
	}
	result, err := looked(s).choose(ensemble.StoppingGuarantee{NLL: 0.002, Decisions: 0.998}, "val")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(result.Chosen); err != nil || result.Chosen.Cost.Members > 8 {
		t.Errorf("%.1f of %d members run, %v", result.Chosen.Cost.Members, members, err)
	}
}
