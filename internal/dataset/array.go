package dataset

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/picture"
	"github.com/swagwrap/swagwrap/internal/preprocess"
)

// openArray opens the array in the file at path, and its labels.
func openArray(path string, opts Options) (Dataset, error) {
	f, err := numpy.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	key, err := f.Pick(opts.ImagesKey, numpy.Images, "")
	if err != nil {
		return nil, err
	}
	x, err := f.Read(key, numpy.Images)
	if err != nil {
		return nil, err
	}
	d, err := newArray(path, x, opts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	e := of(d)
	e.sources = []Source{{Path: path, SHA256: f.SHA256}}
	if opts.Unlabelled && opts.Labels == "" {
		return d, nil
	}
	if err := e.findLabels(f, key, opts); err != nil {
		return nil, err
	}
	return d, checkLabels(e.labels, opts.ClassNames, path)
}

// findLabels finds the labels of an array: in a file of their own, in the same
// .npz, or nowhere.
func (e *examples) findLabels(f *numpy.File, imagesKey string, opts Options) error {
	path := opts.Labels
	if path == "" && f.Keys == nil {
		path = labelsSibling(f.Path)
	}
	if path != "" {
		return e.readLabels(path, opts.LabelsKey, imagesKey, f.Path)
	}
	key, err := f.Pick(opts.LabelsKey, numpy.Labels, imagesKey)
	if err == nil && key != "" {
		e.labels, err = f.ReadLabels(key, e.n, f.Path)
	}
	return err
}

// labelsSibling returns the label file that belongs to an MNIST image file, or
// "" if the name is not such or there is none. Downloads are found under both
// spellings, and one of the two files may have been unpacked.
func labelsSibling(path string) string {
	dir, base := filepath.Split(path)
	name := strings.NewReplacer("images-idx3", "labels-idx1", "images.idx3", "labels.idx1").Replace(base)
	if name == base {
		return ""
	}
	plain := strings.TrimSuffix(name, ".gz")
	for _, s := range []string{name, plain, plain + ".gz"} {
		if _, err := os.Stat(dir + s); err == nil {
			return dir + s
		}
	}
	return ""
}

// newArray returns the dataset of an array in memory.
func newArray(path string, x numpy.Array, opts Options) (Dataset, error) {
	isUint8 := x.Type.Kind == 'u'
	asSeen := opts.AsSeen && !isUint8
	augment := !opts.Augment.None() && !asSeen
	switch {
	case augment && !isUint8:
		return nil, fmt.Errorf("augmentation of %s values, which are what the network sees: want uint8 pictures or image files", x.Type.Name)
	case len(x.Shape) < 2:
		return nil, fmt.Errorf("images of shape %d, want the examples along the first of at least 2 dimensions", x.Shape)
	case opts.Uint8 && !isUint8:
		return nil, fmt.Errorf("%s values, and the network takes uint8", x.Type.Name)
	}
	e := &examples{n: x.Shape[0], classNames: opts.ClassNames, asSeen: asSeen,
		name: func(i int) string { return fmt.Sprintf("%s[%d]", filepath.Base(path), i) }}
	var shape []int64
	for _, v := range x.Shape[1:] {
		shape = append(shape, int64(v))
	}
	e.setShape(shape)
	size := e.elems * x.Type.Size
	example := func(i int) []byte { return x.Data[i*size : (i+1)*size] } // as stored
	if augment {
		return augmentArray(e, example, opts)
	}

	switch {
	case len(opts.Shape) > 0 && slices.Min(opts.Shape) > 0:
		if !slices.Equal(squeeze(shape), squeeze(opts.Shape)) {
			hint := ""
			if n := len(shape); n == 3 && slices.Equal(opts.Shape, []int64{shape[2], shape[0], shape[1]}) {
				hint = ": channels come last; save it again as np.ascontiguousarray(a.transpose(0, 3, 1, 2))"
			}
			return nil, fmt.Errorf("examples of shape %d, want %d%s", shape, opts.Shape, hint)
		}
		e.shape = slices.Clone(opts.Shape)
	case isUint8 && len(shape) == 2:
		e.shape = []int64{1, shape[0], shape[1]}
	}
	p, err := opts.preprocess()
	if err != nil {
		return nil, err
	}
	if asSeen {
		p = preprocess.Settings{}
	} else if err := opts.checkNormalize(p); err != nil {
		return nil, err
	}
	norm, err := p.Normalizer(e.shape, isUint8)
	if err != nil {
		return nil, err
	}
	if isUint8 {
		return newPixels(e, norm, func(_ []byte, i int) ([]byte, error) { return example(i), nil }), nil
	}
	return &values{e, func(dst []float32, i int) error {
		if bad := norm.Floats(dst, example(i), x.Type.Size); bad >= 0 {
			return fmt.Errorf("%s[%d]: element %d is %v, want finite float32 values", path, i, unravel(bad, e.shape), dst[bad])
		}
		return nil
	}}, nil
}

// squeeze drops the dimensions of size 1; two shapes that are equal then lie in
// memory alike.
func squeeze(shape []int64) []int64 {
	return slices.DeleteFunc(slices.Clone(shape), func(d int64) bool { return d == 1 })
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

// augmentArray returns the dataset of stored uint8 pictures that are changed at
// random. They may have another height and width than the network takes.
func augmentArray(e *examples, example func(i int) []byte, opts Options) (Dataset, error) {
	stored := slices.Clone(e.shape)
	switch len(stored) {
	case 2:
		stored = slices.Insert(stored, 0, 1)
	case 3:
	default:
		return nil, fmt.Errorf("augmentation of examples of shape %d, want pictures: 3 dimensions, or height and width", e.shape)
	}
	p, err := opts.preprocess()
	if err != nil {
		return nil, err
	}
	p.Image = preprocess.Transform{} // is for files
	shape := slices.Clone(opts.Shape)
	if len(shape) == 0 || slices.Max(shape) < 1 { // only what a pixel has: the size is that of the pictures
		shape = slices.Clone(stored)
		if p.LayoutOf(stored) == "nhwc" {
			shape[0], shape[1] = -1, -1
		} else {
			shape[1], shape[2] = -1, -1
		}
	}
	h, w, ok := sides(p, stored, shape)
	if !ok {
		return nil, fmt.Errorf("augmentation of examples of shape %d, and the network takes %d: want pictures in that layout", e.shape, shape)
	}
	return opts.pictures(e, p, shape, h, w, func(p preprocess.Settings, i int, use func(picture.Picture) error) error {
		return use(p.Picture(example(i), h, w))
	})
}

// sides returns height and width of stored examples of three dimensions, for a
// network that takes shape. Grey ones lie in memory alike wherever the dimension
// of size 1 is.
func sides(p preprocess.Settings, stored, shape []int64) (h, w int, ok bool) {
	if len(shape) != 3 {
		return 0, 0, false
	}
	last := p.LayoutOf(shape) == "nhwc"
	channels := shape[0]
	if last {
		channels = shape[2]
	}
	a, b, c := int(stored[0]), int(stored[1]), int(stored[2])
	switch grey := channels == 1 || p.Channels == "grey"; {
	case grey && a == 1, !last && a == 3 && !grey:
		return b, c, true
	case grey && c == 1, last && c == 3 && !grey:
		return a, b, true
	}
	return 0, 0, false
}
