package ensemble

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/weights"
)

// Blocks adapt batch-norm statistics to each block of the scored examples, in their order.
//
// Block k has the examples [k·Examples, (k+1)·Examples) of all data. Its rows depend on its own examples, on the statistics of
// training and on the weight. So a part of the data, or a run that goes on, gives the rows of a whole run.
type Blocks struct {
	Examples int                 // of a block
	Weight   float64             // the share of a block in its statistics
	Networks []*infer.Network    // with passes that mix: see [infer.Network.Adapting]
	Told     func(moved float64) // called with each block, and how far it moves the first layer: see [batchnorm.Adaptation]
}

// Last returns where the last of n examples' blocks begins. A rest that is too small for statistics belongs to the block before.
func (b *Blocks) Last(n int) int {
	at := (n - 1) / b.Examples * b.Examples
	if at > 0 && n-at < batchnorm.LeastTarget {
		at -= b.Examples
	}
	return at
}

// Run is [infer.Scorer.Run]. With blocks it runs one after the other, each with statistics of its own.
func (s *Scorer) Run(ctx context.Context, first int, progress func(images int), sink func(*infer.Chunk) error) error {
	b, n := s.job.Blocks, s.job.Data.Len()
	if b == nil {
		return s.Scorer.Run(ctx, first, progress, sink)
	}
	s.Close() // each block has members of its own
	last := b.Last(n)
	for at := min(first/b.Examples*b.Examples, last); at <= last && first < n; at += b.Examples {
		end := at + b.Examples
		if at == last {
			end = n
		}
		own, err := s.block(ctx, at, end)
		if err != nil {
			return err
		}
		err = own.Run(ctx, first-at, progress, func(c *infer.Chunk) error {
			c.First += at
			return sink(c)
		})
		if err != nil {
			return err
		}
		first = end
	}
	return nil
}

// block returns a scorer of the examples [first, end), with statistics that are adapted to them.
func (s *Scorer) block(ctx context.Context, first, end int) (*infer.Scorer, error) {
	b := s.job.Blocks
	pool := memory.NewPool(s.engine.Memory().Pictures().Room(0)) // of this block alone
	data := dataset.Kept(s.job.Data, first, end, pool)
	target, err := s.target(ctx, data)
	if err != nil {
		return nil, fmt.Errorf("%s to %s: %w", data.Name(0), data.Name(data.Len()-1), err)
	}
	job, e := s.job, *s.job.Ensemble
	e.Components = append([]Component(nil), e.Components...)
	job.Ensemble = &e
	run := infer.Run{Engine: s.engine}
	to := batchnorm.Adaptation{Target: target, Weight: b.Weight, Seed: e.Sampling.Seed}
	var mixed [][]float32
	moved := math.NaN()
	err = s.job.Ensemble.EachMember(ctx, run.Memory(), job.Networks, run.Threads(), func(m Member) error {
		statistics, by, err := to.Statistics(ctx, run, b.Networks[m.Component], m.Parameters, m.Statistics)
		if err != nil {
			return fmt.Errorf("member %d: %w", m.Number, err)
		}
		if mixed = append(mixed, statistics); len(mixed) == 1 {
			moved = by
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if b.Told != nil {
		b.Told(moved)
	}
	for i := range e.Components {
		c := &e.Components[i]
		c.Statistics, mixed = mixed[:c.Members:c.Members], mixed[c.Members:]
	}
	return s.newScorer(ctx, &job, data)
}

// target returns the examples of a block that can be read.
func (s *Scorer) target(ctx context.Context, data dataset.Dataset) (dataset.Dataset, error) {
	errs, err := readable(ctx, data, s.engine.Threads())
	if err != nil {
		return nil, err
	}
	var rows []int
	for i, err := range errs {
		switch {
		case err == nil:
			rows = append(rows, i)
		case !s.job.SkipErrors || dataset.Fatal(err):
			return nil, dataset.Unreadable(err)
		}
	}
	if len(rows) == data.Len() {
		return data, nil
	}
	if len(rows) < batchnorm.LeastTarget {
		return nil, fmt.Errorf("%d examples of the block can be read, and %s needs at least %d", len(rows), setting.Adapt,
			batchnorm.LeastTarget)
	}
	return dataset.Picked(data, rows), nil
}

// readable reads all examples. It returns why some cannot be read.
func readable(ctx context.Context, data dataset.Dataset, workers int) ([]error, error) {
	size, err := dataset.SizeOf(data)
	if err != nil {
		return nil, err
	}
	errs := make([]error, data.Len())
	var next atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range min(workers, data.Len()) {
		g.Go(weights.Guarded(func() error {
			values := size.Make(1)
			for i := int(next.Add(1)) - 1; i < len(errs); i = int(next.Add(1)) - 1 {
				if err := ctx.Err(); err != nil {
					return err
				}
				errs[i] = data.Read(values, i)
			}
			return nil
		}))
	}
	return errs, g.Wait()
}
