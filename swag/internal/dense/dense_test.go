package dense_test

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/swagwrap/swagwrap/swag/internal/dense"
)

// The inner products of two rows, and the direction in which they are largest.
func Example() {
	gram := mat.NewSymDense(2, nil)
	dense.AddGram(gram, [][]float32{{3, 0, 0}, {3, 4, 0}}, make([]float64, 3), nil)
	mixing, values, _ := dense.Principal(gram, 1)
	fmt.Printf("%v: eigenvalues %.3f, the first's vector %.3f\n", gram.At(0, 1), values, mixing[0])
	// Output:
	// 9: eigenvalues [29.042 4.958], the first's vector [0.410 0.912]
}

// Sums over many stretches are those of the definition, with a work space or
// without.
func TestAddGram(t *testing.T) {
	const n, d = 3, 2*dense.GramLen + 7
	rows, mean := dense.Rows[float32](n, d), make([]float64, d)
	for k, row := range rows {
		for i := range row {
			row[i] = float32((i*(k+2))%13) / 4
		}
	}
	for i := range mean {
		mean[i] = float64(i%5) / 8
	}
	for _, work := range [][]float64{nil, make([]float64, n*dense.GramLen)} {
		sum := mat.NewSymDense(n, nil)
		dense.AddGram(sum, rows, mean, work)
		for j := range n {
			for k := range n {
				want := 0.0
				for i, m := range mean {
					want += (float64(rows[j][i]) - m) * (float64(rows[k][i]) - m)
				}
				if got := sum.At(j, k); math.Abs(got-want) > 1e-9*math.Abs(want) {
					t.Errorf("rows %d and %d: %v, want %v", j, k, got, want)
				}
			}
		}
	}
}

// Eigenvalues are in descending order, and of each eigenvector the largest entry is
// positive.
func TestPrincipal(t *testing.T) {
	g := mat.NewSymDense(3, []float64{1, 0, 0, 0, 9, 0, 0, 0, 4})
	mixing, values, ok := dense.Principal(g, 2)
	if !ok || fmt.Sprint(values) != "[9 4 1]" || fmt.Sprint(mixing) != "[[0 1 0] [0 0 1]]" {
		t.Errorf("eigenvalues %v, vectors %v", values, mixing)
	}
}

// Rows are cut without being copied.
func TestCut(t *testing.T) {
	rows := dense.Rows[int](2, 5)
	dense.Cut(rows, 2, 4)[1][0] = 7
	if rows[1][2] != 7 || len(dense.Cut(rows, 2, 4)[0]) != 2 {
		t.Errorf("rows %v", rows)
	}
}
