// Package memory divides the memory that a command may take. A [Budget] is made once, where the command line is read.
// Every cache takes its share from it, and the sizes of all shares stand in this file.
//
// Shares decide how long a command takes, never what it computes. A limit that decides numbers, such as the number of
// groups of members, is no share: it must not depend on the machine. It stands where it is used, and internal/arch lists it.
//
// # Concurrency
//
// A Budget never changes. Several goroutines may use it and its [Pool].
package memory

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// The shares of a command without a limit. None makes a command slower.
const (
	// usualPictures is for the decoded pictures of each data set. 7,000 of 224×224 fit.
	usualPictures = 1 << 30
	// usualDecoding suffices to decode 100 million pixels of most kinds.
	usualDecoding = 1 << 30
	// usualWeights is for the weights of members that are drawn together.
	usualWeights = 256 << 20
	// usualWaiting is for sessions that are open while others run. Those of small networks take long to open, beside their runs.
	usualWaiting = 64 << 20
	// usualPlan and usualCore are for networks. More makes no run faster.
	usualPlan, usualCore = 1 << 30, 256 << 20
)

// least is the smallest limit. ONNX Runtime, or a decoder, does nothing with less.
const least = 64 << 20

// Budget divides the memory of a command. A nil Budget is one without a limit.
type Budget struct {
	asked    int64 // the limit that the user gave, or 0
	free     int64 // bytes of the machine when the command began, or 0 if they are unknown
	pictures *Pool
}

// New returns the budget of a command. asked is the limit that the user gave, in bytes, or 0 for none.
func New(asked int64) *Budget {
	b := &Budget{asked: asked, free: free()}
	if asked > 0 {
		b.pictures = NewPool(asked / 4)
	} else {
		b.pictures = newPool(1<<62, usualPictures)
	}
	return b
}

// or returns b, or a budget without a limit for nil.
func (b *Budget) or() *Budget {
	if b == nil {
		return usual()
	}
	return b
}

var usual = sync.OnceValue(func() *Budget { return New(0) })

// Limited reports whether the user gave a limit.
func (b *Budget) Limited() bool { return b.or().asked > 0 }

// Limit returns the most bytes that all networks may take in ONNX Runtime. Without a limit it is half of the free memory,
// and 0 if that is unknown.
func (b *Budget) Limit() int64 {
	switch b = b.or(); {
	case b.asked > 0:
		return max(b.asked, least)
	case b.free > 0:
		return max(b.free/2, least)
	}
	return 0
}

// Networks returns the bytes that predictions are planned for: sessions, their runs, and the examples of a chunk. A run
// that needs more gets it, up to [Budget.Limit].
func (b *Budget) Networks() int64 {
	if b = b.or(); b.asked > 0 {
		return b.asked
	}
	plan := int64(usualPlan + runtime.GOMAXPROCS(0)*usualCore)
	if b.free > 0 {
		plan = min(plan, b.free/2)
	}
	return plan
}

// Waiting returns the most bytes of sessions that stay open while others run. A network that is larger has one session at a time.
func (b *Budget) Waiting() int64 { return min(b.Networks()/4, usualWaiting) }

// Batch returns the most bytes of one batch of inputs or states, if a graph fixes its size.
func (b *Budget) Batch() int64 {
	if b.Limited() {
		return b.Limit() / 2
	}
	return b.Networks() / 2
}

// Decoding returns the most bytes that all pictures and masks may take while they are read and decoded.
func (b *Budget) Decoding() int64 {
	if b = b.or(); b.asked > 0 {
		return b.Limit()
	}
	return min(b.Networks(), usualDecoding)
}

// Pictures returns the memory for decoded pictures, which several passes read. A limited command has one pool of a quarter
// for all data sets and their damaged copies. Otherwise each data set keeps up to 1 GiB.
func (b *Budget) Pictures() *Pool { return b.or().pictures }

// Weights returns the most bytes of members that are drawn together. A member that is larger is drawn block by block.
func (b *Budget) Weights() int64 {
	if b = b.or(); b.asked > 0 {
		return b.asked / 8
	}
	return usualWeights
}

// Joined returns the most bytes of the averages of a picture that is scored in tiles.
func (b *Budget) Joined() int64 { return max(b.Networks(), least) }

// Checked returns the most bytes of the examples that a check of data holds. A smaller share would leave so few examples that
// checks see nothing.
func (b *Budget) Checked() int64 { return max(b.Networks(), least) / 8 }

// Batches returns how many batches of a pass over training data run at the same time. It is at least one, and at most the
// number of threads. bytes is the size of a batch of inputs. Half of a limit is for these batches, because the layers of a
// network need about as much as its inputs.
func (b *Budget) Batches(threads int, bytes int64) int {
	if b = b.or(); b.asked > 0 {
		return int(max(1, min(int64(threads), b.asked/4/max(1, bytes))))
	}
	return threads
}

// A Pool is memory that several caches share. Who asks first gets it.
type Pool struct {
	left *atomic.Int64 // bytes that nobody took
	each int64         // the most bytes of one cache
}

// NewPool returns a pool of so many bytes.
func NewPool(bytes int64) *Pool { return newPool(bytes, bytes) }

func newPool(bytes, each int64) *Pool {
	p := &Pool{new(atomic.Int64), each}
	p.left.Store(bytes)
	return p
}

// Split returns the pool for caches that come in groups of n: each of them gets the n-th part of what one cache gets.
func (p *Pool) Split(n int) *Pool { return &Pool{p.left, p.each / int64(n)} }

// Room returns how many bytes more a cache may take that took some already.
func (p *Pool) Room(taken int64) int64 { return max(0, min(p.each-taken, p.left.Load())) }

// Take takes n bytes for a cache that took some already. It reports whether they were left. Nothing returns
// them: a cache lives as long as its command.
func (p *Pool) Take(taken, n int64) bool {
	if taken+n > p.each {
		return false
	}
	if p.left.Add(-n) < 0 {
		p.left.Add(n)
		return false
	}
	return true
}
