package dataset

import "sync"

// cache keeps decoded and augmented images as bytes, because every member reads the same images.
type cache struct {
	miss loader
	size int // bytes of an image
	room int // images that it keeps at most

	mu   sync.RWMutex
	kept map[int][]byte
}

// newCache returns a cache of up to budget bytes. Images beyond that are decoded on every read. All members read images
// in the same order. A cache of the most recent ones would have lost each image before it is needed again.
func newCache(size int, budget int64, miss loader) *cache {
	return &cache{miss: miss, size: size, room: int(budget / int64(size)), kept: make(map[int][]byte)}
}

// load returns image i from the cache or from miss. It is a loader.
func (c *cache) load(dst []byte, i int) ([]byte, error) {
	c.mu.RLock()
	kept, ok := c.kept[i]
	full := len(c.kept) >= c.room
	c.mu.RUnlock()
	switch {
	case ok:
		return kept, nil
	case full:
		return c.miss(dst, i)
	}
	kept, err := c.miss(make([]byte, c.size), i)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.kept) < c.room {
		c.kept[i] = kept
	}
	return kept, nil
}
