package memory

import "sync/atomic"

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
