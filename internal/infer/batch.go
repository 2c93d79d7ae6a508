package infer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/weights"
	"golang.org/x/sync/errgroup"
)

// runGroup sends a chunk through the models of a group, or the part of it that is not settled.
func (s *Scorer) runGroup(ctx context.Context, group *group, x *examples, c *Chunk) error {
	if s.stateful != nil {
		return s.runStateful(ctx, group, x, c)
	}
	for at, end := 0, len(group.sessions); at < end && len(c.open) > 0; {
		to := end
		if s.settle != nil {
			to = min(end, s.settle.next(group.first+at)-group.first)
		}
		if err := s.runModels(ctx, group, at, to, x, c); err != nil {
			return err
		}
		at = to
		if s.settle != nil {
			c.settle(group.first + at)
		}
	}
	return nil
}

// runModels sends the open examples of a chunk through models from … to−1 of a group. Each batch goes through the
// models in order.
func (s *Scorer) runModels(ctx context.Context, group *group, from, to int, x *examples, c *Chunk) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(s.plan.runs)
	for rows := range x.batches(c.open, group.batch) {
		if ctx.Err() != nil {
			break
		}
		b := batch{s, x, rows, group.batch}
		g.Go(weights.Guarded(func() error { return b.runModels(ctx, group, from, to, c) }))
	}
	return g.Wait()
}

// batches divides open examples into batches of the given size. With [Settling], the lists of a batch have the same
// length.
func (x *examples) batches(open []int, size int) iter.Seq[[]int] {
	if x.lengths == nil {
		return slices.Chunk(open, size)
	}
	return func(yield func([]int) bool) {
		for len(open) > 0 {
			n := 1
			for n < min(size, len(open)) && slices.Equal(x.lengths[open[0]], x.lengths[open[n]]) {
				n++
			}
			if !yield(open[:n]) {
				return
			}
			open = open[n:]
		}
	}
}

// batch is some examples of a chunk.
type batch struct {
	*Scorer
	in   *examples
	rows []int // indices within the chunk
	full int   // examples in a whole batch
}

// runModels sends the batch through models from … to−1 of a group. If the memory of a GPU is too small for it, it is
// divided, and so are all later batches.
func (b *batch) runModels(ctx context.Context, group *group, from, to int, c *Chunk) (err error) {
	if most := int(b.fits.Load()); most == 0 || len(b.rows) <= most {
		b.full = min(b.full, cmp.Or(most, b.full))
		from, err = b.runWhole(ctx, group, from, to, c)
		if !divisible(err, len(b.rows), group.sessions[0].FixedBatch()) {
			return err
		}
		name, _ := b.name(group.sessions[0])
		b.in.onDevice.drop(name)
		b.fits.CompareAndSwap(int64(most), int64(ceil(b.full, 2)))
	}
	for rows := range slices.Chunk(b.rows, min(ceil(len(b.rows), 2), int(b.fits.Load()))) {
		part := batch{b.Scorer, b.in, rows, int(b.fits.Load())}
		if err := part.runModels(ctx, group, from, to, c); err != nil {
			return err
		}
	}
	return nil
}

// divisible reports whether an error says that the memory of a GPU is too small for a batch, and half of it may do. If half
// is not possible, the error says so.
// fixed is the only size that the network takes, or 0.
func divisible(err error, batch, fixed int) bool {
	full, ok := errors.AsType[*ort.GPUMemoryError](err)
	if ok && (batch < 2 || fixed > 0) {
		full.Batch = max(1, fixed)
		return false
	}
	return ok
}

// runWhole sends the batch through models from … to−1 of a group. It returns the first model that was not added.
func (b *batch) runWhole(ctx context.Context, group *group, from, to int, c *Chunk) (next int, err error) {
	first := group.sessions[from]
	inputs, done, err := b.inputs(ctx, first)
	defer done()
	if err != nil {
		return from, err
	}
	if first.OnDevice() && known(b.Scorer) == nil { // its sums depend on the task, and must not depend on which batch comes first
		if err := b.learn(ctx, first, inputs); err != nil {
			return from, fmt.Errorf("%s: %w", first.Name, err)
		}
	}
	if how, ok := adding(b.Scorer, first); ok {
		if ok, err = b.addUp(ctx, how, group, from, to, inputs, c); ok || err != nil {
			return from, err
		}
	}
	for k := from; k < to; k++ {
		if err := b.run(ctx, group.sessions[k], group.first+k, inputs, c); err != nil {
			return k, err
		}
	}
	return to, nil
}

// inputs returns the inputs of the batch for models of a group. The function done ends their use.
func (b *batch) inputs(ctx context.Context, m *loaded) (inputs []ort.Tensor, done func(), err error) {
	name, keep := b.name(m)
	at := &b.in.onDevice
	if kept := at.get(name); keep && kept != nil {
		return kept, func() {}, nil
	}
	inputs, values, err := b.load(m.Session)
	done = func() { b.spare.giveBack(values) }
	if err != nil {
		return nil, done, err
	}
	inputs, err = m.Carry(ctx, inputs)
	switch {
	case err != nil:
		err = fmt.Errorf("%s: %w", m.Name, err)
	case keep && inputs[0].OnDevice():
		at.put(name, inputs)
	default:
		done = func() { ort.Free(inputs); b.spare.giveBack(values) }
	}
	return inputs, done, err
}

// name names the batch on a device. ok is false if it does not stay there. Then there is no room for a whole chunk, or the
// next group has other open examples.
func (b *batch) name(m *loaded) (name deviceBatch, ok bool) {
	return deviceBatch{m.Graph, b.rows[0], len(b.rows)}, b.plan.keepsInputs && b.settle == nil && b.fits.Load() == 0
}

// load makes the inputs from the examples that were read. Zeros fill a batch that must have its whole size. The caller
// must give the values back.
func (b *batch) load(session *Session) (inputs []ort.Tensor, values dataset.Values, err error) {
	rows := len(b.rows)
	if fixed := session.FixedBatch(); fixed > 0 {
		rows = fixed
	} else if b.settle != nil || b.engine.how.Provider.OneShape() {
		rows = b.full
	}
	values = b.spare.take(b.size, rows)
	values.Rows(b.size, len(b.rows), rows).Clear()
	idx := make([]int, len(b.rows))
	data, isBytes := b.data.(dataset.Bytes)
	for i, row := range b.rows {
		idx[i] = b.in.first + row
		if isBytes {
			data.Normalize(values.Rows(b.size, i, i+1).Floats, b.in.row(row, b.size))
		} else {
			values.Rows(b.size, i, i+1).Copy(b.in.values.Rows(b.size, row, row+1))
		}
	}
	inputs, err = session.feed(b.data, idx, rows, b.padTo(), values)
	return inputs, values, err
}

// padTo returns the lengths of the lists of a batch, or nil if these are cut to the longest.
func (b *batch) padTo() []int {
	if b.in.lengths == nil {
		return nil
	}
	return b.in.lengths[b.rows[0]]
}

// run adds the outcomes of model k for the batch to the chunk. Examples that could not be read are left out. It fails
// with the first example whose scores are not usable, unless these are skipped.
func (b *batch) run(ctx context.Context, m *loaded, k int, inputs []ort.Tensor, c *Chunk) error {
	rows := int(inputs[0].Shape[0])
	first, err := b.in.first+b.rows[0], error(nil)
	out, ok := b.ran.take(ctx, ranBatch{k, first, rows}, rows)
	began := time.Now()
	if !ok {
		out, err = m.scores(ctx, inputs)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", m.Name, err)
	}
	b.later.keep(m, first, out, rows, time.Since(began))
	t, layout, scores, err := b.judge(m, out, rows)
	if err != nil {
		return fmt.Errorf("%s: %w", m.Name, err)
	}
	return b.add(ctx, m, k, t, layout, scores, c, nil)
}

// learn runs a model over the examples of inputs for the task of its scores. Its outcomes must have the same width as those of the
// first run.
func (s *Scorer) learn(ctx context.Context, m *loaded, inputs []ort.Tensor) error {
	out, err := m.scores(ctx, inputs)
	if err == nil {
		_, _, _, err = s.judge(m, out, int(inputs[0].Shape[0]))
	}
	return err
}

// judge returns the scores in an output for a number of rows, and their task.
func (s *Scorer) judge(m *loaded, out ort.Tensor, rows int) (t task.Task, l Layout, values []float32, err error) {
	l, values, err = m.Scores(out, rows)
	if err == nil && s.shorter(l) {
		return s.task, l, values, nil
	}
	if err == nil {
		t, err = m.Task(l)
	}
	if err != nil {
		return nil, l, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.task == nil {
		s.first, s.task = m.Name, t
	}
	return t, l, values, m.agrees(t, s.task, s.first)
}

// known returns the task, or nil before the first run.
func known(s *Scorer) task.Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.task
}

// shorter reports whether scores are those of the task with fewer positions: the batch has only short lists. The first
// run, on examples of full length, has set the task.
func (s *Scorer) shorter(l Layout) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := task.SpecOf(s.task)
	return of.Axis != 0 && l.Count == of.Count && l.Sides[1] == 0 && l.Positions < of.Positions
}

// agrees fails if the outcomes cannot be averaged with those of the model first.
func (g *Graph) agrees(t, with task.Task, first string) error {
	if t.About().Width != with.About().Width {
		return fmt.Errorf("tensor %q: %s, want %s as in %s", g.Output(), t.About().Size, with.About().Size, first)
	}
	return nil
}

// add adds the outcomes of model k to the chunk, each example in its turn.
func (b *batch) add(ctx context.Context, m *loaded, k int, t task.Task, layout Layout, scores []float32, c *Chunk, turn *turns) error {
	b.report(len(b.rows))
	c.make()
	size := layout.Size()
	var outcome []float64
	if !task.Large(t) {
		outcome = make([]float64, t.About().Width)
	}
	one := func(row int, scores []float32) (err error) {
		if c.Errs[row] != nil {
			return nil
		}
		err = c.addScores(t, row, k, scores, m.Weight, outcome)
		if c.Evidence != nil && err == nil {
			total, largest := evident(t).Evidence(c.ownScores(t, row, scores, layout.Positions))
			c.Evidence[2*row] += m.Weight * total
			c.Evidence[2*row+1] += m.Weight * largest
		}
		switch {
		case err == nil:
		case b.skip:
			c.Errs[row] = fmt.Errorf("%s: %w", m.Name, err)
		default:
			return fmt.Errorf("%s: %s: %w", m.Name, b.data.Name(b.in.first+row), err)
		}
		return nil
	}
	for i, row := range b.rows {
		err := turn.wait(ctx)
		if err == nil {
			err = one(row, scores[i*size:][:size])
		}
		if err != nil {
			return err
		}
		if turn != nil {
			turn.after <- struct{}{}
		}
	}
	return nil
}

// keepsShare is the part of the room for members that the examples of a chunk may take on a device.
const keepsShare = 4

// onDevice holds the inputs of a chunk's batches on a device. So one copy serves all groups of members.
type onDevice struct {
	mu      sync.Mutex
	batches map[deviceBatch][]ort.Tensor
}

// deviceBatch names the examples first … first+rows−1 of a chunk as inputs of a graph.
type deviceBatch struct {
	graph       *Graph
	first, rows int
}

func (d *onDevice) get(name deviceBatch) []ort.Tensor {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.batches[name]
}

func (d *onDevice) put(name deviceBatch, inputs []ort.Tensor) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.batches == nil {
		d.batches = map[deviceBatch][]ort.Tensor{}
	}
	d.batches[name] = inputs
}

// drop frees a batch that nobody uses.
func (d *onDevice) drop(name deviceBatch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ort.Free(d.batches[name])
	delete(d.batches, name)
}

// clear frees all batches, after the last group.
func (d *onDevice) clear() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, inputs := range d.batches {
		ort.Free(inputs)
	}
	d.batches = nil
}
