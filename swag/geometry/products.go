package geometry

import (
	"context"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/swag/internal/dense"
)

// products holds the sums over all weights that a posterior's geometry needs.
type products struct {
	gram            *mat.SymDense // D̂ᵀD̂
	weighted        *mat.SymDense // D̂ᵀΣ_diagD̂
	variance        float64       // tr(Σ_diag)
	varianceSquares float64       // tr(Σ_diag²)

	work []float64 // columns×dense.GramLen
}

// newProducts reads the posterior once.
func newProducts(ctx context.Context, p *swag.Posterior, columns int) (*products, error) {
	total := &products{gram: mat.NewSymDense(columns, nil), weighted: mat.NewSymDense(columns, nil)}
	err := swag.Reduce(ctx, p, columns, dense.GramLen, func(b *swag.Block, s *products) { s.of(b) }, total.add)
	return total, err
}

// of computes the products of a block of at most dense.GramLen weights.
func (s *products) of(b *swag.Block) {
	columns := len(b.Deviations)
	if s.work == nil {
		s.gram, s.weighted, s.work = mat.NewSymDense(columns, nil), mat.NewSymDense(columns, nil), make([]float64, columns*dense.GramLen)
	}
	s.gram.Zero()
	s.weighted.Zero()
	s.variance, s.varianceSquares = 0, 0
	sd := make([]float64, len(b.Variance))
	for i, v := range b.Variance {
		s.variance += v
		s.varianceSquares += v * v
		sd[i] = math.Sqrt(v)
	}
	dense.AddGram(s.gram, b.Deviations, make([]float64, len(sd)), s.work)
	for k, row := range b.Deviations {
		for i, d := range row {
			s.work[k*dense.GramLen+i] = float64(d) * sd[i]
		}
	}
	dense.AddProducts(s.weighted, s.work, len(sd))
}

func (s *products) add(of *products) {
	s.gram.AddSym(s.gram, of.gram)
	s.weighted.AddSym(s.weighted, of.weighted)
	s.variance += of.variance
	s.varianceSquares += of.varianceSquares
}
