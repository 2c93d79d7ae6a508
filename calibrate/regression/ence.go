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
