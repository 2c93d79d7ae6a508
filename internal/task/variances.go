package task

import (
	"errors"
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate"
	gauss "github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// ByVariances has a factor of the variances of each target of a regression, where
// [calibrate.ByTemperature] has one of all.
const ByVariances calibrate.Scaler = "variances"

// fitEach fits a factor to each target.
func (t regression) fitEach(outcomes []float64, known truth.Truth) (*calibrate.Scaling, error) {
	if err := t.check(outcomes, known); err != nil {
		return nil, err
	}
	n, v := known.Len(), &calibrate.VectorScaling{Bias: make([]float64, t.targets)}
	for k := range t.targets {
		y, means, variances := make([]float64, n), make([]float64, n), make([]float64, n)
		for i := range n {
			m := t.moments(outcomes[i*t.Width():], k)
			y[i], means[i], variances[i] = known.Values[i*t.targets+k], m.Mean, m.Variance()
		}
		s, err := gauss.FitVarianceScaling(y, means, variances)
		if err != nil {
			return nil, fmt.Errorf("target %d: %w", k, err)
		}
		v.Scale = append(v.Scale, s.Factor)
		v.NLLBefore -= s.Before / float64(t.targets)
		v.NLL -= s.After / float64(t.targets)
	}
	return &calibrate.Scaling{Vector: v, NLLBefore: v.NLLBefore, NLLAfter: v.NLL}, nil
}

// factor is what a scaling multiplies the variance of target k by.
func (t regression) factor(s *calibrate.Scaling, k int) float64 {
	switch {
	case s.Vector != nil && len(s.Vector.Scale) == t.targets && !slices.ContainsFunc(s.Vector.Bias, func(b float64) bool { return b != 0 }):
		return s.Vector.Scale[k]
	case s.Vector == nil && len(s.Temperatures) == 1:
		return s.Temperatures[0]
	}
	panic(errors.New("task: scaling is no factor of variances"))
}

// calibrated lets an average be calibrated, and returns what that multiplied the variance
// of each target by.
func (t regression) calibrated(a Average) []gauss.VarianceScaling {
	out := make([]gauss.VarianceScaling, t.targets)
	for k := range out {
		out[k].Factor = t.moments(a.Outcome, k).Variance()
	}
	if a.Calibrate != nil {
		a.Calibrate(a.Outcome)
	}
	for k := range out {
		if after := t.moments(a.Outcome, k).Variance(); after == out[k].Factor {
			out[k].Factor = 1
		} else {
			out[k].Factor = after / out[k].Factor
		}
	}
	return out
}
