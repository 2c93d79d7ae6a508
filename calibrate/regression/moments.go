package regression

import "math"

// squareRounding bounds the negative variance of the μ_s that rounding of float64 sums can cause, as a share of the
// mean of μ_s².
const squareRounding = 1e-9

// Moments are the mean of a mixture and the parts of its variance (law of total variance; Depeweg et al. 2018).
type Moments struct {
	Mean      float64 // μ* = mean μ_s
	Aleatoric float64 // mean v_s: the members' estimate of the noise in the target
	Epistemic float64 // population variance of the μ_s: the disagreement of the members
}

// MomentsOf returns the moments, given the (weighted) means over members of μ_s, of μ_s² and of v_s. A scorer can
// keep these sums in memory that does not grow with S. The paper's v* = mean(v + μ²) − μ*² is the method Variance.
//
// The variance of the μ_s is a difference, so its error is about 1e-15 of the mean of μ_s². Use units in which the
// target is of order 1, or use [Running]. A value from −1e-9 of that mean to 0 is rounding and becomes 0. A lower
// value means that the sums do not belong together, or were kept in float32. It is kept so that the caller can see
// it.
func MomentsOf(mean, square, variance float64) Moments {
	m := Moments{Mean: mean, Aleatoric: variance, Epistemic: square - mean*mean}
	if m.Epistemic < 0 && m.Epistemic >= -squareRounding*square {
		m.Epistemic = 0
	}
	return m
}

// Variance returns the variance of the mixture, the sum of both parts.
func (m Moments) Variance() float64 { return m.Aleatoric + m.Epistemic }

// Std returns the standard deviation of the mixture.
func (m Moments) Std() float64 { return math.Sqrt(m.Variance()) }

// Gaussian returns the Gaussian with the mean and variance of the mixture.
func (m Moments) Gaussian() Gaussian { return Gaussian{m.Mean, m.Variance()} }

// Running adds up the moments of a prediction member by member, without the loss of digits of [MomentsOf] (West 1979;
// merging by Chan, Golub and LeVeque 1983). The zero value has no members.
type Running struct {
	Weight   float64 // Σ w
	Mean     float64 // of the μ_s so far
	Spread   float64 // Σ w (μ_s − Mean)²
	Variance float64 // Σ w v_s
}

// Add adds a member. Equal members have weight 1.
func (r *Running) Add(weight, mean, variance float64) {
	r.Merge(Running{Weight: weight, Mean: mean, Variance: weight * variance})
}

// Merge adds the members of o.
func (r *Running) Merge(o Running) {
	if o.Weight == 0 {
		return
	}
	total, apart := r.Weight+o.Weight, o.Mean-r.Mean
	r.Spread += o.Spread + apart*apart*r.Weight*(o.Weight/total)
	r.Mean += apart * (o.Weight / total)
	r.Variance += o.Variance
	r.Weight = total
}

// Moments returns the moments of the members so far, or NaN if there are none.
func (r Running) Moments() Moments {
	if r.Weight == 0 {
		return Moments{math.NaN(), math.NaN(), math.NaN()}
	}
	return Moments{r.Mean, r.Variance / r.Weight, r.Spread / r.Weight}
}
