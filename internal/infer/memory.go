package infer

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"syscall"
)

// MemoryLimit is the most memory that networks and pictures may take where asked is 0:
// half of what is free. Below what the smallest network needs there is no limit.
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

// DefaultMemory is what a [Scorer] plans for unless it is told otherwise: half of
// what is free, at most 1 GiB and 256 MiB more for each core, since more makes it
// no faster.
func DefaultMemory() int64 {
	limit := int64(1<<30 + runtime.GOMAXPROCS(0)*256<<20)
	if free := freeMemory(); free > 0 {
		limit = min(limit, free/2)
	}
	return limit
}

// Budget is the memory that a Scorer plans for, in bytes.
func (e *Engine) Budget() int64 {
	if e.Memory > 0 {
		return e.Memory
	}
	return DefaultMemory()
}

// freeMemory returns how many bytes can be had without swapping, or 0 if the
// system does not say.
func freeMemory() int64 {
	free := int64(0)
	info, _ := os.ReadFile("/proc/meminfo")
	if _, rest, ok := bytes.Cut(info, []byte("MemAvailable:")); ok {
		free = firstNumber(rest) << 10
	}
	// A container may have less: version 2 of control groups, then version 1.
	for _, names := range [][2]string{
		{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
		{"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"},
	} {
		limit, used := fileNumber(names[0]), fileNumber(names[1])
		if limit > used && used > 0 {
			free = min(free, limit-used)
		}
	}
	var space syscall.Rlimit // a shell's may be less still: ulimit -v
	if syscall.Getrlimit(syscall.RLIMIT_AS, &space) == nil && space.Cur < 1<<62 {
		free = min(free, max(1, int64(space.Cur)-usedSpace()))
	}
	return free
}

// usedSpace returns how many bytes of addresses the process has taken, or 0 if the
// system does not say.
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
