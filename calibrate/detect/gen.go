package detect

import "math"

// genGamma is the exponent that Liu et al. (2023) recommend. leastProbability bounds probabilities, as in pytorch-ood 0.4.
const (
	genGamma         = 0.1
	leastProbability = 1e-7
)

// GEN returns the generalised entropy of each row of probabilities, n×classes: the mean of p^0.1·(1 − p)^0.1 (Liu et al. 2023). A
// larger number means less familiar.
func GEN(probs []float64, classes int) []float64 {
	out := make([]float64, len(probs)/classes)
	for i, p := range probs {
		p = min(max(p, leastProbability), 1-leastProbability)
		out[i/classes] += math.Pow(p*(1-p), genGamma) / float64(classes)
	}
	return out
}
