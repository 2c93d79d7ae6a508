// Package dense has the linear algebra that fits, geometry and trajectories share: matrices as slices of rows, their
// Gram matrices, and the eigenvectors of these.
//
// # Invariants
//
// A Gram matrix is summed over stretches of [GramLen] columns, which are then added in order. So a sum does not
// depend on the worker or on the size of its blocks.
//
// # Concurrency
//
// Functions have no state.
package dense

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
)

// Rows returns n rows of the given length in one contiguous piece of memory.
func Rows[T any](n, length int) [][]T {
	all := make([]T, n*length)
	out := make([][]T, n)
	for k := range out {
		out[k] = all[k*length:][:length:length]
	}
	return out
}

// Cut returns columns [lo, hi) of rows. It shares their memory.
func Cut[T any](rows [][]T, lo, hi int) [][]T {
	out := make([][]T, len(rows))
	for k, row := range rows {
		out[k] = row[lo:hi]
	}
	return out
}

// GramLen is the number of columns whose products are summed before the sum is added to the total.
const GramLen = 1 << 12

// AddGram adds the inner products of the rows' deviations from mean to the upper triangle of sum, which is n×n for n
// rows. The buffer work has n·GramLen numbers, or is nil.
func AddGram(sum *mat.SymDense, rows [][]float32, mean, work []float64) {
	if work == nil {
		work = make([]float64, len(rows)*min(GramLen, len(mean)))
	}
	stride := len(work) / max(1, len(rows))
	for lo := 0; lo < len(mean); lo += GramLen {
		hi := min(lo+GramLen, len(mean))
		for t, row := range rows {
			w := work[t*stride:][:hi-lo]
			for i, v := range row[lo:hi] {
				w[i] = float64(v) - mean[lo+i]
			}
		}
		AddProducts(sum, work, hi-lo)
	}
}

// AddProducts adds the inner products of the first n columns of work to the upper triangle of sum. The matrix work
// has as many rows as sum.
func AddProducts(sum *mat.SymDense, work []float64, n int) {
	rows := sum.SymmetricDim()
	a := blas64.General{Rows: rows, Cols: n, Stride: len(work) / rows, Data: work}
	blas64.Syrk(blas.NoTrans, 1, a, 1, sum.RawSymmetric())
}

// Principal returns the k leading eigenvectors of a T×T Gram matrix of models as rows of T mixing weights. It also
// returns all eigenvalues in descending order.
//
// Let the columns of Δ (d×T) be the models' deviations. With ΔᵀΔ = VΛVᵀ, ΔV_kV_kᵀΔᵀ is the best approximation of ΔΔᵀ
// of rank k (Eckart and Young).
func Principal(g *mat.SymDense, k int) (mixing [][]float64, values []float64, ok bool) {
	var eigen mat.EigenSym
	if !eigen.Factorize(g, true) {
		return nil, nil, false
	}
	n := g.SymmetricDim()
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	values = make([]float64, n)
	for i, v := range eigen.Values(nil) {
		values[n-1-i] = max(v, 0)
	}
	for c := range k {
		row := mat.Col(nil, n-1-c, &vectors)
		// The sign is arbitrary: make the largest entry positive.
		largest := 0
		for t, v := range row {
			if math.Abs(v) > math.Abs(row[largest]) {
				largest = t
			}
		}
		if row[largest] < 0 {
			blas64.Scal(-1, blas64.Vector{N: n, Inc: 1, Data: row})
		}
		mixing = append(mixing, row)
	}
	return mixing, values, true
}
