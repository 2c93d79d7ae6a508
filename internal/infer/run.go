package infer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer/store"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/records"
	"github.com/swagwrap/swagwrap/onnxio"
)

// A Run is an engine at work for one caller. Only the engine is needed.
type Run struct {
	*Engine
	// Store, if not nil, keeps the outputs of networks. Outputs in the store are not computed again.
	Store *store.Store
	// Progress, if not nil, is called with the number of images that went through a network. It is called from
	// several goroutines.
	Progress func(images int)
}

// Report calls Progress with a number of images that went through a network.
func (r Run) Report(images int) {
	if r.Progress != nil {
		r.Progress(images)
	}
}

// Quiet returns the run without Progress, for passes that do not count.
func (r Run) Quiet() Run {
	r.Progress = nil
	return r
}

// On returns the run with another engine.
func (r Run) On(e *Engine) Run {
	r.Engine = e
	return r
}

// Predict runs a model over the data and adds its outcomes, times its weight, to sums. Outcomes in the Store are not
// computed again.
func (r Run) Predict(ctx context.Context, m Model, data dataset.Dataset, sums *Sums) error {
	if r.Store == nil {
		_, err := r.predict(ctx, m, data, false, sums, sums, r.Progress, later{})
		return err
	}
	one, err := r.stored(ctx, m, data, sums)
	if err == nil {
		sums.Init(m.Name, data.Len(), one.Task)
		sums.addWeighted(one, m.Weight)
	}
	return err
}

// stored returns the outcomes of a model for the data, with the weight 1. They come from the store, or are computed
// and put there. like is the sum that they will be added to.
func (r Run) stored(ctx context.Context, m Model, data dataset.Dataset, like *Sums) (*Sums, error) {
	m.Weight = 1
	one := &Sums{}
	compute := func() (*Sums, error) {
		_, err := r.predict(ctx, m, data, false, like, one, r.Progress, later{})
		return one, err
	}
	k, err := r.key(m, data)
	if err != nil {
		return nil, err
	}
	if k == nil {
		return compute()
	}
	found, err := r.Store.Get(k, func(h *records.Head) (func(*records.Row) error, error) { return one.recall(m, data.Len(), h) })
	if err != nil {
		return nil, err
	}
	if found {
		if like.Task != nil {
			if err := m.agrees(one.Task, like.Task, like.first); err != nil {
				return nil, fmt.Errorf("%s: %w", m.Name, err)
			}
		}
		r.Report(data.Len())
		return one, nil
	}
	*one = Sums{}
	if _, err := compute(); err != nil {
		return nil, err
	}
	width := one.Task.About().Width
	return one, r.Store.Put(k, Note{m.Name, m.Measured()}, data.Len(), func(i int, row *records.Row) {
		row.Values = append(append(row.Values[:0], one.Outcome[i*width:][:width]...), one.Entropy[i])
		if one.Evidence != nil {
			row.Values = append(row.Values, one.Evidence[2*i:2*i+2]...)
		}
	})
}

// key returns the key of the outcomes of a model for the data. It returns nil for data without an ID.
func (r Run) key(m Model, data dataset.Dataset) (store.Key, error) {
	id := dataset.ID(data)
	if id == "" {
		return nil, nil
	}
	k, err := r.Key("outcomes and evidence", m.Filled, id)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	size, err := r.BatchUnit(m, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	k["batch"], k["output"], k["task"] = size, m.Output(), m.card
	if f := m.Form(); f != m.Proven() {
		k["scores"] = f
	}
	if m.scores.Regression != nil {
		k["numbers"] = m.scores.Regression
	}
	return k, nil
}

// Key returns a key with everything that the outputs of a filled model depend on.
func (e *Engine) Key(kind string, m onnxio.Filled, data string) (store.Key, error) {
	sum := sha256.New()
	for i := range m.Template.Files() {
		if err := m.Template.WriteTo(sum, i, m.Layout, m.Parameters, m.Statistics); err != nil {
			return nil, err
		}
	}
	return store.Key{"kind": kind, "network": hex.EncodeToString(sum.Sum(nil)), "data": data,
		"onnxruntime": e.runtime.Version(), "provider": e.how.Provider.String()}, nil
}

// recall checks the head of an entry with the outcomes of m for n examples. It returns a function that adds a row to s:
// an outcome, and its entropy.
func (s *Sums) recall(m Model, n int, h *records.Head) (func(*records.Row) error, error) {
	var of Note
	if err := json.Unmarshal(h.About, &of); err != nil {
		return nil, err
	}
	t, err := m.Task(of.Layout)
	if err != nil {
		return nil, err
	}
	width := t.About().Width
	if h.Part.Rows() != n {
		return nil, fmt.Errorf("%d rows, want %d", h.Part.Rows(), n)
	}
	*s = Sums{Task: t, Members: 1, Weight: 1, first: m.Name}
	numbers := width + 1
	if evident(t) != nil {
		numbers += 2
	}
	return func(r *records.Row) error {
		// A network may not give values that are not finite.
		if len(r.Values) != numbers || slices.ContainsFunc(r.Values, func(v float64) bool { return v-v != 0 }) {
			return fmt.Errorf("row %d: want finite outcomes", r.Index)
		}
		s.Outcome = append(s.Outcome, r.Values[:width]...)
		s.Entropy = append(s.Entropy, r.Values[width])
		s.Evidence = append(s.Evidence, r.Values[width+1:]...)
		return nil
	}, nil
}

// predict is PredictUsable, and calls progress. like is the sum that the result will be added to.
func (e *Engine) predict(ctx context.Context, m Model, data dataset.Dataset, skip bool, like, sums *Sums, progress func(images int),
	to later) (unusable []error, err error) {
	s, err := newScorer(e, m, data, m.callers(e))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	s.evidence, s.later = true, to
	s.skip, s.first, s.task = skip, like.first, like.Task
	if s.task == nil && Ragged(data) { // a batch of short lists may end first, and the task has the positions of the longest
		t, err := s.try(ctx, m.Parts()[0], 0)
		if err != nil {
			return nil, err
		}
		s.ran.leave(t.group, 0, s.engine.waiting())
		s.spare.giveBack(t.values)
	}
	err = s.Run(ctx, 0, progress, func(c *Chunk) error {
		sums.Init(m.Name, data.Len(), c.Task)
		sums.addRows(c.First, &c.Sums)
		unusable = append(unusable, c.Errs...)
		return nil
	})
	if err == nil {
		sums.Members++
		sums.Weight += m.Weight
	}
	return unusable, err
}

// PredictUsable is [Run.Predict] without a store. With skip it leaves out examples without usable scores, and returns the
// reason for each of them.
func (e *Engine) PredictUsable(ctx context.Context, m Model, data dataset.Dataset, skip bool, sums *Sums) (unusable []error, err error) {
	return e.predict(ctx, m, data, skip, sums, sums, nil, later{})
}

// PredictFor is PredictUsable for model k of a run that comes later. It leaves the session to that run, and, if data is all
// data of the run, the scores. If into is nil, there is no such run.
func (e *Engine) PredictFor(ctx context.Context, into *Ran, k int, whole bool, m Model, data dataset.Dataset, skip bool,
	sums *Sums) (unusable []error, err error) {
	into.by(e, false)
	return e.predict(ctx, m, data, skip, sums, sums, nil, later{into, k, whole})
}

// Parts lists the model as the only one.
func (m Model) Parts() []Part { return []Part{{1, m.Graph}} }

// Each calls f with the model.
func (m Model) Each(_ context.Context, _, _ int, f func(Model) error) error { return f(m) }

// FindingKey returns what every finding about a network and its data depends on, or nil if one of them has no identity. The names and
// sizes of pictures, which identify data, do not show every change of their content, so the key has some examples.
func (e *Engine) FindingKey(kind string, n *Network, id string, data dataset.Dataset, rows []int) (store.Key, error) {
	if id == "" || n.Posterior.ID == "" {
		return nil, nil
	}
	size, err := dataset.SizeOf(data)
	if err != nil {
		return nil, err
	}
	sum, values := sha256.New(), size.Make(1)
	for _, i := range rows {
		if err := data.Read(values, i); err != nil {
			return nil, err
		}
		values.Hash(sum)
	}
	return store.Key{
		"kind":        kind,
		"posterior":   n.Posterior.ID,
		"data":        id,
		"examples":    hex.EncodeToString(sum.Sum(nil)),
		"onnxruntime": e.runtime.Version(),
		"processor":   ort.Processor(),
	}, nil
}

// Has reports whether the store has the outcomes of a model for the data.
func (r Run) Has(m Model, data dataset.Dataset) (bool, error) {
	k, err := r.key(m, data)
	return k != nil && err == nil && r.Store.Has(k), err
}

// Note is for people, except the layout of the scores.
type Note struct {
	Of string `json:"of"`
	Layout
}

// Measured returns the layout of the scores in the last run.
func (g *Graph) Measured() Layout {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.measured()
}

func (g *Graph) measured() Layout { return Layout{g.scores.Count, g.scores.Positions, g.scores.Sides} }

// Shard is the part of a study that one of several jobs computes: every Of-th network. The job puts the results into
// the store.
type Shard struct {
	Index, Of int // shard Index of Of, from 0
	next      int
}

// Mine reports whether the next network belongs to the job. Without a shard all do.
func (s *Shard) Mine() bool {
	if s == nil {
		return true
	}
	n := s.next
	s.next++
	return n%s.Of == s.Index
}
