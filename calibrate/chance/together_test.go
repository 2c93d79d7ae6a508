package chance_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/fixtures/reliability"
)

// Intervals of several differences hold together in 95 % of samples, whatever their correlation. They are never narrower than
// single ones, and never wider than Bonferroni's.
func TestTogether(t *testing.T) {
	repetitions := reliability.Figure(60, 2000)
	for _, shared := range []float64{0, 0.7, 1} {
		const count, examples = 6, 200
		rng, held, fits := rand.New(rand.NewPCG(7, 0)), 0, make([]float64, count)
		for range repetitions {
			losses := make([][]float64, count)
			for range examples {
				common := rng.NormFloat64()
				for k := range losses {
					losses[k] = append(losses[k], shared*common+math.Sqrt(1-shared*shared)*rng.NormFloat64())
				}
			}
			all, together := true, chance.Together(losses, fits)
			for k, i := range together {
				all = all && i.Low <= 0 && 0 <= i.High
				alone := chance.NewDifference(losses[k], 0)
				if half, one := i.High-i.Mean, alone.High-alone.Mean; half < one*(1-1e-9) || half > one*1.4 {
					t.Fatalf("half a width of %v, alone %v", half, one)
				}
			}
			if all {
				held++
			}
		}
		share, slack := float64(held)/float64(repetitions), 4*math.Sqrt(0.05*0.95/float64(repetitions))
		t.Logf("correlation %.2f: %.3f of %d", shared*shared, share, repetitions)
		if share < 0.95-slack || share > 0.95+slack {
			t.Errorf("correlation %.2f: all hold in %.3f of %d samples", shared*shared, share, repetitions)
		}
	}
}

// What has no finite mean has no interval, and does not widen that of others.
func TestTogetherExtremes(t *testing.T) {
	fine, inf := []float64{1, 2, 3, 4}, []float64{1, math.Inf(1), 0, 0}
	got, alone := chance.Together([][]float64{fine, inf, {0, 0, 0, 0}}, []float64{0.5, 0, 0}), chance.NewDifference(fine, 0.5)
	if got[0] != alone.Interval || !math.IsNaN(got[1].Low) || got[2] != (chance.Interval{}) {
		t.Errorf("%v, alone %v", got, alone.Interval)
	}
	if got := chance.Together([][]float64{{1}, {2}}, []float64{0, 0}); !math.IsInf(got[1].High, 1) {
		t.Errorf("one example: %v", got)
	}
}
