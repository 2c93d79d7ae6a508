package statefile

import (
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/weights"
)

// A joined array consists of parts, each a box of its elements. Several processes have written them.
type joined struct {
	shape []int64
	parts []part
}

// A part is a box of an array: a tensor, and the place of its first element.
type part struct {
	at []int64
	*Tensor
}

// maxParts bounds the parts of an array. Training on more processes than that has not been heard of.
const maxParts = 1 << 14

// inside reports whether a box lies in a shape.
func inside(at, extent, shape []int64) bool {
	if len(at) != len(shape) || len(extent) != len(shape) {
		return false
	}
	for i, d := range shape {
		if at[i] < 0 || extent[i] < 0 || at[i] > d || extent[i] > d-at[i] {
			return false
		}
	}
	return true
}

// tensor returns the array of n elements as a tensor. It fails unless each element is in exactly one part.
func (j *joined) tensor(name string, n int64, b *budget) (*Tensor, error) {
	var held int64
	if len(j.parts) > maxParts {
		return nil, fmt.Errorf("%d parts, want at most %d", len(j.parts), maxParts)
	}
	if len(j.parts) == 0 || len(j.shape) == 0 && len(j.parts) > 1 {
		return nil, fmt.Errorf("%d parts for the shape %v", len(j.parts), j.shape)
	}
	slices.SortFunc(j.parts, func(a, b part) int { return slices.Compare(a.at, b.at) })
	for i, p := range j.parts {
		held += p.Len()
		if p.DType != j.parts[0].DType {
			return nil, fmt.Errorf("parts of %v and of %v", j.parts[0].DType, p.DType)
		}
		for _, o := range j.parts[i+1:] {
			if o.at[0] >= p.at[0]+p.Shape[0] {
				break // sorted by the first place
			}
			if err := b.spend(1); err != nil { // no memory, but time
				return nil, err
			}
			if p.overlaps(o) {
				return nil, fmt.Errorf("the parts at %v and %v share elements", p.at, o.at)
			}
		}
	}
	if held != n {
		return nil, fmt.Errorf("its parts have %d elements, want %d for the shape %v", held, n, j.shape)
	}
	first := *j.parts[0].Tensor
	if len(j.parts) > 1 {
		first = Tensor{Piece: weights.Piece{DType: first.DType, Array: j}, damaged: j.damaged}
	}
	first.Name, first.Short, first.Shape = name, name, j.shape
	return &first, nil
}

// overlaps reports whether two boxes have an element in common.
func (p part) overlaps(o part) bool {
	for i := range p.at {
		if p.at[i] >= o.at[i]+o.Shape[i] || o.at[i] >= p.at[i]+p.Shape[i] {
			return false
		}
	}
	return true
}

// Len returns the number of elements.
func (j *joined) Len() int64 {
	n, _ := weights.Elements(j.shape)
	return n
}

// ReadBytes fills dst with elements, starting at element off in row-major order.
func (j *joined) ReadBytes(dst []byte, off int64) {
	size := j.parts[0].DType.Size()
	k := 0 // the part that held the last element
	for len(dst) > 0 {
		at := place(off, j.shape)
		for !j.parts[k].holds(at) {
			k = (k + 1) % len(j.parts)
		}
		p := j.parts[k]
		run := min(p.run(at, j.shape), int64(len(dst))/size)
		copy(dst, p.Stretch(p.index(at), run))
		dst, off = dst[run*size:], off+run
	}
}

// place returns the indices of an element by its number in row-major order.
func place(off int64, shape []int64) []int64 {
	at := make([]int64, len(shape))
	for i := len(shape) - 1; i >= 0; i-- {
		at[i], off = off%shape[i], off/shape[i]
	}
	return at
}

// holds reports whether the part has an element.
func (p part) holds(at []int64) bool {
	for i, a := range at {
		if a < p.at[i] || a >= p.at[i]+p.Shape[i] {
			return false
		}
	}
	return true
}

// run returns how many elements, from one on, follow each other both in the part and in the whole array.
func (p part) run(at, shape []int64) int64 {
	if len(shape) > 0 && slices.Equal(p.Shape[1:], shape[1:]) {
		return p.Len() - p.index(at) // whole rows
	}
	last := len(at) - 1
	return p.at[last] + p.Shape[last] - at[last]
}

// index returns the number of an element within the part.
func (p part) index(at []int64) (n int64) {
	for i, a := range at {
		n = n*p.Shape[i] + a - p.at[i]
	}
	return n
}

// damaged reports whether a part differs from what was written.
func (j *joined) damaged() bool {
	return slices.ContainsFunc(j.parts, func(p part) bool { return p.damaged != nil && p.damaged() })
}
