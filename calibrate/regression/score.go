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
