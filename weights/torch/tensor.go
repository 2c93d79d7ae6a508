package torch

import (
	"fmt"
	"iter"
	"slices"

	"github.com/swagwrap/swagwrap/weights"
)

// A Tensor is a part of a file, seen as an array.
type Tensor struct {
	Name string // name in the file
	// Short is the name without the parts that wrappers add, such as DataParallel's "module.": see
	// [StateDict.Prefix].
	Short string
	Shape []int64
	DType weights.DType

	// Storage identifies the elements in the file. Two tensors with equal Storage and shape are the same tensor under
	// two names.
	Storage Storage

	view   view
	record record
	joined *joined // parts in place of one view, or nil
}

// Storage is the place of a tensor's elements. It is comparable.
type Storage struct {
	Path    string
	Key     string // name of the storage within the file
	Offset  int64  // place of the first element in the storage, in elements
	Strides string // in elements, such as "[9 3 1]"
}

// Len returns the number of elements.
func (t *Tensor) Len() int64 {
	n, _ := weights.Elements(t.Shape)
	return n
}

// Tied reports whether both have the same elements of the same file.
func (t *Tensor) Tied(o *Tensor) bool {
	return t.Storage == o.Storage && t.DType == o.DType && slices.Equal(t.Shape, o.Shape)
}

// Piece returns the elements. They are the mapped file's bytes if these lie side by side in row-major order and
// little-endian, else an [weights.Array]. Nothing is copied before it is read.
func (t *Tensor) Piece() weights.Piece {
	if t.joined != nil || !t.view.contiguous() {
		return weights.Piece{DType: t.DType, Array: t}
	}
	size := t.DType.Size()
	return weights.Piece{DType: t.DType, Data: t.view.data[t.view.start*size:][: t.Len()*size : t.Len()*size]}
}

// Bytes returns all elements, little-endian in row-major order. They are the mapped file's bytes if these have that
// order, else a copy.
func (t *Tensor) Bytes() []byte { return t.Piece().Stretch(0, t.Len()) }

// Transposed returns the transpose of a matrix. It copies no elements.
func (t *Tensor) Transposed() *Tensor {
	c := *t
	if t.joined != nil {
		j := *t.joined
		j.transposed = !j.transposed
		c.joined, c.Shape = &j, []int64{t.Shape[1], t.Shape[0]}
		return &c
	}
	c.Shape, c.view.shape, c.view.strides = slices.Clone(t.Shape), slices.Clone(t.view.shape), slices.Clone(t.view.strides)
	for _, of := range [][]int64{c.Shape, c.view.shape, c.view.strides} {
		slices.Reverse(of)
	}
	c.Storage.Strides = fmt.Sprint(c.view.strides)
	return &c
}

// Orders yields tensors of the same shape that read the file's elements in other orders of the axes: another axis varies fastest.
// It yields nothing for a tensor that is not in row-major order, or that has fewer than two or more than five axes longer than 1.
func (t *Tensor) Orders() iter.Seq[*Tensor] {
	return func(yield func(*Tensor) bool) {
		var axes []int
		for i, n := range t.Shape {
			if n != 1 {
				axes = append(axes, i)
			}
		}
		if t.joined != nil || !t.view.contiguous() || len(axes) < 2 || len(axes) > 5 {
			return
		}
		for order := range permutations(axes) {
			if slices.IsSorted(order) {
				continue
			}
			c, stride := *t, int64(1)
			c.view.strides = slices.Clone(t.view.strides)
			for _, axis := range slices.Backward(order) {
				c.view.strides[axis] = stride
				stride *= t.Shape[axis]
			}
			c.Storage.Strides = fmt.Sprint(c.view.strides)
			if !yield(&c) {
				return
			}
		}
	}
}

// permutations yields all orders of s, in one slice.
func permutations(s []int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		s := slices.Clone(s)
		var from func(i int) bool
		from = func(i int) bool {
			if i == len(s) {
				return yield(s)
			}
			for j := i; j < len(s); j++ {
				s[i], s[j] = s[j], s[i]
				more := from(i + 1)
				s[i], s[j] = s[j], s[i]
				if !more {
					return false
				}
			}
			return true
		}
		from(0)
	}
}

// ReadBytes fills dst with the little-endian bytes of the elements, starting at element off in row-major order. It
// panics if dst is no whole number of elements, or the range is outside the tensor.
func (t *Tensor) ReadBytes(dst []byte, off int64) {
	n := int64(len(dst)) / t.DType.Size()
	if int64(len(dst))%t.DType.Size() != 0 || off < 0 || off > t.Len() || n > t.Len()-off {
		panic("torch: stretch outside the tensor")
	}
	if t.joined != nil {
		t.joined.read(dst, off)
		return
	}
	t.view.read(dst, off)
}

// A view describes how an array lies in a storage.
type view struct {
	data           []byte // of the storage
	size           int64  // bytes of an element
	start          int64  // first element
	shape, strides []int64
	swapped        bool // big-endian
}

// newView checks that every element lies within data. Arrays with strides of 0 repeat their elements and may be
// larger than the file. maxBytes bounds their size.
func newView(data []byte, size, start int64, shape, strides []int64, swapped bool, maxBytes int64) (view, error) {
	v := view{data, size, start, shape, strides, swapped && size > 1}
	n, err := weights.Elements(shape)
	if err != nil {
		return v, err
	}
	if len(strides) != len(shape) {
		return v, fmt.Errorf("%d strides for the shape %v", len(strides), shape)
	}
	held := int64(len(data)) / size
	if start < 0 || start > held {
		return v, fmt.Errorf("begins at element %d of a storage of %d", start, held)
	}
	if slices.ContainsFunc(strides, func(s int64) bool { return s < 0 }) {
		return v, fmt.Errorf("strides %v, want none below 0", strides)
	}
	if n == 0 {
		return v, nil
	}
	if n > maxBytes/size {
		return v, fmt.Errorf("shape %v, strides %v: %d elements over a storage of %d", shape, strides, n, held)
	}
	left := held - 1 - start // largest distance of the last element from the first
	for i, d := range shape {
		if d > 1 && strides[i] > left/(d-1) {
			left = -1
		}
		if left < 0 {
			return v, fmt.Errorf("shape %v, strides %v from element %d: beyond its storage of %d elements", shape, strides, start, held)
		}
		left -= (d - 1) * strides[i]
	}
	if left < 0 {
		return v, fmt.Errorf("begins at element %d of a storage of %d", start, held)
	}
	return v, nil
}

// run returns the number of elements that lie side by side. It also returns the number of leading dimensions that
// lead from one such run to the next.
func (v view) run() (n int64, outer int) {
	n = 1
	for outer = len(v.shape); outer > 0; outer-- {
		if d := v.shape[outer-1]; d != 1 && v.strides[outer-1] != n {
			break
		}
		n *= v.shape[outer-1]
	}
	return n, outer
}

func (v view) contiguous() bool {
	if v.swapped {
		return false
	}
	if slices.Contains(v.shape, 0) {
		return true
	}
	_, outer := v.run()
	return outer == 0
}

// read fills dst with elements, starting at element off, run by run.
func (v view) read(dst []byte, off int64) {
	if len(dst) == 0 {
		return
	}
	all := dst
	run, outer := v.run()
	shape, strides := v.shape[:outer], v.strides[:outer]
	inRun, rest := off%run, off/run
	at, pos := make([]int64, outer), v.start
	for i := outer - 1; i >= 0; i-- {
		at[i], rest = rest%shape[i], rest/shape[i]
		pos += at[i] * strides[i]
	}
	for {
		n := copy(dst, v.data[(pos+inRun)*v.size:(pos+run)*v.size])
		if dst = dst[n:]; len(dst) == 0 {
			break
		}
		inRun = 0
		for i := outer - 1; i >= 0; i-- { // move to the next run
			at[i]++
			pos += strides[i]
			if at[i] < shape[i] {
				break
			}
			pos -= at[i] * strides[i]
			at[i] = 0
		}
	}
	if v.swapped {
		for e := range slices.Chunk(all, int(v.size)) {
			slices.Reverse(e)
		}
	}
}
