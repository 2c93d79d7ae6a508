package task

import (
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/internal/target"
)

// ByNoise is the standard deviation of each target about its mean, which networks without a variance head do not predict. The model
// card stores it.
const ByNoise Method = "noise"

var noise = &method{
	Calibrator: Calibrator{
		Method: ByNoise, Name: "Noise", Words: "fitted noise", Symbol: "noise", Completes: true,
		Note: "as saved there is no noise, and so no likelihood, interval or width",
		FitMembers: func(known target.Target, mixture func(i, k int) regression.Mixture) (*Calibration, error) {
			return fitNoise(known, func(y []float64, k int) (float64, bool, error) {
				var means []float64
				for i := range y {
					means = append(means, mixture(i, k).Means...)
				}
				v, err := regression.FitMixtureNoise(y, means, len(means)/len(y), mixture(0, k).Weights)
				return v, false, err
			})
		},
	},
	// The noise under which averaged outcomes without any make the targets most likely: see [regression.FitMomentNoise].
	numbers: func(t regressionTask, outcomes []float64, known target.Target) (*Calibration, error) {
		return fitNoise(known, func(y []float64, k int) (float64, bool, error) {
			var means, epistemic []float64
			for i := range y {
				m := t.Moments(outcomes[i*t.width():], k)
				// Sums of groups of members are in float32, whose rounding can leave it below 0.
				means, epistemic = append(means, m.Mean), append(epistemic, max(0, m.Epistemic))
			}
			return regression.FitMomentNoise(y, means, epistemic)
		})
	},
	number: func(c *Calibration, v float64) *Calibration {
		out := &Calibration{Method: ByNoise}
		for _, std := range c.NoiseStd {
			out.NoiseStd = append(out.NoiseStd, std*math.Sqrt(v))
		}
		return out
	},
}

// UnitNoise returns noise of 1 for so many targets, where its value does not matter.
func UnitNoise(targets int) *Calibration {
	return &Calibration{Method: ByNoise, NoiseStd: slices.Repeat([]float64{1}, targets)}
}

// fitNoise fits that of each target. fit returns the variance of target k, and whether it is at its lower bound.
func fitNoise(known target.Target, fit func(y []float64, k int) (variance float64, atBound bool, err error)) (*Calibration, error) {
	out, bound := &Calibration{Method: ByNoise}, 0
	for k := range known.Width {
		var y []float64
		for i := range known.Len() {
			y = append(y, known.Values[i*known.Width+k])
		}
		variance, atBound, err := fit(y, k)
		if err != nil {
			return nil, fmt.Errorf("noise of target %d: %w", k, err)
		}
		if atBound {
			bound++
		}
		out.NoiseStd = append(out.NoiseStd, math.Sqrt(variance))
	}
	out.Undetermined = calibrate.TooFew(known.Len())
	if out.Undetermined == "" && bound > 0 {
		out.Undetermined = fmt.Sprintf("the noise of %d of %d targets is at its lower bound: members differ by more than they are wrong, "+
			"so that their spread alone is too wide", bound, known.Width)
	}
	return out, nil
}
