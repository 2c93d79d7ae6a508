package swag

import (
	"context"
	"runtime"
)

// isotropicVariance returns tr(Σ_diag + Σ_lr)/d, the variance that every weight
// has in isotropic noise of SWAG's total variance.
func (s *Sampler) isotropicVariance() (float64, error) {
	diagonal, lowRank, err := s.p.trace(context.Background(), s.columns)
	return (diagonal + lowRank/float64(s.divisor)) / float64(s.p.Len()), err
}

// trace returns tr(Σ_diag) and ‖D̂‖², D̂ having the columns that a fit of that
// rank would have kept. The sums run over blocks of drawBlock weights, in float64
// and in order, and then over the blocks: members of isotropic noise have the
// bits of them, see docs/formats.md.
func (p *Posterior) trace(ctx context.Context, columns int) (diagonal, lowRank float64, err error) {
	type block struct {
		variance          []float64
		deviations        [][]float32
		diagonal, lowRank float64
	}
	n := int((p.Len() + drawBlock - 1) / drawBlock)
	err = inOrder(ctx, n, runtime.GOMAXPROCS(0), func(i int, b *block) error {
		if b.variance == nil {
			b.variance, b.deviations = make([]float64, drawBlock), rows[float32](columns, drawBlock)
		}
		off := int64(i) * drawBlock
		length := min(drawBlock, p.Len()-off)
		b.variance, b.diagonal, b.lowRank = b.variance[:length], 0, 0
		p.Variance(b.variance, off)
		for _, v := range b.variance {
			b.diagonal += v
		}
		for k := range b.deviations {
			b.deviations[k] = b.deviations[k][:length]
		}
		if columns > 0 {
			if err := p.Deviations(b.deviations, off); err != nil {
				return err
			}
		}
		for _, row := range b.deviations {
			for _, v := range row {
				b.lowRank += float64(float64(v) * float64(v))
			}
		}
		p.read(length * int64(8+4*columns))
		return nil
	}, func(_ int, b *block) error {
		diagonal += b.diagonal
		lowRank += b.lowRank
		return nil
	})
	return diagonal, lowRank, err
}
