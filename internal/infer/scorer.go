package infer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/weights"
)

// A Scorer runs models over data. It takes the examples in chunks. While one chunk goes through the models, the next
// is read and the one before is delivered. Each example is read once, whatever the number of models.
//
// Batch k of a network always holds the examples [k·B, (k+1)·B), and an example's sums grow in the order of the
// models. So the result does not depend on the chunks, the number of threads or the available memory. With [Settling]
// a batch holds B examples of the chunk that are not settled yet, and zeros fill the last one.
type Scorer struct {
	engine *Engine
	models MemberSource
	count  int // number of models
	data   dataset.Dataset
	size   dataset.Size
	skip   bool // leave out examples that cannot be read, or whose scores are not usable
	keep   bool // keep each model's outcomes
	settle *Settling
	plan   plan
	// carried is the data if its examples continue each other, else nil. states pass from a run to the next one of the same
	// model and rows. The index is that of the model times the rows, plus that of the batch in a window.
	carried dataset.Carried
	states  []chan []ort.Tensor
	held    int64 // bytes of all states
	alone   bool  // caches of rows differ in length, so each row is a batch
	// evidence requests the evidence of logits; see [Sums].
	evidence bool
	adder    *deviceSums
	waited   waits
	fits     atomic.Int64     // examples of a batch that a GPU's memory is enough for; 0 if all batches were small enough
	progress func(images int) // of the run

	mu    sync.Mutex // guards the fields below
	task  task.Task  // nil until the first run
	first string     // the model of that run, for errors
	spare []dataset.Values
	tried *examples // the first batches, until a run begins; read before it

	ran     *Ran  // what the run does not do again
	later   later // the run that gets what this one leaves
	looking looking
}

// A MemberSource makes the models that a Scorer runs: the members of an ensemble, or one network. A [Model] is the
// source of itself.
type MemberSource interface {
	// Parts lists the numbers of consecutive models that have the same graph.
	Parts() []Part
	// Each makes models first … first+count−1, all of one part, in turn. They are valid only during the call.
	Each(ctx context.Context, first, count int, f func(Model) error) error
}

// Part is a number of models of one graph.
type Part struct {
	Count int
	*Graph
}

// Options of a Scorer.
type Options struct {
	// SkipErrors skips an example that cannot be read, or whose scores are not usable. Its place in [Chunk].Errs says
	// why. Otherwise it ends the run, as an error of [dataset.Fatal] always does.
	SkipErrors  bool
	KeepMembers bool // each model's outcomes: [Chunk].Members
	Evidence    bool // also sums the evidence in logits: see [Sums]
	// Settling, if not nil, leaves out models of an example once it is settled.
	Settling *Settling
	// Ran is what was done before, or nil. The Scorer takes it over.
	Ran *Ran
	// Look, if not nil, is called for each graph before anything takes its scores for those of a task. It gets the scores of
	// the first batch, or nil if these are not known. An error of Look ends the preparation.
	Look func(*Graph, *FirstScores) error
}

// NewScorer prepares a Scorer. It runs a model of each graph over the first batches, to plan memory and threads. Without a
// [Scorer.Run] the caller must call [Scorer.Close].
func NewScorer(ctx context.Context, e *Engine, m MemberSource, data dataset.Dataset, opts Options) (*Scorer, error) {
	s, err := newScorer(e, m, data, e.Threads())
	if err != nil {
		return nil, err
	}
	s.skip, s.keep, s.settle, s.evidence = opts.SkipErrors, opts.KeepMembers, opts.Settling, opts.Evidence
	s.ran, s.looking.look = opts.Ran.by(e, opts.Settling != nil), opts.Look
	err = s.prepare(ctx)
	s.looking.look = nil // it may hold examples
	if err != nil {
		s.Close()
	}
	return s, err
}

// Close closes the sessions that wait for a run. Run does so at its end.
func (s *Scorer) Close() { s.ran.Close() }

// Task returns the task of the models' scores.
func (s *Scorer) Task() task.Task { return s.task }

// Members returns the number of models.
func (s *Scorer) Members() int { return s.count }

// Plan describes how the work will be done.
func (s *Scorer) Plan() string { return s.plan.String() }

// waits is where the time of a run goes.
type waits struct{ data, members, runs time.Duration }

// Waited says what the runs of a scorer waited for, and how long they took.
func Waited(s *Scorer) string {
	w := s.waited
	said := fmt.Sprintf("runs took %.2f s. They waited %.2f s for data and %.2f s for members", w.runs.Seconds(), w.data.Seconds(),
		w.members.Seconds())
	if most := s.fits.Load(); most > 0 {
		said += fmt.Sprintf(". Batches were divided, since the memory of the GPU is enough for %d examples at a time", most)
	}
	return said
}

// Threads returns the number of batches that will be in flight.
func (s *Scorer) Threads() int { return s.plan.workers }

// ChunkBytes returns the memory for the examples of chunks and their results.
func (s *Scorer) ChunkBytes() int64 { return int64(s.plan.chunk) * s.exampleBytes() }

// BatchSizes returns the batch size of each part. Rows depend on them only in the last bits.
func (s *Scorer) BatchSizes() []int {
	var sizes []int
	first := 0
	for _, part := range s.models.Parts() {
		for _, g := range s.plan.groups {
			if g.first == first {
				sizes = append(sizes, g.batch)
			}
		}
		first += part.Count
	}
	return sizes
}

func (s *Scorer) width() int {
	if s.task == nil {
		return 0
	}
	return s.task.About().Width
}

// newScorer returns a Scorer with a plan for so many simultaneous runs, which needs no trial.
func newScorer(e *Engine, m MemberSource, data dataset.Dataset, workers int) (*Scorer, error) {
	s := &Scorer{engine: e, models: m, data: data, adder: &deviceSums{}, ran: &Ran{}}
	for _, part := range m.Parts() {
		if err := part.Fits(e.how.Memory); err != nil {
			return nil, err
		}
		s.count += part.Count
	}
	err := s.checkCarried()
	if err != nil {
		return nil, err
	}
	if s.size, err = dataset.SizeOf(data); err != nil {
		return nil, err
	}
	s.plan, err = s.newPlan(workers, cost{})
	return s, err
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
		s.ran.leave(t.group, 0)
		s.giveBack(t.values)
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

// Parts lists the model as the only one.
func (m Model) Parts() []Part { return []Part{{1, m.Graph}} }

// Each calls f with the model.
func (m Model) Each(_ context.Context, _, _ int, f func(Model) error) error { return f(m) }

// Run runs the models over the examples, starting at first, and calls sink with one chunk after the other. first must
// be 0 or the end of a chunk. States that are carried are computed again up to first. A chunk is valid only during the
// call. progress, if not nil, is called as [Run].Progress. Run returns soon after ctx ends.
func (s *Scorer) Run(ctx context.Context, first int, progress func(images int), sink func(*Chunk) error) error {
	s.progress = progress
	g, ctx := errgroup.WithContext(ctx)
	pool := &sessionPool{scorer: s, ready: make(chan *group), before: memory.Resident()}
	// Of two buffers, one is being filled and the other emptied.
	examples, results := newRelay[*examples](2), newRelay[*Chunk](s.resultBuffers())
	replayed := s.begin(first)
	g.Go(weights.Guarded(func() error { return pool.build(ctx, replayed+ceil(s.data.Len()-first, s.plan.chunk)) }))
	g.Go(weights.Guarded(func() error { return s.readAll(ctx, first, examples) }))
	g.Go(weights.Guarded(func() error { return s.runAll(ctx, pool, examples, results) }))
	g.Go(weights.Guarded(func() error {
		for {
			c, ok, err := receive(ctx, results.full)
			if err != nil || !ok {
				return err
			}
			if err := sink(c); err != nil {
				return err
			}
			results.free <- c
		}
	}))
	err := g.Wait()
	pool.close()
	s.Close()
	s.adder.close()
	s.adder = &deviceSums{}
	return err
}

// report calls the progress of the run.
func (s *Scorer) report(images int) {
	if s.progress != nil {
		s.progress(images)
	}
}

// runAll sends every chunk through the models.
func (s *Scorer) runAll(ctx context.Context, pool *sessionPool, in *relay[*examples], out *relay[*Chunk]) error {
	defer close(out.full)
	for {
		began := time.Now()
		x, ok, err := receive(ctx, in.full)
		s.waited.data += time.Since(began)
		if err != nil || !ok {
			return err
		}
		var c *Chunk
		if !x.replay {
			if c, _, err = receive(ctx, out.free); err != nil {
				return err
			}
			c = s.newChunk(c, x)
		}
		err = pool.run(ctx, x, c)
		x.onDevice.clear()
		if err != nil {
			return err
		}
		in.free <- x // the reader changes it from now on
		if c == nil {
			continue
		}
		if err := send(ctx, out.full, c); err != nil {
			return err
		}
	}
}

// runGroup sends a chunk through the models of a group, or the part of it that is not settled.
func (s *Scorer) runGroup(ctx context.Context, group *group, x *examples, c *Chunk) error {
	if s.carried != nil {
		return s.runCarried(ctx, group, x, c)
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

// runModels sends the batch through models from … to−1 of a group. If the memory of a GPU is too small for it, it is
// divided, and so are all later batches.
func (b *batch) runModels(ctx context.Context, group *group, from, to int, c *Chunk) (err error) {
	if most := int(b.fits.Load()); most == 0 || len(b.rows) <= most {
		b.full = min(b.full, cmp.Or(most, b.full))
		from, err = b.runWhole(ctx, group, from, to, c)
		if !divisible(err, len(b.rows), group.sessions[0].Session) {
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
func divisible(err error, batch int, s *Session) bool {
	full, ok := errors.AsType[*ort.GPUMemoryError](err)
	if ok && (batch < 2 || s.FixedBatch() > 0) {
		full.Batch = max(1, s.FixedBatch())
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
		if _, _, _, err := b.scores(ctx, first, inputs); err != nil {
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

// batch is some examples of a chunk.
type batch struct {
	*Scorer
	in   *examples
	rows []int // indices within the chunk
	full int   // examples in a whole batch
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
		turn.pass()
	}
	return nil
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
	values = b.buffer(rows)
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

// scores runs a model over the examples of inputs, and returns its scores and their task. Its outcomes must have the same width as
// those of the first run.
func (s *Scorer) scores(ctx context.Context, m *loaded, inputs []ort.Tensor) (t task.Task, l Layout, values []float32, err error) {
	out, err := m.scores(ctx, inputs)
	if err != nil {
		return nil, l, nil, err
	}
	return s.judge(m, out, int(inputs[0].Shape[0]))
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

// buffer returns memory for n examples. The caller returns it by giveBack.
func (s *Scorer) buffer(n int) dataset.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := len(s.spare) - 1; last >= 0 {
		b := s.spare[last]
		s.spare = s.spare[:last]
		if b.Holds(s.size, n) {
			return b.Rows(s.size, 0, n)
		}
	}
	return s.size.Make(n)
}

func (s *Scorer) giveBack(b dataset.Values) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spare = append(s.spare, b)
}

// examples are the examples of one chunk, as read from the data.
type examples struct {
	first, n int
	bytes    []byte // the pixels of n examples, or
	values   dataset.Values
	errs     []error // why examples could not be read; their values are zeros
	lengths  [][]int // of their lists, with [Settling]; nil without lists
	replay   bool    // only for the states behind them
	onDevice onDevice
}

// row returns the pixels of example i.
func (x *examples) row(i int, size dataset.Size) []byte { return x.bytes[i*size.Floats:][:size.Floats] }

// readAll reads the data, starting at example first.
func (s *Scorer) readAll(ctx context.Context, first int, out *relay[*examples]) error {
	defer close(out.full)
	at := first
	if s.carried != nil {
		at = 0
	}
	for n := 0; at < s.data.Len(); at += n {
		end := s.data.Len()
		if at < first {
			end = first
		}
		n = min(s.plan.chunk, end-at)
		x, _, err := receive(ctx, out.free)
		if err != nil {
			return err
		}
		if x == nil {
			x = &examples{}
		}
		if err := s.read(ctx, x, at, n); err != nil {
			return err
		}
		if s.tried != nil && at+n >= s.tried.n {
			s.tried = nil
		}
		x.replay = at < first
		if err := send(ctx, out.full, x); err != nil {
			return err
		}
	}
	return nil
}

// read fills x with n examples, starting at first. Without skip it fails with the error of the first example that
// cannot be read. With skip it fails only with a fatal error.
func (s *Scorer) read(ctx context.Context, x *examples, first, n int) error {
	data, isBytes := s.data.(dataset.Bytes)
	switch {
	case isBytes && len(x.bytes) < n*s.size.Floats:
		x.bytes = make([]byte, n*s.size.Floats)
	case !isBytes && !x.values.Holds(s.size, n):
		x.values = s.size.Make(n)
	}
	x.first, x.n, x.errs, x.lengths = first, n, make([]error, n), s.lengths(first, n)
	var next, failed atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range min(s.plan.workers, n) {
		g.Go(weights.Guarded(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= n || failed.Load() > 0 {
					return nil
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				if s.tried.copyTo(x, i, s.size) {
					// read before
				} else if isBytes {
					pixels := x.row(i, s.size)
					if x.errs[i] = data.Pixels(pixels, first+i); x.errs[i] != nil {
						clear(pixels)
					}
				} else {
					values := x.values.Rows(s.size, i, i+1)
					if x.errs[i] = s.data.Read(values, first+i); x.errs[i] != nil {
						values.Clear()
					}
				}
				if s.ends(x.errs[i]) {
					failed.Add(1)
				}
			}
		}))
	}
	if err := g.Wait(); err != nil {
		return err
	}
	// Workers take examples in order, so all before the first bad one have been read.
	for _, err := range x.errs {
		if s.ends(err) {
			return dataset.Unreadable(err)
		}
	}
	return nil
}

// ends reports whether an error of an example ends the run.
func (s *Scorer) ends(err error) bool { return err != nil && (!s.skip || dataset.Fatal(err)) }

// relay passes values from one goroutine to another, and empty ones back.
type relay[T any] struct{ full, free chan T }

func newRelay[T any](n int) *relay[T] {
	r := &relay[T]{make(chan T, n), make(chan T, n)}
	var none T
	for range n {
		r.free <- none
	}
	return r
}

// receive returns the next value of a channel; ok is false after the last.
func receive[T any](ctx context.Context, from <-chan T) (v T, ok bool, err error) {
	select {
	case v, ok = <-from:
		return v, ok, nil
	case <-ctx.Done():
		return v, false, ctx.Err()
	}
}

func send[T any](ctx context.Context, to chan<- T, v T) error {
	select {
	case to <- v:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
