package memory

import (
	"math"
	"os"
	"runtime"
	"sync"
	"testing"
)

// The shares of a limited command do not exceed its limit, and every share allows some work.
func TestLimited(t *testing.T) {
	for _, asked := range []int64{1, 1 << 20, 64 << 20, 128 << 20, 1 << 30, 1 << 50} {
		b := New(asked)
		if !b.Limited() || b.Limit() != max(asked, least) || b.Decoding() != b.Limit() || b.Batch() != b.Limit()/2 || b.Networks() != asked {
			t.Errorf("%d bytes: networks take up to %d and plan for %d, a batch %d, decoding %d", asked, b.Limit(), b.Networks(), b.Batch(), b.Decoding())
		}
		if held := b.Pictures().Room(0) + b.Weights() + b.Checked(); held > b.Limit()/2 {
			t.Errorf("%d bytes: caches hold %d", asked, held)
		}
		if b.Pictures().Room(0) != asked/4 {
			t.Errorf("%d bytes: pictures take %d", asked, b.Pictures().Room(0))
		}
		for _, size := range []int64{0, 1, 1 << 20, math.MaxInt64} {
			if n := b.Batches(8, size); n < 1 || n > 8 || n > 1 && int64(n)*size > asked/4 {
				t.Errorf("%d bytes: %d batches of %d at a time", asked, n, size)
			}
		}
	}
}

// Without a limit, each data set has memory of its own, and all threads have a batch. A nil Budget is the same.
func TestUnlimited(t *testing.T) {
	for _, b := range []*Budget{nil, New(0)} {
		if b.Limited() || b.Networks() < 1<<20 || b.Decoding() > b.Networks() || b.Batches(8, 1<<40) != 8 || b.Weights() != usualWeights || b.Joined() < least {
			t.Errorf("%+v: networks %d, decoding %d", b, b.Networks(), b.Decoding())
		}
		for range 3 { // data sets
			taken := int64(0)
			for range 4 {
				if !b.Pictures().Take(taken, usualPictures/4) {
					t.Errorf("a data set gets no more than %d bytes", taken)
				}
				taken += usualPictures / 4
			}
			if b.Pictures().Take(taken, 1) || b.Pictures().Room(taken) != 0 {
				t.Errorf("a data set gets more than %d bytes", taken)
			}
		}
	}
	unknown := &Budget{}
	if unknown.Limit() != 0 || unknown.Networks() < usualPlan || (&Budget{free: 1}).Limit() != least || (&Budget{free: 100}).Networks() != 50 {
		t.Error("wrong defaults for free memory that is unknown or small")
	}
}

// Caches share a pool: together they take all of it and no byte more, in any order.
func TestPool(t *testing.T) {
	const size, caches = 10, 4
	p := NewPool(1005)
	var wait sync.WaitGroup
	taken := make([]int64, caches)
	for i := range caches {
		wait.Go(func() {
			for p.Take(taken[i], size) {
				taken[i] += size
			}
		})
	}
	wait.Wait()
	all := int64(0)
	for _, n := range taken {
		all += n
	}
	if all < 1000-caches*size || all > 1000 || p.Room(0) != 1005-all {
		t.Errorf("%d bytes taken of 1005, %d left", all, p.Room(0))
	}
	half := NewPool(100).Split(2)
	if half.Take(45, size) || !half.Take(40, size) || half.Room(0) != 50 || half.Room(45) != 5 {
		t.Error("a cache of a split pool gets more, or less, than its part")
	}
}

// The system tells its memory.
func TestMachine(t *testing.T) {
	available, all := Machine()
	if available < 0 || all < available || Resident() < 1<<16 || free() < 0 {
		t.Errorf("%d of %d bytes available, %d resident, %d free", available, all, Resident(), free())
	}
}

// Only whole pages of the numbers are given back. They can be written again, and their neighbours stay.
func TestGiveBack(t *testing.T) {
	page := os.Getpagesize() / 4
	all := make([]float32, 64*page)
	for from := range 3 {
		for _, n := range []int{0, 1, page - 1, page, 5*page + 3, 40 * page} {
			for i := range all {
				all[i] = 1
			}
			given := all[from*(page/2+1):][:n]
			GiveBack(given)
			for i := range given {
				given[i] = 1
			}
			for i, v := range all {
				if v != 1 {
					t.Fatalf("%d numbers from %d: number %d is %v", n, from, i, v)
				}
			}
		}
	}
	before := Resident()
	large := make([]float32, 16<<20)
	for i := range large {
		large[i] = 1
	}
	grown := Resident() - before
	if GiveBack(large); runtime.GOOS == "linux" && (grown < 32<<20 || Resident()-before > grown/2) {
		t.Errorf("%d bytes more, and %d after they were given back", grown, Resident()-before)
	}
	runtime.KeepAlive(large)
}
