package task

import (
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate"
)

// fitVennAbers fits the predictor to rounded log-odds.
func fitVennAbers(logs []float64, labels []int) (*Calibration, error) {
	v, err := calibrate.FitVennAbers(onGrid(nil, logs), labels)
	return &Calibration{Method: ByVennAbers, VennAbers: &v, Undetermined: v.Undetermined()}, err
}

// soundVennAbers is [Calibration.Sound] of Venn–Abers.
func soundVennAbers(v *calibrate.VennAbers, fail func(what string, v any, want string) error) error {
	if v == nil || len(v.Knots) == 0 || len(v.Zero) != len(v.Knots) || len(v.One) != len(v.Knots) {
		return fail("knots", v, "as many knots as probabilities of both classes")
	}
	ascending := func(x []float64, low, high float64) bool {
		return x[0] >= low && x[len(x)-1] <= high && slices.IsSorted(x) && !slices.ContainsFunc(x, math.IsNaN)
	}
	peak := calibrate.MaxLogOdds + 1
	for i, k := range v.Knots {
		if k*gridSteps != math.Trunc(k*gridSteps) || i > 0 && k <= v.Knots[i-1] || !(math.Abs(k) <= peak) {
			return fail("knot", k, fmt.Sprintf("ascending multiples of 1/%d up to %.0f", gridSteps, peak))
		}
		if !(v.Zero[i] < 1 && v.One[i] > 0 && v.Zero[i] <= v.One[i]) {
			return fail("probabilities", []float64{v.Zero[i], v.One[i]}, "an ascending pair below 1 and above 0")
		}
	}
	if !ascending(v.Zero, 0, 1) || !ascending(v.One, 0, 1) {
		return fail("probabilities", "of knots", "ascending numbers from 0 to 1")
	}
	return nil
}
