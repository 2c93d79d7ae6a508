// Package dataset reads labelled examples and hands them out one by one as the
// values a network takes.
//
// [Open] tells what an input is by its content, and takes
//
//   - folders of images, with or without class folders, as torchvision's
//     ImageFolder
//   - image files: JPEG, PNG, WebP, GIF, BMP, TIFF
//   - lists of image files, with or without labels: .txt, .csv, .tsv
//   - tars in the layout of WebDataset
//   - patterns for these: "val/*.jpg", "shard-{000..010}.tar"
//   - listings of all these, made once by [listing.List]: see package filelist. Nothing is
//     looked at again before it is read; then its size is compared
//   - arrays: .npy, .npz, IDX, see package numpy
//   - for a network that takes several tensors, one array for each: an .npz, or a folder
//     of .npy files, in which there may be pictures for one of them
//   - tables whose rows are examples, see package table
//
// Arrays may be uint8, which may be pictures, float32 or float64; labels may be any
// integer type. They
// are held in memory. Images are read and decoded when they are asked for. Package
// preprocess says how they become what the network takes. Pictures may be
// augmented as in training: see [Options]. [Order] says in which order a dataset is
// visited.
//
// # Invariants
//
// A Dataset has at least one example, every example has the same shape and at
// least one element, and Labels is of none or of Len examples, their classes 0 or more, −1 for a
// folder that cannot be read, which is an example whose Read says so. Read
// never yields a value that is not finite. Files are untrusted: a length is
// compared with what the file can hold before memory is taken for it, and bytes
// after an array are an error. All goroutines that read a dataset hold no more of
// files and of pictures being decoded than Options.Memory; an image that needs more
// has a [MemoryError].
//
// # Concurrency
//
// A Dataset does not change after Open; its methods may be called from any
// number of goroutines.
package dataset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/swagwrap/swagwrap/internal/augment"
	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/truth"
	"github.com/swagwrap/swagwrap/internal/unfinished"
)

// Dataset is a finite list of examples of one shape, with or without labels.
type Dataset interface {
	// Len is the number of examples.
	Len() int
	// Shape is the shape of one example without the batch dimension, for images
	// [3 224 224], or [224 224 3] if the network takes channels last. The caller
	// must not change it.
	Shape() []int64
	// Labels is what is known of every example: its class, or as [Options].Truth says.
	// The caller must not change it.
	Labels() truth.Truth
	// ClassNames holds the name of every class, or is nil when none are known.
	// The caller must not change it.
	ClassNames() []string
	// Name names example i in output rows: "test.npz[17]", "val/cat/1.jpg",
	// "shard-000.tar/0001.jpg".
	Name(i int) string
	// Read writes the preprocessed example i to dst. An error concerns this
	// example only, and names it; dst is then undefined. Read panics if i is out
	// of range or len(dst) is not the product of Shape.
	Read(dst []float32, i int) error
	// Sources lists what the data came from, images first.
	Sources() []Source
}

// Bytes is a Dataset whose examples are uint8 values until they are normalised:
// image files, and uint8 arrays. Read is Pixels, then Normalize. Pixels is dear
// for image files; its result takes a quarter of the memory of Read's and may be
// kept. It is what a network takes whose input is uint8.
type Bytes interface {
	Dataset
	// Pixels writes example i to dst, in the order of Shape: decoded, resized and
	// cropped, but not normalised. An error concerns this example only, and names
	// it; dst is then undefined. Pixels panics if i is out of range or len(dst) is
	// not the product of Shape.
	Pixels(dst []byte, i int) error
	// Normalize writes to dst what Read would, from what Pixels wrote. It panics
	// if the length of either is not the product of Shape.
	Normalize(dst []float32, src []byte)
}

// Source identifies an input by its content.
type Source struct {
	Path string `json:"path"` // as the caller gave it; the first of images given one by one
	// Kind is empty for a file that was hashed whole, or "listing": for images
	// SHA256 is that of a line "name\x00size\x00label\n" for each, in the order of
	// the rows, since a million files are not read for their hash.
	Kind   string `json:"kind,omitempty"`
	SHA256 string `json:"sha256"`          // in hex
	Files  int    `json:"files,omitempty"` // in a listing
}

// Options says how [Open] reads its inputs. The zero value reads everything it
// can find in them.
type Options struct {
	// Labels is the path of a file with the labels, of any array format that Open
	// reads. Empty means: an .npz file's own labels; for an IDX file named
	// *images-idx3* its sibling *labels-idx1*, if there is one; for images those
	// of class folders, lists and tars; else no labels.
	Labels string
	// Truth is what labels are taken for. Of labels and numbers a list has a column for
	// each, as its header names them, or all behind the path; a tar has them in the .cls
	// or as "label" of the .json, with spaces or commas between; class folders have none.
	Truth truth.Kind
	// ImagesKey and LabelsKey name arrays inside .npz files. Empty means: the
	// one array whose name says so ("images", "x", "x_test", "labels", "y" ...).
	ImagesKey, LabelsKey string
	// ClassNames numbers the classes that class folders, lists and tars name.
	// Nil means that names have their place when sorted.
	ClassNames []string
	// Unlabelled says that no labels are wanted: but for those of Labels none are
	// looked for, and what stands in their place may be anything.
	Unlabelled bool
	// Shape is the shape of one example that the network takes, with numbers
	// below 1 for dimensions that it leaves open. Nil means as stored. An array of
	// this shape, but for dimensions of size 1, is taken as it is. Other uint8
	// arrays, of N×H×W or N×H×W×C with 1, 3 or 4 channels, are pictures, and come
	// to it as image files do; other floats are an error.
	Shape []int64
	// Fields are the inputs of a network. Where there are several they take the place of Shape
	// and Uint8, and Open reads an .npz file with an array for each, by its name, or a folder
	// with a NAME.npy for each; see [Pictures] and [Fields]. A table of rows has columns for
	// them, unless the only one takes pictures.
	Fields []Field
	// Columns says which columns of a table feed which field, and Pad what fills up lists of
	// a field that are shorter than others. See [Length].
	Columns map[string][]string
	Pad     map[string]float64
	// Uint8 says that the network takes uint8: Read yields stored values, and
	// Preprocess must not normalise.
	Uint8 bool
	// Preprocess turns stored values into what the network takes.
	Preprocess preprocess.Settings
	// Augment changes pictures at random before they are normalised, as in
	// training, by their number among the examples: the same in every Read. It
	// takes the place of Preprocess's resizing and cropping. Its Normalize must
	// be that of Preprocess. The zero value is none. Arrays must be uint8
	// pictures then.
	Augment augment.Pipeline
	// AsSeen says that an array of floats holds what the network saw in training:
	// neither Preprocess nor Augment is applied to it. Image files and uint8
	// arrays are not affected.
	AsSeen bool
	// Memory is how many bytes image files may take while they are read and decoded,
	// all at once. 0 means [DefaultMemory].
	Memory int64
	// Parted says that a [Part] of the examples is used and nothing is to be known of the
	// others: of a listing made before no row is read but by [Load].
	Parted bool
	// Pipes allows the commands that a listing names in place of tars, if it is not nil,
	// and ends them.
	Pipes context.Context
	// Cache is how many bytes of memory may keep decoded and augmented pictures,
	// so that several passes over them decode each once. Arrays are in memory as
	// they are, and kept only if they are augmented. 0 keeps none.
	Cache int64
}

// preprocess returns Preprocess as it is to be applied.
func (o Options) preprocess() (preprocess.Settings, error) {
	p := o.Preprocess
	if !o.Uint8 {
		return p, nil
	}
	if p.Mean != nil || p.Std != nil || p.Scale != 0 && p.Scale != 1 {
		return p, fmt.Errorf("mean %v, std %v, scale %v, but the network takes uint8 values: want none of them", p.Mean, p.Std, p.Scale)
	}
	p.Scale = 1
	return p, nil
}

// Open opens the examples that the inputs name, one after the other. An array
// must be the only input; it is read into memory, uint8 as such.
func Open(inputs []string, opts Options) (Dataset, error) {
	d, err := openAny(inputs, opts)
	if err == nil {
		of(d).identify(opts)
	}
	return d, err
}

func openAny(inputs []string, opts Options) (Dataset, error) {
	if len(inputs) == 0 {
		return nil, errors.New("no inputs, want at least one")
	}
	if isTable(inputs, opts) {
		return openTable(inputs, opts)
	}
	if len(opts.Fields) > 1 {
		return openRecord(inputs, opts)
	}
	if len(inputs) == 1 {
		paths, err := listing.Expand(inputs[0])
		if err != nil {
			return nil, err
		}
		k, err := listing.KindOf(paths[0])
		if err != nil {
			return nil, err
		}
		switch {
		case k == listing.KindPipe:
			return nil, fmt.Errorf("%s: a command, want a listing of what it gives: swagwrap list", inputs[0])
		case len(paths) > 1:
		case k == listing.KindArray:
			return openArray(paths[0], opts)
		case k == listing.KindListing && opts.Parted:
			if d, err := openPart(inputs[0], paths[0], opts); d != nil || err != nil {
				return d, err
			}
		}
	}
	return openImages(inputs, opts)
}

// examples is what the datasets of this package have in common.
type examples struct {
	n          int
	shape      []int64
	elems      int     // product of shape
	wide       bool    // an element takes the place of two: see wide.go
	fields     []Field // nil for a network of one input
	said       any     // what Options say of a table, for the ID; or nil
	labels     truth.Truth
	classNames []string
	sources    []Source
	apart      bool // the last source has the labels
	id         string
	name       func(i int) string
	augmented  bool
	asSeen     bool
	cache      *cache        // of pixels; nil without one
	loaded     *listing.Part // of which a part is used; or nil
}

func (e *examples) Len() int             { return e.n }
func (e *examples) Shape() []int64       { return e.shape }
func (e *examples) Fields() []Field      { return e.fields }
func (e *examples) Labels() truth.Truth  { return e.labels }
func (e *examples) ClassNames() []string { return e.classNames }
func (e *examples) Sources() []Source    { return e.sources }
func (e *examples) Name(i int) string    { return e.name(i) }

func (e *examples) common() *examples { return e }

// setShape says the shape of an example.
func (e *examples) setShape(shape []int64) {
	e.shape, e.elems = shape, 1
	for _, d := range shape {
		e.elems *= int(d)
	}
}

// readLabels reads labels from a file of their own; the examples are those of the
// array beside, or "", in the file of.
func (e *examples) readLabels(path, beside, of string, opts Options) error {
	labels, sum, err := numpy.OpenTruth(path, opts.LabelsKey, beside, opts.Truth, e.n, of)
	e.apart = true
	e.labels, e.sources = labels, append(e.sources, Source{Path: path, SHA256: sum})
	return err
}

// checkLabels makes sure that every label has a name, if there are names.
func checkLabels(labels truth.Truth, names []string, path string) error {
	if i := slices.IndexFunc(labels.Classes, func(v int) bool { return v >= len(names) }); names != nil && i >= 0 {
		return fmt.Errorf("%s: label %d is %d, and there are %d class names", path, i, labels.Classes[i], len(names))
	}
	return nil
}

// check panics if a buffer has not the length of an example, or if there is no
// example i.
func (e *examples) check(length, i int) {
	if length != e.elems {
		panic("dataset: length is not the product of Shape")
	}
	if i < 0 || i >= e.n {
		panic("dataset: example out of range")
	}
}

// of returns what is known of a dataset that Open returned, and else nothing.
func of(d Dataset) *examples {
	if c, ok := d.(interface{ common() *examples }); ok {
		return c.common()
	}
	return &examples{}
}

// AsSeen says that the examples of a dataset that [Open] returned are floats that
// were taken as they are: see [Options].
func AsSeen(d Dataset) bool { return of(d).asSeen }

// Room returns how many images the cache of a dataset that [Open] returned keeps
// at most; ok is false if it has none.
func Room(d Dataset) (images int, ok bool) {
	c := of(d).cache
	if c == nil {
		return 0, false
	}
	return c.room, true
}

// Fatal says that an error of Read concerns more than its example: a command failed, as
// it may where a network does, there is no room for what it gives, or the example is
// about to be overwritten.
func Fatal(err error) bool {
	return errors.As(err, new(*listing.PipeError)) || errors.As(err, new(*unfinished.TempError)) || errors.As(err, new(*file.Conflict))
}

// values is a Dataset whose examples are floats from the beginning.
type values struct {
	*examples
	read func(dst []float32, i int) error
}

func (d *values) Read(dst []float32, i int) error {
	d.check(len(dst), i)
	return d.read(dst, i)
}

// pixels is a Bytes.
type pixels struct {
	*examples
	norm    preprocess.Normalizer
	load    loader
	buffers sync.Pool // of *[]byte, elems long
}

// A loader returns the bytes of example i: in dst, or in memory that must not be
// changed.
type loader func(dst []byte, i int) ([]byte, error)

func newPixels(e *examples, norm preprocess.Normalizer, load loader) *pixels {
	d := &pixels{examples: e, norm: norm, load: load}
	d.buffers.New = func() any { b := make([]byte, e.elems); return &b }
	return d
}

func (d *pixels) Read(dst []float32, i int) error {
	d.check(len(dst), i)
	b := d.buffers.Get().(*[]byte)
	defer d.buffers.Put(b)
	src, err := d.load(*b, i)
	if err == nil {
		d.norm.Bytes(dst, src)
	}
	return err
}

func (d *pixels) Pixels(dst []byte, i int) error {
	d.check(len(dst), i)
	src, err := d.load(dst, i)
	if err == nil && &src[0] != &dst[0] {
		copy(dst, src)
	}
	return err
}

func (d *pixels) Normalize(dst []float32, src []byte) {
	d.check(len(dst), 0)
	d.check(len(src), 0)
	d.norm.Bytes(dst, src)
}
