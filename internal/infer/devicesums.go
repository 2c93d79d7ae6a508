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

// mostAdded bounds the outcomes of a batch that a device adds up, in bytes. Larger ones are added up by the processor.
const mostAdded = 1 << 28

// deviceSums adds up the outcomes of members on the device of a provider, so that only the sums of a batch come back. It
// computes in float64, in the order of the members, as the processor does. The results differ in the last bits of float64.
type deviceSums struct {
	mu       sync.Mutex
	sessions map[int]*ort.Session // by the rank of the scores
}

// adding returns how a device adds up what the members predict. ok is false if the scores themselves are needed.
func adding(s *Scorer, m *loaded) (a task.Adding, ok bool) {
	if !s.engine.how.Provider.AddsUp() || !m.OnDevice() || s.keep || s.settle != nil || s.stateful != nil {
		return a, false
	}
	return task.AddingOf(known(s))
}

// session returns the session that adds up.
func (d *deviceSums) session(ctx context.Context, e *Engine, how onnxio.AddUp) (*ort.Session, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.sessions[how.Rank]; s != nil {
		return s, nil
	}
	s, err := e.runtime.NewBound(ctx, how.Model(), e.how.Provider)
	if err != nil {
		return nil, err
	}
	if d.sessions == nil {
		d.sessions = map[int]*ort.Session{}
	}
	d.sessions[how.Rank] = s
	return s, nil
}

func (d *deviceSums) close() {
	for _, s := range d.sessions {
		s.Close()
	}
}

// A sum is where the sums of a batch go: rows with positions, each with the numbers of an outcome. The outcome of an
// example with several positions has the entropy of each behind its numbers.
type sum struct {
	*batch
	*Chunk
	how                    onnxio.AddUp
	several                bool
	rows, positions, width int
}

// addUp sends a batch through models from … to−1 of a group, and adds their outcomes to the chunk. It reports false if the
// device cannot add them up, or if a sum is not finite. Then nothing was added.
func (b *batch) addUp(ctx context.Context, a task.Adding, group *group, from, to int, inputs []ort.Tensor, c *Chunk) (ok bool, err error) {
	c.make()
	var at sum
	var adder *ort.Session
	var sums []ort.Tensor
	defer func() { ort.Free(sums) }()
	for k := from; k < to; k++ {
		m := group.sessions[k]
		scores, err := b.kept(ctx, m, group.first+k, inputs)
		if err == nil && adder == nil {
			if at, ok = b.sum(c, a, scores[0], int(inputs[0].Shape[0])); !ok {
				ort.Free(scores)
				return false, nil
			}
			sums = at.soFar()
			adder, err = b.adder.session(ctx, b.engine, at.how)
		}
		if err == nil {
			scores[0].Name = onnxio.SumScores
			weight := ort.Tensor{Name: onnxio.SumWeight, Shape: []int64{1}, F64: []float64{m.Weight}}
			var next []ort.Tensor
			if next, err = adder.RunBound(ctx, append([]ort.Tensor{scores[0], weight}, sums...), k+1 < to); err == nil {
				for i := range next {
					next[i].Name = sums[i].Name
				}
				ort.Free(sums)
				sums = next
			}
		}
		ort.Free(scores)
		if err != nil {
			return false, fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	if ok = at.take(sums); ok {
		for range to - from {
			b.report(len(b.rows))
		}
	}
	return ok, nil
}

// kept returns the scores of model k, on the device or as a trial left them.
func (b *batch) kept(ctx context.Context, m *loaded, k int, inputs []ort.Tensor) ([]ort.Tensor, error) {
	rows := int(inputs[0].Shape[0])
	if out, ok := b.ran.take(ctx, ranBatch{k, b.in.first + b.rows[0], rows}, rows); ok {
		return []ort.Tensor{out}, nil
	}
	return m.RunKept(ctx, inputs)
}

// sum returns where the sums of a batch go, by the shape of its scores. ok is false if a device cannot make them.
func (b *batch) sum(c *Chunk, a task.Adding, scores ort.Tensor, rows int) (s sum, ok bool) {
	spec, n := task.SpecOf(c.Task), int64(1)
	for _, d := range scores.Shape {
		n *= d
	}
	positions := int(n) / max(1, rows*a.Count)
	width := b.width()
	if task.Large(c.Task) {
		width = width/task.Positions(c.Task) - 1
	} else if positions != 1 {
		return s, false
	}
	s = sum{b, c, onnxio.AddUp{
		How:       a.How,
		Count:     a.Count,
		First:     spec.Axis == 1,
		Rank:      len(scores.Shape),
		Head:      string(a.Head),
		Variances: a.Variances,
	},
		task.Large(c.Task), rows, positions, width}
	return s, scores.DType() == "float32" && len(scores.Shape) > 1 && scores.Shape[0] == int64(rows) && rows*positions*a.Count == int(n) &&
		8*rows*positions*width <= mostAdded
}

// soFar returns the sums of the chunk for the rows of the batch, and zeros behind them.
func (s *sum) soFar() []ort.Tensor {
	outcome, entropy := make([]float64, s.rows*s.positions*s.width), make([]float64, s.rows*s.positions)
	n, p := int64(s.rows), int64(s.positions)
	sums := []ort.Tensor{
		{Name: onnxio.SumOutcome, Shape: []int64{n, p, int64(s.width)}, F64: outcome},
		{Name: onnxio.SumEntropy, Shape: []int64{n, p}, F64: entropy},
	}
	if s.how.HasEvidence() {
		evidence := make([]float64, 2*s.rows*s.positions)
		sums = append(sums, ort.Tensor{Name: onnxio.SumEvidence, Shape: []int64{n, p, 2}, F64: evidence})
		for i, row := range s.batch.rows {
			if s.Evidence != nil && !s.several {
				copy(evidence[2*i:][:2], s.Evidence[2*row:])
			}
		}
	}
	for i, row := range s.batch.rows {
		s.each(i, row, func(at int, outcomeOf []float64, entropyOf *float64) {
			copy(outcome[at*s.width:][:s.width], outcomeOf)
			entropy[at] = *entropyOf
		})
	}
	return sums
}

// each calls f for the positions of an example that are its own, with the place of its numbers in a batch and in the chunk.
func (s *sum) each(i, row int, f func(at int, outcome []float64, entropy *float64)) {
	whole := s.Scorer.width()
	if !s.several {
		f(i, s.Outcome[row*whole:][:s.width], &s.Entropy[row])
		return
	}
	s.Chunk.each(row, s.positions, func(p int) {
		one := s.Outcome[row*whole+p*(s.width+1):][:s.width+1]
		f(i*s.positions+p, one[:s.width], &one[s.width])
	})
}

// take puts the sums into the chunk, unless one of an example that could be read is not finite.
func (s *sum) take(sums []ort.Tensor) bool {
	outcome, entropy, evidence := sums[0].F64, sums[1].F64, []float64(nil)
	if s.how.HasEvidence() {
		evidence = sums[2].F64
	}
	infinite := func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }
	finite := true
	for i, row := range s.batch.rows {
		if s.Errs[row] != nil {
			continue
		}
		s.each(i, row, func(at int, _ []float64, _ *float64) {
			finite = finite && !infinite(entropy[at]) && !slices.ContainsFunc(outcome[at*s.width:][:s.width], infinite) &&
				(evidence == nil || !slices.ContainsFunc(evidence[2*at:][:2], infinite))
		})
	}
	if !finite {
		return false
	}
	for i, row := range s.batch.rows {
		if s.Errs[row] != nil {
			continue
		}
		n, total, both := 0, 0.0, [2]float64{}
		s.each(i, row, func(at int, outcomeOf []float64, entropyOf *float64) {
			copy(outcomeOf, outcome[at*s.width:])
			*entropyOf = entropy[at]
			n, total = n+1, total+entropy[at]
			if evidence != nil {
				both[0], both[1] = both[0]+evidence[2*at], both[1]+evidence[2*at+1]
			}
		})
		if s.several {
			s.Entropy[row] = total / float64(n)
		}
		for j := range 2 {
			switch {
			case s.Evidence == nil:
			case s.several:
				s.Evidence[2*row+j] += both[j] / float64(n)
			default:
				s.Evidence[2*row+j] = both[j]
			}
		}
	}
	return true
}
