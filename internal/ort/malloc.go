package ort

/*
#include <stdlib.h> // defines __GLIBC__
#ifdef __GLIBC__
#include <malloc.h>
#endif

static void keep(int largest, int most) {
#ifdef __GLIBC__
	mallopt(M_MMAP_THRESHOLD, largest);
	mallopt(M_TRIM_THRESHOLD, most);
#endif
}

static void give_back(void) {
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}
*/
import "C"

import "sync"

// A block that is freed goes back to the system, or glibc keeps it. Fresh pages from the system are half of the time of
// opening a large session, which allocates and frees copies of all weights in turn. But glibc keeps blocks scattered over
// the heaps of many threads: a process that opened and closed 60 sessions of a 37 MB model grew from 137 to 442 MiB. So
// glibc keeps blocks only while a session opens. Other C libraries do not need this.
const (
	keptAlways = 1 << 20   // smaller blocks are always kept
	keptOpened = 64 << 20  // the same, while a session opens
	keptFree   = 256 << 20 // free bytes at the end of a heap that are kept then
)

// opening counts the large sessions that are being opened.
var opening struct {
	sync.Mutex
	n int
}

// returnFreedMemory makes glibc return large blocks to the system when they are freed.
func returnFreedMemory() { C.keep(keptAlways, keptAlways) }

// reuseFreedMemory makes glibc keep large blocks until done is called.
func reuseFreedMemory() (done func()) {
	opening.Lock()
	defer opening.Unlock()
	if opening.n++; opening.n == 1 {
		C.keep(keptOpened, keptFree)
	}
	return func() {
		opening.Lock()
		defer opening.Unlock()
		if opening.n--; opening.n == 0 {
			returnFreedMemory()
		}
		giveBackMemory()
	}
}

// giveBackMemory returns all that glibc keeps to the system.
func giveBackMemory() { C.give_back() }
