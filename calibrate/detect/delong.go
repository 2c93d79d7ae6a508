package detect

import (
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate/chance"
)

// AUROCDifference returns the AUROC of the scores a minus that of b, for the same examples, with a 95 % interval. The
// interval uses the components of DeLong, DeLong and Clarke-Pearson (Biometrics 1988). The component of an example is
// the share of the other side's examples that it is ranked correctly against.
//
// The interval is too narrow for fewer than about 30 examples on a side, and NaN for one. It has length 0 if a and b
// rank all examples in the same way. AUROCDifference panics if a and b differ in their number of examples, or if a side
// is empty.
func AUROCDifference(aIn, aOut, bIn, bOut []float64) chance.Interval {
	if len(aIn) != len(bIn) || len(aOut) != len(bOut) || len(aIn) == 0 || len(aOut) == 0 {
		panic("detect: scores are not paired, or there are none")
	}
	found := difference(placements(aOut, aIn, false), placements(bOut, bIn, false))
	kept := difference(placements(aIn, aOut, true), placements(bIn, bOut, true))
	mean := stat.Mean(found, nil)
	variance := 0.0
	for _, side := range [][]float64{found, kept} {
		if len(side) < 2 {
			return chance.Interval{Mean: mean, Low: math.NaN(), High: math.NaN()}
		}
		variance += stat.Variance(side, nil) / float64(len(side))
	}
	const normal975 = 1.959963984540054 // the 97.5 % quantile of the normal distribution
	half := normal975 * math.Sqrt(variance)
	return chance.Interval{Mean: mean, Low: mean - half, High: mean + half}
}

// AUROCInterval returns [AUROC] with a 95 % interval, by the components of DeLong et al. It is the interval of the
// difference to a constant score. It is cut at 0 and 1, and is [0, 1] if a side has one example. The components of an area of 0
// or 1 do not vary. There it is the exact interval of Clopper and Pearson for min(len(in), len(out)) pairs.
func AUROCInterval(in, out []float64) chance.Interval {
	i := AUROCDifference(in, out, make([]float64, len(in)), make([]float64, len(out)))
	i.Mean = AUROC(in, out)
	if math.IsNaN(i.Low) {
		return chance.Interval{Mean: i.Mean, Low: 0, High: 1}
	}
	switch least := math.Pow(0.025, 1/float64(min(len(in), len(out)))); i.Mean {
	case 0:
		return chance.Interval{Mean: 0, Low: 0, High: 1 - least}
	case 1:
		return chance.Interval{Mean: 1, Low: least, High: 1}
	}
	return chance.Interval{Mean: i.Mean, Low: max(0, i.Low+0.5), High: min(1, i.High+0.5)}
}

// placements returns for each of xs the share of others below it, or above it if above is true. Equal values count
// half.
func placements(xs, others []float64, above bool) []float64 {
	sorted := slices.Sorted(slices.Values(others))
	out := make([]float64, len(xs))
	for i, x := range xs {
		below := sort.SearchFloat64s(sorted, x)
		upTo := sort.Search(len(sorted), func(k int) bool { return sorted[k] > x })
		twice := below + upTo
		if above {
			twice = 2*len(sorted) - twice
		}
		out[i] = float64(twice) / 2 / float64(len(sorted))
	}
	return out
}

func difference(a, b []float64) []float64 { return floats.SubTo(make([]float64, len(a)), a, b) }
