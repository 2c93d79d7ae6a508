package rounding

import (
	"context"
	"math"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/splitmix"
	"github.com/swagwrap/swagwrap/weights"
)

// amplify returns the largest change of the averages was, if each weight moves by one rounding. Products that are rounded
// once more do the same to a network as sums in another order.
func (s Side) amplify(ctx context.Context, opts Options, held dataset.Dataset, was []float64) (largest float64, err error) {
	var strata []stratum
	parts, first := s.Parts(), 0
	for _, p := range parts {
		of := stratum{count: p.Count, pairs: opts.pairs(p)}
		err := s.Each(ctx, first, measured(p, len(parts), opts), func(m infer.Model) error {
			sums := infer.Sums{}
			_, err := s.Exact.PredictUsable(ctx, m.With(moved{m.Filled.Parameters}), held, opts.SkipErrors, &sums)
			if err == nil {
				of.weight, of.outcomes = m.Weight*float64(p.Count), append(of.outcomes, sums.Mean())
			}
			return err
		})
		if err != nil {
			return 0, err
		}
		strata, first = append(strata, of), first+p.Count
	}
	for i, v := range average(strata) {
		if d := math.Abs(v - was[i]); d > largest {
			largest = d
		}
	}
	return largest, nil
}

// moved is weights that one more rounding of float32 moved up or down.
type moved struct{ weights.Vector }

func (v moved) ReadAt(dst []float32, off int64) error {
	const one = 1.0 / (1 << 23)
	err := v.Vector.ReadAt(dst, off)
	for i, w := range dst {
		if splitmix.Mix(uint64(off)+uint64(i))&1 == 0 {
			dst[i] = w * (1 + one)
		} else {
			dst[i] = w * (1 - one)
		}
	}
	return err
}
