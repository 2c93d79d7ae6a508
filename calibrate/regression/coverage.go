package regression

import "math"

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
