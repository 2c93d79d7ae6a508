package guarantee

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/sets"
)

// Range returns the lowest and the highest share of new examples that 95 % of thresholds cover. The thresholds are from so many examples.
// ok is false if an example has several classes or numbers, or if the threshold is that of all examples: then nothing is known.
//
// If no two scores are equal, the share has a beta distribution (Vovk 2012): see [calibrate.CoverageRange]. Of equal scores all are
// covered or none, so that the upper end is that of the score above: see [sets.Upper].
func (c *Coverage) Range(e *Cell, k int) (low, high float64, ok bool) {
	if e.Upper == nil || e.Thresholds[k] == nil || slices.Contains(e.Whole, k) {
		return 0, 0, false
	}
	n, upper := e.Examples[k], e.Upper[k]
	if low, _ = calibrate.CoverageRange(c.Level, n); math.IsNaN(low) {
		return 0, 0, false
	}
	if high = 1; upper <= n {
		high = max(low, distuv.Beta{Alpha: float64(upper), Beta: float64(n + 1 - upper)}.Quantile(0.975))
	}
	return low, high, true
}

// Tied returns how many more examples than needed the threshold may cover because their scores are equal, or nearly.
func (c *Coverage) Tied(e *Cell, k int) int {
	if _, _, ok := c.Range(e, k); !ok {
		return 0
	}
	return e.Upper[k] - sets.Rank(c.Level, e.Examples[k])
}

// Spread says how far the thresholds of all examples may be from the level, or returns "".
func (c *Coverage) Spread() string {
	e := &c.Cells[0]
	low, high, known := 1.0, 0.0, false
	for k := range e.Thresholds {
		if c.By == ByClass {
			return "" // each class has a range of its own
		}
		if l, h, ok := c.Range(e, k); ok {
			low, high, known = min(low, l), max(high, h), true
		}
	}
	if !known {
		return ""
	}
	return fmt.Sprintf("on average: 95 %% of thresholds from %d labels cover %.1f to %.1f %%", e.Examples[0], 100*low, 100*high)
}
