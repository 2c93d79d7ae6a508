package detect

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// Layer is a linear layer from features to logits.
type Layer struct {
	Weights *mat.Dense // logits×width
	Bias    []float64  // of each logit
}

// Logits returns those of each row of features.
func (l Layer) Logits(features *mat.Dense) *mat.Dense {
	var out mat.Dense
	out.Mul(features, l.Weights.T())
	n, _ := out.Dims()
	for i := range n {
		floats.Add(out.RawRowView(i), l.Bias)
	}
	return &out
}

// energies returns log Σ exp z of each row of logits.
func energies(logits *mat.Dense) []float64 {
	n, _ := logits.Dims()
	out := make([]float64, n)
	for i := range out {
		out[i] = floats.LogSumExp(logits.RawRowView(i))
	}
	return out
}

// pseudoInverse returns W⁺·b: the shortest x with the least |W·x − b|. Singular values below eps·max(rows, columns) of the largest
// count as 0, as in PyTorch.
func pseudoInverse(w *mat.Dense, b []float64) []float64 {
	rows, columns := w.Dims()
	var svd mat.SVD
	x := make([]float64, columns)
	if !svd.Factorize(w, mat.SVDThin) {
		return x
	}
	var u, v mat.Dense
	svd.UTo(&u)
	svd.VTo(&v)
	values := svd.Values(nil)
	for k, s := range values {
		if !(s > values[0]*float64(max(rows, columns))*0x1p-52) {
			break
		}
		along := 0.0
		for i, y := range b {
			along += u.At(i, k) * y
		}
		for j := range x {
			x[j] += v.At(j, k) * along / s
		}
	}
	return x
}

func meanOf(values []float64) float64 { return floats.Sum(values) / math.Max(1, float64(len(values))) }
