package infer

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/tally"
	"github.com/swagwrap/swagwrap/weights"
)

// plan says how a Scorer works. Except for batch sizes, nothing in it changes the result.
type plan struct {
	workers  int  // examples that are read at the same time
	runs     int  // runs at the same time
	chunk    int  // examples, a multiple of every batch
	resident bool // sessions are opened once
	// keepsInputs says that a device keeps the inputs of a chunk for all groups.
	keepsInputs bool
	groups      []planned
}

// planned is a group to be opened.
type planned struct {
	Part
	first, batch int
}

// cost is the cost of a session; zero if nothing was run yet.
type cost struct {
	sessionBytes int64         // memory of a session
	runBytes     int64         // memory of each run at the same time
	open         time.Duration // time that a model and its session take to open
	run          time.Duration // time that one thread takes for one example
}

// deviceRuns is the number of batches on a device. One computes, and the next is copied.
const deviceRuns = 2

const (
	// maxChunk is the largest number of examples in a chunk. A run that is killed loses the current chunk.
	maxChunk = 4096
	// chunkTime is how long a chunk should take if sessions stay open.
	chunkTime = 10 * time.Second
	// compiling is the number of sessions opened at a time if opening one takes as long as several runs. While these
	// run, the next are opened.
	compiling = 4
	// openShare is the share of the time that may go into opening sessions if they are opened for each chunk.
	openShare = 0.01
)

// newPlan divides the engine's memory: a quarter for examples, at most half for runs, the rest for sessions. If
// sessions do not stay open, there are two groups of them: the one that runs, and the next.
func (s *Scorer) newPlan(workers int, c cost) (plan, error) {
	p := plan{workers: workers, runs: workers}
	if s.carried != nil {
		return s.carriedPlan(workers, c)
	}
	all := s.engine.Memory().Networks()
	if c.runBytes > 0 {
		p.workers = int(max(1, min(int64(workers), all/2/c.runBytes)))
	}
	p.runs = p.workers
	device := s.engine.how.Provider.Feeds() && s.engine.how.Provider.GPU()
	if device {
		p.runs = min(p.workers, deviceRuns)
	}
	parts := s.models.Parts()
	batches, unit, err := s.engine.batches(parts, s.size, s.preset())
	if err != nil {
		return p, err
	}
	models := 0
	for _, part := range parts {
		models += part.Count
	}

	examples, group := maxChunk, models
	room := all - all/4 - int64(p.workers)*c.runBytes
	if free, ok := s.engine.runtime.DeviceMemory(s.engine.how.Provider); device && ok {
		room = free / 2 // the rest is for runs
	}
	p.resident = int64(models)*c.sessionBytes <= room
	switch {
	case !p.resident:
		group = int(max(1, room/2/c.sessionBytes))
	case s.engine.how.Provider.Compiles():
		group = compiling
	}
	if c.run > 0 && p.resident {
		examples = int(chunkTime / c.run * time.Duration(p.workers) / time.Duration(models))
	} else if c.run > 0 {
		examples = int(float64(c.open) / openShare / float64(c.run))
	}
	const batchesEach = 8 // the least number: with fewer, threads wait for each other at the end of a chunk
	examples = min(max(examples, batchesEach*p.workers*unit), maxChunk, int(all/4/s.exampleBytes()))
	chunks := max(1, ceil(s.data.Len(), max(1, examples))) // all chunks have about the same size
	p.chunk = ceil(ceil(s.data.Len(), chunks), unit) * unit
	p.keepsInputs = s.engine.how.Provider.Feeds() && int64(p.chunk)*s.size.Bytes() <= room/keepsShare
	p.divide(parts, batches, group)
	return p, nil
}

// divide divides the models into groups of at most a size. The first groups are smaller, and each is as large as all before
// it: the first models run while the next are opened.
func (p *plan) divide(parts []Part, batches []int, size int) {
	first := 0
	for i, part := range parts {
		for left := part.Count; left > 0; left -= part.Count {
			part.Count = min(size, left, max(1, first))
			p.groups = append(p.groups, planned{part, first, batches[i]})
			first += part.Count
		}
	}
}

// largest returns the largest number of sessions that are opened together.
func (p plan) largest() (n int) {
	for _, g := range p.groups {
		n = max(n, g.Count)
	}
	return n
}

// batchOf returns the batch size of a part. A batch of windows has no more than the rows of one window of the whole text.
func (s *Scorer) batchOf(p Part) (int, error) {
	n, err := s.engine.scoreBatch(p.Input, s.size, s.preset())
	if s.carried != nil && p.Input.Shape[0] < 0 {
		n = min(n, s.carried.Whole().Rows())
		if s.alone {
			n = 1
		}
	}
	return n, err
}

// batches returns the batch size of each part, and the smallest number of examples that is a multiple of all of them.
func (e *Engine) batches(parts []Part, size dataset.Size, preset int) (each []int, unit int, err error) {
	unit = 1
	for _, part := range parts {
		n, err := e.scoreBatch(part.Input, size, preset)
		if err != nil {
			return nil, 0, err
		}
		each, unit = append(each, n), lcm(unit, n)
	}
	return each, unit, nil
}

// BatchUnit returns the smallest number of examples that is a multiple of the batches of all models. It depends on
// the networks, on the data's shape and on the requested size, but not on the machine. So jobs on several machines
// can divide the examples by it.
func (e *Engine) BatchUnit(m MemberSource, data dataset.Dataset) (int, error) {
	size, err := dataset.SizeOf(data)
	if err != nil {
		return 0, err
	}
	_, unit, err := e.batches(m.Parts(), size, DefaultBatchSize)
	return unit, err
}

// String describes the plan for a user.
func (p plan) String() string {
	how := "all opened once"
	if !p.resident {
		how = fmt.Sprintf("opened for each chunk, %d at a time", p.largest())
	}
	return fmt.Sprintf("%d threads; batches of %d, chunks of %d; sessions %s", p.workers, p.groups[0].batch, p.chunk, how)
}

// exampleBytes returns the memory for an example in a chunk and for its result. There are two of each.
func (s *Scorer) exampleBytes() int64 {
	example := s.size.Bytes()
	if _, ok := s.data.(dataset.Bytes); ok {
		example = int64(s.size.Floats)
	}
	return 2 * (example + s.resultBytes())
}

func ceil(a, b int) int { return (a + b - 1) / b }

// lcm returns the least common multiple.
func lcm(a, b int) int {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}

// prepare learns the cost of the models and the meaning of their scores, and makes the plan. If the models have
// several graphs, the most expensive one counts.
func (s *Scorer) prepare(ctx context.Context) error {
	workers, first := s.engine.Threads(), 0
	var worst cost
	for _, part := range s.models.Parts() {
		p, err := s.try(ctx, part, first)
		if err != nil {
			return err
		}
		if s.settle != nil {
			err = s.looking.instead(ctx, part.Graph, p.checkPlaces(ctx, s))
		}
		c := p.cost
		worst = cost{max(worst.sessionBytes, c.sessionBytes), max(worst.runBytes, c.runBytes), max(worst.open, c.open),
			max(worst.run, c.run)}
		work := time.Duration(part.Count) * time.Duration(s.data.Len()) * c.run
		if err == nil && first == 0 && s.engine.how.Threads == 0 && workers > 2 && work/time.Duration(workers) > minTuned {
			workers, err = p.tune(ctx, workers)
		}
		s.giveBack(p.values)
		if err != nil {
			p.group.close()
			return err
		}
		s.ran.leave(p.group, first) // the run begins with it
		first += part.Count
	}
	var err error
	if s.plan, err = s.newPlan(workers, worst); err == nil && !s.plan.resident {
		s.ran.closeFrom(1)
	}
	return err
}

// trial is a model that runs over the first examples.
type trial struct {
	group  *group
	model  *loaded
	values dataset.Values
	inputs []ort.Tensor // of the values
	cost   cost
	run    func(context.Context) error
}

// try opens a model and runs it twice. The memory of runs is measured. A run that reuses freed memory measures too
// little, so there is a lower bound. A session is not measured, because building the model allocates and frees memory
// meanwhile. A ResNet-18's session takes a tenth more than its file.
//
// The runs are those of the first two batches, and [Scorer.Run] does not repeat them. If the examples of a batch are not
// known yet, or a batch may be shorter than a later one, they are of zeros. With [Settling], [trial.checkPlaces] runs the
// model next: it measures its own runs, if their batches are like those of the run.
func (s *Scorer) try(ctx context.Context, of Part, first int) (*trial, error) {
	batch, err := s.batchOf(of)
	if err != nil {
		return nil, err
	}
	g, err := s.open(ctx, first, 1, batch)
	if err != nil {
		return nil, err
	}
	t, opened := &trial{group: g, model: g.sessions[0]}, memory.Resident()
	t.cost.open = t.model.took
	t.cost.sessionBytes = t.model.Filled.Template.Size()*3/2 + 1<<20
	ctx = tally.For(ctx, tally.Plan)
	for {
		if x := s.firstBatches(ctx, batch); x != nil {
			err = t.first(ctx, s, x)
		} else if err = t.fill(s, batch); err == nil && !placesMeasure(s) {
			if err = s.looking.at(of.Graph, nil); err == nil {
				err = t.measure(ctx, s)
			}
		}
		if !divisible(err, batch, t.model.Session) || s.carried != nil {
			break
		}
		batch = ceil(batch, 2) // the memory of a GPU is too small
		s.fits.Store(int64(batch))
		g.batch = batch
	}
	if s.engine.how.Provider.Compiles() { // each of its sessions keeps what its runs compute
		t.cost.sessionBytes = max(t.cost.sessionBytes, t.model.bytes+memory.Resident()-opened)
		t.cost.runBytes = int64(batch) * s.size.Bytes()
	}
	if err == nil {
		return t, nil
	}
	g.close()
	return nil, s.looking.instead(ctx, of.Graph, fmt.Errorf("%s: %w", t.model.Name, err))
}

// fill makes a batch of zeros.
func (t *trial) fill(s *Scorer, batch int) (err error) {
	t.values = s.buffer(batch)
	t.values.Clear()
	t.inputs, err = t.model.feed(s.data, nil, batch, nil, t.values)
	t.run = func(ctx context.Context) error {
		_, _, _, err := s.scores(ctx, t.model, t.inputs)
		return err
	}
	return err
}

// measure runs the batch twice. The first run includes its own preparation.
func (t *trial) measure(ctx context.Context, s *Scorer) error {
	for range 2 {
		if err := t.timed(s, func() error { return t.run(ctx) }); err != nil {
			return err
		}
	}
	return nil
}

// timed keeps what a run of a whole batch takes.
func (t *trial) timed(s *Scorer, run func() error) error {
	before, start, batch := memory.Resident(), time.Now(), t.group.batch
	err := run()
	t.took(memory.Resident()-before, int64(batch)*s.size.Bytes(), time.Since(start), batch)
	return err
}

// took keeps the memory of the first run, and the time of the last.
func (t *trial) took(bytes, least int64, d time.Duration, examples int) {
	if t.cost.runBytes == 0 {
		t.cost.runBytes = max(bytes, least)
	}
	t.cost.run = max(1, d/time.Duration(examples))
}

// minTuned is the least work for which it pays to try numbers of threads.
const minTuned = time.Minute

// tune returns the number of simultaneous runs with the highest rate: n or, if two threads share a core, half of n.
func (t *trial) tune(ctx context.Context, n int) (int, error) {
	ctx = tally.For(ctx, tally.Plan)
	all, err := t.rate(ctx, n)
	if err != nil {
		return 0, err
	}
	half, err := t.rate(ctx, n/2)
	if half > all {
		n /= 2
	}
	return n, err
}

// rate returns the number of runs per second with n goroutines.
func (t *trial) rate(ctx context.Context, n int) (float64, error) {
	const trying = 500 * time.Millisecond
	start := time.Now()
	runs := make([]int, n)
	g, ctx := errgroup.WithContext(ctx)
	for i := range n {
		g.Go(weights.Guarded(func() error {
			for runs[i] == 0 || time.Since(start) < trying {
				if err := t.run(ctx); err != nil {
					return err
				}
				runs[i]++
			}
			return nil
		}))
	}
	err := g.Wait()
	total := 0
	for _, r := range runs {
		total += r
	}
	return float64(total) / time.Since(start).Seconds(), err
}
