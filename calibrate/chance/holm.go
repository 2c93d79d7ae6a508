package chance

import (
	"cmp"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Holm adjusts p-values for multiple comparisons and returns them in their order. Call all differences real whose
// adjusted p-value is below α. Then the probability of at least one false claim is at most α, for any other
// differences and any dependence. See Holm, "A simple sequentially rejective multiple test procedure", Scandinavian
// Journal of Statistics 1979:
//
//	adjusted p_(k) = max_{j≤k} min(1, (m−j+1) p_(j))
//
// NaN values do not count, and stay NaN.
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

// SignTest returns the two-sided p-value of McNemar's exact test (McNemar 1947). It uses the examples that exactly one
// of two methods classifies correctly: one method won them, the other lost them. If the methods err equally often,
// each such example is won with probability ½.
func SignTest(won, lost int) float64 {
	if won == lost {
		return 1
	}
	return min(1, 2*distuv.Binomial{N: float64(won + lost), P: 0.5}.CDF(float64(min(won, lost))))
}
