package dataset

import "sync"

// cache keeps images once they are decoded and augmented, as bytes: every member
// goes over the same ones.
type cache struct {
	miss loader
	size int // bytes of an image
	room int // images that it keeps at most

	mu   sync.RWMutex
	kept map[int][]byte
}

// newCache returns a cache that takes up to budget bytes. Images beyond that are
// decoded whenever they are asked for: members go over them in the same order, and
// a cache of the latest would have lost each by the time it is due.
func newCache(size int, budget int64, miss loader) *cache {
	return &cache{miss: miss, size: size, room: int(budget / int64(size)), kept: make(map[int][]byte)}
}

// load is a loader.
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
