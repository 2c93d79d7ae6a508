package swag

import "context"

// isotropicVariance returns tr(Σ_diag + Σ_lr)/d, the variance of every weight in isotropic noise with SWAG's total
// variance. It reads the posterior once. The sums run in float64 and in order, over blocks of drawBlock weights and
// then over the blocks. The bits of isotropic members depend on this order: see docs/formats.md.
func (s *Sampler) isotropicVariance(ctx context.Context) (float64, error) {
	s.isotropic.Lock()
	defer s.isotropic.Unlock()
	if s.known {
		return s.variance, nil
	}
	type traces struct{ diagonal, lowRank float64 }
	var sum traces
	err := Reduce(ctx, s.p, s.columns, drawBlock, func(b *Block, of *traces) {
		*of = traces{}
		for _, v := range b.Variance {
			of.diagonal += v
		}
		for _, row := range b.Deviations {
			for _, v := range row {
				of.lowRank += float64(float64(v) * float64(v))
			}
		}
	}, func(of *traces) {
		sum.diagonal += of.diagonal
		sum.lowRank += of.lowRank
	})
	if err != nil {
		return 0, err
	}
	s.known, s.variance = true, (sum.diagonal+sum.lowRank/float64(s.divisor))/float64(s.p.Len())
	return s.variance, nil
}
