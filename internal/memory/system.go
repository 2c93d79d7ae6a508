package memory

import (
	"bytes"
	"os"
	"strconv"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
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

// GiveBack gives the memory of numbers that nobody reads any more to the system, until they are written again.
func GiveBack(numbers []float32) {
	page := os.Getpagesize()
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(numbers))), 4*len(numbers))
	first := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % uintptr(page)) // of the first whole page
	if whole := (len(b) - first) / page * page; whole > 0 {
		unix.Madvise(b[first:first+whole], unix.MADV_DONTNEED) // a failure only costs memory
	}
}

// statm stays open, because every run of a network looks at it 100 times a second.
var statm = sync.OnceValue(func() *os.File {
	f, _ := os.Open("/proc/self/statm")
	return f
})

// free returns the number of bytes that are available without swapping, or 0 if the system does not report it.
func free() int64 {
	left := meminfo("MemAvailable")
	// A container may have less. Version 2 of control groups comes first, then version 1.
	for _, names := range [][2]string{
		{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
		{"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"},
	} {
		limit, used := numbers(names[0]), numbers(names[1])
		if len(limit) == 1 && len(used) == 1 && limit[0] > used[0] && used[0] > 0 {
			left = min(left, limit[0]-used[0])
		}
	}
	var space syscall.Rlimit // a shell's limit may be lower still: ulimit -v
	if pages := numbers("/proc/self/statm"); syscall.Getrlimit(syscall.RLIMIT_AS, &space) == nil && space.Cur < 1<<62 && pages != nil {
		left = min(left, max(1, int64(space.Cur)-pages[0]*int64(os.Getpagesize())))
	}
	return left
}

// Machine returns the bytes that are available, and those of the whole machine. They are 0 where the system does not report
// them.
func Machine() (available, all int64) { return meminfo("MemAvailable"), meminfo("MemTotal") }

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
