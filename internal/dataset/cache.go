package dataset

import "sync"

// cache keeps images once they are decoded and augmented, as bytes: every member
// goes over the same ones.
type cache struct {
	Bytes
	size int // bytes of an image
	room int // images that it keeps at most

	mu   sync.RWMutex
	kept map[int][]byte
}

// newCache returns a cache of d that takes up to budget bytes. Images beyond that
// are decoded whenever they are asked for: members go over them in the same
// order, and a cache of the latest would have lost each by the time it is due.
func newCache(d Bytes, budget int64) *cache {
	size := 1
	for _, s := range d.Shape() {
		size *= int(s)
	}
	return &cache{Bytes: d, size: size, room: int(budget / int64(size)), kept: make(map[int][]byte)}
}

func (c *cache) Pixels(dst []byte, i int) error {
	checkLen(len(dst), c.size)
	pixels, err := c.pixels(i)
	copy(dst, pixels)
	return err
}

func (c *cache) Read(dst []float32, i int) error {
	checkLen(len(dst), c.size)
	pixels, err := c.pixels(i)
	if err != nil {
		return err
	}
	c.Normalize(dst, pixels)
	return nil
}

// pixels returns image i, which must not be changed.
func (c *cache) pixels(i int) ([]byte, error) {
	c.mu.RLock()
	pixels, ok := c.kept[i]
	c.mu.RUnlock()
	if ok {
		return pixels, nil
	}
	pixels = make([]byte, c.size)
	if err := c.Bytes.Pixels(pixels, i); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.kept) < c.room {
		c.kept[i] = pixels
	}
	return pixels, nil
}
