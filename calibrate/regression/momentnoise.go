package regression

import (
	"fmt"
	"math"
)

// leastNoise is the smallest variance that [FitMomentNoise] returns, as a share of the mean squared error. As a
// standard deviation it is a thousandth of the RMSE.
const leastNoise = 1e-6

// FitMomentNoise returns the variance σ² that maximises the likelihood of the Gaussians N(μ*, e + σ²) for the n
// targets y. The means μ* and the epistemic variances e belong to mixtures whose members predict no variance. It is
// [FitMixtureNoise] from moments alone. For one network all e are 0, and the result is mean((y−μ)²).
//
// The likelihood is stationary where
//
//	σ² = Σ w ((y−μ*)² − e) / Σ w,   w = 1/(e + σ²)²
//
// so no maximum is above the largest (y−μ*)². The function tries 64 variances from there down to a millionth of the
// mean squared error, and refines the best one by bisection. If members differ from each other by more than from the
// targets, the likelihood grows down to no noise at all. Then atBound is true, and the result is the smallest
// variance tried, which only shows the direction.
//
// It is an error if there is no row, a number is not finite, an epistemic variance is negative, or every prediction
// is exact. The error names the first bad row. It panics if the lengths disagree.
func FitMomentNoise(y, means, epistemic []float64) (variance float64, atBound bool, err error) {
	if len(means) != len(y) || len(epistemic) != len(y) {
		panic(badRows)
	}
	if err := CheckTargets(y); err != nil {
		return 0, false, err
	}
	p := momentNoise{epistemic: epistemic}
	var mean, most float64
	for i, x := range y {
		if d := means[i]; math.IsNaN(d) || math.IsInf(d, 0) {
			return 0, false, fmt.Errorf("row %d: mean %v, want a finite number", i, d)
		}
		if e := epistemic[i]; !(e >= 0) || math.IsInf(e, 1) {
			return 0, false, fmt.Errorf("row %d: epistemic variance %v, want 0 or more", i, e)
		}
		square := (x - means[i]) * (x - means[i])
		p.squares = append(p.squares, square)
		mean += square / float64(len(y))
		most = max(most, square)
	}
	switch {
	case math.IsInf(mean, 1):
		return 0, false, errTooFar
	case mean == 0:
		return 0, false, errExact
	}
	variance, atBound = likeliest(leastNoise*mean, most, p.value, p.rises)
	return variance, atBound, nil
}

// momentNoise holds the data of the likelihood.
type momentNoise struct{ squares, epistemic []float64 }

// value returns twice the mean log-likelihood, without a constant.
func (p momentNoise) value(variance float64) (value float64) {
	for i, square := range p.squares {
		v := p.epistemic[i] + variance
		value -= (math.Log(v) + square/v) / float64(len(p.squares))
	}
	return value
}

// rises reports whether the likelihood rises at a variance.
func (p momentNoise) rises(variance float64) bool {
	slope := 0.0
	for i, square := range p.squares {
		v := p.epistemic[i] + variance
		slope += (square/v - 1) / v
	}
	return slope > 0
}
