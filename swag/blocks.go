package swag

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/swagwrap/swagwrap/weights"
)

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
