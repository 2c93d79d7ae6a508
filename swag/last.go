package swag

import (
	"math"

	"github.com/swagwrap/swagwrap/swag/internal/dense"
	"github.com/swagwrap/swagwrap/weights"
)

// Last returns θ_T, the weights of the last checkpoint, to within half an ulp of a float32. Reading it fails if the
// weights are in checkpoints that are not attached.
func (p *Posterior) Last() weights.Vector { return last{p} }

// last holds the weights of a posterior's last checkpoint. With deviations from the running mean, which ends as
// θ_SWA, they are the sum of the mean and the last column of D̂.
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

// Recent returns the weights of the last checkpoints, oldest first: at most count
// of them, and at least one. Deviations from the running mean hold as many as there
// are columns. Other posteriors hold the last checkpoint only, unless all
// checkpoints are attached.
func (p *Posterior) Recent(count int) []weights.Vector {
	if n := len(p.attached); n > 0 {
		return p.attached[max(n-count, 0):]
	}
	held := 1
	if !p.Options.keepsLast() && p.Options.Compat == "" {
		held = min(count, p.Options.Columns)
	}
	out := make([]weights.Vector, held)
	for k := range out {
		out[k] = iterate{p, held - 1 - k}
	}
	out[held-1] = p.Last()
	return out
}

// iterate holds the weights of the checkpoint that lies back checkpoints before the last. It inverts the recurrence
// of the running mean, mean_n = mean_(n−1) + (θ_n − mean_(n−1))/n, with θ_n = mean_n + D_n.
type iterate struct {
	p    *Posterior
	back int
}

func (it iterate) Len() int64 { return it.p.Len() }

func (it iterate) ReadAt(dst []float32, off int64) error {
	deviations := dense.Rows[float32](it.back+1, len(dst))
	if err := it.p.Deviations(deviations, off); err != nil {
		return err
	}
	mean := make([]float64, len(dst))
	it.p.Mean(mean, off)
	for b := range it.back {
		n := float64(it.p.Options.Models - b)
		for i, d := range deviations[it.back-b] {
			mean[i] -= float64(d) / (n - 1) // (n·mean − θ)/(n−1) with θ = mean + d
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
