// Package promise is what the tests behind docs/reliability.md share.
package promise

import (
	"runtime"
	"testing"
)

// Heap fails the test if f, which reads a file of size bytes, takes more than four times as much memory and 64 MB. What it gives
// back counts too: so the figure does not depend on when garbage is collected.
func Heap(t testing.TB, size int, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > uint64(4*size+64<<20) {
		t.Errorf("%d bytes of memory for a file of %d", took, size)
	}
}
