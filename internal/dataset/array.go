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

// openArray opens the array in a file, and its labels. It closes the file.
func openArray(path string, in *os.File, opts Options) (Dataset, error) {
	f, err := numpy.Read(path, in)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	role, whole := numpy.Images, opts.whole()
	if whole != nil {
		role.OK, role.Want = numpy.Values.OK, numpy.Values.Want
	}
	key := ""
	if whole != nil && slices.Contains(f.Keys, whole.Name) {
		key = whole.Name
	} else if key, err = f.Pick(role, ""); err != nil {
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
	e := examplesIn(d)
	e.sources = []Source{{Path: path, SHA256: f.SHA256}}
	labels := ""
	if !opts.Unlabelled || opts.Labels != "" {
		if labels, err = e.findLabels(f, key, opts); err != nil {
			return nil, err
		}
	}
	if left := slices.DeleteFunc(slices.Clone(f.Keys), func(k string) bool { return k == key || k == labels }); len(left) > 0 {
		e.told.note(fmt.Sprintf("left out: arrays that are neither the examples nor their labels, %d in all: %s", len(left),
			numpy.Quote(left)))
	}
	return d, checkLabels(e.labels, opts.Known.Classes, path)
}

// findLabels finds the labels of an array in a file of their own or in the same .npz file, and returns their name in the
// latter. An array may have none.
func (e *examples) findLabels(f *numpy.File, imagesKey string, opts Options) (key string, err error) {
	path := opts.Labels
	if path == "" && f.Keys == nil {
		path = labelsSibling(f.Path)
	}
	if path != "" {
		return "", e.readLabels(path, imagesKey, f.Path, opts)
	}
	key, err = f.Pick(numpy.Labels, imagesKey)
	if err == nil && key != "" {
		e.labels, err = f.ReadTargets(key, opts.Target, opts.Positions, e.n, f.Path)
	}
	return key, err
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
	if len(o.Fields) == 1 && (o.Fields[0].Integer() || o.Fields[0].Rows > 0) && o.Fields[0].Type != "uint8" {
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
	d := &record{
		parts:    []Dataset{p},
		examples: &examples{fields: slices.Clone(opts.Fields), classNames: opts.Known.Classes, asSeen: true, name: rowName(path)},
	}
	return d, d.add(0, path, examplesIn(p), opts.Fields)
}

// rowName names the rows of the file at path.
func rowName(path string) func(i int) string {
	base := filepath.Base(filepath.Clean(path))
	return func(i int) string { return fmt.Sprintf("%s[%d]", base, i) }
}

func newArray(path string, x numpy.Array, opts Options) (Dataset, error) {
	isUint8 := x.Type.Kind == 'u'
	switch {
	case len(x.Shape) < 2:
		return nil, fmt.Errorf("an array of shape %d, want the examples along the first of at least 2 dimensions", x.Shape)
	case opts.Uint8 && !isUint8:
		return nil, fmt.Errorf("%s values, and the network takes uint8", x.Type.Name)
	}
	shape := x.Example()
	_, fits := opts.accept(shape)
	stored, err := opts.arrays(x, shape)
	if err != nil && (isUint8 || fits) {
		return nil, err
	}
	e := &examples{n: x.Shape[0], classNames: opts.Known.Classes, asSeen: stored == Seen, name: rowName(path)}
	e.setShape(shape)
	e.told.note(opts.perhapsPixels(x, shape))
	augment := !opts.Augment.None() && !e.asSeen
	if augment && !isUint8 {
		return nil, fmt.Errorf("augmentation of %s values: want uint8 pictures or image files, or what the network saw", x.Type.Name)
	}
	size := e.elems * x.Type.Size
	example := func(i int) []byte { return x.Data[i*size : (i+1)*size] } // as stored
	e.stored, e.bytes, e.storedShape = example, isUint8, shape
	if isUint8 {
		return uint8Array(e, example, augment, opts)
	}
	norm, err := opts.normalizer(e, false)
	if err != nil {
		return nil, err
	}
	return &values{e, func(dst Values, i int) error {
		if bad := norm.Floats(dst.Floats, example(i), x.Type.Size); bad >= 0 {
			return fmt.Errorf("%s[%d]: element %d is %v, want finite float32 values", path, i, unravel(bad, e.shape), dst.Floats[bad])
		}
		return nil
	}}, nil
}

// uint8Array returns the dataset of stored uint8 values: images, or the network's own layout.
func uint8Array(e *examples, example func(i int) []byte, augment bool, opts Options) (Dataset, error) {
	shape := e.shape
	if len(shape) == 2 {
		if _, ok := opts.accept(plane(shape)); ok {
			e.shape = plane(shape)
		}
	}
	// An array whose shape already fits the network may also hold images in the usual layout.
	isDoubtful := len(opts.Shape) == 3 && slices.Max(opts.Shape) > 0 && len(shape) == 3 && shape[0] == 3 && shape[2] == 3
	if _, fits := opts.accept(e.shape); augment || isDoubtful || !fits {
		return arrayPictures(e, example, opts)
	}
	norm, err := opts.normalizer(e, true)
	if err != nil {
		return nil, err
	}
	return newPixels(e, norm, func(_ []byte, i int) ([]byte, error) { return example(i), nil }), nil
}

// normalizer sets the shape of the examples to the network's. It returns the change of their values.
func (o Options) normalizer(e *examples, isUint8 bool) (norm preprocess.Normalizer, err error) {
	shape, ok := o.accept(e.shape)
	if !ok {
		return norm, mismatch(e.shape, o.Shape)
	}
	e.shape = slices.Clone(shape)
	p, err := o.preprocess()
	if err != nil {
		return norm, err
	}
	if e.asSeen {
		p = preprocess.Settings{Scale: 1}
	} else if err := o.checkNormalize(p); err != nil {
		return norm, err
	} else if of, err := p.Resolve(e.shape); err == nil {
		e.pictures = &of
	}
	return p.Normalizer(e.shape, isUint8)
}
