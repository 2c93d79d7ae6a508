package calibrate

import (
	"cmp"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Holm returns the p-values adjusted for being looked at together, in their order: a
// family of which those with an adjusted p-value below α are called real has a false
// one among them with a probability of at most α, whatever the others are and however
// they depend on each other (Holm, "A simple sequentially rejective multiple test
// procedure", Scandinavian Journal of Statistics 1979):
//
//	adjusted p_(k) = max_{j≤k} min(1, (m−j+1) p_(j))
//
// A NaN takes no part, and stays one.
func Holm(p []float64) []float64 {
	out := slices.Clone(p)
	var order []int
	for i, v := range p {
		if v == v {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	largest := 0.0
	for k, i := range order {
		largest = max(largest, min(1, float64(len(order)-k)*p[i]))
		out[i] = largest
	}
	return out
}

// SignTest returns the two-sided p-value of McNemar's exact test: of images that one
// method of two puts right, some are won and the others lost, each with a probability of ½
// if the methods err alike (McNemar 1947). What both put right or wrong tells nothing.
func SignTest(won, lost int) float64 {
	if won == lost {
		return 1
	}
	return min(1, 2*distuv.Binomial{N: float64(won + lost), P: 0.5}.CDF(float64(min(won, lost))))
}
