package regression

import "math"

// Level is the level of the intervals of [Score].
const Level = 0.95

// quantileSteps is a safety limit: bisecting a bracket whose ends have the same magnitude takes about 55 steps.
const quantileSteps = 2000

// rounding is the relative distance between neighbouring float64 numbers.
const rounding = 0x1p-52

// Quantile returns the inverse of CDF, which is ±Inf at 0 and 1. Between distant members of tiny variance the CDF can
// be flat to within rounding. Quantile then returns one of the points where CDF is p. It panics unless 0 ≤ p ≤ 1.
//
// The result lies between the smallest and the largest quantile of the members. Newton's method starts in this
// bracket, and bisection replaces it where it leaves the bracket or is slow.
func (m Mixture) Quantile(p float64) float64 {
	m.check()
	z := normalQuantile(p)
	if math.IsInf(z, 0) {
		return z
	}
	lo, hi, narrow := math.Inf(1), math.Inf(-1), math.Inf(1)
	for s := range m.Means {
		if m.weight(s) == 0 {
			continue
		}
		std := m.member(s).Std()
		q := m.Means[s] + std*z
		lo, hi, narrow = min(lo, q), max(hi, q), min(narrow, std)
	}
	x, last := lo+(hi-lo)/2, math.Inf(1)
	for range quantileSteps {
		near := rounding * (narrow + 2*max(math.Abs(lo), math.Abs(hi)))
		if hi-lo <= near {
			break
		}
		excess, density := m.excess(x, p)
		switch {
		case excess == 0:
			return x
		case excess < 0:
			lo = x
		default:
			hi = x
		}
		step := excess / density
		next := x - step
		if !(lo < next && next < hi) || math.Abs(excess) > last/2 {
			next = lo + (hi-lo)/2
		} else if math.Abs(step) <= near {
			return next
		}
		x, last = next, math.Abs(excess)
	}
	return x
}

// excess returns CDF(x) − p and the density at x. It uses the nearer tail for full precision.
func (m Mixture) excess(x, p float64) (excess, density float64) {
	sum := 0.0
	for s := range m.Means {
		g, w := m.member(s), m.weight(s)
		if p <= 0.5 {
			sum += w * g.CDF(x)
		} else {
			sum += w * g.survival(x)
		}
		density += w * g.density(x)
	}
	if p <= 0.5 {
		return sum - p, density
	}
	return (1 - p) - sum, density
}

// Interval returns the central interval with the given probability of the mixture. The rest is split equally above
// and below it. It panics unless 0 ≤ level ≤ 1.
func (m Mixture) Interval(level float64) (low, high float64) {
	return m.Quantile((1 - level) / 2), m.Quantile((1 + level) / 2)
}
