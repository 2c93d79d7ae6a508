package dataset

import (
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/internal/augment"
	"github.com/swagwrap/swagwrap/internal/picture"
)

// Augmented says that the examples of a dataset that [Open] returned are changed
// at random.
func Augmented(d Dataset) bool {
	switch d := inner(d).(type) {
	case *images:
		return !d.aug.None()
	case *pictures:
		return true
	}
	return false
}

// AsSeen says that the examples of a dataset that [Open] returned are floats that
// were taken as they are: see [Options].
func AsSeen(d Dataset) bool {
	a, ok := inner(d).(*arrays)
	return ok && a.asSeen
}

// Room returns how many images the cache of a dataset that [Open] returned keeps
// at most; ok is false if it has none.
func Room(d Dataset) (images int, ok bool) {
	if e, erased := d.(*erased); erased {
		d = e.Dataset
	}
	c, ok := d.(*cache)
	if !ok {
		return 0, false
	}
	return c.room, true
}

// inner takes off what lies around examples.
func inner(d Dataset) Dataset {
	for {
		switch outer := d.(type) {
		case *erased:
			d = outer.Dataset
		case *cache:
			d = outer.Bytes
		default:
			return d
		}
	}
}

// wrap puts a cache around examples that are dear to read, and erases behind it:
// what is kept are pixels.
func (o Options) wrap(d Dataset) Dataset {
	var aug augment.Pipeline
	var pre Preprocess
	dear := false
	switch d := d.(type) {
	case *images:
		aug, pre, dear = d.aug, d.pre, true
	case *pictures:
		aug, pre, dear = d.aug, d.pre, true
	}
	if dear && o.Cache > 0 {
		d = newCache(d.(Bytes), o.Cache)
	}
	if aug.Erases() {
		d = &erased{d, aug, pre.channels(), pre.Image.InputSize[0], pre.Image.InputSize[1], pre.Layout == "nhwc"}
	}
	return d
}

// augmentation returns Augment as it is to be applied to pictures of the resolved
// preprocessing.
func (o Options) augmentation(p Preprocess) (augment.Pipeline, error) {
	aug, err := o.Augment.Resolve(p.Image.InputSize[0], p.Image.InputSize[1])
	if err == nil {
		err = aug.CheckChannels(p.channels())
	}
	switch {
	case err != nil:
		return aug, fmt.Errorf("augmentation: %w", err)
	case o.Uint8 && aug.Erases():
		return aug, fmt.Errorf("augmentation: %s: RandomErasing changes normalised values, and the network takes uint8", aug)
	}
	return aug, o.checkNormalize(p)
}

// checkNormalize compares the augmentation's Normalize, if it has one, with the
// preprocessing. A network that takes uint8 normalises by itself.
func (o Options) checkNormalize(p Preprocess) error {
	mean, std := o.Augment.Mean, o.Augment.Std
	if o.Uint8 || mean == nil && std == nil || alike(mean, p.Mean, 0) && alike(std, p.Std, 1) {
		return nil
	}
	return fmt.Errorf("augmentation: Normalize has mean %v, std %v, and the preprocessing mean %v, std %v: want the same", mean, std, p.Mean, p.Std)
}

// printedTo is how far a number may be from another that was printed with four
// digits, as tensors are.
const printedTo = 6e-5

// alike compares one of mean and std, given once or for each channel.
func alike(a, b []float64, unset float64) bool {
	at := func(v []float64, c int) float64 {
		switch {
		case len(v) == 0:
			return unset
		case len(v) == 1:
			return v[0]
		case c < len(v):
			return v[c]
		}
		return math.NaN() // as many values as there are other channels
	}
	for c := range max(len(a), len(b)) {
		if !(math.Abs(at(a, c)-at(b, c)) <= printedTo) {
			return false
		}
	}
	return true
}

// inputSize fills in the height and width that the network leaves open: those of
// the augmentation, or else the given ones.
func (o Options) inputSize(p Preprocess, shape []int64, h, w int) (Preprocess, []int64, error) {
	p.Image = Transform{InputSize: p.Image.InputSize} // augmenting takes its place
	ah, aw, err := o.Augment.Size()
	if err != nil {
		return p, shape, fmt.Errorf("augmentation: %w", err)
	}
	if ah != 0 {
		h, w = ah, aw
	}
	if len(shape) != 3 {
		return p, shape, nil // Resolve says what is wrong
	}
	shape = slices.Clone(shape)
	first := 1
	if p.layout(shape) == "nhwc" {
		first = 0
	}
	for i, side := range [2]int{h, w} {
		if at := &shape[first+i]; *at < 1 && p.Image.InputSize[i] == 0 && side != 0 {
			*at = int64(side)
		}
	}
	return p, shape, nil
}

// augmented returns one of the pictures of a dataset, changed.
func augmented(aug augment.Pipeline, p picture.Picture, i int, pre Preprocess) (picture.Picture, error) {
	p, err := aug.Picture(p, uint64(i))
	if err != nil {
		return p, err
	}
	if h, w := pre.Image.InputSize[0], pre.Image.InputSize[1]; p.H != h || p.W != w {
		return p, fmt.Errorf("%d×%d pixels after augmentation (%s), want %d×%d: say how pictures come to that size (RandomResizedCrop, Resize, CenterCrop)", p.W, p.H, aug, w, h)
	}
	return p, nil
}

// erased is a dataset of which rectangles are erased after normalising. It has
// no Pixels: they do not say all.
type erased struct {
	Dataset
	aug     augment.Pipeline
	c, h, w int
	last    bool
}

func (d *erased) Read(dst []float32, i int) error {
	if err := d.Dataset.Read(dst, i); err != nil {
		return err
	}
	d.aug.Erase(dst, d.c, d.h, d.w, d.last, uint64(i))
	return nil
}

// pictures is a uint8 array whose examples are pictures, and are changed at
// random. They may be stored with another height and width than the network
// takes.
type pictures struct {
	*arrays
	h, w  int        // as stored
	pre   Preprocess // resolved
	aug   augment.Pipeline
	shape []int64 // of an example as Read gives it
	read  byPixels
}

// openPictures prepares to augment an array.
func openPictures(path string, x array, opts Options) (*pictures, error) {
	if x.dtype.kind != 'u' {
		return nil, fmt.Errorf("augmentation of %s values, which are what the network sees: want uint8 pictures or image files", x.dtype.name)
	}
	if n := len(x.shape); n != 3 && n != 4 {
		return nil, fmt.Errorf("augmentation of examples of shape %d, want pictures: 3 dimensions, or height and width", x.shape[1:])
	}
	stored := make([]int64, 0, 3)
	if len(x.shape) == 3 {
		stored = append(stored, 1)
	}
	for _, v := range x.shape[1:] {
		stored = append(stored, int64(v))
	}
	shape := opts.Shape
	if len(shape) == 0 || slices.Max(shape) < 1 { // only what a pixel has: the size is that of the pictures
		shape = slices.Clone(stored)
		if opts.Preprocess.layout(stored) == "nhwc" {
			shape[0], shape[1] = -1, -1
		} else {
			shape[1], shape[2] = -1, -1
		}
	}
	d := &pictures{arrays: &arrays{path: path, n: x.shape[0], x: x, names: opts.ClassNames, elems: 1}}
	for _, v := range x.shape[1:] {
		d.elems *= v
	}
	var err error
	if d.pre, err = opts.preprocess(); err != nil {
		return nil, err
	}
	c, h, w, ok := d.pre.stored(stored, shape)
	if !ok {
		return nil, fmt.Errorf("augmentation of examples of shape %d, and the network takes %d: want pictures in that layout", x.shape[1:], shape)
	}
	d.h, d.w = h, w
	d.pre.Image = Transform{}
	if d.pre, shape, err = opts.inputSize(d.pre, shape, h, w); err != nil {
		return nil, err
	}
	if d.pre, err = d.pre.Resolve(shape); err != nil {
		return nil, err
	}
	if c != d.pre.channels() {
		return nil, fmt.Errorf("augmentation of examples of shape %d, want %d channels (%s)", x.shape[1:], d.pre.channels(), d.pre.Channels)
	}
	if d.aug, err = opts.augmentation(d.pre); err != nil {
		return nil, err
	}
	d.shape = d.pre.shape()
	return d, d.read.prepare(d.pre)
}

// stored returns channels, height and width of stored examples of three
// dimensions, for a network that takes shape. Grey ones lie in memory alike
// wherever the dimension of size 1 is.
func (p Preprocess) stored(stored, shape []int64) (c, h, w int, ok bool) {
	if len(shape) != 3 {
		return 0, 0, 0, false
	}
	last := p.layout(shape) == "nhwc"
	channels := shape[0]
	if last {
		channels = shape[2]
	}
	a, b, e := int(stored[0]), int(stored[1]), int(stored[2])
	switch grey := channels == 1 || p.Channels == "grey"; {
	case grey && a == 1, !last && a == 3 && !grey:
		return a, b, e, true
	case grey && e == 1, last && e == 3 && !grey:
		return e, a, b, true
	}
	return 0, 0, 0, false
}

func (d *pictures) Shape() []int64 { return d.shape }

func (d *pictures) Read(dst []float32, i int) error { return d.read.example(dst, i, d.Pixels) }

func (d *pictures) Pixels(dst []byte, i int) error {
	checkLen(len(dst), d.read.elems)
	p, err := augmented(d.aug, d.pre.gather(d.example(i), d.h, d.w), i, d.pre)
	if err != nil {
		return fmt.Errorf("%s: %w", d.Name(i), err)
	}
	d.pre.arrange(dst, p)
	return nil
}

func (d *pictures) Normalize(dst []float32, src []byte) { d.read.normalize(dst, src) }

// gather is the way back from what arrange writes. The picture may share memory
// with src.
func (p Preprocess) gather(src []byte, h, w int) picture.Picture {
	if p.channels() == 1 || p.Layout == "nhwc" && p.Channels != "bgr" {
		return picture.Picture{W: w, H: h, C: p.channels(), Pix: src}
	}
	dst, plane := picture.New(w, h, 3), w*h
	red, blue := 0, 2
	if p.Channels == "bgr" {
		red, blue = 2, 0
	}
	step, channel := 1, plane // between pixels and between channels
	if p.Layout == "nhwc" {
		step, channel = 3, 1
	}
	r, g, b := src[red*channel:], src[channel:], src[blue*channel:]
	for i := range plane {
		d := dst.Pix[3*i : 3*i+3 : 3*i+3]
		d[0], d[1], d[2] = r[step*i], g[step*i], b[step*i]
	}
	return dst
}
