package swag

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
)

// stretchLen is the number of weights that pass through a recurrence together: their
// moments stay in the first cache while the iterates go by.
const stretchLen = 1 << 10

// eachStretch calls f for consecutive stretches [lo, hi) of n weights.
func eachStretch(n int, f func(lo, hi int)) {
	for lo := 0; lo < n; lo += stretchLen {
		f(lo, min(lo+stretchLen, n))
	}
}

// running takes mean and variance, the moments of the first seen models, on
// over the iterates theta, a row for each, and sets the rows of deviations to
// those of the last iterates from the mean that includes them: Algorithm 1.
//
// It is Welford's recurrence, in float64 and written for the variance with
// divisor n itself: what is stored is then all that the next iterate needs, and
// a fit that is continued has the bits of one that never stopped. Sums of
// squares would cancel where the mean is large against the deviation.
func running(theta [][]float32, seen int, mean, variance []float64, deviations [][]float32) {
	first := len(theta) - len(deviations)
	eachStretch(len(mean), func(lo, hi int) {
		for t, row := range theta {
			welford(mean[lo:hi], variance[lo:hi], row[lo:hi], 1/float64(seen+t+1))
			if t >= first {
				subtract(deviations[t-first][lo:hi], row[lo:hi], mean[lo:hi])
			}
		}
	})
}

// reference is running as the authors' code has it (swag/posteriors/swag.py,
// collect_model and sample): float32 throughout, the mean of squares instead of
// the variance, and a floor below it.
func reference(theta [][]float32, mean, variance []float64, deviations [][]float32) {
	const floor = 1e-30 // var_clamp
	first := len(theta) - len(deviations)
	m, squares := make([]float32, stretchLen), make([]float32, stretchLen)
	eachStretch(len(mean), func(lo, hi int) {
		clear(m)
		clear(squares)
		for t, row := range theta {
			n, next := float32(t), float32(t+1)
			for i, v := range row[lo:hi] {
				m[i] = float32(m[i]*n)/next + v/next
				squares[i] = float32(squares[i]*n)/next + float32(v*v)/next
				if t >= first {
					deviations[t-first][lo+i] = v - m[i]
				}
			}
		}
		for i := range hi - lo {
			mean[lo+i] = float64(m[i])
			variance[lo+i] = float64(max(squares[i]-float32(m[i]*m[i]), floor))
		}
	})
}

// gramLen is the number of weights whose products are summed before they join
// the total. It is fixed, so that the total does not depend on the blocks that
// a fit is done in; a block is a multiple of it.
const gramLen = 1 << 12

// gram adds the inner products of the iterates' deviations from mean over at
// most gramLen weights to the upper triangle of sum, T×T. work has room for
// T·gramLen numbers.
func gram(sum *mat.SymDense, theta [][]float32, mean, work []float64) {
	for t, row := range theta {
		w := work[t*gramLen:][:len(mean)]
		for i, v := range row[:len(mean)] {
			w[i] = float64(v) - mean[i]
		}
	}
	a := blas64.General{Rows: len(theta), Cols: len(mean), Stride: gramLen, Data: work}
	blas64.Syrk(blas.NoTrans, 1, a, 1, sum.RawSymmetric())
}

// rows returns n rows of the given length that lie one after the other.
func rows[T any](n, length int) [][]T {
	all := make([]T, n*length)
	out := make([][]T, n)
	for k := range out {
		out[k] = all[k*length:][:length:length]
	}
	return out
}

// principal returns the k leading eigenvectors of a Gram matrix of T models as
// rows of T mixing weights, and all eigenvalues in descending order. With the
// deviations Δ (d×T) of the models, ΔᵀΔ = VΛVᵀ, and the columns of ΔV_k are what
// makes ΔV_kV_kᵀΔᵀ the best approximation of ΔΔᵀ of rank k (Eckart and Young).
func principal(g *mat.SymDense, k int) (mixing [][]float64, values []float64, ok bool) {
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
		// The sign is free: the largest entry is positive.
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

// mixedDeviations sets the rows of deviations to the combinations of the
// iterates' deviations from mean that the rows of mixing give.
func mixedDeviations(theta [][]float32, mixing [][]float64, mean []float64, deviations [][]float32) {
	work, sum := rows[float64](len(theta), stretchLen), make([]float64, stretchLen)
	for lo := 0; lo < len(mean); lo += stretchLen {
		hi := min(lo+stretchLen, len(mean))
		for t, row := range theta {
			for i, v := range row[lo:hi] {
				work[t][i] = float64(v) - mean[lo+i]
			}
		}
		for k, weights := range mixing {
			s := sum[:hi-lo]
			clear(s)
			for t, w := range weights {
				blas64.Axpy(w, blas64.Vector{N: hi - lo, Inc: 1, Data: work[t]}, blas64.Vector{N: hi - lo, Inc: 1, Data: s})
			}
			for i, v := range s {
				deviations[k][lo+i] = float32(v)
			}
		}
	}
}
