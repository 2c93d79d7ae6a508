package swag

import (
	"context"
	"sync"

	"github.com/swagwrap/swagwrap/weights"
)

// inOrder computes blocks 0 … n−1 on several workers and commits them one by one, in order. Each block in flight has
// its own buffer of type T, which is reused after the commit. The first error, or the context's error, stops
// everything and is returned.
func inOrder[T any](ctx context.Context, n, workers int, compute, commit func(i int, buf *T) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()

	type result struct {
		buf *T
		err error
	}
	free := make(chan *T, workers+1)
	for range cap(free) {
		free <- new(T)
	}
	queue := make(chan chan result, workers+1)
	wg.Go(func() {
		defer close(queue)
		slots := make(chan struct{}, workers)
		for i := range n {
			var buf *T
			select {
			case <-ctx.Done():
				return
			case buf = <-free:
			}
			slots <- struct{}{}
			done := make(chan result, 1)
			queue <- done // never blocks: the queue has as many places as there are buffers
			wg.Go(func() {
				done <- result{buf, weights.Guarded(func() error { return compute(i, buf) })()}
				<-slots
			})
		}
	})
	i := 0
	for done := range queue {
		r := <-done
		if r.err == nil {
			r.err = commit(i, r.buf)
		}
		if r.err != nil {
			return r.err
		}
		free <- r.buf
		i++
	}
	return ctx.Err()
}
