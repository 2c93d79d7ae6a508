package infer

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/onnxio"
)

// deviceSums adds up the outcomes of members on the device of a provider, so that only the sums of a batch come back. It
// computes in float64, in the order of the members, as the processor does. The results differ in the last bits of float64.
type deviceSums struct {
	once    sync.Once
	session *ort.Session
	err     error
}

// sums returns the session that adds up, or nil if the scores themselves are needed.
func sums(ctx context.Context, s *Scorer, m *loaded) (*ort.Session, error) {
	p := s.engine.how.Provider
	if !p.AddsUp() || !m.OnDevice() || s.keep || s.settle != nil || s.carried != nil {
		return nil, nil
	}
	if t := known(s); evident(t) == nil || task.Positions(t) != 1 {
		return nil, nil
	}
	s.adder.once.Do(func() {
		s.adder.session, s.adder.err = s.engine.runtime.NewBound(ctx, onnxio.SoftmaxSums(), p)
	})
	return s.adder.session, s.adder.err
}

// close ends the session.
func (d *deviceSums) close() {
	if d.session != nil {
		d.session.Close()
	}
}

// addUp sends a batch through models from … to−1 of a group, and adds their outcomes to the chunk. It reports whether all
// sums are finite. If not, nothing was added.
func (b *batch) addUp(ctx context.Context, adder *ort.Session, group *group, from, to int, inputs []ort.Tensor, c *Chunk) (ok bool, err error) {
	c.make()
	width, rows := b.width(), int(inputs[0].Shape[0])
	sums := b.sumsSoFar(c, width, rows)
	defer func() { ort.Free(sums) }()
	for k := from; k < to; k++ {
		m := group.sessions[k]
		scores, err := m.RunKept(ctx, inputs)
		if err != nil {
			return false, fmt.Errorf("%s: %w", m.Name, err)
		}
		scores[0].Name = onnxio.SumScores
		weight := ort.Tensor{Name: onnxio.SumWeight, Shape: []int64{1}, F64: []float64{m.Weight}}
		next, err := adder.RunBound(ctx, append([]ort.Tensor{scores[0], weight}, sums...), k+1 < to)
		ort.Free(scores)
		if err != nil {
			return false, fmt.Errorf("%s: %w", m.Name, err)
		}
		for i := range next {
			next[i].Name = sums[i].Name
		}
		ort.Free(sums)
		sums = next
		b.report(len(b.rows))
	}
	return b.take(c, width, sums), nil
}

// sumsSoFar returns the sums of the chunk for the rows of the batch, and zeros behind them.
func (b *batch) sumsSoFar(c *Chunk, width, rows int) []ort.Tensor {
	outcome, entropy, evidence := make([]float64, rows*width), make([]float64, rows), make([]float64, 2*rows)
	for i, row := range b.rows {
		copy(outcome[i*width:][:width], c.Outcome[row*width:])
		entropy[i] = c.Entropy[row]
		if c.Evidence != nil {
			copy(evidence[2*i:][:2], c.Evidence[2*row:])
		}
	}
	n := int64(rows)
	return []ort.Tensor{
		{Name: onnxio.SumOutcome, Shape: []int64{n, int64(width)}, F64: outcome},
		{Name: onnxio.SumEntropy, Shape: []int64{n}, F64: entropy},
		{Name: onnxio.SumEvidence, Shape: []int64{n, 2}, F64: evidence},
	}
}

// take puts the sums into the chunk, unless one of an example that could be read is not finite.
func (b *batch) take(c *Chunk, width int, sums []ort.Tensor) bool {
	outcome, entropy, evidence := sums[0].F64, sums[1].F64, sums[2].F64
	infinite := func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }
	for i, row := range b.rows {
		if c.Errs[row] == nil && (infinite(entropy[i]) || slices.ContainsFunc(outcome[i*width:][:width], infinite) || slices.ContainsFunc(evidence[2*i:][:2], infinite)) {
			return false
		}
	}
	for i, row := range b.rows {
		if c.Errs[row] != nil {
			continue
		}
		copy(c.Outcome[row*width:][:width], outcome[i*width:])
		c.Entropy[row] = entropy[i]
		if c.Evidence != nil {
			copy(c.Evidence[2*row:][:2], evidence[2*i:])
		}
	}
	return true
}
