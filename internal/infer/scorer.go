package infer

import (
	"context"
	"fmt"
	"math/bits"
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
	// stateful is the data if its examples continue each other, else nil. states pass from a run to the next one of the same
	// model and rows. The index is that of the model times the rows, plus that of the batch in a window.
	stateful dataset.Stateful
	states   []chan []ort.Tensor
	held     int64 // bytes of all states
	alone    bool  // caches of rows differ in length, so each row is a batch
	// evidence requests the evidence of logits; see [Sums].
	evidence bool
	adder    *deviceSums
	waited   waits
	fits     atomic.Int64     // examples of a batch that a GPU's memory is enough for; 0 if all batches were small enough
	progress func(images int) // of the run
	spare    spares

	mu    sync.Mutex // guards the fields below
	task  task.Task  // nil until the first run
	first string     // the model of that run, for errors
	tried *examples  // the first batches, until a run begins; read before it

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

// newScorer returns a Scorer with a plan for so many simultaneous runs, which needs no trial.
func newScorer(e *Engine, m MemberSource, data dataset.Dataset, workers int) (*Scorer, error) {
	s := &Scorer{engine: e, models: m, data: data, adder: &deviceSums{}, ran: &Ran{}}
	for _, part := range m.Parts() {
		if err := part.Fits(e.how.Memory); err != nil {
			return nil, err
		}
		s.count += part.Count
	}
	err := s.checkStateful()
	if err != nil {
		return nil, err
	}
	if s.size, err = dataset.SizeOf(data); err != nil {
		return nil, err
	}
	s.plan, err = s.newPlan(workers, cost{})
	return s, err
}

// Close closes the sessions that wait for a run. Run does so at its end.
func (s *Scorer) Close() { s.ran.Close() }

// Run runs the models over the examples, starting at first, and calls sink with one chunk after the other. first must
// be 0 or the end of a chunk. States that are passed on are computed again up to first. A chunk is valid only during the
// call. progress, if not nil, is called as [Run].Progress. Run returns soon after ctx ends.
func (s *Scorer) Run(ctx context.Context, first int, progress func(images int), sink func(*Chunk) error) error {
	s.progress = progress
	g, ctx := errgroup.WithContext(ctx)
	pool := &sessionPool{scorer: s, ready: make(chan *group), open: make(chan struct{}, s.plan.ahead), before: memory.Resident()}
	buffers := 2 // of two, one is being filled and the other emptied
	if s.stateful != nil {
		buffers = 1 // results of windows are large, and take long to compute
	}
	examples, results := newRelay[*examples](2), newRelay[*Chunk](buffers)
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

// begin prepares the states of a run that starts at an example. It returns the number of chunks before it.
func (s *Scorer) begin(first int) int {
	if s.stateful == nil {
		return 0
	}
	s.states = make([]chan []ort.Tensor, s.count*s.stateful.Rows())
	for i := range s.states {
		s.states[i] = make(chan []ort.Tensor, 1)
		s.states[i] <- nil
	}
	return ceil(first, s.plan.chunk)
}

// report calls the progress of the run.
func (s *Scorer) report(images int) {
	if s.progress != nil {
		s.progress(images)
	}
}

// A sessionPool opens groups in order, as many at a time as the plan says, and again for each chunk. If sessions stay open, it
// opens them only once.
type sessionPool struct {
	scorer *Scorer
	ready  chan *group
	open   chan struct{} // has a value for each group that is open, if they do not stay
	stay   []*group      // opened once for all chunks
	before int64         // bytes of the process before the run
}

// build opens groups until all chunks have had their groups.
func (p *sessionPool) build(ctx context.Context, chunks int) (err error) {
	plan := p.scorer.plan
	for range chunks {
		for i, planned := range plan.groups {
			var g *group
			if !plan.resident {
				err = send(ctx, p.open, struct{}{})
			}
			if i < len(p.stay) {
				g = p.stay[i]
			} else if err == nil {
				g, err = p.scorer.open(ctx, planned.first, planned.Count, planned.batch)
			}
			if err != nil {
				return err
			}
			if plan.resident && i == len(p.stay) {
				p.stay = append(p.stay, g)
			}
			if err := send(ctx, p.ready, g); err != nil {
				p.done(g)
				return err
			}
		}
	}
	return nil
}

// done takes back a group that ready gave.
func (p *sessionPool) done(g *group) {
	if !p.scorer.plan.resident {
		g.close()
		<-p.open
	}
}

// close closes the groups that are still open, after build has returned.
func (p *sessionPool) close() {
	for _, g := range p.stay {
		if l := p.scorer.later; l.into != nil {
			g.sessions[0].bytes = max(g.sessions[0].bytes, memory.Resident()-p.before) // some keep what their runs compute
			l.into.leave(g, l.model+g.first, p.scorer.engine.waiting())
		} else {
			g.close()
		}
	}
}

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
	if s.stateful != nil {
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

// lengths returns the lengths to which the lists of n examples are filled up, for each field: the next power of two,
// and at most the longest of all. It is 0 for a field without lists. lengths returns nil without [Settling] or lists.
func (s *Scorer) lengths(first, n int) (all [][]int) {
	if s.settle == nil {
		return nil
	}
	fields := dataset.Fields(s.data)
	for i := range n {
		one := make([]int, len(fields))
		for f, field := range fields {
			if n := dataset.Length(s.data, f, first+i); n >= 0 {
				one[f] = min(1<<bits.Len(uint(max(n, 1)-1)), int(field.Shape[0]))
			}
		}
		if slices.Max(append(one, 0)) == 0 {
			return nil
		}
		all = append(all, one)
	}
	return all
}

// ends reports whether an error of an example ends the run.
func (s *Scorer) ends(err error) bool { return err != nil && (!s.skip || dataset.Fatal(err)) }

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

// run sends a chunk through all groups.
func (p *sessionPool) run(ctx context.Context, x *examples, c *Chunk) error {
	s := p.scorer
	for range s.plan.groups {
		began := time.Now()
		group, _, err := receive(ctx, p.ready)
		s.waited.members += time.Since(began)
		if err != nil {
			return err
		}
		began = time.Now()
		if err = s.runGroup(ctx, group, x, c); !x.replay {
			for _, m := range group.sessions {
				c.Sums.Members++
				c.Weight += m.Weight
			}
		}
		s.waited.runs += time.Since(began)
		p.done(group)
		if err != nil {
			return err
		}
	}
	return nil
}

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
	sentence := fmt.Sprintf("runs took %.2f s. They waited %.2f s for data and %.2f s for members", w.runs.Seconds(), w.data.Seconds(),
		w.members.Seconds())
	if most := s.fits.Load(); most > 0 {
		sentence += fmt.Sprintf(". Batches were divided, since the memory of the GPU is enough for %d examples at a time", most)
	}
	return sentence
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
