package infer

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"syscall"
)

// DefaultMemory is what a [Scorer] may take unless it is told otherwise: half of
// what is free, at most 1 GiB and 256 MiB more for each core.
func DefaultMemory() int64 {
	limit := int64(1<<30 + runtime.GOMAXPROCS(0)*256<<20)
	if free := freeMemory(); free > 0 {
		limit = min(limit, free/2)
	}
	return limit
}

// Budget is the memory that a Scorer may take, in bytes.
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
	return free
}

// ownMemory returns how many bytes the process has in memory, but for those of
// mapped files; where the system tells only the most that there ever were, that.
func ownMemory() int64 {
	if b, err := os.ReadFile("/proc/self/statm"); err == nil {
		if fields := bytes.Fields(b); len(fields) > 2 {
			return (firstNumber(fields[1]) - firstNumber(fields[2])) * int64(os.Getpagesize())
		}
	}
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Maxrss // in bytes on macOS; Linux has statm
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
