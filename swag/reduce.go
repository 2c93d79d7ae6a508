package swag

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/swagwrap/swagwrap/swag/internal/dense"
	"github.com/swagwrap/swagwrap/weights"
)

// Block is a range of a posterior.
type Block struct {
	Off            int64 // index of its first weight
	Mean, Variance []float64
	Deviations     [][]float32 // columns of D̂, as rows: see [Posterior.Deviations]
}

// Reduce reads the posterior once, in blocks of length weights, several blocks at the same time. Blocks have the
// given number of columns of D̂: those that a fit of that rank would have kept. The function part computes the
// contribution of a block in a T, which may hold the contribution of an earlier block. The function add takes the
// contributions in order, so sums do not depend on the number of workers. The first error stops Reduce.
func Reduce[T any](ctx context.Context, p *Posterior, columns, length int, part func(b *Block, of *T), add func(of *T)) error {
	type buffer struct {
		Block
		rows [][]float32
		of   T
	}
	blocks := int((p.Len() + int64(length) - 1) / int64(length))
	return inOrder(ctx, blocks, runtime.GOMAXPROCS(0), func(i int, b *buffer) error {
		if b.rows == nil {
			b.Mean, b.Variance, b.rows = make([]float64, length), make([]float64, length), dense.Rows[float32](columns, length)
		}
		b.Off = int64(i) * int64(length)
		n := int(min(int64(length), p.Len()-b.Off))
		b.Mean, b.Variance, b.Deviations = b.Mean[:n], b.Variance[:n], dense.Cut(b.rows, 0, n)
		p.Mean(b.Mean, b.Off)
		p.Variance(b.Variance, b.Off)
		if columns > 0 {
			if err := p.Deviations(b.Deviations, b.Off); err != nil {
				return err
			}
		}
		part(&b.Block, &b.of)
		return nil
	}, func(_ int, b *buffer) error {
		add(&b.of)
		return nil
	})
}

// inOrder computes blocks 0 … n−1 on several workers and commits them one by one, in order. Each worker has its own
// buffer of type T, which is reused after the commit. The error of the first block that fails, or the context's error,
// stops everything and is returned.
func inOrder[T any](ctx context.Context, n, workers int, compute, commit func(i int, buf *T) error) error {
	g, ctx := errgroup.WithContext(ctx)
	turns := make([]chan struct{}, workers) // each tells a worker that the block before its own is committed
	for w := range turns {
		turns[w] = make(chan struct{}, 1)
	}
	turns[0] <- struct{}{}
	for w := range workers {
		g.Go(weights.Guarded(func() error {
			buf := new(T)
			for i := w; i < n; i += workers {
				err := ctx.Err()
				if err == nil {
					err = compute(i, buf)
				}
				select {
				case <-turns[w]:
				case <-ctx.Done():
					return ctx.Err()
				}
				if err == nil {
					err = commit(i, buf)
				}
				if err != nil {
					return err
				}
				turns[(w+1)%workers] <- struct{}{}
			}
			return nil
		}))
	}
	return g.Wait()
}
