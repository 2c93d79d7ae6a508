package listing

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// TestBudget: goroutines never hold more than the budget, and a request for more
// than all of it is served alone.
func TestBudget(t *testing.T) {
	const all = 10
	b := newShare(all)
	var held, most atomic.Int64
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			n := int64(i % 14)
			defer b.take(n)()
			now := held.Add(min(n, all))
			for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
			}
			runtime.Gosched()
			held.Add(-min(n, all))
		})
	}
	wg.Wait()
	if m := most.Load(); m != all {
		t.Errorf("at most %d held at once, want %d", m, all)
	}
}
