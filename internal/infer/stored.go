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
	"github.com/swagwrap/swagwrap/onnxio"
)

// Share is the part of a study that one of several jobs computes: every Of-th network. It puts the results into the
// store.
type Share struct {
	Index, Of int // share Index of Of, from 0
	next      int
}

// Mine reports whether the next network belongs to the job. Without a share all do.
func (s *Share) Mine() bool {
	if s == nil {
		return true
	}
	n := s.next
	s.next++
	return n%s.Of == s.Index
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
		"onnxruntime": e.Runtime.Version(), "provider": e.Provider.String()}, nil
}

// stored returns the outcomes of a model for the data, with the weight 1. They come from the store, or are computed
// and put there. like is the sum that they will be added to.
func (e *Engine) stored(ctx context.Context, m Model, data dataset.Dataset, like *Sums) (*Sums, error) {
	m.Weight = 1
	one := &Sums{}
	compute := func() (*Sums, error) {
		_, err := e.predict(ctx, m, data, false, like, one)
		return one, err
	}
	id := dataset.ID(data)
	if id == "" {
		return compute()
	}
	k, err := e.Key("outcomes", m.Filled, id)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	size, err := e.BatchUnit(m, data)
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
	was, err := e.Store.Get(k)
	if err != nil {
		return nil, err
	}
	if was != nil && one.recall(m, data.Len(), was) {
		if like.Task != nil {
			if err := m.agrees(one.Task, like.Task, like.first); err != nil {
				return nil, fmt.Errorf("%s: %w", m.Name, err)
			}
		}
		e.Report(data.Len())
		return one, nil
	}
	if _, err := compute(); err != nil {
		return nil, err
	}
	n, width := int64(data.Len()), int64(one.Task.Width())
	return one, e.Store.Put(k, Note{m.Name, m.count()},
		store.Array{Name: "outcomes", Shape: []int64{n, width}, Values: one.Outcome}, store.Array{Name: "entropies", Shape: []int64{n}, Values: one.Entropy})
}

// Note is for people, except the number of scores.
type Note struct {
	Of     string `json:"of"`
	Scores int    `json:"scores"` // for each example
}

// count returns the number of scores for each example in the first run.
func (g *Graph) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.scores.Count
}

// all reports whether ok is true for every value.
func all(values []float64, ok func(float64) bool) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return !ok(v) })
}

// recall sets s to the content of an entry, and reports whether it is valid.
func (s *Sums) recall(m Model, n int, was *store.Entry) bool {
	var of Note
	if json.Unmarshal(was.Note, &of) != nil {
		return false
	}
	t, err := m.Task(of.Scores)
	outcomes, ok1 := was.Arrays["outcomes"].Values.([]float64)
	entropies, ok2 := was.Arrays["entropies"].Values.([]float64)
	if err != nil || !ok1 || !ok2 || len(entropies) != n || n == 0 || len(outcomes)%n != 0 || len(outcomes)/n != t.Width() {
		return false
	}
	if finite := func(v float64) bool { return v-v == 0 }; !all(outcomes, finite) || !all(entropies, finite) {
		return false // no network may give such a value
	}
	*s = Sums{Task: t, Members: 1, Weight: 1, Outcome: outcomes, Entropy: entropies, first: m.Name}
	return true
}
