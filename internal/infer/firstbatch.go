package infer

import (
	"cmp"
	"context"
	"time"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/tally"
)

// tried is the number of batches that a trial runs.
const tried = 2

// FirstScores are the scores of the first examples of the data, as a network gives them.
type FirstScores struct {
	Examples, Count int // scores of each example
	Scores          []float32
	Exact           bool // in float32
}

// looking calls [Options].Look, once for each graph.
type looking struct {
	look    func(*Graph, *FirstScores) error // nil calls nothing
	seen    map[*Graph]bool
	refused error
}

// at looks at what a graph gave, or at nil if no batch ran.
func (l *looking) at(g *Graph, f *FirstScores) error {
	if l.look == nil || l.seen[g] {
		return nil
	}
	if l.seen == nil {
		l.seen = map[*Graph]bool{}
	}
	l.seen[g] = true
	l.refused = l.look(g, f)
	return l.refused
}

// instead returns the error of a trial, or the refusal of Look. A check of the network says more than a run that failed.
func (l *looking) instead(ctx context.Context, g *Graph, err error) error {
	if err != nil && ctx.Err() == nil {
		l.at(g, nil)
	}
	return cmp.Or(l.refused, err)
}

// firstScores returns what a batch gave, or nil if some examples cannot be read.
func (b *batch) firstScores(m *loaded, out ort.Tensor, examples int) *FirstScores {
	for _, row := range b.rows {
		if b.in.errs[row] != nil {
			return nil
		}
	}
	l, values, err := m.Scores(out, examples)
	if err != nil {
		return nil // judge says so
	}
	p := b.engine.how.Provider
	return &FirstScores{len(b.rows), l.Size(), values[:l.Size()*len(b.rows)], p.Name == ort.CPU || p == p.Exact()}
}

// firstBatches reads the examples of the first batches, or of one if there are no more. It returns nil if a run may
// divide the examples in another way, or if an example cannot be read: then the run itself says so.
func (s *Scorer) firstBatches(ctx context.Context, size int) *examples {
	dense := s.models.Parts()[0].Large() && Ragged(s.data) // the scores must be those of the longest example
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
		examples := int(inputs[0].Shape[0])
		of := ranBatch{t.group.first, batchRows[0], examples}
		if out, ok := s.ran.has(of); ok { // a measurement has its cost
			t.cost.run, t.cost.runBytes = time.Duration(t.model.run.Load()), max(t.cost.runBytes, int64(t.group.batch)*s.size.Bytes())
			if _, _, _, err = s.judge(t.model, out, examples); err != nil {
				return err
			}
			continue
		}
		before, start := memory.Resident(), time.Now()
		out, err := t.model.scores(ctx, inputs)
		if err != nil {
			return err
		}
		t.took((memory.Resident()-before)*longer(inputs, s.size), int64(t.group.batch)*s.size.Bytes(), time.Since(start), examples)
		if err = s.looking.at(t.model.Graph, b.firstScores(t.model, out, examples)); err != nil {
			return err
		}
		if _, _, _, err = s.judge(t.model, out, examples); err != nil {
			return err
		}
		s.ran.keep(of, out, tally.Plan)
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
