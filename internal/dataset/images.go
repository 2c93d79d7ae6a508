package dataset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/swagwrap/swagwrap/internal/augment"
	"github.com/swagwrap/swagwrap/internal/picture"
)

// images is a Dataset of image files. They are read and decoded when they are
// asked for; only their names are kept, some 100 bytes an image.
type images struct {
	examples []example
	labels   []int
	names    []string
	sources  []Source
	pre      Preprocess // resolved
	aug      augment.Pipeline
	shape    []int64
	read     byPixels
}

// example is an image file, or one in a tar.
type example struct {
	in    *place
	name  string // below the place, with the system's separators
	off   int64  // of the bytes in a tar
	size  int64  // of them
	label int32  // index into listing.labels, or -1
}

// place is a folder or a tar that holds examples.
type place struct {
	path string
	tar  bool
}

func (e *example) path() string {
	switch {
	case e.in == nil:
		return e.name
	case e.in.tar:
		return e.in.path + "/" + e.name // as tar writes it
	}
	return filepath.Join(e.in.path, e.name)
}

// openImages opens the images that inputs list.
func openImages(inputs []string, opts Options) (*images, error) {
	l, err := list(inputs, opts.ClassNames == nil)
	if err != nil {
		return nil, err
	}
	d := &images{examples: l.examples, sources: l.sources, names: opts.ClassNames}
	if opts.Labels != "" {
		var src Source
		if d.labels, src, err = openLabels(opts.Labels, opts.LabelsKey, "", len(d.examples), inputs[0]); err == nil {
			d.sources = append(d.sources, src)
			err = checkLabels(d.labels, d.names, opts.Labels)
		}
	} else {
		d.labels, d.names, err = l.classes(opts.ClassNames)
	}
	if err != nil {
		return nil, err
	}
	if d.pre, err = opts.preprocess(); err != nil {
		return nil, err
	}
	shape := opts.Shape
	if shape == nil {
		shape = []int64{-1, -1, -1}
	}
	if !opts.Augment.None() {
		if d.pre, shape, err = opts.inputSize(d.pre, shape, 0, 0); err != nil {
			return nil, fmt.Errorf("%s: %w", inputs[0], err)
		}
	}
	if d.pre, err = d.pre.Resolve(shape); err != nil {
		return nil, fmt.Errorf("%s: %w", inputs[0], err)
	}
	if d.aug, err = opts.augmentation(d.pre); err != nil {
		return nil, fmt.Errorf("%s: %w", inputs[0], err)
	}
	d.shape = d.pre.shape()
	if err = d.read.prepare(d.pre); err != nil {
		return nil, fmt.Errorf("%s: %w", inputs[0], err)
	}
	return d, nil
}

func (d *images) Len() int             { return len(d.examples) }
func (d *images) Shape() []int64       { return d.shape }
func (d *images) Labels() []int        { return d.labels }
func (d *images) ClassNames() []string { return d.names }
func (d *images) Sources() []Source    { return d.sources }
func (d *images) Name(i int) string    { return d.examples[i].path() }

func (d *images) Read(dst []float32, i int) error { return d.read.example(dst, i, d.Pixels) }

func (d *images) Normalize(dst []float32, src []byte) { d.read.normalize(dst, src) }

func (d *images) Pixels(dst []byte, i int) error {
	checkLen(len(dst), d.read.elems)
	if err := d.decode(dst, i); err != nil {
		return fmt.Errorf("%s: %w", d.Name(i), err)
	}
	return nil
}

// byPixels makes examples of pictures: their pixels, then what the network takes.
type byPixels struct {
	elems   int // of an example
	norm    normalizer
	buffers sync.Pool // of *[]byte, elems long
}

// prepare prepares for the pictures of a resolved preprocessing.
func (r *byPixels) prepare(p Preprocess) (err error) {
	shape := p.shape()
	r.elems = int(shape[0] * shape[1] * shape[2])
	r.buffers.New = func() any { b := make([]byte, r.elems); return &b }
	r.norm, err = p.normalizer(shape, true)
	return err
}

// example is Read of a dataset with these Pixels.
func (r *byPixels) example(dst []float32, i int, pixels func(dst []byte, i int) error) error {
	checkLen(len(dst), r.elems)
	b := r.buffers.Get().(*[]byte)
	defer r.buffers.Put(b)
	if err := pixels(*b, i); err != nil {
		return err
	}
	r.norm.applyTable(dst, *b)
	return nil
}

func (r *byPixels) normalize(dst []float32, src []byte) {
	checkLen(len(dst), r.elems)
	checkLen(len(src), r.elems)
	r.norm.applyTable(dst, src)
}

// Limits on what all goroutines of the program hold at once. A single image may
// take more, and then is decoded alone.
const (
	maxFile       = 1 << 30 // bytes of one image file
	filesAtOnce   = 256 << 20
	decodesAtOnce = 100e6 // pixels; decoding takes about 8 bytes for each
	// largeImage is a number of pixels from which on the memory that decoding
	// took is collected before the next image may have it. Else the collector
	// would let half as much again pile up.
	largeImage = 20e6
)

var (
	fileBudget  = semaphore.NewWeighted(filesAtOnce)
	pixelBudget = semaphore.NewWeighted(decodesAtOnce)
)

// decode reads and decodes an example, and resizes and crops or augments it.
func (d *images) decode(dst []byte, i int) error {
	e := &d.examples[i]
	f, size, err := e.open()
	if err != nil {
		return err
	}
	defer f.Close()
	if size > maxFile {
		return fmt.Errorf("%d bytes, want at most %d for an image", size, maxFile)
	}
	// Pixels are waited for with bytes in hand, never the reverse: no deadlock.
	defer take(fileBudget, size, filesAtOnce)()
	data := make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(f, e.off, size), data); err != nil {
		return bareError(unexpectedEOF(err))
	}
	w, h, err := picture.Size(data)
	if err != nil {
		return err
	}
	n := int64(w) * int64(h)
	defer take(pixelBudget, n, decodesAtOnce)()
	if n >= largeImage {
		defer runtime.GC()
	}
	p, err := picture.Decode(data, d.pre.Channels == "grey")
	if err != nil {
		return err
	}
	if d.aug.None() {
		p, err = d.pre.Image.apply(p)
	} else {
		p, err = augmented(d.aug, p, i, d.pre)
	}
	if err != nil {
		return err
	}
	d.pre.arrange(dst, p)
	return nil
}

// take waits for n of what the budget holds, or for all of it if n is more. It
// returns what gives it back.
func take(budget *semaphore.Weighted, n, all int64) func() {
	n = min(n, all)
	budget.Acquire(context.Background(), n) // cannot fail: n is at most all, and there is no deadline
	return func() { budget.Release(n) }
}

// open opens the file that holds the example's bytes, and returns how many they
// are.
func (e *example) open() (*os.File, int64, error) {
	path := e.path()
	if e.in != nil && e.in.tar {
		path = e.in.path
	}
	// Stat first: opening a FIFO would block.
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, bareError(err)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, errors.New("not a regular file, want an image")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, bareError(err)
	}
	if e.in != nil && e.in.tar {
		return f, e.size, nil
	}
	return f, info.Size(), nil
}
