// Package promise holds what the tests behind docs/reliability.md share.
package promise

import (
	"runtime"
	"testing"
)

// Heap fails the test if f, which reads a file of size bytes, allocates more than 4·size bytes + 64 MiB. Memory that
// f frees counts too, so the result does not depend on the garbage collector.
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
