package dataset

import (
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"slices"
)

// arrays is a Dataset whose examples lie in one array in memory.
type arrays struct {
	path    string
	n       int
	shape   []int64 // of one example
	elems   int     // product of shape
	x       array
	norm    normalizer
	asSeen  bool // neither scaled nor normalised
	labels  []int
	names   []string
	sources []Source
}

// byteArrays is arrays of uint8.
type byteArrays struct{ *arrays }

func newArrays(path string, x array, opts Options) (*arrays, error) {
	if len(x.shape) < 2 {
		return nil, fmt.Errorf("images of shape %d, want the examples along the first of at least 2 dimensions", x.shape)
	}
	isUint8 := x.dtype.kind == 'u'
	if opts.Uint8 && !isUint8 {
		return nil, fmt.Errorf("%s values, and the network takes uint8", x.dtype.name)
	}
	d := &arrays{path: path, n: x.shape[0], elems: 1, x: x, names: opts.ClassNames}
	for _, v := range x.shape[1:] {
		d.shape = append(d.shape, int64(v))
		d.elems *= v
	}
	switch {
	case len(opts.Shape) > 0 && slices.Min(opts.Shape) > 0:
		if !slices.Equal(squeeze(d.shape), squeeze(opts.Shape)) {
			hint := ""
			if n := len(d.shape); n == 3 && slices.Equal(opts.Shape, []int64{d.shape[2], d.shape[0], d.shape[1]}) {
				hint = ": channels come last; save it again as np.ascontiguousarray(a.transpose(0, 3, 1, 2))"
			}
			return nil, fmt.Errorf("examples of shape %d, want %d%s", d.shape, opts.Shape, hint)
		}
		d.shape = slices.Clone(opts.Shape)
	case isUint8 && len(d.shape) == 2:
		d.shape = []int64{1, d.shape[0], d.shape[1]}
	}
	p, err := opts.preprocess()
	if err != nil {
		return nil, err
	}
	if d.asSeen = opts.AsSeen && !isUint8; d.asSeen {
		p = Preprocess{}
	} else if err := opts.checkNormalize(p); err != nil {
		return nil, err
	}
	d.norm, err = p.normalizer(d.shape, isUint8)
	return d, err
}

// squeeze drops the dimensions of size 1; two shapes that are equal then lie in
// memory alike.
func squeeze(shape []int64) []int64 {
	return slices.DeleteFunc(slices.Clone(shape), func(d int64) bool { return d == 1 })
}

func (d *arrays) Len() int             { return d.n }
func (d *arrays) Shape() []int64       { return d.shape }
func (d *arrays) Labels() []int        { return d.labels }
func (d *arrays) ClassNames() []string { return d.names }
func (d *arrays) Sources() []Source    { return d.sources }

func (d *arrays) Name(i int) string { return fmt.Sprintf("%s[%d]", filepath.Base(d.path), i) }

func (d *arrays) Read(dst []float32, i int) error {
	checkLen(len(dst), d.elems)
	src := d.example(i)
	if d.norm.table != nil {
		d.norm.applyTable(dst, src)
		return nil
	}
	if bad := d.norm.applyFloat(dst, src, d.x.dtype.size); bad >= 0 {
		return fmt.Errorf("%s[%d]: element %d is %v, want finite float32 values", d.path, i, unravel(bad, d.shape), dst[bad])
	}
	return nil
}

// example returns the stored bytes of example i.
func (d *arrays) example(i int) []byte {
	if i < 0 || i >= d.n {
		panic("dataset: example out of range")
	}
	bytes := d.elems * d.x.dtype.size
	return d.x.data[i*bytes : (i+1)*bytes]
}

func checkLen(n, want int) {
	if n != want {
		panic("dataset: length is not the product of Shape")
	}
}

func (d byteArrays) Pixels(dst []byte, i int) error {
	checkLen(len(dst), d.elems)
	copy(dst, d.example(i))
	return nil
}

func (d byteArrays) Normalize(dst []float32, src []byte) {
	checkLen(len(dst), d.elems)
	checkLen(len(src), d.elems)
	d.norm.applyTable(dst, src)
}

// unravel turns a flat index into one per dimension.
func unravel(flat int, shape []int64) []int64 {
	at := make([]int64, len(shape))
	for k := len(shape) - 1; k >= 0; k-- {
		at[k] = int64(flat) % shape[k]
		flat /= int(shape[k])
	}
	return at
}

// decodeLabels checks and widens the labels of n images.
func decodeLabels(y array, n int, imagesPath string) ([]int, error) {
	if s := y.shape; len(s) != 1 && !(len(s) == 2 && s[1] == 1) {
		return nil, fmt.Errorf("labels of shape %d, want [%d] or [%d 1] (class numbers, not one-hot)", s, n, n)
	}
	if y.shape[0] != n {
		return nil, fmt.Errorf("%d labels for %d images in %s", y.shape[0], n, imagesPath)
	}
	labels := make([]int, n)
	for i := range labels {
		// Little endian, so widening is padding; int8 to int32 carry the sign over.
		var b [8]byte
		copy(b[:], y.data[i*y.dtype.size:(i+1)*y.dtype.size])
		v := binary.LittleEndian.Uint64(b[:])
		if y.dtype.kind == 'i' {
			shift := 64 - 8*y.dtype.size
			if s := int64(v<<shift) >> shift; s < 0 {
				return nil, fmt.Errorf("label %d is %d, want 0 or more", i, s)
			}
		}
		if v > math.MaxInt {
			return nil, fmt.Errorf("label %d is %d, want a class number", i, v)
		}
		labels[i] = int(v)
	}
	return labels, nil
}
