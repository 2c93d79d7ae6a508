package dataset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// counted is a Bytes that counts what it decodes.
type counted struct {
	Bytes
	decoded atomic.Int64
	broken  int // the image that cannot be decoded, or -1
}

func digits(t *testing.T) Bytes {
	t.Helper()
	d, err := Open([]string{"../../fixtures/mnist/train.npz"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d.(Bytes)
}

func (d *counted) Pixels(dst []byte, i int) error {
	d.decoded.Add(1)
	if i == d.broken {
		return fmt.Errorf("%s: cannot be decoded", d.Name(i))
	}
	return d.Bytes.Pixels(dst, i)
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
		d := &counted{Bytes: array, broken: -1}
		c := newCache(d, tc.budget)
		if room, ok := Room(c); !ok || room != int(tc.budget/size) {
			t.Errorf("%d bytes: room for %d images, want %d", tc.budget, room, tc.budget/size)
		}
		got, want := make([]float32, size), make([]float32, size)
		pixels, wantPixels := make([]byte, size), make([]byte, size)
		for range passes {
			for i := range images {
				if err := errors.Join(c.Read(got, i), array.Read(want, i)); err != nil {
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
	c := newCache(&counted{Bytes: digits(t), broken: 2}, 1<<20)
	for range 2 {
		if err := c.Read(make([]float32, 28*28), 2); err == nil || !strings.Contains(err.Error(), "train.npz[2]: cannot be decoded") {
			t.Errorf("error %v", err)
		}
	}
	if len(c.kept) != 0 {
		t.Errorf("%d images kept", len(c.kept))
	}
}
