package weights

import (
	"fmt"
	"sort"
)

// Vector is a flat vector of weights that is read in parts. Implementations are safe for concurrent use.
type Vector interface {
	// Len returns the number of elements.
	Len() int64
	// ReadAt fills dst with elements [off, off+len(dst)). If they cannot be read, it returns an error that names file
	// and tensor. It panics if the range is outside the vector.
	ReadAt(dst []float32, off int64) error
}

// Slice is a [Vector] in memory.
type Slice []float32

// Len returns the number of elements.
func (s Slice) Len() int64 { return int64(len(s)) }

// ReadAt copies elements [off, off+len(dst)).
func (s Slice) ReadAt(dst []float32, off int64) error {
	copy(dst, s[off:len(s):len(s)][:len(dst)]) // never beyond len(s)
	return nil
}

// Func is a [Vector] whose elements a function computes.
type Func struct {
	N    int64
	Read func(dst []float32, off int64) error
}

// Len returns the number of elements.
func (f Func) Len() int64 { return f.N }

// ReadAt computes elements [off, off+len(dst)).
func (f Func) ReadAt(dst []float32, off int64) error { return f.Read(dst, off) }

// Concat is a [Vector] of pieces laid end to end. Each is read from its stored bytes, which are usually part of a
// mapped file.
type Concat struct {
	pieces []Piece
	starts []int64 // element index of each piece, then the length
}

// NewConcat returns the vector of the pieces in their order.
func NewConcat(pieces []Piece) (*Concat, error) {
	c := &Concat{pieces: pieces, starts: make([]int64, 1, len(pieces)+1)}
	for i, p := range pieces {
		if !p.DType.IsFloat() || int64(len(p.Data))%p.DType.Size() != 0 {
			return nil, fmt.Errorf("piece %d: %d bytes of %v", i, len(p.Data), p.DType)
		}
		c.starts = append(c.starts, c.starts[i]+p.Len())
	}
	return c, nil
}

// Len returns the number of elements.
func (c *Concat) Len() int64 { return c.starts[len(c.starts)-1] }

// ReadAt decodes elements [off, off+len(dst)).
func (c *Concat) ReadAt(dst []float32, off int64) error {
	if off < 0 || off+int64(len(dst)) > c.Len() {
		panic("weights: stretch outside the vector")
	}
	for i := c.find(off); len(dst) > 0; i++ {
		p, skip := c.pieces[i], off-c.starts[i]
		n := min(int64(len(dst)), c.starts[i+1]-off)
		p.float32s(dst[:n], skip)
		dst, off = dst[n:], off+n
	}
	return nil
}

// Stored returns elements [off, off+n) as they are stored, if one piece holds them all, side by side.
func (c *Concat) Stored(off, n int64) (Piece, bool) {
	if off < 0 || n <= 0 || off+n > c.Len() {
		return Piece{}, false
	}
	i := c.find(off)
	p := c.pieces[i]
	if off+n > c.starts[i+1] || p.Array != nil {
		return Piece{}, false
	}
	return Piece{DType: p.DType, Data: p.Stretch(off-c.starts[i], n)}, true
}

// find returns the piece that holds element off.
func (c *Concat) find(off int64) int {
	return sort.Search(len(c.pieces), func(i int) bool { return c.starts[i+1] > off })
}
