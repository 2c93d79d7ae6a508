package ort

import (
	"bytes"
	"os"
	"runtime/metrics"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Resident returns the number of bytes that the process has in memory, without mapped files. If the system only
// reports the peak, Resident returns the peak.
func Resident() int64 {
	var line [128]byte
	n, _ := statm().ReadAt(line[:], 0)
	if pages := parse(line[:n]); len(pages) > 2 { // of all memory, in memory, of mapped files
		return (pages[1] - pages[2]) * int64(os.Getpagesize())
	}
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Maxrss // in bytes on macOS; Linux has statm
}

// statm stays open, because every run of a network looks at it 100 times a second.
var statm = sync.OnceValue(func() *os.File {
	f, _ := os.Open("/proc/self/statm")
	return f
})

// FreeMemory returns the number of bytes that are available without swapping, or 0 if the system does not report it.
func FreeMemory() int64 {
	free := meminfo("MemAvailable")
	// A container may have less. Version 2 of control groups comes first, then version 1.
	for _, names := range [][2]string{
		{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
		{"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"},
	} {
		limit, used := numbers(names[0]), numbers(names[1])
		if len(limit) == 1 && len(used) == 1 && limit[0] > used[0] && used[0] > 0 {
			free = min(free, limit[0]-used[0])
		}
	}
	var space syscall.Rlimit // a shell's limit may be lower still: ulimit -v
	if pages := numbers("/proc/self/statm"); syscall.Getrlimit(syscall.RLIMIT_AS, &space) == nil && space.Cur < 1<<62 && pages != nil {
		free = min(free, max(1, int64(space.Cur)-pages[0]*int64(os.Getpagesize())))
	}
	return free
}

// meminfo returns a number of bytes that Linux reports, or 0.
func meminfo(key string) int64 {
	info, _ := os.ReadFile("/proc/meminfo")
	_, rest, _ := bytes.Cut(info, []byte(key+":"))
	kilobytes, _ := strconv.ParseInt(string(bytes.TrimSpace(rest[:max(0, bytes.Index(rest, []byte("kB")))])), 10, 64)
	return kilobytes << 10
}

// numbers returns the numbers in a file, up to the first word that is none.
func numbers(path string) []int64 {
	b, _ := os.ReadFile(path)
	return parse(b)
}

func parse(b []byte) (list []int64) {
	for word := range bytes.FieldsSeq(b) {
		n, err := strconv.ParseInt(string(word), 10, 64)
		if err != nil {
			break
		}
		list = append(list, n)
	}
	return list
}

// foreign returns the part of the resident memory that is not Go's.
func foreign() int64 {
	own := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(own)
	return Resident() - int64(own[0].Value.Uint64()) + int64(own[1].Value.Uint64())
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
