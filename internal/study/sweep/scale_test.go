package sweep

import (
	"math"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/swag"
)

// TestChooseScale compares each scale with plain averages of the same members, at a temperature of their own. Members that are
// added later are those that a single run draws.
func TestChooseScale(t *testing.T) {
	t.Parallel()
	for _, members := range []int{3, 12} {
		s := quickSweep(t)
		s.Members = members
		run := infertest.Run(t)
		images := 0
		run.Progress = func(n int) { images += n }
		c, err := s.ChooseScale(t.Context(), run)
		if err != nil || len(c.Tried) != len(ensemble.Scales) || c.Why != "" || c.Paper != 0.5 || c.Members != members || c.Examples != 200 {
			t.Fatalf("%+v, %v", c, err)
		}
		on := s.tuning()
		best, networks, alone := math.Inf(1), 0, true
		for k, tried := range c.Tried {
			networks += tried.Members
			if alone = alone && tried.Members == firstMembers; tried.Scale != ensemble.Scales[k] {
				t.Errorf("%+v, want scale %g", tried, ensemble.Scales[k])
			}
			best = min(best, tried.NLL)
			if tried.Members < members {
				continue // the part of the few members is taken off
			}
			sums := plainAverage(t, infertest.Run(t), &on, swag.SampleOptions{Seed: s.Seed, Scale: tried.Scale}, tried.Members, false)
			fitted, err := calibrate.FitTemperature(calibrate.LogProbs(nil, sums.Mean()), 10, on.Test.Labels().Classes)
			if err != nil || math.Abs(fitted.NLLAfter-tried.NLL) > 1e-6 || math.Abs(fitted.T/tried.Temperature-1) > 1e-4 {
				t.Errorf("%+v, want T = %v and NLL %v (%v)", tried, fitted.T, fitted.NLLAfter, err)
			}
		}
		for _, tried := range c.Tried {
			if (tried.NLL == best) != (tried.Scale == c.Scale) {
				t.Errorf("%+v is the best, chosen is %g", tried, c.Scale)
			}
		}
		if c.Networks != networks || c.Images != int64(networks)*on.each() || int64(images) != c.Images || members > firstMembers && alone {
			t.Errorf("%+v: %d networks saw %d examples", c, networks, images)
		}
		if text := c.String(); !strings.Contains(text, " at 0.25, ") || !strings.Contains(text, "networks saw ") {
			t.Errorf("%q", text)
		}
	}
}

// TestScaleUndetermined: examples that determine no temperature choose no scale.
func TestScaleUndetermined(t *testing.T) {
	t.Parallel()
	s := quickSweep(t)
	s.Members, s.Validation = 2, dataset.Subset(s.Validation, dataset.Order{Limit: 5})
	c, err := s.ChooseScale(t.Context(), infertest.Run(t))
	if err != nil || c.Scale != 0.5 || !strings.Contains(c.String(), "keeps the paper's scale 0.5: the validation data determine no temperature scaling: it is fitted on 5 rows") {
		t.Errorf("%v, %v", c, err)
	}
}

// TestWorse: a scale is left out only if neither examples nor draws explain the difference.
func TestWorse(t *testing.T) {
	of := func(own []float64, without ...[]float64) *candidate {
		return &candidate{TriedScale: TriedScale{NLL: meanOf(own, []int{0, 1, 2, 3})}, losses: losses{own: own, without: without}}
	}
	low, high, wild := []float64{0.1, 0.11, 0.1, 0.09}, []float64{0.3, 0.31, 0.29, 0.31}, []float64{0.3, -1, 2, 0.1}
	if best := of(low); !of(high).worse(best) || of(wild).worse(best) || of(low).worse(best) {
		t.Error("the wrong scales are left out")
	}
}
