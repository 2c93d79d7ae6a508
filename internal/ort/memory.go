package ort

import (
	"runtime/metrics"
	"sync"
	"time"

	"github.com/swagwrap/swagwrap/internal/memory"
)

// foreign returns the part of the resident memory that is not Go's.
func foreign() int64 {
	own := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(own)
	return memory.Resident() - int64(own[0].Value.Uint64()) + int64(own[1].Value.Uint64())
}

// room fails if a model of the given size does not fit into the rest of the limit.
func (r *Runtime) room(size int64) error {
	limit := r.limit.Load()
	need := size * 3 / 2 // the session of a ResNet-18 needs 1.1 times its file
	if limit == 0 {
		return nil
	}
	if left := max(0, limit-(foreign()-r.base.Load())); need > left {
		return &MemoryError{Bytes: need, Left: left, Limit: limit}
	}
	return nil
}

// watch calls exceeded once if ONNX Runtime uses a quarter more memory than the limit before stop is called. The pool
// respects the limit, but copies of the graph and weights do not come from the pool.
func (r *Runtime) watch(exceeded func(error)) (stop func()) {
	const every = 10 * time.Millisecond
	limit := r.limit.Load()
	if limit == 0 {
		return func() {}
	}
	var mu sync.Mutex
	var timer *time.Timer
	stopped := false
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(every, func() {
		mu.Lock()
		defer mu.Unlock()
		used := foreign() - r.base.Load()
		switch {
		case stopped:
		case used > limit+limit/4:
			stopped = true
			exceeded(&MemoryError{Bytes: used, Left: limit, Limit: limit})
		default:
			timer.Reset(every)
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		timer.Stop()
	}
}
