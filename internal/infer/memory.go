package infer

import (
	"runtime"

	"github.com/swagwrap/swagwrap/internal/ort"
)

// MemoryLimit returns the most memory that networks and pictures may take: asked or, if asked is 0, half of the free
// memory. It returns at least 64 MiB, or 0 if the free memory is unknown.
func MemoryLimit(asked int64) int64 {
	const least = 64 << 20
	switch free := ort.FreeMemory(); {
	case asked > 0:
		return max(asked, least)
	case free > 0:
		return max(free/2, least)
	}
	return 0
}

// DefaultMemory is the memory that a [Scorer] plans for by default. It is half of the free memory, but at most 1 GiB
// plus 256 MiB for each core, since more makes no run faster.
func DefaultMemory() int64 {
	limit := int64(1<<30 + runtime.GOMAXPROCS(0)*256<<20)
	if free := ort.FreeMemory(); free > 0 {
		limit = min(limit, free/2)
	}
	return limit
}

// Budget returns the memory that a Scorer plans for, in bytes.
func (e *Engine) Budget() int64 {
	if e.Memory > 0 {
		return e.Memory
	}
	return DefaultMemory()
}
