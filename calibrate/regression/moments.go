package regression

import "math"

// squareRounding is the largest share of the mean of μ_s² by which rounding of sums in
// float64 can make the variance of the μ_s negative.
const squareRounding = 1e-9

// Moments are the mean of a mixture and the parts of its variance (law of total
// variance; Depeweg et al. 2018).
type Moments struct {
	Mean      float64 // μ* = mean μ_s
	Aleatoric float64 // mean v_s: the noise that the members see in the target
	Epistemic float64 // variance of the μ_s, over S: how far the members disagree
}

// MomentsOf returns the moments from the (weighted) means over members of μ_s, of μ_s²
// and of v_s, which are sums that a scorer keeps in memory that does not grow with
// S. The paper's v* = mean(v + μ²) − μ*² is their Variance.
//
// The variance of the μ_s is a difference, so that it is only known to some 1e-15 of
// the mean of μ_s²: sum in units in which the target is of order 1, or use
// [Running]. A negative one down to −1e-9 of that mean is set to 0; anything below
// means that the sums do not belong together, or were kept in float32, and is left for
// the caller to see.
func MomentsOf(mean, square, variance float64) Moments {
	m := Moments{Mean: mean, Aleatoric: variance, Epistemic: square - mean*mean}
	if m.Epistemic < 0 && m.Epistemic >= -squareRounding*square {
		m.Epistemic = 0
	}
	return m
}

// Variance is that of the mixture, the sum of both parts.
func (m Moments) Variance() float64 { return m.Aleatoric + m.Epistemic }

// Std is the standard deviation of the mixture.
func (m Moments) Std() float64 { return math.Sqrt(m.Variance()) }

// Gaussian is the moment-matched one: that with the mean and variance of the mixture.
func (m Moments) Gaussian() Gaussian { return Gaussian{m.Mean, m.Variance()} }

// Running adds up the moments of a prediction member by member, without the loss of
// digits of [MomentsOf] (West 1979; merging by Chan, Golub and LeVeque 1983). The zero
// value has no members.
type Running struct {
	Weight   float64 // Σ w
	Mean     float64 // of the μ_s so far
	Spread   float64 // Σ w (μ_s − Mean)²
	Variance float64 // Σ w v_s
}

// Add takes in a member. Equal members have weight 1.
func (r *Running) Add(weight, mean, variance float64) {
	r.Merge(Running{Weight: weight, Mean: mean, Variance: weight * variance})
}

// Merge takes in the members of another.
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

// Moments are those of the members so far; without any they are NaN.
func (r Running) Moments() Moments {
	if r.Weight == 0 {
		return Moments{math.NaN(), math.NaN(), math.NaN()}
	}
	return Moments{r.Mean, r.Variance / r.Weight, r.Spread / r.Weight}
}
