package statefile

import (
	"fmt"
	"iter"
	"slices"

	"github.com/swagwrap/swagwrap/weights"
)

// A Tensor is an array of a file. Its Piece reads ranges of the elements in row-major order, and copies nothing before.
type Tensor struct {
	Name string // name in the file
	// Short is the name without the parts that wrappers add, such as DataParallel's "module.": see
	// [StateDict.Prefix].
	Short string
	Shape []int64
	weights.Piece

	// Storage identifies the elements in the file. Two tensors with equal Storage and shape are the same tensor under
	// two names.
	Storage Storage

	damaged func() bool // compares the bytes with their checksum; nil if the file has none
}

// Storage is the place of a tensor's elements. It is comparable.
type Storage struct {
	Path    string
	Key     string // name of the storage within the file
	Offset  int64  // place of the first element in the storage, in elements
	Strides string // in elements, such as "[9 3 1]"
}

// Tied reports whether both have the same elements of the same file.
func (t *Tensor) Tied(o *Tensor) bool {
	return t.Storage == o.Storage && t.DType == o.DType && slices.Equal(t.Shape, o.Shape)
}

// Bytes returns all elements, little-endian in row-major order. They are the mapped file's bytes if these have that
// order, else a copy.
func (t *Tensor) Bytes() []byte { return t.Stretch(0, t.Len()) }

// Transposed returns the transpose of a matrix. It copies no elements.
func (t *Tensor) Transposed() *Tensor {
	c := *t
	c.Shape = []int64{t.Shape[1], t.Shape[0]}
	v, ok := t.Array.(view)
	switch {
	case ok:
		v.shape, v.strides = c.Shape, []int64{v.strides[1], v.strides[0]}
	case t.Array == nil:
		v = view{data: t.Data, size: t.DType.Size(), shape: c.Shape, strides: []int64{1, t.Shape[1]}}
	default:
		c.Array, c.Storage.Strides = transpose{t.Array, t.DType.Size(), t.Shape[0], t.Shape[1]}, "transposed"
		return &c
	}
	c.Piece, c.Storage.Strides = v.piece(t.DType), fmt.Sprint(v.strides)
	return &c
}

// A transpose is that of a matrix whose elements are read one by one.
type transpose struct {
	weights.Array
	size, rows, columns int64
}

func (t transpose) ReadBytes(dst []byte, off int64) {
	for ; len(dst) > 0; dst, off = dst[t.size:], off+1 {
		t.Array.ReadBytes(dst[:t.size], off%t.rows*t.columns+off/t.rows)
	}
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
		if t.Array != nil || len(axes) < 2 || len(axes) > 5 {
			return
		}
		for order := range permutations(axes) {
			if slices.IsSorted(order) {
				continue
			}
			c, stride := *t, int64(1)
			v := view{data: t.Data, size: t.DType.Size(), shape: t.Shape, strides: contiguous(t.Shape)}
			for _, axis := range slices.Backward(order) {
				v.strides[axis] = stride
				stride *= t.Shape[axis]
			}
			c.Piece, c.Storage.Strides = v.piece(t.DType), fmt.Sprint(v.strides)
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

// piece returns the elements: the bytes themselves if they lie side by side, and else the view.
func (v view) piece(d weights.DType) weights.Piece {
	if !v.contiguous() {
		return weights.Piece{DType: d, Array: v}
	}
	from, to := v.start*v.size, (v.start+v.Len())*v.size
	return weights.Piece{DType: d, Data: v.data[from:to:to]}
}

// Len returns the number of elements.
func (v view) Len() int64 {
	n, _ := weights.Elements(v.shape)
	return n
}

// ReadBytes fills dst with elements, starting at element off, run by run.
func (v view) ReadBytes(dst []byte, off int64) {
	if n := int64(len(dst)) / v.size; int64(len(dst))%v.size != 0 || off < 0 || off > v.Len() || n > v.Len()-off {
		panic("statefile: stretch outside the tensor")
	}
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
