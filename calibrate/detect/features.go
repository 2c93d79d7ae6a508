package detect

import (
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// Mahalanobis measures how far features of a network are from those of its classes (Lee et al. 2018, equations 1 and 2).
type Mahalanobis struct {
	means   []*mat.VecDense // the means of the classes that have examples, whitened
	whitens *mat.Dense      // width×rank
}

// FitMahalanobis fits the means of the classes and their shared covariance to features, n×width, of labelled examples:
//
//	μ_c = mean of f_i with label c    Σ = 1/n Σ_i (f_i − μ)(f_i − μ)ᵀ
//
// Its pseudo-inverse takes the place of Σ⁻¹, since features that never vary are common. Directions with less than width·2⁻⁵²
// of the largest variance are left out, as in scikit-learn. It is an error if all features are equal within their classes.
func FitMahalanobis(features *mat.Dense, labels []int) (*Mahalanobis, error) {
	n, width := features.Dims()
	if n != len(labels) || n == 0 {
		panic("detect: number of features is not labels × width")
	}
	means, counts := map[int][]float64{}, map[int]float64{}
	for i, c := range labels {
		if means[c] == nil {
			means[c] = make([]float64, width)
		}
		floats.Add(means[c], features.RawRowView(i))
		counts[c]++
	}
	for c, mean := range means {
		floats.Scale(1/counts[c], mean)
	}
	centred := mat.DenseCopyOf(features)
	for i, c := range labels {
		floats.Sub(centred.RawRowView(i), means[c])
	}
	covariance := mat.NewSymDense(width, nil)
	covariance.SymOuterK(1/float64(n), centred.T())
	var e mat.EigenSym
	if !e.Factorize(covariance, true) {
		return nil, errors.New("the covariance of the features has no eigenvalues")
	}
	values := e.Values(nil) // ascending
	first, _ := slices.BinarySearch(values, values[width-1]*float64(width)*0x1p-52)
	if !(values[width-1] > 0) {
		return nil, errors.New("the features do not vary within classes")
	}
	var vectors mat.Dense
	e.VectorsTo(&vectors)
	m := &Mahalanobis{whitens: mat.DenseCopyOf(vectors.Slice(0, width, first, width))}
	for j, v := range values[first:] {
		for i := range width {
			m.whitens.Set(i, j, m.whitens.At(i, j)/math.Sqrt(v))
		}
	}
	for _, mean := range means {
		white := &mat.VecDense{}
		white.MulVec(m.whitens.T(), mat.NewVecDense(width, mean))
		m.means = append(m.means, white)
	}
	return m, nil
}

// Distances returns min_c (f − μ_c)ᵀ Σ⁻¹ (f − μ_c) of each row of features. A larger distance means less familiar.
func (m *Mahalanobis) Distances(features *mat.Dense) []float64 {
	var white mat.Dense
	white.Mul(features, m.whitens)
	n, _ := white.Dims()
	out := make([]float64, n)
	for i := range out {
		out[i] = math.Inf(1)
		for _, mean := range m.means {
			d := floats.Distance(white.RawRowView(i), mean.RawVector().Data, 2)
			out[i] = min(out[i], d*d)
		}
	}
	return out
}

// Neighbours is the k of [NeighbourDistances] that Sun et al. (2022) use for CIFAR.
const Neighbours = 50

// NeighbourDistances returns the Euclidean distance of each row of features to the k-th nearest row of bank, the
// features of training data (Sun et al. 2022). All rows are divided by their length first. A larger distance means less
// familiar. If bank has fewer than k rows, it is the distance to the farthest.
func NeighbourDistances(bank, features *mat.Dense, k int) []float64 {
	known, rows := unit(bank), unit(features)
	n, _ := rows.Dims()
	size, _ := known.Dims()
	k = min(k, size)
	out := make([]float64, n)
	const block = 256
	for from := 0; from < n; from += block {
		to := min(from+block, n)
		var cosines mat.Dense
		_, width := rows.Dims()
		cosines.Mul(rows.Slice(from, to, 0, width), known.T())
		for i := from; i < to; i++ {
			row := cosines.RawRowView(i - from)
			slices.Sort(row)
			out[i] = math.Sqrt(max(0, 2-2*row[size-k]))
		}
	}
	return out
}

// unit returns the rows divided by their lengths. Rows of zeros stay zero.
func unit(x *mat.Dense) *mat.Dense {
	out := mat.DenseCopyOf(x)
	n, _ := out.Dims()
	for i := range n {
		if row := out.RawRowView(i); floats.Norm(row, 2) > 0 {
			floats.Scale(1/floats.Norm(row, 2), row)
		}
	}
	return out
}
