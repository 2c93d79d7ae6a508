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
//   - .npy, versions 1 to 3 of https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
//   - .npz, a zip of .npy arrays, stored or deflated
//   - IDX, the format of MNIST, http://yann.lecun.com/exdb/mnist/
//   - .npy and IDX files under gzip
//
// Arrays may be uint8, float32 or float64; labels may be any integer type. They
// are held in memory. Images are read and decoded when they are asked for.
// Images are decoded, resized and cropped as Pillow and torchvision do it, and
// values normalised as timm, torchvision and Hugging Face do it, in the same
// arithmetic: see [Preprocess]. Pictures may be augmented as in training: see
// [Options]. [Order] says in which order a dataset is visited.
//
// # Invariants
//
// A Dataset has at least one example, every example has the same shape and at
// least one element, and Labels is nil or holds Len values of 0 or more. Read
// never yields a value that is not finite. Files are untrusted: a length is
// compared with what the file can hold before memory is taken for it, and bytes
// after an array are an error. All goroutines of a program together decode at
// most 100 million pixels at once; a larger image is decoded alone.
//
// # Concurrency
//
// A Dataset does not change after Open; its methods may be called from any
// number of goroutines.
package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/swagwrap/swagwrap/internal/augment"
)

// Dataset is a finite list of examples of one shape, with or without labels.
type Dataset interface {
	// Len is the number of examples.
	Len() int
	// Shape is the shape of one example without the batch dimension, for images
	// [3 224 224], or [224 224 3] if the network takes channels last. The caller
	// must not change it.
	Shape() []int64
	// Labels holds the class of every example, or is nil when the data has no
	// labels. The caller must not change it.
	Labels() []int
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
	// ImagesKey and LabelsKey name arrays inside .npz files. Empty means: the
	// one array whose name says so ("images", "x", "x_test", "labels", "y" ...).
	ImagesKey, LabelsKey string
	// ClassNames numbers the classes that class folders, lists and tars name.
	// Nil means that names have their place when sorted.
	ClassNames []string
	// Shape is the shape of one example that the network takes, with numbers
	// below 1 for dimensions that it leaves open. That of an array may differ in
	// dimensions of size 1 only. Nil, and for arrays any open dimension, means as
	// stored, where uint8 arrays of shape (N, H, W) are grey images: [1 H W].
	Shape []int64
	// Uint8 says that the network takes uint8: Read yields stored values, and
	// Preprocess must not normalise.
	Uint8 bool
	// Preprocess turns stored values into what the network takes.
	Preprocess Preprocess
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
	// Cache is how many bytes of memory may keep decoded and augmented pictures,
	// so that several passes over them decode each once. Arrays are in memory as
	// they are, and kept only if they are augmented. 0 keeps none.
	Cache int64
}

// preprocess returns Preprocess as it is to be applied.
func (o Options) preprocess() (Preprocess, error) {
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
	d, err := open(inputs, opts)
	if err != nil {
		return nil, err
	}
	return opts.wrap(d), nil
}

// open is Open without what lies around examples.
func open(inputs []string, opts Options) (Dataset, error) {
	if len(inputs) == 0 {
		return nil, errors.New("no inputs, want at least one")
	}
	if len(inputs) == 1 {
		paths, err := expand(inputs[0])
		if err != nil {
			return nil, err
		}
		k, err := kindOf(paths[0])
		if err != nil {
			return nil, err
		}
		if k == kindArray && len(paths) == 1 {
			return openArrays(paths[0], opts)
		}
	}
	return openImages(inputs, opts)
}

// openArrays opens the array in the file at path, and its labels.
func openArrays(path string, opts Options) (Dataset, error) {
	images, err := openContainer(path)
	if err != nil {
		return nil, err
	}
	defer images.close()

	imagesKey, err := images.pick(opts.ImagesKey, imageRole, "")
	if err != nil {
		return nil, err
	}
	x, err := images.load(imagesKey, imageRole)
	if err != nil {
		return nil, err
	}
	float := x.dtype.kind != 'u'
	var d *arrays
	var p *pictures
	if opts.Augment.None() || float && opts.AsSeen {
		d, err = newArrays(path, x, opts)
	} else if p, err = openPictures(path, x, opts); err == nil {
		d = p.arrays
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	d.sources = []Source{{Path: path, SHA256: images.sha256}}
	if err := d.openLabels(images, imagesKey, opts); err != nil {
		return nil, err
	}
	if err := checkLabels(d.labels, opts.ClassNames, path); err != nil {
		return nil, err
	}
	switch {
	case p != nil:
		return p, nil
	case !float:
		return byteArrays{d}, nil
	}
	return d, nil
}

// openLabels finds the labels of an array: in a file of their own, in the same
// .npz, or nowhere.
func (d *arrays) openLabels(images *container, imagesKey string, opts Options) error {
	path := opts.Labels
	if path == "" && images.zip == nil {
		path = labelsSibling(d.path)
	}
	if path != "" {
		labels, src, err := openLabels(path, opts.LabelsKey, imagesKey, d.n, d.path)
		if err == nil {
			d.labels, d.sources = labels, append(d.sources, src)
		}
		return err
	}
	key, err := images.pick(opts.LabelsKey, labelRole, imagesKey)
	if err != nil || key == "" {
		return err
	}
	d.labels, err = images.labels(key, d.n, d.path)
	return err
}

// openLabels reads the labels of n images, which may be an array with a key,
// from a file of their own.
func openLabels(path, key, imagesKey string, n int, imagesPath string) ([]int, Source, error) {
	c, err := openContainer(path)
	if err != nil {
		return nil, Source{}, err
	}
	defer c.close()
	if key, err = c.pick(key, labelRole, imagesKey); err != nil {
		return nil, Source{}, err
	}
	if key == "" && c.zip != nil {
		return nil, Source{}, fmt.Errorf("%s: no labels among %s, want a labels key", path, c.list())
	}
	labels, err := c.labels(key, n, imagesPath)
	return labels, Source{Path: path, SHA256: c.sha256}, err
}

// labels loads the array with the labels of n images.
func (c *container) labels(key string, n int, imagesPath string) ([]int, error) {
	y, err := c.load(key, labelRole)
	if err != nil {
		return nil, err
	}
	labels, err := decodeLabels(y, n, imagesPath)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.where(key), err)
	}
	return labels, nil
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

// openContainer opens, hashes and sniffs one file.
func openContainer(path string) (*container, error) {
	// Stat first: opening a FIFO would block.
	info, err := os.Stat(path)
	if err != nil {
		return nil, pathError(path, err)
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s: a folder, want a .npy, .npz or IDX file", path)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file, want a .npy, .npz or IDX file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, pathError(path, err)
	}
	h := sha256.New()
	size, err := io.Copy(h, f)
	if err != nil {
		f.Close()
		return nil, pathError(path, err)
	}
	c, err := newContainer(path, f, size)
	if err != nil {
		f.Close()
		return nil, err
	}
	c.sha256 = hex.EncodeToString(h.Sum(nil))
	c.closer = f
	return c, nil
}

// pathError puts the path in front as all our errors have it; package os would
// write "open x.npy: no such file".
func pathError(path string, err error) error {
	return fmt.Errorf("%s: %w", path, bareError(err))
}

// bareError takes off what package os says before the cause.
func bareError(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}
