package ensemble

import (
	"sync"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/weights"
)

// Cache keeps images once they are decoded, as bytes: every member's
// batch-norm pass goes over the same ones.
type Cache struct {
	dataset.Bytes
	size int64 // bytes of an image
	room int   // images that it keeps at most

	mu   sync.RWMutex
	kept map[int][]byte
}

// NewCache returns a cache of d that takes up to budget bytes. Images beyond
// that are decoded whenever they are asked for: members go over them in the same
// order, and a cache of the latest would have lost each by the time it is due.
func NewCache(d dataset.Bytes, budget int64) (*Cache, error) {
	size, err := weights.Elements(d.Shape())
	if err != nil {
		return nil, err
	}
	return &Cache{Bytes: d, size: size, room: int(budget / size), kept: make(map[int][]byte)}, nil
}

// Room returns how many images the cache can keep.
func (c *Cache) Room() int { return c.room }

// Pixels is that of the dataset.
func (c *Cache) Pixels(dst []byte, i int) error {
	pixels, err := c.pixels(i)
	copy(dst, pixels)
	return err
}

// Read is that of the dataset.
func (c *Cache) Read(dst []float32, i int) error {
	pixels, err := c.pixels(i)
	if err != nil {
		return err
	}
	c.Normalize(dst, pixels)
	return nil
}

// pixels returns image i, which must not be changed.
func (c *Cache) pixels(i int) ([]byte, error) {
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
