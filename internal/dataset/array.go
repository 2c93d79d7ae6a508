package dataset

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/preprocess"
)

// openArray opens the array in the file at path, and its labels.
func openArray(path string, opts Options) (Dataset, error) {
	f, err := numpy.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	role, whole := numpy.Images, opts.whole()
	if whole != nil {
		if role.OK, role.Want = numpy.Values.OK, numpy.Values.Want; opts.ImagesKey == "" && slices.Contains(f.Keys, whole.Name) {
			opts.ImagesKey = whole.Name
		}
	}
	key, err := f.Pick(opts.ImagesKey, role, "")
	if err != nil {
		return nil, err
	}
	x, err := f.Read(key, role)
	if err != nil {
		return nil, err
	}
	var d Dataset
	if whole != nil && (x.Type.Kind != 'f' || whole.Rows > 0) {
		d, err = newWhole(path, x, *whole, opts)
	} else {
		d, err = newArray(path, x, opts)
	}
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

// findLabels finds the labels of an array in a file of their own or in the same .npz file. An array may have none.
func (e *examples) findLabels(f *numpy.File, imagesKey string, opts Options) error {
	path := opts.Labels
	if path == "" && f.Keys == nil {
		path = labelsSibling(f.Path)
	}
	if path != "" {
		return e.readLabels(path, imagesKey, f.Path, opts)
	}
	key, err := f.Pick(opts.LabelsKey, numpy.Labels, imagesKey)
	if err == nil && key != "" {
		e.labels, err = f.ReadTruth(key, opts.Truth, e.n, f.Path)
	}
	return err
}

// labelsSibling returns the label file that belongs to an MNIST image file. It returns "" if the name is not of that
// kind, or if there is no such file. Downloads occur with two spellings of the name, and one of the two files may have
// been unpacked.
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

// whole returns the network's input if it is the only one and takes integers that are not pixels, such as token ids.
// Otherwise it returns nil.
func (o Options) whole() *Field {
	if len(o.Fields) == 1 && (o.Fields[0].Whole() || o.Fields[0].Rows > 0) && o.Fields[0].Type != "uint8" {
		return &o.Fields[0]
	}
	return nil
}

// newWhole returns the dataset of an array for such an input.
func newWhole(path string, x numpy.Array, f Field, opts Options) (Dataset, error) {
	if len(x.Shape) == 0 {
		return nil, errors.New("a single number, want the examples along the first dimension")
	}
	p, err := f.values(x, path)
	if err != nil {
		return nil, err
	}
	d := &record{parts: []Dataset{p}, examples: &examples{fields: slices.Clone(opts.Fields), classNames: opts.ClassNames, asSeen: true,
		name: func(i int) string { return fmt.Sprintf("%s[%d]", filepath.Base(path), i) }}}
	return d, d.add(0, path, of(p), opts.Fields)
}

// newArray returns the dataset of an array in memory.
func newArray(path string, x numpy.Array, opts Options) (Dataset, error) {
	isUint8 := x.Type.Kind == 'u'
	switch {
	case len(x.Shape) < 2:
		return nil, fmt.Errorf("images of shape %d, want the examples along the first of at least 2 dimensions", x.Shape)
	case opts.Uint8 && !isUint8:
		return nil, fmt.Errorf("%s values, and the network takes uint8", x.Type.Name)
	}
	e := &examples{n: x.Shape[0], classNames: opts.ClassNames,
		name: func(i int) string { return fmt.Sprintf("%s[%d]", filepath.Base(path), i) }}
	var shape []int64
	for _, v := range x.Shape[1:] {
		shape = append(shape, int64(v))
	}
	e.setShape(shape)
	stored, err := opts.arrays(x, shape)
	if err != nil && (isUint8 || opts.fits(shape)) {
		return nil, err
	}
	e.asSeen = stored == Seen
	augment := !opts.Augment.None() && !e.asSeen
	if augment && !isUint8 {
		return nil, fmt.Errorf("augmentation of %s values: want uint8 pictures or image files, or what the network saw", x.Type.Name)
	}
	size := e.elems * x.Type.Size
	example := func(i int) []byte { return x.Data[i*size : (i+1)*size] } // as stored
	if isUint8 && len(shape) == 2 && opts.fits(plane(shape)) {
		e.shape = plane(shape)
	}
	// An array whose shape already fits the network may also hold images in the usual layout.
	doubtful := len(opts.Shape) == 3 && slices.Max(opts.Shape) > 0 && len(shape) == 3 && shape[0] == 3 && shape[2] == 3
	if isUint8 && (augment || doubtful || !opts.fits(e.shape)) {
		return arrayPictures(e, example, opts)
	}
	if !opts.fits(e.shape) {
		return nil, mismatch(shape, opts.Shape)
	}
	if len(opts.Shape) > 0 && slices.Min(opts.Shape) > 0 {
		e.shape = slices.Clone(opts.Shape)
	}
	p, err := opts.preprocess()
	if err != nil {
		return nil, err
	}
	if e.asSeen {
		p = preprocess.Settings{Scale: 1}
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
	return &values{e, func(dst Values, i int) error {
		if bad := norm.Floats(dst.Floats, example(i), x.Type.Size); bad >= 0 {
			return fmt.Errorf("%s[%d]: element %d is %v, want finite float32 values", path, i, unravel(bad, e.shape), dst.Floats[bad])
		}
		return nil
	}}, nil
}
