package swag

import (
	"math"

	"github.com/swagwrap/swagwrap/weights"
)

// Last returns θ_T, the weights of the last checkpoint, to within half an ulp of
// a float32. It fails, when read, where the checkpoints that hold them are not
// attached.
func (p *Posterior) Last() weights.Vector { return last{p} }

// last is the weights of a posterior's last checkpoint. With deviations from the
// running mean, which ends as θ_SWA, they are the mean and the last column of D̂.
type last struct{ p *Posterior }

func (l last) Len() int64 { return l.p.Len() }

func (l last) ReadAt(dst []float32, off int64) error {
	if l.p.Options.keepsLast() {
		l.p.last.Float32s(dst, off)
		return nil
	}
	if n := len(l.p.attached); n > 0 {
		return l.p.attached[n-1].ReadAt(dst, off)
	}
	if err := l.p.Deviations([][]float32{dst}, off); err != nil {
		return err
	}
	mean := make([]float64, len(dst))
	l.p.Mean(mean, off)
	for i, m := range mean {
		dst[i] = float32(m + float64(dst[i]))
	}
	return nil
}

// Frozen reports whether a tensor of batch-norm statistics has the same bits in
// all checkpoints: they were not updated in training, as where a layer is kept
// in evaluation mode while the network is fine-tuned.
func (p *Posterior) Frozen(statistic weights.Tensor) bool {
	first := p.StoredStatistics[0]
	for _, row := range p.StoredStatistics[1:] {
		for i := statistic.Offset; i < statistic.Offset+statistic.Len(); i++ {
			if math.Float32bits(row[i]) != math.Float32bits(first[i]) {
				return false
			}
		}
	}
	return true
}
