package listing

import (
	"cmp"
	"context"
	"fmt"
	"runtime"

	"golang.org/x/sync/semaphore"

	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/internal/setting"
)

// A Budget limits the memory that all goroutines hold at once while they read pictures and masks. A quarter is for
// files, and the rest for decoding them. A picture that needs more than a share, but not more than the whole budget,
// gets the share alone.
type Budget struct {
	all             int64 // bytes
	files, decoding share
	// large is a number of bytes. The garbage collector runs after decoding a picture that needs at least as many.
	// Otherwise half as much memory again would pile up.
	large int64
}

// NewBudget returns a budget of so many bytes, or for 0 of what a command without a limit has.
func NewBudget(bytes int64) *Budget {
	all := cmp.Or(max(0, bytes), (*memory.Budget)(nil).Decoding())
	files := max(all/4, 1)
	return &Budget{all: all, files: newShare(files), decoding: newShare(max(all-files, 1)), large: all / 8}
}

// Decode calls f while n bytes are taken for decoding. held is the size of the file, if its bytes are in memory too. It
// fails if both are more than the whole budget. The error names the operation.
func (b *Budget) Decode(what string, held, n int64, f func() error) error {
	if n > b.all-held {
		return &MemoryError{What: what, Bytes: held + n, Limit: b.all}
	}
	defer b.decoding.take(n)()
	if n >= b.large {
		defer runtime.GC()
	}
	return f()
}

type share struct {
	*semaphore.Weighted
	size int64
}

func newShare(size int64) share { return share{semaphore.NewWeighted(size), size} }

// take waits for n bytes, or for the whole share if n is larger. The returned function gives them back.
func (s share) take(n int64) func() {
	n = min(n, s.size)
	s.Acquire(context.Background(), n) // cannot fail: n is at most the share, and there is no deadline
	return func() { s.Release(n) }
}

// MemoryError is the error for a picture that needs more memory than the limit.
type MemoryError struct {
	What         string // the operation that needs it
	Bytes, Limit int64
}

func (e *MemoryError) Error() string {
	mebibytes := func(n int64) int64 { return (n + 1<<20 - 1) >> 20 }
	return fmt.Sprintf("%s takes %d MiB, want at most %d: %s allows it", e.What, mebibytes(e.Bytes), e.Limit>>20,
		setting.Memory.With(fmt.Sprintf("%dM", mebibytes(e.Bytes))))
}
