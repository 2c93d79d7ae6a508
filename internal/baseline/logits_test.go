package baseline_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Above a size, a temperature is fitted to every k-th token of a of. It differs from that of all tokens by what its
// standard error says.
func TestTemperatureOfSample(t *testing.T) {
	const examples, tokens, words, every = 6, 200, 5, 4
	of, err := task.New(task.NextToken, task.OutputSpec{Output: "y", Count: words, Axis: -1, Positions: tokens, Sides: [3]int{tokens}})
	if err != nil {
		t.Fatal(err)
	}
	fit := func(seed uint64) *task.Calibration {
		r := rand.New(rand.NewPCG(seed, 2))
		rows, err := baseline.NewLogits(examples)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for range examples {
			scores, label := make([]float32, tokens*words), target.Target{Positions: tokens, Classes: make([]int, tokens)}
			for p := range tokens {
				label.Classes[p] = r.IntN(words)
				if p%20 == 3 {
					label.Classes[p] = target.Unknown
				}
				for c := range words {
					scores[p*words+c] = float32(2 * r.NormFloat64())
				}
				scores[p*words+(label.Classes[p]+words)%words] += 2
			}
			outcome := make([]float64, of.About().Width)
			if _, err := of.Outcome(outcome, scores); err != nil {
				t.Fatal(err)
			}
			if err := rows.Add(of, outcome, label); err != nil {
				t.Fatal(err)
			}
		}
		c, err := rows.Fit(func(int) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	const repeats = 40
	squares, sum := 0.0, 0.0
	for seed := range uint64(repeats) {
		all := fit(seed)
		restore := baseline.SetMost(examples * tokens * words * 4 / (every - 1))
		if k := baseline.SampleEvery(of, examples); k != every {
			t.Fatalf("every %d, want %d", k, every)
		}
		some := fit(seed)
		restore()
		if all.Error != 0 || some.Temperature == all.Temperature {
			t.Fatalf("T = %v with an error of %v from all, %v from some", all.Temperature, all.Error, some.Temperature)
		}
		z := (some.Temperature - all.Temperature) / some.Error
		squares, sum = squares+z*z, sum+z
	}
	// The root of the mean of 40 squares is known to 11 %.
	if root := math.Sqrt(squares / repeats); root < 0.7 || root > 1.35 || math.Abs(sum/repeats) > 0.5 {
		t.Errorf("temperatures differ by %.2f standard errors, %.2f on average", root, sum/repeats)
	}
}
