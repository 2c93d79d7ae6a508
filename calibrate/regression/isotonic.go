package regression

import (
	"fmt"
	"math"
	"slices"
	"sort"
)

const badPIT = "regression: a PIT value is not between 0 and 1"

// tailRows is how many rows leave one, by expectation, beyond each end of a 95 % interval.
const tailRows = 40

// Isotonic recalibrates distribution functions by a rising map R of [0, 1] to itself:
// R(F(y)) takes the place of F(y). It goes in straight lines from (0, 0) through its
// knots, and is 1 beyond the last.
//
// It has no density worth the name, the derivative of R being the noise of the
// knots: it is for probabilities, quantiles and intervals.
type Isotonic struct {
	Knots  []float64 // ascending, each once
	Levels []float64 // R at the knots, ascending; the last is 1

	// Warnings say why the map should not be taken at face value.
	Warnings []error
}

// FitIsotonic fits R to the PIT values of n examples, each the predicted distribution
// function at its true value: the isotonic regression of the share of PIT values up to
// each of them on that one (Kuleshov, Fenner and Ermon, "Accurate uncertainties for deep
// learning using calibrated regression", ICML 2018, algorithm 1). These points ascend, so
// that there are no adjacent violators to pool: the regression goes through all.
//
// It warns of fewer than 40 rows, where each end of a 95 % interval rests on less than
// one. It is an error, which names the first row at fault, if there is none or a value is
// not in [0, 1].
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
		r.Warnings = append(r.Warnings, fmt.Errorf("isotonic map fitted on %d rows, want at least %d for the ends of 95 %% intervals", len(pits), tailRows))
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

// Inverse returns the least p with R(p) ≥ level. It panics unless 0 ≤ level ≤ 1.
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

// between returns what lies between u and v as x does between a and b.
func between(x, a, b, u, v float64) float64 {
	t := (x - a) / (b - a)
	return (1-t)*u + t*v
}

// CDF returns R(F(y)).
func (r *Isotonic) CDF(d Distribution, y float64) float64 { return r.Apply(d.CDF(y)) }

// Quantile returns the least y with R(F(y)) ≥ p: F's quantile at R⁻¹(p). It is infinite
// where that is 0 or 1, as it is if true values were so far out that F was. Quantile panics
// unless 0 ≤ p ≤ 1.
func (r *Isotonic) Quantile(d Distribution, p float64) float64 {
	return d.Quantile(r.Inverse(p))
}

// Interval returns the central interval that holds the given share after
// recalibration. It panics unless 0 ≤ level ≤ 1.
func (r *Isotonic) Interval(d Distribution, level float64) (low, high float64) {
	return r.Quantile(d, (1-level)/2), r.Quantile(d, (1+level)/2)
}

// Marks judges a recalibrated distribution beside the true value: its PIT and its 95 %
// interval. It has no log-likelihood, and no closed form of the CRPS: these are NaN.
func (r *Isotonic) Marks(d Distribution, y float64) Marks {
	m := Marks{LogLikelihood: math.NaN(), CRPS: math.NaN(), PIT: r.CDF(d, y)}
	m.Low, m.High = r.Interval(d, Level)
	return m
}
