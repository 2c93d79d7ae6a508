package regression

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
)

const badMixture = "regression: a mixture has no members, or not as many means, variances and weights"

// weightTolerance is the largest allowed difference between the sum of weights and 1.
const weightTolerance = 1e-9

// Mixture is the prediction of one number by S members: Σ_s w_s N(μ_s, v_s). Its methods panic if there are no
// members or the lengths disagree.
type Mixture struct {
	Means, Variances []float64 // S each
	Weights          []float64 // S, summing to 1; nil means equal weights
}

// Check returns an error, which names the first bad member, if a mean is not finite or a variance is not positive and
// finite. It also fails for a negative weight, and if the weights do not sum to 1 within 1e-9.
func (m Mixture) Check() error {
	m.check()
	for s, v := range m.Variances {
		if x := m.Means[s]; math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("member %d: mean %v, want a finite number", s, x)
		}
		if err := checkVariance(v); err != nil {
			return fmt.Errorf("member %d: %w", s, err)
		}
		if w := m.weight(s); !(w >= 0) {
			return fmt.Errorf("member %d: weight %v, want 0 or more", s, w)
		}
	}
	if sum := floats.Sum(m.Weights); m.Weights != nil && !(math.Abs(sum-1) <= weightTolerance) {
		return fmt.Errorf("weights sum to %v, want 1 within %v", sum, weightTolerance)
	}
	return nil
}

var errVariance = errors.New("want a positive finite number")

func checkVariance(v float64) error {
	if !(v > 0) || math.IsInf(v, 1) {
		return fmt.Errorf("variance %v, %w", v, errVariance)
	}
	return nil
}

func (m Mixture) check() {
	if n := len(m.Means); n == 0 || len(m.Variances) != n || m.Weights != nil && len(m.Weights) != n {
		panic(badMixture)
	}
}

func (m Mixture) weight(s int) float64 {
	if m.Weights == nil {
		return 1 / float64(len(m.Means))
	}
	return m.Weights[s]
}

func (m Mixture) member(s int) Gaussian { return Gaussian{m.Means[s], m.Variances[s]} }

// mean returns Σ w f over the members.
func (m Mixture) mean(f func(g Gaussian) float64) (sum float64) {
	m.check()
	for s := range m.Means {
		sum += m.weight(s) * f(m.member(s))
	}
	return sum
}

// Moments returns the mean and the two parts of the variance.
func (m Mixture) Moments() Moments {
	mean := m.mean(func(g Gaussian) float64 { return g.Mean })
	return Moments{
		Mean:      mean,
		Aleatoric: m.mean(func(g Gaussian) float64 { return g.Variance }),
		Epistemic: m.mean(func(g Gaussian) float64 { return (g.Mean - mean) * (g.Mean - mean) }),
	}
}

// LogDensity returns log Σ w_s N(y; μ_s, v_s), in nats, the log-likelihood of the mixture. It is finite wherever that
// of a member is.
func (m Mixture) LogDensity(y float64) float64 {
	m.check()
	peak, sum := math.Inf(-1), 0.0
	for s := range m.Means {
		x := math.Log(m.weight(s)) + m.member(s).LogDensity(y)
		switch {
		case math.IsInf(x, -1): // also at the peak, where the difference would be NaN
		case x > peak:
			sum = sum*math.Exp(peak-x) + 1
			peak = x
		default:
			sum += math.Exp(x - peak)
		}
	}
	return peak + math.Log(sum)
}

// CDF returns Σ w_s Φ((y−μ_s)/σ_s). At the true value this is the PIT.
func (m Mixture) CDF(y float64) float64 {
	return min(1, m.mean(func(g Gaussian) float64 { return g.CDF(y) })) // rounding can make the sum larger than 1
}

// CRPS returns E|X − y| − ½E|X − X'|, which is, with A(μ, σ²) for the mean of |N(μ, σ²)|,
//
//	Σ_s w_s A(y−μ_s, v_s) − ½ Σ_s Σ_t w_s w_t A(μ_s−μ_t, v_s+v_t)
//
// (Grimit, Gneiting, Berrocal and Johnson, "The continuous ranked probability score for circular variables and its
// application to mesoscale forecast ensemble verification", QJRMS 2006). It takes S² steps.
func (m Mixture) CRPS(y float64) float64 {
	spread := 0.0
	first := m.mean(func(g Gaussian) float64 { return absolute(y-g.Mean, g.Std()) })
	for s := range m.Means {
		g := m.member(s)
		spread += m.weight(s) * m.weight(s) * absolute(0, math.Sqrt(2)*g.Std()) / 2
		for t := range s {
			h := m.member(t)
			spread += m.weight(s) * m.weight(t) * absolute(g.Mean-h.Mean, math.Sqrt(g.Variance+h.Variance))
		}
	}
	return max(0, first-spread)
}

// moved returns the mixture of to + b·(X − from).
func (m Mixture) moved(from, to, b float64) Mixture {
	m.check()
	out := Mixture{make([]float64, len(m.Means)), make([]float64, len(m.Means)), m.Weights}
	for s, x := range m.Means {
		out.Means[s], out.Variances[s] = to+b*(x-from), b*b*m.Variances[s]
	}
	return out
}
