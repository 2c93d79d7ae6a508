package infer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer/store"
	"github.com/swagwrap/swagwrap/onnxio"
)

// Share is what one job of several computes of a study: every Of-th of its networks, which
// it puts into the store.
type Share struct {
	Index, Of int // share Index of Of, from 0
	next      int
}

// Mine reports whether the next network is the job's. Without a share all are.
func (s *Share) Mine() bool {
	if s == nil {
		return true
	}
	n := s.next
	s.next++
	return n%s.Of == s.Index
}

// key is what everything that a filled model gives out depends on.
func (e *Engine) key(kind string, m onnxio.Filled, data string) (store.Key, error) {
	sum := sha256.New()
	for i := range m.Template.Files() {
		if err := m.Template.WriteTo(sum, i, m.Layout, m.Parameters, m.Statistics); err != nil {
			return nil, err
		}
	}
	return store.Key{"kind": kind, "network": hex.EncodeToString(sum.Sum(nil)), "data": data,
		"onnxruntime": e.Runtime.Version(), "provider": e.Provider.String()}, nil
}

// stored is what a model says of the data, with the weight 1: from the store, or computed
// and put there. like is what it will be added to.
func (e *Engine) stored(ctx context.Context, m Model, data dataset.Dataset, like *Sums) (*Sums, error) {
	m.Weight = 1
	one := &Sums{}
	compute := func() (*Sums, error) { return one, e.predict(ctx, m, data, like, one) }
	id := dataset.ID(data)
	if id == "" {
		return compute()
	}
	k, err := e.key("outcomes", m.Filled, id)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	size, err := e.BatchUnit(single{m}, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	k["batch"], k["output"], k["task"] = size, m.Output(), m.card
	if m.scores.Numbers != nil {
		k["numbers"] = m.scores.Numbers
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
	return one, e.Store.Put(k, note{m.Name, m.count()},
		store.Array{Name: "outcomes", Shape: []int64{n, width}, Values: one.Outcome}, store.Array{Name: "entropies", Shape: []int64{n}, Values: one.Entropy})
}

// note is for people, but for the number of scores.
type note struct {
	Of     string `json:"of"`
	Scores int    `json:"scores"` // for each example
}

// count is how many scores the first run gave for each example.
func (g *Graph) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.scores.Count
}

// recall makes s what an entry holds, and reports whether it can be.
func (s *Sums) recall(m Model, n int, was *store.Entry) bool {
	var of note
	if json.Unmarshal(was.Note, &of) != nil {
		return false
	}
	t, err := m.Task(of.Scores)
	outcomes, ok1 := was.Arrays["outcomes"].Values.([]float64)
	entropies, ok2 := was.Arrays["entropies"].Values.([]float64)
	if err != nil || !ok1 || !ok2 || len(entropies) != n || len(outcomes) != n*t.Width() {
		return false
	}
	*s = Sums{Task: t, Members: 1, Weight: 1, Outcome: outcomes, Entropy: entropies, first: m.Name}
	return true
}

// storedPass returns the key of a pass, nil without a store, and the pass where it is
// there.
func (e *Engine) storedPass(n *Network, m onnxio.Filled, data BatchNormData) (k store.Key, p pass, err error) {
	if e.Store == nil {
		return nil, nil, nil
	}
	id := dataset.ID(data.Data)
	if id == "" {
		return nil, nil, nil
	}
	if k, err = e.key("batch norm", m, id); err != nil {
		return nil, nil, err
	}
	k["batch"], k["pass_batch"], k["images"], k["shuffle"], k["seed"] = e.BatchSize, n.passBatch, data.Images(), data.Order.Shuffle, data.Order.Seed
	was, err := e.Store.Get(k)
	if p = recallPass(was); p != nil {
		for _, b := range p {
			e.Report(b.Images)
		}
	}
	return k, p, err
}

// pass is a [bnupdate.Runner] of what was run before.
type pass []bnupdate.Batch

func (p pass) Batches() int                                         { return len(p) }
func (p pass) Run(_ context.Context, k int) (bnupdate.Batch, error) { return p[k], nil }

// recorder keeps what a Runner gave.
type recorder struct {
	bnupdate.Runner
	seen pass
}

func (r *recorder) Run(ctx context.Context, k int) (b bnupdate.Batch, err error) {
	b, err = r.Runner.Run(ctx, k)
	r.seen[k] = b
	return b, err
}

// arrays are what an entry has: the images of each batch; then of each layer means and
// variances, batches×channels, and the shapes of its input, batches×rank.
func (p pass) arrays() []store.Array {
	n := int64(len(p))
	images := make([]int64, n)
	for k, b := range p {
		images[k] = int64(b.Images)
	}
	out := []store.Array{{Name: "images", Shape: []int64{n}, Values: images}}
	for i := range p[0].Mean {
		var mean, variance []float32
		var shapes []int64
		for _, b := range p {
			mean, variance, shapes = append(mean, b.Mean[i]...), append(variance, b.Var[i]...), append(shapes, b.Shapes[i]...)
		}
		out = append(out, store.Array{Name: fmt.Sprintf("mean.%d", i), Shape: []int64{n, int64(len(mean)) / n}, Values: mean},
			store.Array{Name: fmt.Sprintf("variance.%d", i), Shape: []int64{n, int64(len(variance)) / n}, Values: variance},
			store.Array{Name: fmt.Sprintf("shapes.%d", i), Shape: []int64{n, int64(len(shapes)) / n}, Values: shapes})
	}
	return out
}

// recallPass is the inverse of arrays, or nil.
func recallPass(was *store.Entry) pass {
	if was == nil {
		return nil
	}
	images, ok := was.Arrays["images"].Values.([]int64)
	if !ok || len(images) == 0 {
		return nil
	}
	p := make(pass, len(images))
	for k, n := range images {
		p[k].Images = int(n)
	}
	for i := range len(was.Arrays) / 3 {
		mean, ok1 := was.Arrays[fmt.Sprintf("mean.%d", i)].Values.([]float32)
		variance, ok2 := was.Arrays[fmt.Sprintf("variance.%d", i)].Values.([]float32)
		shapes, ok3 := was.Arrays[fmt.Sprintf("shapes.%d", i)].Values.([]int64)
		if !ok1 || !ok2 || !ok3 || len(mean) != len(variance) {
			return nil
		}
		channels, rank := len(mean)/len(p), len(shapes)/len(p)
		for k := range p {
			p[k].Mean = append(p[k].Mean, mean[k*channels:][:channels])
			p[k].Var = append(p[k].Var, variance[k*channels:][:channels])
			p[k].Shapes = append(p[k].Shapes, shapes[k*rank:][:rank])
		}
	}
	return p
}
