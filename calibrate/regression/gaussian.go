package regression

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

const badLevel = "regression: level is not between 0 and 1"

// Distribution is the predicted distribution of one number.
type Distribution interface {
	LogDensity(y float64) float64 // nats, of the density in the target's units
	CDF(y float64) float64        // probability of a value of at most y
	Quantile(p float64) float64   // the inverse of CDF; may be ±Inf at 0 and 1
	CRPS(y float64) float64       // continuous ranked probability score, in the target's units
}

// Gaussian is a normal distribution.
type Gaussian struct {
	Mean, Variance float64
}

// Std returns the standard deviation.
func (g Gaussian) Std() float64 { return math.Sqrt(g.Variance) }

// z returns the distance of y from the mean in standard deviations. Callers square z, because (y − μ)² may overflow
// where z² does not.
func (g Gaussian) z(y float64) float64 { return (y - g.Mean) / g.Std() }

// LogDensity returns −½(log 2πσ² + (y−μ)²/σ²), in nats.
func (g Gaussian) LogDensity(y float64) float64 {
	z := g.z(y)
	return -(math.Log(2*math.Pi) + math.Log(g.Variance) + z*z) / 2
}

// density returns 1/√(2πσ²) exp(−½(y−μ)²/σ²).
func (g Gaussian) density(y float64) float64 {
	z := g.z(y)
	return math.Exp(-z*z/2) / (math.Sqrt(2*math.Pi) * g.Std())
}

// CDF returns Φ((y−μ)/σ), with full precision in the lower tail.
func (g Gaussian) CDF(y float64) float64 { return math.Erfc(-g.z(y)/math.Sqrt2) / 2 }

// survival returns 1 − CDF with full precision in the upper tail.
func (g Gaussian) survival(y float64) float64 { return math.Erfc(g.z(y)/math.Sqrt2) / 2 }

// Quantile returns μ + σ·Φ⁻¹(p). It panics unless 0 ≤ p ≤ 1.
func (g Gaussian) Quantile(p float64) float64 { return g.Mean + g.Std()*normalQuantile(p) }

// CRPS returns σ(z(2Φ(z) − 1) + 2φ(z) − 1/√π) with z = (y−μ)/σ. See Gneiting and Raftery, "Strictly proper scoring
// rules, prediction, and estimation", JASA 2007, section 4.2.
func (g Gaussian) CRPS(y float64) float64 {
	return absolute(y-g.Mean, g.Std()) - g.Std()/math.Sqrt(math.Pi)
}

func normalQuantile(p float64) float64 {
	switch {
	case !(0 <= p && p <= 1):
		panic(badLevel)
	case p == 0 || p == 1:
		return math.Inf(int(2*p - 1))
	}
	return mathext.NormalQuantile(p)
}

// absolute returns the mean of |X| for a Gaussian X. This is A(μ, σ²) = 2σφ(μ/σ) + μ(2Φ(μ/σ) − 1) of Grimit et al.
// (2006).
func absolute(mean, std float64) float64 {
	z := mean / std
	return 2*std*math.Exp(-z*z/2)/math.Sqrt(2*math.Pi) + mean*math.Erf(z/math.Sqrt2)
}
