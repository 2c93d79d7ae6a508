package shares

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// sums adds up vectors and their products.
type sums struct {
	n       int
	sum     []float64
	squares *mat.SymDense
	rows    []float64 // that squares lack
}

// batch is the number of vectors that are multiplied at once.
const batch = 64

func newSums(width int) *sums {
	return &sums{sum: make([]float64, width), squares: mat.NewSymDense(width, nil)}
}

func (s *sums) add(v []float64) {
	s.n++
	floats.Add(s.sum, v)
	if s.rows = append(s.rows, v...); len(s.rows) == batch*len(s.sum) {
		s.flush()
	}
}

func (s *sums) flush() {
	width := len(s.sum)
	rows := blas64.General{Rows: len(s.rows) / width, Cols: width, Stride: width, Data: s.rows}
	blas64.Syrk(blas.Trans, 1, rows, 1, s.squares.RawSymmetric())
	s.rows = s.rows[:0]
}

func (s *sums) mean() []float64 {
	return floats.ScaleTo(make([]float64, len(s.sum)), 1/float64(s.n), s.sum)
}

// second returns the mean of the products.
func (s *sums) second() *mat.SymDense {
	s.flush()
	out := mat.NewSymDense(len(s.sum), nil)
	out.ScaleSym(1/float64(s.n), s.squares)
	return out
}

func (s *sums) covariance() *mat.SymDense {
	out := s.second()
	mean := mat.NewVecDense(len(s.sum), s.mean())
	out.SymRankOne(out, -1, mean)
	if s.n > 1 {
		out.ScaleSym(float64(s.n)/float64(s.n-1), out)
	}
	return out
}

// inverse returns the pseudo-inverse of a matrix, and the smallest of its singular values as a part of the largest. Parts below least
// count as 0.
func inverse(m mat.Matrix, least float64) (*mat.Dense, float64) {
	var svd mat.SVD
	n, _ := m.Dims()
	out := mat.NewDense(n, n, nil)
	if !svd.Factorize(m, mat.SVDThin) {
		return out, 0
	}
	var u, v mat.Dense
	svd.UTo(&u)
	svd.VTo(&v)
	values := svd.Values(nil)
	for k, s := range values {
		if s > least*values[0] {
			out.RankOne(out, 1/s, v.ColView(k), u.ColView(k))
		}
	}
	return out, values[n-1] / values[0]
}

// quadratic returns vᵀMv.
func quadratic(v []float64, m mat.Matrix) float64 {
	x := mat.NewVecDense(len(v), v)
	return mat.Inner(x, m, x)
}
