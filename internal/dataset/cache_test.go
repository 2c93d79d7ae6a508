package dataset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/swagwrap/swagwrap/internal/memory"
)

// counted counts what is loaded of an array.
type counted struct {
	array   *pixels
	decoded atomic.Int64
	broken  int // the image that cannot be decoded, or -1
}

func digits(t *testing.T) *pixels {
	t.Helper()
	d, err := Open([]string{"../../fixtures/mnist/train.npz"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d.(*pixels)
}

func (d *counted) load(dst []byte, i int) ([]byte, error) {
	d.decoded.Add(1)
	if i == d.broken {
		return nil, fmt.Errorf("%s: cannot be decoded", d.array.Name(i))
	}
	return d.array.load(dst, i)
}

// cached returns the array behind a cache.
func (d *counted) cached(budget int64) *pixels {
	e := *d.array.examples
	e.cache = newCache(e.elems, memory.NewPool(budget), d.load)
	return newPixels(&e, d.array.norm, e.cache.load)
}

// A cache yields what its dataset does, decodes each image that fits once, and
// the others every time.
func TestCache(t *testing.T) {
	const passes, images, size = 3, 10, 28 * 28
	array := digits(t)
	for _, tc := range []struct {
		budget  int64
		decoded int64
	}{
		{images * size, images},
		{4*size + size/2, 4 + passes*(images-4)},
		{0, passes * images},
	} {
		d := &counted{array: array, broken: -1}
		c := d.cached(tc.budget)
		if room, ok := Room(c); !ok || room != int(tc.budget/size) {
			t.Errorf("%d bytes: room for %d images, want %d", tc.budget, room, tc.budget/size)
		}
		got, want := make([]float32, size), make([]float32, size)
		pixels, wantPixels := make([]byte, size), make([]byte, size)
		for range passes {
			for i := range images {
				if err := errors.Join(c.Read(Floats(got), i), array.Read(Floats(want), i)); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got, want) {
					t.Fatalf("%d bytes: image %d differs", tc.budget, i)
				}
			}
		}
		if n := d.decoded.Load(); n != tc.decoded {
			t.Errorf("%d bytes: decoded %d images, want %d", tc.budget, n, tc.decoded)
		}
		if err := errors.Join(c.Pixels(pixels, 3), array.Pixels(wantPixels, 3)); err != nil || !slices.Equal(pixels, wantPixels) {
			t.Errorf("%d bytes: pixels differ: %v", tc.budget, err)
		}
	}
}

// An image that cannot be decoded is an error that names it, every time, and is
// never kept.
func TestCacheBroken(t *testing.T) {
	c := (&counted{array: digits(t), broken: 2}).cached(1 << 20)
	for range 2 {
		if err := c.Read(Floats(make([]float32, 28*28)), 2); err == nil || !strings.Contains(err.Error(), "train.npz[2]: cannot be decoded") {
			t.Errorf("error %v", err)
		}
	}
	if len(c.cache.kept) != 0 {
		t.Errorf("%d images kept", len(c.cache.kept))
	}
}

// Several caches of one pool keep no more images together than the pool has room for, and yield the same images.
func TestCachesShareAPool(t *testing.T) {
	const images, size = 10, 28 * 28
	array := digits(t)
	pool := memory.NewPool(15*size + size/2)
	var caches []*pixels
	for range 3 {
		e := *array.examples
		e.cache = newCache(e.elems, pool, array.load)
		caches = append(caches, newPixels(&e, array.norm, e.cache.load))
	}
	got, want := make([]byte, size), make([]byte, size)
	kept := 0
	for range 2 {
		for _, c := range caches {
			for i := range images {
				if err := errors.Join(c.Pixels(got, i), array.Pixels(want, i)); err != nil || !slices.Equal(got, want) {
					t.Fatalf("image %d differs: %v", i, err)
				}
			}
		}
	}
	for i, c := range caches {
		kept += len(c.cache.kept)
		if room, ok := Room(c); !ok || room != len(c.cache.kept) {
			t.Errorf("cache %d keeps %d images, and has room for %d", i, len(c.cache.kept), room)
		}
	}
	if kept != 15 || len(caches[0].cache.kept) != images {
		t.Errorf("%d images kept, want 15, and those of the first cache first", kept)
	}
}
