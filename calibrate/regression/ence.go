package regression

import (
	"cmp"
	"math"
	"slices"
)

// ErrorBin is a group of predictions of similar variance. It is a point of the reliability diagram of Levi et al.
// (2019), which plots RMSE against RMV.
type ErrorBin struct {
	Count int
	RMV   float64 // root of the mean predicted variance
	RMSE  float64 // root of the mean squared error
}

// ErrorBins sorts n predictions of one target by predicted variance and cuts them into bins before the elements
// floor(b·n/bins). A cut within equal variances moves to the end of their run, so the order of predictions does not
// matter. Empty bins are left out. Zero bins mean 10.
//
// ErrorBins panics if there are no scores or bins is negative.
func ErrorBins(scores []Score, bins int) []ErrorBin {
	bins = cmp.Or(bins, defaultBins)
	switch {
	case len(scores) == 0:
		panic(badScores)
	case bins < 0:
		panic(badBins)
	}
	type pair struct{ variance, square float64 }
	all := make([]pair, len(scores))
	for i, s := range scores {
		all[i] = pair{s.Moments.Variance(), s.Error() * s.Error()}
	}
	slices.SortFunc(all, func(a, b pair) int { // by error too, so that sums do not depend on the order
		return cmp.Or(cmp.Compare(a.variance, b.variance), cmp.Compare(a.square, b.square))
	})
	var out []ErrorBin
	start := 0
	for b := range bins {
		end := (b + 1) * len(all) / bins
		for 0 < end && end < len(all) && all[end].variance == all[end-1].variance {
			end++
		}
		if start >= end {
			continue
		}
		bin := ErrorBin{Count: end - start}
		for _, x := range all[start:end] {
			bin.RMV += x.variance
			bin.RMSE += x.square
		}
		bin.RMV, bin.RMSE = math.Sqrt(bin.RMV/float64(bin.Count)), math.Sqrt(bin.RMSE/float64(bin.Count))
		out = append(out, bin)
		start = end
	}
	return out
}

// ENCE returns the expected normalised calibration error of the variances of one target,
//
//	mean over bins of |RMV_b − RMSE_b| / RMV_b
//
// over the bins of [ErrorBins] (Levi, Gispan, Giladi and Fetaya 2019, arXiv 1905.11659). For calibrated predictions
// it is about √(1/πm) with m examples per bin, not 0. So compare it only between equal numbers of examples.
func ENCE(scores []Score, bins int) (ence float64) {
	all := ErrorBins(scores, bins)
	for _, b := range all {
		ence += math.Abs(b.RMV-b.RMSE) / b.RMV / float64(len(all))
	}
	return ence
}

// Coverages returns, for each level, the share of PIT values u in the central interval of that level: |2u − 1| ≤
// level. If the distributions are correct, the share is the level. It panics if there is no PIT value.
func Coverages(pits, levels []float64) []float64 {
	if len(pits) == 0 {
		panic(badScores)
	}
	out := make([]float64, len(levels))
	for i, level := range levels {
		held := 0
		for _, u := range pits {
			if math.Abs(2*u-1) <= level {
				held++
			}
		}
		out[i] = float64(held) / float64(len(pits))
	}
	return out
}

// maceLevels is the number of levels from 0 to 1 over which MACE takes the mean, as in uncertainty-toolbox.
const maceLevels = 100

// MACE returns the mean absolute calibration error: the mean absolute difference between [Coverages] and the level
// over 100 levels from 0 to 1. This is mean_absolute_calibration_error of uncertainty-toolbox (Chung et al., arXiv
// 2109.10254, section 3). Kuleshov et al. 2018 use the square instead. For n calibrated predictions it is about
// 0.3/√n, not 0.
func MACE(pits []float64) (mace float64) {
	levels := make([]float64, maceLevels)
	for i := range levels {
		levels[i] = float64(i) / (maceLevels - 1)
	}
	for i, c := range Coverages(pits, levels) {
		mace += math.Abs(c-levels[i]) / maceLevels
	}
	return mace
}
