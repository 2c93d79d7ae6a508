package infer

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/tally"
	"github.com/swagwrap/swagwrap/weights"
	"golang.org/x/sync/errgroup"
)

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
		s.spare.giveBack(p.values)
		if err != nil {
			p.group.close()
			return err
		}
		s.ran.leave(p.group, first, s.engine.waiting()) // the run begins with it
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
		if !divisible(err, batch, t.model.FixedBatch()) || s.stateful != nil {
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

// tried is the number of batches that a trial runs.
const tried = 2

// firstBatches reads the examples of the first batches, or of one if there are no more. It returns nil if a run may
// divide the examples in another way, or if an example cannot be read: then the run itself says so.
func (s *Scorer) firstBatches(ctx context.Context, size int) *examples {
	dense := s.models.Parts()[0].Large() && Ragged(s.data) // the scores must be those of the longest example
	if s.stateful != nil || s.settle != nil || dense || s.data.Len() == 0 {
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

// first runs the first batches, and keeps what they give.
func (t *trial) first(ctx context.Context, s *Scorer, x *examples) error {
	rows := s.openRows(nil, x)
	for batchRows := range x.batches(rows, t.group.batch) {
		b := batch{s, x, batchRows, t.group.batch}
		inputs, values, err := b.load(t.model.Session)
		if t.inputs != nil {
			s.spare.giveBack(t.values)
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

// fill makes a batch of zeros.
func (t *trial) fill(s *Scorer, batch int) (err error) {
	t.values = s.spare.take(s.size, batch)
	t.values.Clear()
	t.inputs, err = t.model.feed(s.data, nil, batch, nil, t.values)
	t.run = func(ctx context.Context) error { return s.learn(ctx, t.model, t.inputs) }
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
