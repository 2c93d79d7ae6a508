package swag

import (
	"context"
	"math"
	"runtime"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
)

// products are sums over all weights, of which the geometry of a posterior is
// made.
type products struct {
	gram            *mat.SymDense // D̂ᵀD̂
	weighted        *mat.SymDense // D̂ᵀΣ_diagD̂
	variance        float64       // tr(Σ_diag)
	varianceSquares float64       // tr(Σ_diag²)
}

func newProducts(columns int) products {
	return products{gram: mat.NewSymDense(columns, nil), weighted: mat.NewSymDense(columns, nil)}
}

// products reads the posterior once, in blocks, and sums them in order: the
// number of workers does not change a bit.
func (p *Posterior) products(ctx context.Context, columns int) (products, error) {
	total := newProducts(columns)
	err := inOrder(ctx, int((p.Len()+gramLen-1)/gramLen), runtime.GOMAXPROCS(0), func(i int, b *productBlock) error {
		if b.work == nil {
			b.variance, b.deviations, b.work = make([]float64, gramLen), rows[float32](columns, gramLen), make([]float64, columns*gramLen)
		}
		off := int64(i) * gramLen
		n := int(min(gramLen, p.Len()-off))
		b.variance = b.variance[:n]
		for k := range b.deviations {
			b.deviations[k] = b.deviations[k][:n]
		}
		p.Variance(b.variance, off)
		if err := p.Deviations(b.deviations, off); err != nil {
			return err
		}
		b.sum(columns)
		p.read(int64(n) * int64(8+4*columns))
		return nil
	}, func(_ int, b *productBlock) error {
		total.gram.AddSym(total.gram, b.sums.gram)
		total.weighted.AddSym(total.weighted, b.sums.weighted)
		total.variance += b.sums.variance
		total.varianceSquares += b.sums.varianceSquares
		return nil
	})
	return total, err
}

type productBlock struct {
	variance   []float64
	deviations [][]float32
	work       []float64 // columns×gramLen
	sums       products
}

func (b *productBlock) sum(columns int) {
	b.sums = newProducts(columns)
	n := len(b.variance)
	a := blas64.General{Rows: columns, Cols: n, Stride: gramLen, Data: b.work}
	for k, row := range b.deviations {
		for i, d := range row {
			b.work[k*gramLen+i] = float64(d)
		}
	}
	blas64.Syrk(blas.NoTrans, 1, a, 0, b.sums.gram.RawSymmetric())
	for _, v := range b.variance {
		b.sums.variance += v
		b.sums.varianceSquares += v * v
	}
	for k, row := range b.deviations {
		for i, d := range row {
			b.work[k*gramLen+i] = float64(d) * math.Sqrt(b.variance[i])
		}
	}
	blas64.Syrk(blas.NoTrans, 1, a, 0, b.sums.weighted.RawSymmetric())
}
