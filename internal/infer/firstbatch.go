package infer

import (
	"context"
	"sync"
	"time"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/tally"
)

// tried is the number of batches that a trial runs, and mostKept the memory that their scores may take.
const (
	tried    = 2
	mostKept = 16 << 20
)

// ranBatch is a batch of a model that a trial ran.
type ranBatch struct{ model, first, rows int }

// firstBatches reads the examples of the first batches, or of one if there are no more. It returns nil if a run may
// divide the examples in another way, or if an example cannot be read: then the run itself says so.
func (s *Scorer) firstBatches(ctx context.Context, size int) *examples {
	dense := s.models.Parts()[0].Axis() != 0 && Ragged(s.data) // the scores must be those of the longest example
	if s.carried != nil || s.settle != nil || dense || s.data.Len() == 0 {
		return nil
	}
	n := min(tried*size, s.data.Len())
	if room := s.engine.Memory().Networks() / 4 / max(1, s.size.Bytes()); int64(n) > room {
		n = size
	}
	x := &examples{}
	if s.read(ctx, x, 0, min(n, s.data.Len())) != nil {
		return nil
	}
	if s.tried == nil || s.tried.n < x.n {
		s.tried = x
	}
	return x
}

// copyTo copies an example to its place i in to. It reports false if it is not among x.
func (x *examples) copyTo(to *examples, i int, size dataset.Size) bool {
	at := to.first + i
	if x == nil || at >= x.n {
		return false
	}
	if x.bytes != nil {
		copy(to.row(i, size), x.row(at, size))
	} else {
		to.values.Rows(size, i, i+1).Copy(x.values.Rows(size, at, at+1))
	}
	to.errs[i] = x.errs[at]
	return true
}

// first runs the first batches, and keeps what they give.
func (t *trial) first(ctx context.Context, s *Scorer, x *examples) error {
	rows := s.openRows(nil, x)
	for batchRows := range x.batches(rows, t.group.batch) {
		b := batch{s, x, batchRows, t.group.batch}
		inputs, values, err := b.load(t.model.Session)
		if t.inputs != nil {
			s.giveBack(t.values)
		}
		t.inputs, t.values = inputs, values
		if err != nil {
			return err
		}
		t.run = func(ctx context.Context) error {
			_, err := t.model.scores(ctx, inputs)
			return err
		}
		before, start := memory.Resident(), time.Now()
		out, err := t.model.scores(ctx, inputs)
		if err != nil {
			return err
		}
		examples := int(inputs[0].Shape[0])
		t.took((memory.Resident()-before)*longer(inputs, s.size), int64(t.group.batch)*s.size.Bytes(), time.Since(start), examples)
		if _, _, _, err = s.judge(t.model, out, examples); err != nil {
			return err
		}
		s.ran.keep(ranBatch{t.group.first, batchRows[0], examples}, out)
	}
	return nil
}

// longer returns how many times more memory a run of the longest lists may take. Attention takes memory in proportion to
// the square of the length.
func longer(inputs []ort.Tensor, size dataset.Size) int64 {
	given, full := int64(0), int64(size.Floats+size.Ints)
	for _, t := range inputs {
		n := int64(1)
		for _, d := range t.Shape[1:] {
			n *= d
		}
		given += n
	}
	times := max(1, (full+given-1)/max(1, given))
	return times * times
}

// ranBatches are the scores of batches that trials ran.
type ranBatches struct {
	mu     sync.Mutex
	scores map[ranBatch]ort.Tensor
}

// keep keeps the scores of a batch for the run, if they are small.
func (r *ranBatches) keep(of ranBatch, out ort.Tensor) {
	size := int64(4)
	for _, d := range out.Shape {
		size *= d
	}
	if size > mostKept {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.scores == nil {
		r.scores = map[ranBatch]ort.Tensor{}
	}
	r.scores[of] = out
}

// take returns the scores of a batch that a trial ran, once.
func (r *ranBatches) take(ctx context.Context, of ranBatch, examples int) (out ort.Tensor, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if out, ok = r.scores[of]; ok {
		delete(r.scores, of)
		tally.Used(ctx, examples)
	}
	return out, ok
}
