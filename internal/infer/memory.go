package infer

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"syscall"
)

// MemoryLimit returns the most memory that networks and pictures may take: asked or, if asked is 0, half of the free
// memory. It returns at least 64 MiB, or 0 if the free memory is unknown.
func MemoryLimit(asked int64) int64 {
	const least = 64 << 20
	switch free := freeMemory(); {
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
	if free := freeMemory(); free > 0 {
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

// freeMemory returns the number of bytes that are available without swapping, or 0 if the system does not report it.
func freeMemory() int64 {
	free := int64(0)
	info, _ := os.ReadFile("/proc/meminfo")
	if _, rest, ok := bytes.Cut(info, []byte("MemAvailable:")); ok {
		free = firstNumber(rest) << 10
	}
	// A container may have less. Version 2 of control groups comes first, then version 1.
	for _, names := range [][2]string{
		{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
		{"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"},
	} {
		limit, used := fileNumber(names[0]), fileNumber(names[1])
		if limit > used && used > 0 {
			free = min(free, limit-used)
		}
	}
	var space syscall.Rlimit // a shell's limit may be lower still: ulimit -v
	if syscall.Getrlimit(syscall.RLIMIT_AS, &space) == nil && space.Cur < 1<<62 {
		free = min(free, max(1, int64(space.Cur)-usedSpace()))
	}
	return free
}

// usedSpace returns the bytes of address space that the process has taken, or 0 if the system does not report it.
func usedSpace() int64 {
	b, _ := os.ReadFile("/proc/self/statm")
	return firstNumber(b) * int64(os.Getpagesize())
}

// fileNumber returns the number in a file, or 0.
func fileNumber(path string) int64 {
	b, _ := os.ReadFile(path)
	return firstNumber(b)
}

// firstNumber returns the number that text begins with, or 0.
func firstNumber(text []byte) int64 {
	fields := bytes.Fields(text)
	if len(fields) == 0 {
		return 0
	}
	n, _ := strconv.ParseInt(string(fields[0]), 10, 64)
	return n
}
