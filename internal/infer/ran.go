package infer

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/tally"
)

// mostKept is the memory that the scores of one batch may take, and mostRan that of all of them together.
const mostKept, mostRan = 16 << 20, 64 << 20

// Ran is what was done before a run, and is not done again: sessions that are open, and the scores of batches. Trials leave
// it, and so does a measurement of a precision, with [Engine.PredictFor]. The zero value is empty.
//
// Only whole batches of the run serve it. A measurement takes one example of each stretch of the data, so it has such batches
// only if it measures all examples. A batch without the measured ones has another shape. Only runs show that this changes no
// bit (see checkPlaces), and they cost more than the few measured examples save.
type Ran struct {
	mu       sync.Mutex
	provider string          // that left the sessions and scores
	opened   map[int]*loaded // by the number of the model
	scores   map[ranBatch]ranScores
	bytes    int64 // of the scores
}

// ranBatch is a batch of a model that ran.
type ranBatch struct{ model, first, rows int }

// ranScores are its scores, and what it ran for.
type ranScores struct {
	ort.Tensor
	of tally.Purpose
}

// Close closes the sessions that no run took over. r may be nil.
func (r *Ran) Close() {
	if r == nil {
		return
	}
	r.closeFrom(0)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.scores, r.bytes = nil, 0
}

// closeFrom closes the sessions of model first and later ones.
func (r *Ran) closeFrom(first int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, m := range r.opened {
		if k >= first {
			m.close()
			delete(r.opened, k)
		}
	}
}

// by returns what serves a run of an engine: r, or nothing if another provider left it. With [Settling] batches have other
// examples.
func (r *Ran) by(e *Engine, settled bool) *Ran {
	if r == nil {
		return &Ran{}
	}
	if r.provider != e.how.Provider.String() {
		r.Close()
	}
	r.provider = e.how.Provider.String()
	if settled {
		r.scores = nil
	}
	return r
}

// leave leaves the sessions of a group, whose models have these numbers from first on. The run begins with model 0. Others wait
// for it only as far as room for their bytes is left.
func (r *Ran) leave(g *group, first int, room int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.opened == nil {
		r.opened = map[int]*loaded{}
	}
	for i, m := range g.sessions {
		k := first + i
		if was := r.opened[k]; was != nil {
			was.close()
		}
		r.opened[k] = m
	}
	for _, k := range slices.Sorted(maps.Keys(r.opened)) {
		m := r.opened[k]
		if room -= max(m.bytes, m.Filled.Template.Size()); k > 0 && room < 0 {
			m.close()
			delete(r.opened, k)
		}
	}
}

// takeOver returns model k with its session, or nil. The caller closes it.
func (r *Ran) takeOver(k int) *loaded {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.opened[k]
	delete(r.opened, k)
	return m
}

// missing returns how many models from k to end−1 one after the other have no session.
func (r *Ran) missing(k, end int) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k+n < end && r.opened[k+n] == nil {
		n++
	}
	return n
}

// keep keeps the scores of a batch for the run, if they are small.
func (r *Ran) keep(of ranBatch, out ort.Tensor, why tally.Purpose) {
	size := int64(4)
	for _, d := range out.Shape {
		size *= d
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if size > mostKept || r.bytes+size > mostRan {
		return
	}
	if r.scores == nil {
		r.scores = map[ranBatch]ranScores{}
	}
	r.bytes += size
	r.scores[of] = ranScores{out, why}
}

// has returns the scores of a batch that ran before, and keeps them.
func (r *Ran) has(of ranBatch) (out ort.Tensor, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.scores[of]
	return s.Tensor, ok
}

// take returns the scores of a batch that ran before, once.
func (r *Ran) take(ctx context.Context, of ranBatch, examples int) (out ort.Tensor, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.scores[of]
	if ok {
		delete(r.scores, of)
		tally.Used(ctx, s.of, examples)
	}
	return s.Tensor, ok
}

// later is a run whose model a Scorer runs before it. Without into there is none.
type later struct {
	into  *Ran
	model int
	whole bool // the examples are all those of the run
}

// keep keeps the scores of a batch, and how long m took for them.
func (l later) keep(m *loaded, first int, out ort.Tensor, rows int, took time.Duration) {
	if l.into == nil || !l.whole {
		return
	}
	m.run.Store(int64(max(1, took/time.Duration(rows))))
	out.F32, out.F64, out.F16 = slices.Clone(out.F32), slices.Clone(out.F64), slices.Clone(out.F16)
	l.into.keep(ranBatch{l.model, first, rows}, out, tally.Rounding)
}
