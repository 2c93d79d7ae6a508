package regression

import "math"

// PaperZ is the half-width of the SWAG paper's intervals in standard deviations (github.com/wjmaddox/drbayes, its UCI
// experiments).
const PaperZ = 1.96

// Marks are the scores of a distribution against the true value y.
type Marks struct {
	LogLikelihood float64 // log density at y, nats
	CRPS          float64 // in the target's units; lower is better
	PIT           float64 // its CDF at y, 0 to 1
	Low, High     float64 // its 95 % interval
}

// Score holds the scores of one prediction against the true value. Its size does not depend on the number of members.
type Score struct {
	Y       float64
	Moments Moments
	// Mixture scores the mixture itself, with its central interval of [Level]. It is NaN if only the moments were
	// known.
	Mixture Marks
	// Gaussian scores the moment-matched Gaussian, with the paper's interval μ* ± 1.96σ*.
	Gaussian Marks
}

// Error returns y − μ*.
func (s Score) Error() float64 { return s.Y - s.Moments.Mean }

// Score scores a prediction. y is in the units of the mixture.
func (m Mixture) Score(y float64) Score {
	out := m.Moments().Score(y)
	out.Mixture = marks(m, y)
	out.Mixture.Low, out.Mixture.High = m.Interval(Level)
	return out
}

// Score scores a prediction that is only known by its moments.
func (m Moments) Score(y float64) Score {
	nan, g := math.NaN(), m.Gaussian()
	out := Score{Y: y, Moments: m, Mixture: Marks{nan, nan, nan, nan, nan}, Gaussian: marks(g, y)}
	out.Gaussian.Low, out.Gaussian.High = g.Mean-PaperZ*g.Std(), g.Mean+PaperZ*g.Std()
	return out
}

func marks(d Distribution, y float64) Marks {
	return Marks{LogLikelihood: d.LogDensity(y), CRPS: d.CRPS(y), PIT: d.CDF(y)}
}

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
// target is of order 1. A value from −1e-9 of that mean to 0 is rounding and becomes 0. A lower
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
