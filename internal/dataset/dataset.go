// Package dataset reads labelled examples and hands them out one by one as the
// float32 values a network takes.
//
// [Open] tells the format by the first bytes of the file, never by its name:
//
//   - .npy, versions 1 to 3 of https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
//   - .npz, a zip of .npy arrays, stored or deflated
//   - IDX, the format of MNIST, http://yann.lecun.com/exdb/mnist/
//   - .npy and IDX files under gzip
//
// Examples may be uint8, float32 or float64; labels may be any integer type.
// Values are preprocessed as timm, torchvision and Hugging Face do it, in the
// same float32 arithmetic: see [Preprocess]. [Order] says in which order a
// dataset is visited.
//
// # Invariants
//
// A Dataset has at least one example, every example has the same shape and at
// least one element, and Labels is nil or holds Len values of 0 or more. Read
// never yields a value that is not finite. Files are untrusted: a length is
// compared with what the file can hold before memory is taken for it, and bytes
// after the array are an error.
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
)

// Dataset is a finite list of examples of one shape, with or without labels.
type Dataset interface {
	// Len is the number of examples.
	Len() int
	// Shape is the shape of one example without the batch dimension, channels
	// first for images: [1 28 28]. The caller must not change it.
	Shape() []int64
	// Labels holds the class of every example, or is nil when the data has no
	// labels. The caller must not change it.
	Labels() []int
	// Name names example i in output rows: "test.npz[17]".
	Name(i int) string
	// Read writes the preprocessed example i to dst. An error concerns this
	// example only; dst is then undefined. Read panics if i is out of range or
	// len(dst) is not the product of Shape.
	Read(dst []float32, i int) error
	// Sources lists the files the data came from, images first.
	Sources() []Source
}

// Source identifies a file by its content.
type Source struct {
	Path   string `json:"path"`   // as the caller gave it
	SHA256 string `json:"sha256"` // of the whole file, in hex
}

// Options says how [Open] reads a file. The zero value reads everything it can
// find in the file itself.
type Options struct {
	// Labels is the path of a file with the labels, of any format that Open
	// reads. Empty means: an .npz file's own labels; for an IDX file named
	// *images-idx3* its sibling *labels-idx1*, if there is one; else no labels.
	Labels string
	// ImagesKey and LabelsKey name arrays inside .npz files. Empty means: the
	// one array whose name says so ("images", "x", "x_test", "labels", "y" ...).
	ImagesKey, LabelsKey string
	// Shape is the shape wanted of one example, all dimensions known. It may
	// differ from the stored one in dimensions of size 1 only. Nil means as
	// stored, where uint8 arrays of shape (N, H, W) are grey images: [1 H W].
	Shape []int64
	// Preprocess turns stored values into what the network takes.
	Preprocess Preprocess
}

// Open reads the examples in the file at path, and their labels, into memory.
// uint8 data stays uint8 there.
func Open(path string, opts Options) (Dataset, error) {
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
	d, err := newArrays(path, x, opts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	d.sources = []Source{{path, images.sha256}}

	// The labels are in a file of their own, in the same .npz, or nowhere.
	labels := images
	labelsPath := opts.Labels
	if labelsPath == "" && images.zip == nil {
		labelsPath = labelsSibling(path)
		if labelsPath == "" && opts.LabelsKey == "" {
			return d, nil
		}
	}
	if labelsPath != "" {
		if labels, err = openContainer(labelsPath); err != nil {
			return nil, err
		}
		defer labels.close()
		d.sources = append(d.sources, Source{labelsPath, labels.sha256})
	}
	labelsKey, err := labels.pick(opts.LabelsKey, labelRole, imagesKey)
	if err != nil {
		return nil, err
	}
	if labelsKey == "" && labels.zip != nil {
		if labels == images {
			return d, nil // an .npz without labels
		}
		return nil, fmt.Errorf("%s: no labels among %s, want a labels key", labelsPath, labels.list())
	}
	y, err := labels.load(labelsKey, labelRole)
	if err != nil {
		return nil, err
	}
	if d.labels, err = decodeLabels(y, d.n, path); err != nil {
		return nil, fmt.Errorf("%s: %w", labels.where(labelsKey), err)
	}
	return d, nil
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
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}
