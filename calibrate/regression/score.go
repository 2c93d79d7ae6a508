package regression

import "math"

// PaperZ is how many standard deviations the intervals of the SWAG paper reach to
// either side (github.com/wjmaddox/drbayes, its UCI experiments).
const PaperZ = 1.96

// Marks are what a distribution is worth beside the true value y.
type Marks struct {
	LogLikelihood float64 // log density at y, nats
	CRPS          float64 // in the target's units; less is better
	PIT           float64 // its CDF at y, 0 to 1
	Low, High     float64 // its 95 % interval
}

// Score is what is kept of a prediction beside the true value: a few numbers, whatever
// the number of members.
type Score struct {
	Y       float64
	Moments Moments
	// Mixture is of the mixture itself, with its central interval of [Level]. It is NaN
	// where no more than moments were known.
	Mixture Marks
	// Gaussian is of the moment-matched one, with the paper's interval μ* ± 1.96σ*.
	Gaussian Marks
}

// Error is y − μ*.
func (s Score) Error() float64 { return s.Y - s.Moments.Mean }

// Score judges a prediction. y is in the units of the mixture.
func (m Mixture) Score(y float64) Score {
	out := m.Moments().Score(y)
	out.Mixture = marks(m, y)
	out.Mixture.Low, out.Mixture.High = m.Interval(Level)
	return out
}

// Score judges a prediction of which no more than the moments is known.
func (m Moments) Score(y float64) Score {
	nan, g := math.NaN(), m.Gaussian()
	out := Score{Y: y, Moments: m, Mixture: Marks{nan, nan, nan, nan, nan}, Gaussian: marks(g, y)}
	out.Gaussian.Low, out.Gaussian.High = g.Mean-PaperZ*g.Std(), g.Mean+PaperZ*g.Std()
	return out
}

func marks(d Distribution, y float64) Marks {
	return Marks{LogLikelihood: d.LogDensity(y), CRPS: d.CRPS(y), PIT: d.CDF(y)}
}
