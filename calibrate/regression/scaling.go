package regression

import (
	"errors"
	"fmt"
	"math"

	"github.com/swagwrap/swagwrap/calibrate"
)

const badRows = "regression: slices do not have one number for each example"

var (
	errEmpty  = errors.New("no rows, want at least one")
	errExact  = errors.New("every prediction is exact: no variance is likeliest")
	errTooFar = errors.New("the mean squared error is too large for float64")
)

// A factor of variances lies between MinFactor and MaxFactor. These are factors of 0.001 and 1,000 of standard deviations, as
// between millimetres and metres. Factors beyond them show that variances and targets have different units. The bounds of a
// temperature are wider: logits have no unit.
const (
	MinFactor = 1e-6
	MaxFactor = 1e6
)

// VarianceScaling multiplies predicted variances by a number. It is the equivalent of a temperature for regression.
type VarianceScaling struct {
	Factor float64 // s², positive

	// Before and After are the mean log-likelihoods of the fitting rows, in nats, for Gaussians with the given and
	// the scaled variances. After is never the smaller.
	Before, After float64
}

// FitVarianceScaling returns the s² that maximises the likelihood of N(μ, s²σ²) for n targets y, given predicted
// means and variances,
//
//	s² = mean((y−μ)²/σ²)
//
// in closed form (Laves et al., "Well-calibrated regression uncertainty in medical imaging with deep learning", MIDL
// 2020). With the moments of mixtures it scales the moment-matched Gaussians.
//
// It is an error if there is no row, a target or mean is not finite, or a variance is not positive and finite. It is
// also an error if every prediction is exact. The error names the first bad row. FitVarianceScaling panics if the
// lengths disagree.
func FitVarianceScaling(y, means, variances []float64) (VarianceScaling, error) {
	if len(means) != len(y) || len(variances) != len(y) {
		panic(badRows)
	}
	if err := CheckTargets(y); err != nil {
		return VarianceScaling{}, err
	}
	var s VarianceScaling
	n := float64(len(y))
	for i := range y {
		m := Mixture{Means: means[i : i+1], Variances: variances[i : i+1]}
		if err := m.Check(); err != nil {
			return VarianceScaling{}, fmt.Errorf("row %d: %w", i, err)
		}
		g := m.member(0)
		z := g.z(y[i])
		s.Factor += z * z / n
		s.Before += g.LogDensity(y[i]) / n
	}
	if err := checkVariance(s.Factor); err != nil {
		if s.Factor == 0 {
			return VarianceScaling{}, errExact
		}
		return VarianceScaling{}, fmt.Errorf("factor of the %w", err)
	}
	// log σ² becomes log s²σ², and the mean of z² changes from s² to 1.
	s.After = s.Before + (s.Factor-1-math.Log(s.Factor))/2
	return s, nil
}

// Undetermined returns the reason why so many rows do not determine the factor, or "". The reasons are too few rows, and a factor
// that is not between [MinFactor] and [MaxFactor].
func (s VarianceScaling) Undetermined(rows int) string {
	if few := calibrate.TooFew(rows); few != "" {
		return few
	}
	if !(s.Factor > MinFactor && s.Factor < MaxFactor) {
		return fmt.Sprintf("s² = %.3g is not between %g and %g: variances and targets have different units", s.Factor, MinFactor, MaxFactor)
	}
	return ""
}

// Moments scales both parts of the variance.
func (s VarianceScaling) Moments(m Moments) Moments {
	return Moments{m.Mean, s.Factor * m.Aleatoric, s.Factor * m.Epistemic}
}

// Mixture returns the mixture stretched around its mean, with means μ* + s(μ_s − μ*) and variances s²v_s. It has the
// moments that Moments returns, and the same shape.
func (s VarianceScaling) Mixture(m Mixture) Mixture {
	mean := m.Moments().Mean
	return m.moved(mean, mean, math.Sqrt(s.Factor))
}
