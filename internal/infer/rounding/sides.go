package rounding

import (
	"context"
	"math"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/probe"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/weights"
)

// A Side of a comparison is models with the engines that predict with them: Exact in float32, and Asked as the user
// requested. If an engine is nil, another side has the models for it.
type Side struct {
	infer.MemberSource
	Exact, Asked *infer.Engine
}

// outcome is what an engine predicts with one model.
type outcome struct {
	task     task.Task
	weight   float64 // of the model
	mean     []float64
	unusable []bool // by example
}

// A pairing runs the models of sides on the examples that are held. A GPU and the processor work at the same time.
type pairing struct {
	*Change
	opts   Options
	held   *probe.Sample
	whole  bool // the held examples are all
	beside bool // both engines work at the same time
	mu     sync.Mutex
	took   [2]time.Duration // of each engine
}

// engine returns a side's engine: the exact one for 0. Small batches keep all threads of the processor busy. Lists of
// different lengths need the same batches on both sides: they are filled up to the longest of a batch, and a network without
// a mask reads that.
func (p *pairing) engine(s Side, i int) *infer.Engine {
	e := []*infer.Engine{s.Exact, s.Asked}[i]
	if e != nil && p.gpu() != "" && !e.Provider().GPU() && !infer.Ragged(p.held) {
		e = e.Spread(p.held.Len())
	}
	return e
}

// run runs the models first … first+count−1 of all sides. It returns what the exact engine predicts, and the asked one.
// Of the last model the time is taken, if it is asked for.
func (p *pairing) run(ctx context.Context, sides []Side, first, count int, last bool) (both [2][]outcome, err error) {
	g, ctx := errgroup.WithContext(ctx)
	if !p.beside || p.opts.Timed {
		g.SetLimit(1)
	}
	for _, s := range sides {
		g.Go(weights.Guarded(func() error {
			k := 0
			return s.Each(ctx, first, count, func(m infer.Model) error {
				k++
				return p.both(ctx, s, m, first+k-1, last && k == count, &both)
			})
		}))
	}
	err = g.Wait()
	return both, err
}

// both runs a model in the engines of a side, and adds to both what they predict. number is the model's in an ensemble.
func (p *pairing) both(ctx context.Context, s Side, m infer.Model, number int, last bool, both *[2][]outcome) error {
	g, ctx := errgroup.WithContext(ctx)
	timed := p.opts.Timed && last
	if !p.beside || timed {
		g.SetLimit(1)
	}
	rows, err := p.rows(s, m)
	if err != nil {
		return err
	}
	for i := range both {
		e := p.engine(s, i)
		if e == nil {
			continue
		}
		g.Go(weights.Guarded(func() error {
			began, on := time.Now(), []int(nil)
			if timed || e.Provider().GPU() {
				on = rows
			}
			var ran *infer.Ran // what the asked engine leaves to a later run
			if i == 1 && !e.Provider().GPU() {
				ran = p.opts.Ran
			}
			o, err := p.predict(ctx, e, m, on, ran, number)
			if i == 0 && on != nil {
				o = o.first(p.held.Len())
			}
			took := time.Since(began)
			p.mu.Lock()
			defer p.mu.Unlock()
			p.took[i] += took
			if timed || !p.beside {
				p.Seconds[i] = took.Seconds()
			}
			both[i] = append(both[i], o)
			return err
		}))
	}
	return g.Wait()
}

// rows returns the examples of a whole batch of a GPU: those that are held, again and again. So all places of a batch are
// compared, for the price of few examples on the processor. It returns nil for the held examples themselves.
func (p *pairing) rows(s Side, m infer.Model) ([]int, error) {
	if s.Asked == nil || !s.Asked.Provider().GPU() || m.Large() || m.States() != nil {
		return nil, nil // a batch of pixels, tokens or states takes much memory
	}
	batch, err := s.Asked.BatchUnit(m, p.held)
	n := p.held.Len()
	if err != nil || batch <= n {
		return nil, err
	}
	rows := make([]int, batch)
	for i := range rows {
		rows[i] = i % n
	}
	return rows, nil
}

// predict runs a model on the held examples, or on these rows of them. If ran is not nil, a later run gets what model number
// leaves.
func (p *pairing) predict(ctx context.Context, e *infer.Engine, m infer.Model, rows []int, ran *infer.Ran, number int) (outcome, error) {
	data := dataset.Dataset(p.held)
	if rows != nil {
		data = dataset.Picked(data, rows)
	}
	sums := infer.Sums{}
	bad, err := e.PredictFor(ctx, ran, number, p.whole, m, data, p.opts.SkipErrors, &sums)
	if err != nil {
		return outcome{}, err
	}
	o := outcome{task: sums.Task, weight: m.Weight, mean: sums.Mean(), unusable: make([]bool, len(bad))}
	for i, failed := range bad {
		o.unusable[i] = failed != nil
	}
	return o, nil
}

// first returns the outcome of the first n examples.
func (o outcome) first(n int) outcome {
	if rows := len(o.unusable); rows > n {
		o.mean, o.unusable = o.mean[:len(o.mean)/rows*n], o.unusable[:n]
	}
	return o
}

// skipPadding clears the marks of positions that only fill up their example. They are NaN, and tell nothing about
// rounding. other has the same examples, maybe several times.
func (o outcome) skipPadding(other outcome) {
	for i, v := range o.mean {
		if !math.IsNaN(v) {
			continue
		}
		o.mean[i] = 0
		for at := i; at < len(other.mean); at += len(o.mean) {
			other.mean[at] = 0
		}
	}
}

// worst returns the outcome of n examples. If o has an example several times, worst takes the copy that differs most from
// the exact outcome.
func (o outcome) worst(exact outcome, n int) outcome {
	if len(o.unusable) <= n {
		return o
	}
	width := len(o.mean) / len(o.unusable)
	w := outcome{o.task, o.weight, make([]float64, n*width), make([]bool, n)}
	for i := range n {
		largest := -1.0
		for at := i; at < len(o.unusable); at += n {
			w.unusable[i] = w.unusable[i] || o.unusable[at]
			row, far := o.mean[at*width:][:width], 0.0
			for j, v := range row {
				far = max(far, math.Abs(v-exact.mean[i*width+j])) // NaN if one is
			}
			if far > largest || math.IsNaN(far) {
				largest = far
				copy(w.mean[i*width:], row)
			}
		}
	}
	return w
}
