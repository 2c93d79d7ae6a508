package swag

import (
	"math"

	"github.com/swagwrap/swagwrap/swag/internal/dense"
	"github.com/swagwrap/swagwrap/weights"
)

// Last returns θ_T, the weights of the last checkpoint, to within half an ulp of a float32. Reading it fails if the
// weights are in checkpoints that are not attached.
func (p *Posterior) Last() weights.Vector { return weights.Func{N: p.Len(), Read: p.readLast} }

// readLast reads θ_T. With deviations from a given mean, or from the running mean, which ends as θ_SWA, it is the sum of
// the mean and the last column of D̂.
func (p *Posterior) readLast(dst []float32, off int64) error {
	switch {
	case p.Single():
		p.mean.Float32s(dst, off)
		return nil
	case p.Options.keepsLast():
		p.last.Float32s(dst, off)
		return nil
	}
	if n := len(p.attached); n > 0 {
		return p.attached[n-1].ReadAt(dst, off)
	}
	return p.readIterate(dst, off, 0)
}

// Recent returns the weights of the last checkpoints, oldest first: at most count
// of them, and at least one. Deviations from the running mean hold as many as there
// are columns. Other posteriors hold the last checkpoint only, unless all
// checkpoints are attached.
func (p *Posterior) Recent(count int) []weights.Vector {
	if n := len(p.attached); n > 0 {
		return p.attached[max(n-count, 0):]
	}
	held := 1
	if p.Options.Columns > 0 && !p.Options.keepsLast() && p.Options.Compat == "" {
		held = min(count, p.Options.Columns)
	}
	out := make([]weights.Vector, held)
	for k := range out {
		out[k] = weights.Func{N: p.Len(), Read: func(dst []float32, off int64) error { return p.readIterate(dst, off, held-1-k) }}
	}
	out[held-1] = p.Last()
	return out
}

// readIterate reads the weights of the checkpoint that lies back checkpoints before the last. Without a given mean, it
// inverts the recurrence of the running mean, mean_n = mean_(n−1) + s·(θ_n − mean_(n−1)), with θ_n = mean_n + D_n: see [Options.Before].
func (p *Posterior) readIterate(dst []float32, off int64, back int) error {
	deviations := dense.Rows[float32](back+1, len(dst))
	if err := p.Deviations(deviations, off); err != nil {
		return err
	}
	mean := make([]float64, len(dst))
	p.Mean(mean, off)
	if p.Options.Deviations == Given {
		back = 0 // the mean is that of each deviation
	}
	for b := range back {
		before := p.Options.Before(p.Options.Models - b)
		for i, d := range deviations[back-b] {
			mean[i] -= float64(d) / before
		}
	}
	for i, d := range deviations[0] {
		dst[i] = float32(mean[i] + float64(d))
	}
	return nil
}

// Frozen reports whether a tensor of batch-norm statistics has the same bits in all checkpoints. Training did not
// update such statistics, for example because the layer was in evaluation mode during fine-tuning.
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
