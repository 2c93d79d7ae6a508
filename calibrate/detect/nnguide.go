package detect

import (
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// Guides is the k of [NNGuide] in pytorch-ood.
const Guides = 10

// NNGuide returns −E(f)·g(f) for each row of features (Park et al. 2023). E is log Σ exp of its logits. g is the mean of the k largest
// E(b)·cos(f, b) over the rows b of bank, the features of training data. A larger number means less familiar. If bank has fewer than k
// rows, all of them count.
func NNGuide(bank, features *mat.Dense, layer Layer, k int) []float64 {
	known, rows := unit(bank), unit(features)
	for i, e := range energies(layer.Logits(bank)) {
		floats.Scale(e, known.RawRowView(i))
	}
	out := energies(layer.Logits(features))
	size, width := known.Dims()
	k = min(k, size)
	const block = 256
	for from := 0; from < len(out); from += block {
		to := min(from+block, len(out))
		var products mat.Dense
		products.Mul(rows.Slice(from, to, 0, width), known.T())
		for i := from; i < to; i++ {
			row := products.RawRowView(i - from)
			slices.Sort(row)
			out[i] *= -meanOf(row[size-k:])
		}
	}
	return out
}
