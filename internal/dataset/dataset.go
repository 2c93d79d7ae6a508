// Package dataset reads labelled examples, and returns them one by one as the values that a network takes.
//
// [Open] recognises an input by its content. It accepts:
//
//   - folders of images, with or without class folders, as in torchvision's ImageFolder
//   - image files, in the formats of package picture
//   - lists of image files, with or without labels: .txt, .csv, .tsv
//   - tars in the layout of WebDataset
//   - patterns for these: "val/*.jpg", "shard-{000..010}.tar"
//   - listings of all these, made once by [listing.List]; see package filelist
//   - arrays: .npy, .npz, IDX; see package numpy
//   - for a network with several inputs, an .npz file with an array for each, or a folder
//     of .npy files, where images may replace arrays
//   - tables whose rows are examples; see package table
//
// A listed image is not opened before it is read. Then its size is compared with the listing.
//
// Arrays may be uint8, float32 or float64, and uint8 arrays may be images. Labels may have any integer type. Arrays are
// held in memory. Images are read and decoded on demand. Package preprocess turns them into the values that the network
// takes. Images may be augmented as in training; see [Options]. [Order] sets the order of visits to a dataset.
//
// # Invariants
//
// A Dataset has at least one example. All examples have the same shape, with at least one element. Labels is empty, or
// has Len examples. Classes are 0 or more, or −1 for a folder that cannot be read. Such a folder is an example, and its
// Read returns the error. Read never yields a value that is not finite.
//
// Files are untrusted. A length is compared with the size of the file before memory is allocated for it. Bytes after an
// array are an error. All goroutines that read a dataset together hold at most Options.Memory bytes of files and of
// images that are being decoded. An image that needs more gives a [listing.MemoryError].
//
// # Concurrency
//
// A Dataset does not change after Open, except by [Load] and [LoadRows]. Any number of goroutines may call its methods.
package dataset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/swagwrap/swagwrap/internal/augment"
	"github.com/swagwrap/swagwrap/internal/dataset/fileorder"
	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/dataset/table"
	"github.com/swagwrap/swagwrap/internal/dataset/text"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/tempfile"
)

// Dataset is a finite list of examples of one shape, with or without labels.
type Dataset interface {
	// Len returns the number of examples.
	Len() int
	// Shape returns the shape of one example without the batch dimension. For images it is [3 224 224], or [224 224 3]
	// if the network takes channels last. The caller must not change it.
	Shape() []int64
	// Labels returns the true values of all examples: classes, or the kind that [Options].Target selects. The caller
	// must not change them.
	Labels() target.Target
	// ClassNames returns the name of every class, or nil if the names are unknown. The caller must not change them.
	ClassNames() []string
	// Name returns the name of example i in output rows: "test.npz[17]", "val/cat/1.jpg", "shard-000.tar/0001.jpg".
	Name(i int) string
	// Read writes the preprocessed example i to dst. An error concerns only this example and names it; dst is then
	// undefined. Read panics if i is out of range or if dst does not have the size that [SizeOf] returns.
	Read(dst Values, i int) error
	// Sources lists the inputs of the data, images first.
	Sources() []Source
}

// Bytes is a Dataset whose examples are uint8 values before they are normalised: image files, and uint8 arrays. Read is
// Pixels followed by Normalize. Pixels is expensive for image files. Its result takes a quarter of the memory of
// Read's, and may be kept. A network with a uint8 input takes this result.
type Bytes interface {
	Dataset
	// Pixels writes example i to dst, in the order of Shape. It is decoded, resized and cropped, but not normalised. An
	// error concerns only this example and names it; dst is then undefined. Pixels panics if i is out of range or if
	// len(dst) is not the product of Shape.
	Pixels(dst []byte, i int) error
	// Normalize turns the result of Pixels into the result of Read, and stores it in dst. It panics if the length of
	// dst or src is not the product of Shape.
	Normalize(dst []float32, src []byte)
}

// Source identifies an input by its content.
type Source struct {
	Path string `json:"path"` // as the caller gave it; the first of images given one by one
	// Kind is empty for a file whose whole content was hashed. It is "listing" for images: SHA256 is then the hash of a
	// line "name\x00size\x00label\n" for each image, in the order of the rows. Reading a million files for their hash
	// would take too long.
	Kind   string `json:"kind,omitempty"`
	SHA256 string `json:"sha256"`          // in hex
	Files  int    `json:"files,omitempty"` // number of files in a listing
}

// Options says how [Open] reads its inputs. The zero value reads everything it
// can find in them.
type Options struct {
	// Labels is the path of a file with the labels, in any array format that Open reads. If it is empty, Open takes the
	// labels of an .npz file from that file. For an IDX file named *images-idx3* it takes the sibling *labels-idx1*, if
	// there is one. For images it takes them from class folders, lists and tars. Otherwise there are no labels.
	Labels string
	// Target is the kind of the labels. For the kinds labels and numbers, a list has a column for each label. Its header
	// names them. Without such names, they are all columns after the path. A tar has them in the .cls file or as
	// "label" in the .json file, separated by spaces or commas. Class folders cannot have them.
	Target target.Kind
	// Positions says how labels are stored if examples have several positions, such as pixels; nil otherwise. Pictures
	// then have a folder of masks as Labels; see package masks.
	Positions *target.Positions
	// Tiling, if its Size is not 0, cuts image files into tiles, which are then the examples: see [Tiles].
	Tiling Tiling
	// Original keeps the sizes of image files and their masks from before they are resized: see [OriginalSize].
	Original bool
	// Known has the names that the model card and earlier files of the same command give. If it has no classes, classes have
	// the order of their sorted names. LabelsAs says whether labels such as 10 are names of classes, or numbers.
	Known    names.Known
	LabelsAs names.As
	// Classes is the number of classes of the network, or 0 if nobody knows it. Binary says that class 1 is the positive one
	// of two.
	Classes int
	Binary  bool
	// Unlabelled says that no labels are wanted. Then only labels from the file Labels are read, and other labels may
	// be invalid.
	Unlabelled bool
	// Shape is the shape of one example that the network takes. Numbers below 1 stand for open dimensions. nil means
	// the stored shape. An array of this shape, ignoring dimensions of size 1, is taken unchanged. Other uint8 arrays,
	// of N×H×W or N×H×W×C with 1, 3 or 4 channels, are images, and are preprocessed like image files. Other float
	// arrays are an error.
	Shape []int64
	// Fields are the inputs of a network. If there are several, they replace Shape and Uint8. Open then reads an .npz
	// file with an array for each, by its name, or a folder with a NAME.npy for each. See [Pictures] and [Fields]. A
	// table of rows has columns for the fields, unless the only field takes images.
	Fields []Field
	// Named says which columns of a list or a table have the paths and the labels.
	Named listing.Columns
	// Order is that of files which no list names. It matters where rows without names, such as those of an array, belong to
	// them; see package fileorder.
	Order fileorder.Order
	// Columns says which columns of a table belong to which field. Pad is the value that fills up the shorter lists of
	// a field; see [Length].
	Columns map[string][]string
	Pad     map[string]float64
	// Uint8 says that the network takes uint8. Then Read yields stored values, and Preprocess must not normalise.
	Uint8 bool
	// Preprocess turns stored values into the values that the network takes.
	Preprocess preprocess.Settings
	// Augment changes images at random before they are normalised, as in training. The change depends on the index of
	// the example, so every Read gives the same image. Augment replaces the resizing and cropping of Preprocess. Its
	// Normalize must be equal to that of Preprocess. With Augment, arrays must be uint8 images. The zero value changes
	// nothing.
	Augment augment.Pipeline
	// Arrays says whether arrays hold values that Preprocess must still normalise, or the values that the network saw
	// in training. It does not affect image files.
	Arrays Arrays
	// Memory limits the bytes that all image files together may take while they are read and decoded:
	// [memory.Budget.Decoding]. 0 means that of a nil Budget.
	Memory int64
	// Text, if not nil, says how a text is cut into examples: an array with one row of token numbers, or a text file.
	// Other arrays are examples as usual.
	Text *text.Cutting
	// Parted says that only a [Part] of the examples is used. Then the rows of an existing listing are read only by
	// [Load].
	Parted bool
	// Pipes, if not nil, allows a listing to name commands instead of tars. The end of the context ends the commands.
	Pipes context.Context
	// Sideways, if not nil, counts pictures with an orientation that nobody chose to apply or to ignore.
	Sideways *Sideways
	// Cache is the memory for keeping decoded and augmented images, so that several passes decode each image once.
	// Arrays are in memory anyway, and are cached only if they are augmented. nil turns the cache off.
	Cache *memory.Pool
}

// preprocess returns the settings to apply. They are Preprocess, with scale 1 for uint8 networks.
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

// Open opens the examples of all inputs, one after the other. An array must be the only input. It is read into memory,
// and uint8 stays uint8.
func Open(inputs []string, opts Options) (Dataset, error) {
	if opts.Positions != nil {
		own := *opts.Positions
		own.White = &target.White{}
		opts.Positions = &own
	}
	d, err := openAny(inputs, opts)
	if err == nil {
		examplesIn(d).identify(opts)
		examplesIn(d).lookAtLabels(allLabels(d), opts)
		examplesIn(d).noteBare(d, opts.Target)
		if _, isText := CutOf(d); !isText {
			examplesIn(d).padding = findPadding(opts.Fields, opts)
		}
	}
	return d, err
}

func openAny(inputs []string, opts Options) (Dataset, error) {
	if len(inputs) == 0 {
		return nil, errors.New("no inputs, want at least one")
	}
	if opts.Text != nil {
		if d, err := openText(inputs, opts); !errors.Is(err, errExamples) {
			return d, err
		}
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
		k, array, err := listing.Open(paths[0])
		if err != nil {
			return nil, err
		}
		if array != nil && len(paths) > 1 {
			array.Close()
		}
		switch {
		case k == listing.KindPipe:
			return nil, fmt.Errorf("%s: a command, want a listing of what it gives: %s", inputs[0], setting.Line(setting.List.String()))
		case len(paths) > 1:
		case k == listing.KindArray:
			return openArray(paths[0], array, opts)
		case k == listing.KindListing && opts.Parted && !table.Is(opts.Labels): // a table of labels needs all names
			if d, err := openPart(inputs[0], paths[0], opts); d != nil || err != nil {
				return d, err
			}
		}
	}
	return openImages(inputs, opts)
}

// examples holds the common fields of the datasets in this package.
type examples struct {
	n             int
	shape         []int64
	elems         int     // product of shape
	size          Size    // of an example
	fields        []Field // nil for a network with one input
	chosenOptions any     // the Options for a table, for the ID; or nil
	labels        target.Target
	classNames    []string
	sources       []Source
	labelled      bool // the last source has the labels
	id            string
	name          func(i int) string
	augmented     bool
	asSeen        bool // the values reach the network unchanged
	// for each field: it comes from image files, or from uint8 arrays that are normalised
	decoded     []bool
	cache       *cache                                // of pixels; nil without one
	original    func(i int) (h, w int, err error)     // see [OriginalSize]; nil if nobody asked
	loaded      *listing.Partial                      // the listing whose rows are partly loaded; or nil
	pictures    *preprocess.Settings                  // resolved, of pixels that are pictures; nil for others
	norm        preprocess.Normalizer                 // of pixels
	file        func(i int) (*listing.Example, error) // the image file of example i; nil if there are none
	fileSize    func(i int) int64                     // its size in bytes, or 0; nil if nobody knows it
	stored      func(i int) []byte                    // example i of an array as stored, or nil
	bytes       bool                                  // stored examples are uint8
	storedShape []int64                               // of stored
	doubt       func() *fileorder.Doubt               // where the order of files is not known; nil if they are no files
	sideways    *rowsSeen                             // counts those of image files; nil without a count
	padding     *padding                              // what fills up examples with several positions; nil if nobody knows
	told        told                                  // what names became numbers, and what was left out
}

func (e *examples) Len() int              { return e.n }
func (e *examples) Shape() []int64        { return e.shape }
func (e *examples) Fields() []Field       { return e.fields }
func (e *examples) Labels() target.Target { return e.labels }
func (e *examples) ClassNames() []string  { return e.classNames }
func (e *examples) Name(i int) string     { return e.name(i) }

// Sources returns what the examples were read from. A file that gets its name later has that name.
func (e *examples) Sources() []Source {
	sources := slices.Clone(e.sources)
	for i, s := range sources {
		sources[i].Path = file.Named(s.Path)
	}
	return sources
}

func (e *examples) common() *examples { return e }

// setShape sets the shape of an example of floats.
func (e *examples) setShape(shape []int64) {
	e.shape, e.elems = shape, product(shape)
	e.size = Size{Floats: e.elems}
}

// readLabels reads labels from a separate file. The examples belong to the file of. beside is the key of their array in
// it, or "".
func (e *examples) readLabels(path, beside, of string, opts Options) error {
	if table.Is(path) {
		return e.readLabelTable(path, opts)
	}
	if err := e.byPlace(path); err != nil {
		return err
	}
	labels, sum, err := numpy.OpenTargets(path, beside, opts.Target, opts.Positions, e.n, of)
	e.labelled = true
	e.labels, e.sources = labels, append(e.sources, Source{Path: path, SHA256: sum})
	return err
}

// checkLabels fails if a label has no name. It accepts all labels if there are no names.
func checkLabels(labels target.Target, names []string, path string) error {
	if i := slices.IndexFunc(labels.Classes, func(v int) bool { return v >= len(names) }); names != nil && i >= 0 {
		return fmt.Errorf("%s: label %d is %d, and there are %d class names", path, i, labels.Classes[i], len(names))
	}
	return nil
}

// check panics if have is not the size of an example, or if there is no example i.
func (e *examples) check(have Size, i int) {
	if have != e.size {
		panic("dataset: the values have not the size of an example")
	}
	if i < 0 || i >= e.n {
		panic("dataset: example out of range")
	}
}

// examplesIn returns the examples of a dataset that Open returned, or empty ones for other datasets.
func examplesIn(d Dataset) *examples {
	if c, ok := d.(interface{ common() *examples }); ok {
		return c.common()
	}
	return &examples{}
}

// AsSeen reports whether the values of a dataset that [Open] returned reach the network unchanged. With several inputs
// it reports this for those that take images.
func AsSeen(d Dataset) bool { return examplesIn(d).asSeen }

// Decoded reports whether a field of a dataset that [Open] returned comes from image files or normalised uint8 arrays.
// field is 0 if there is only one input.
func Decoded(d Dataset, field int) bool {
	e := examplesIn(d)
	return field < len(e.decoded) && e.decoded[field]
}

// Room returns the largest number of images in the cache of a dataset that [Open] returned. Other caches of the same
// pool may take some of this room. ok is false if the dataset has no cache.
func Room(d Dataset) (images int, ok bool) {
	c := examplesIn(d).cache
	if c == nil {
		return 0, false
	}
	return c.room(), true
}

// Fatal reports whether an error of Read concerns more than its example. The causes are a failed command, a lack of
// space for the output of a command, or an example that is about to be overwritten. A command may fail if the network
// is down.
func Fatal(err error) bool {
	return errors.As(err, new(*listing.PipeError)) || errors.As(err, new(*tempfile.TempError)) || errors.As(err, new(*file.Conflict))
}

// UnreadableError is the error for an example that cannot be read, where others can.
type UnreadableError struct{ Err error }

func (e *UnreadableError) Error() string { return e.Err.Error() }
func (e *UnreadableError) Unwrap() error { return e.Err }

// Unreadable marks an error of Read. It returns a fatal one unchanged.
func Unreadable(err error) error {
	if err == nil || Fatal(err) {
		return err
	}
	return &UnreadableError{err}
}

// values is a Dataset whose examples are stored as floats or as integers.
type values struct {
	*examples
	read func(dst Values, i int) error
}

func (d *values) Read(dst Values, i int) error {
	d.check(dst.size(), i)
	return d.read(dst, i)
}

// pixels implements [Bytes].
type pixels struct {
	*examples
	load    loader
	buffers sync.Pool // of *[]byte, elems long
}

// A loader returns the bytes of example i, in dst or in memory that the caller must not change.
type loader func(dst []byte, i int) ([]byte, error)

func newPixels(e *examples, norm preprocess.Normalizer, load loader) *pixels {
	d := &pixels{examples: e, load: load}
	e.norm, e.decoded = norm, []bool{!e.asSeen}
	d.buffers.New = func() any { b := make([]byte, e.elems); return &b }
	return d
}

func (d *pixels) Read(dst Values, i int) error {
	d.check(dst.size(), i)
	b := d.buffers.Get().(*[]byte)
	defer d.buffers.Put(b)
	src, err := d.load(*b, i)
	if err == nil {
		d.norm.Bytes(dst.Floats, src)
	}
	return err
}

func (d *pixels) Pixels(dst []byte, i int) error {
	d.check(Size{Floats: len(dst)}, i)
	src, err := d.load(dst, i)
	if err == nil && &src[0] != &dst[0] {
		copy(dst, src)
	}
	return err
}

func (d *pixels) Normalize(dst []float32, src []byte) {
	d.check(Size{Floats: len(dst)}, 0)
	d.check(Size{Floats: len(src)}, 0)
	d.norm.Bytes(dst, src)
}
