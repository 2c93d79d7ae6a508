package regression

import (
	"fmt"
	"math"
	"slices"
	"sort"
)

const badPIT = "regression: a PIT value is not between 0 and 1"

// tailRows is the number of rows for which one is expected beyond each end of a 95 % interval.
const tailRows = 40

// Isotonic recalibrates distribution functions by an increasing map R of [0, 1] to itself: it replaces F(y) with
// R(F(y)). R is linear between its knots, starts at (0, 0), and is 1 beyond the last knot.
//
// Use it for probabilities, quantiles and intervals only. Its density is useless, because the derivative of R is
// dominated by the noise of the knots.
type Isotonic struct {
	Knots  []float64 `json:"knots"`  // ascending and distinct
	Levels []float64 `json:"levels"` // R at the knots, ascending; the last is 1

	// Warnings are reasons not to take the map at face value.
	Warnings []error `json:"-"`
}

// FitIsotonic fits R to the PIT values of n examples. A PIT value is the predicted distribution function at the true
// value. R is the isotonic regression of the empirical distribution of the PIT values on these values. The points
// ascend already, so the regression goes through all of them without pooling. This is algorithm 1 of Kuleshov, Fenner
// and Ermon, "Accurate uncertainties for deep learning using calibrated regression", ICML 2018.
//
// It warns if there are fewer than 40 rows, because then less than one is expected beyond each end of a 95 %
// interval. It returns an error, which names the first bad row, if there is no row or a value is not in [0, 1].
func FitIsotonic(pits []float64) (*Isotonic, error) {
	if len(pits) == 0 {
		return nil, errEmpty
	}
	for i, u := range pits {
		if !(0 <= u && u <= 1) {
			return nil, fmt.Errorf("row %d: PIT value %v, want 0 to 1", i, u)
		}
	}
	sorted := slices.Sorted(slices.Values(pits))
	r := &Isotonic{}
	for i, u := range sorted {
		if i+1 == len(sorted) || sorted[i+1] != u {
			r.Knots = append(r.Knots, u)
			r.Levels = append(r.Levels, float64(i+1)/float64(len(sorted)))
		}
	}
	if len(pits) < tailRows {
		r.Warnings = append(r.Warnings, fmt.Errorf("isotonic map fitted on %d rows, want at least %d for the ends of 95 %% intervals",
			len(pits), tailRows))
	}
	return r, nil
}

// Apply returns R(p). It panics unless 0 ≤ p ≤ 1.
func (r *Isotonic) Apply(p float64) float64 {
	if !(0 <= p && p <= 1) {
		panic(badPIT)
	}
	i := sort.SearchFloat64s(r.Knots, p) // the first knot at or above p
	switch {
	case i == len(r.Knots):
		return 1
	case r.Knots[i] == p:
		return r.Levels[i]
	}
	return between(p, r.below(i), r.Knots[i], r.levelBelow(i), r.Levels[i])
}

// Inverse returns the smallest p with R(p) ≥ level. It panics unless 0 ≤ level ≤ 1.
func (r *Isotonic) Inverse(level float64) float64 {
	if !(0 <= level && level <= 1) {
		panic(badLevel)
	}
	if level == 0 {
		return 0
	}
	i := min(sort.SearchFloat64s(r.Levels, level), len(r.Levels)-1)
	return between(level, r.levelBelow(i), r.Levels[i], r.below(i), r.Knots[i])
}

func (r *Isotonic) below(i int) float64 {
	if i == 0 {
		return 0
	}
	return r.Knots[i-1]
}

func (r *Isotonic) levelBelow(i int) float64 {
	if i == 0 {
		return 0
	}
	return r.Levels[i-1]
}

// between maps x from [a, b] linearly to [u, v].
func between(x, a, b, u, v float64) float64 {
	t := (x - a) / (b - a)
	return (1-t)*u + t*v
}

// CDF returns R(F(y)).
func (r *Isotonic) CDF(d Distribution, y float64) float64 { return r.Apply(d.CDF(y)) }

// Quantile returns the smallest y with R(F(y)) ≥ p, which is F's quantile at R⁻¹(p). It is infinite if R⁻¹(p) is 0 or
// 1. This happens if true values were so extreme that F was 0 or 1. Quantile panics unless 0 ≤ p ≤ 1.
func (r *Isotonic) Quantile(d Distribution, p float64) float64 {
	return d.Quantile(r.Inverse(p))
}

// Interval returns the central interval with the given probability after recalibration. It panics unless 0 ≤ level ≤
// 1.
func (r *Isotonic) Interval(d Distribution, level float64) (low, high float64) {
	return r.Quantile(d, (1-level)/2), r.Quantile(d, (1+level)/2)
}

// Marks scores a recalibrated distribution against the true value, with its PIT value and its 95 % interval. The
// log-likelihood and the CRPS are NaN, because the former does not exist and the latter has no closed form.
func (r *Isotonic) Marks(d Distribution, y float64) Marks {
	m := Marks{LogLikelihood: math.NaN(), CRPS: math.NaN(), PIT: r.CDF(d, y)}
	m.Low, m.High = r.Interval(d, Level)
	return m
}
