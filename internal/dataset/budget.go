package dataset

import (
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"
)

// DefaultMemory is what reading and decoding pictures may take unless Options says
// otherwise: enough for 100 million pixels of most kinds.
const DefaultMemory = 1 << 30

// A budget bounds what all goroutines that read a dataset of pictures hold at once: a
// quarter of the memory for files, the rest for decoding them. A picture that needs
// more than its share, but no more than all, has the share alone.
type budget struct {
	all             int64 // bytes
	files, decoding share
	// large is how much memory of one picture is collected before the next may have
	// it. Else the collector would let half as much again pile up.
	large int64
}

func newBudget(memory int64) *budget {
	if memory <= 0 {
		memory = DefaultMemory
	}
	files := max(memory/4, 1)
	return &budget{all: memory, files: newShare(files), decoding: newShare(max(memory-files, 1)), large: memory / 8}
}

type share struct {
	*semaphore.Weighted
	size int64
}

func newShare(size int64) share { return share{semaphore.NewWeighted(size), size} }

// take waits for n bytes, or for the whole share if n is more. It returns what gives
// them back.
func (s share) take(n int64) func() {
	n = min(n, s.size)
	s.Acquire(context.Background(), n) // cannot fail: n is at most all, and there is no deadline
	return func() { s.Release(n) }
}

// MemoryError is the error of a picture that needs more memory than there may be.
type MemoryError struct {
	What         string // needs it
	Bytes, Limit int64
}

func (e *MemoryError) Error() string {
	mebibytes := func(n int64) int64 { return (n + 1<<20 - 1) >> 20 }
	return fmt.Sprintf("%s takes %d MiB, want at most %d: --memory %dM allows it", e.What, mebibytes(e.Bytes), e.Limit>>20, mebibytes(e.Bytes))
}
