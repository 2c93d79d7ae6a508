package dataset

import (
	"sync"

	"github.com/swagwrap/swagwrap/internal/memory"
)

// cache keeps decoded and augmented images as bytes, because every member reads the same images.
type cache struct {
	miss loader
	size int64 // bytes of an image
	pool *memory.Pool

	mu   sync.RWMutex
	kept map[int][]byte
	full bool // the pool has no room for another image
}

// newCache returns a cache that takes its memory from the pool. Images beyond that are decoded on every read. All members
// read images in the same order. A cache of the most recent ones would have lost each image before it is needed again.
func newCache(size int, pool *memory.Pool, miss loader) *cache {
	return &cache{miss: miss, size: int64(size), pool: pool, kept: make(map[int][]byte)}
}

// room returns the number of images that the cache has and may still get.
func (c *cache) room() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	n := int64(len(c.kept))
	return int(n + c.pool.Room(n*c.size)/c.size)
}

// load returns image i from the cache or from miss. It is a loader.
func (c *cache) load(dst []byte, i int) ([]byte, error) {
	c.mu.RLock()
	kept, ok := c.kept[i]
	full := c.full
	c.mu.RUnlock()
	switch {
	case ok:
		return kept, nil
	case full:
		return c.miss(dst, i)
	}
	kept, err := c.miss(make([]byte, c.size), i)
	if err == nil {
		c.keep(i, kept)
	}
	return kept, err
}

// keep keeps an image if there is room for it.
func (c *cache) keep(i int, image []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept[i] != nil || c.full { // another goroutine was faster
		return
	}
	if c.full = !c.pool.Take(int64(len(c.kept))*c.size, c.size); !c.full {
		c.kept[i] = image
	}
}

// Kept returns the examples [first, end) of d, for a reader that comes several times. Image files are decoded once, as far as the
// pool has memory. Other examples are in memory already.
func Kept(d Dataset, first, end int, pool *memory.Pool) Dataset {
	part := Part(d, first, end)
	b, ok := part.(Bytes)
	if !ok || examplesIn(d).file == nil || examplesIn(d).cache != nil {
		return part
	}
	own := *examplesIn(d)
	own.n, own.labels, own.name, own.id = part.Len(), part.Labels(), part.Name, ID(part)
	own.file, own.fileSize, own.original, own.loaded, own.stored = nil, nil, nil, nil, nil // their indexes are those of d
	own.cache = newCache(own.elems, pool, func(dst []byte, i int) ([]byte, error) { return dst, b.Pixels(dst, i) })
	return newPixels(&own, own.norm, own.cache.load)
}
