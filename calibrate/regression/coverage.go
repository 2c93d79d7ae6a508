package regression

import "math"

// Coverages returns, for each level, the share of PIT values in the central interval that
// is to hold that share: |2u − 1| ≤ level. Where distributions are right it is the level.
// It panics if there is no PIT value.
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

// maceLevels is how many levels from 0 to 1 the MACE is a mean over, as in
// uncertainty-toolbox.
const maceLevels = 100

// MACE is the mean absolute calibration error, the mean of |[Coverages] − level| over 100
// levels from 0 to 1 (Kuleshov et al. 2018 have its square; Chung et al., arXiv 2109.10254,
// section 3, and uncertainty-toolbox's mean_absolute_calibration_error this). Of n
// predictions that are calibrated it is about 0.3/√n, not 0.
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
