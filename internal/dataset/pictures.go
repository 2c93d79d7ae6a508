package dataset

import (
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/internal/augment"
	"github.com/swagwrap/swagwrap/internal/picture"
	"github.com/swagwrap/swagwrap/internal/preprocess"
)

// A source calls use with image i, and afterwards releases the memory budget of the image. p must be resolved.
type source func(p preprocess.Settings, i int, use func(picture.Picture) error) error

// pictures returns a dataset of images from a source. The options say how the images are resized and cropped or
// augmented, cached, normalised, and erased. The network takes examples of the given shape. h and w are the height and
// width if neither the shape nor the augmentation sets them.
func (o Options) pictures(e *examples, p preprocess.Settings, shape []int64, h, w int, from source) (Dataset, error) {
	var err error
	if !o.Augment.None() {
		if p, shape, err = o.inputSize(p, shape, h, w); err != nil {
			return nil, err
		}
	}
	if _, note, err := p.InUnits(); err == nil {
		e.told.note(note)
	}
	if p, err = p.Resolve(shape); err != nil {
		return nil, err
	}
	aug, err := o.augmentation(p)
	if err != nil {
		return nil, err
	}
	e.setShape(p.Shape())
	norm, err := p.Normalizer(e.shape, true)
	if err != nil {
		return nil, err
	}
	load := func(dst []byte, i int) ([]byte, error) {
		err := from(p, i, func(src picture.Picture) (err error) {
			if aug.None() {
				src, err = p.Image.Apply(src)
			} else {
				src, err = augmented(aug, src, i, p.Image.InputSize)
			}
			if err == nil {
				p.Lay(dst, src)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.name(i), err)
		}
		return dst, nil
	}
	if o.Cache != nil {
		e.cache = newCache(e.elems, o.Cache, load)
		load = e.cache.load
	}
	e.augmented, e.pictures = !aug.None(), &p
	d := newPixels(e, norm, load)
	if !aug.Erases() {
		return d, nil
	}
	// Images with erased parts have no Pixels, because these do not contain the erased values.
	size := p.Image.InputSize
	return &values{e, func(dst Values, i int) error {
		err := d.Read(dst, i)
		if err == nil {
			aug.Erase(dst.Floats, p.Planes(), size[0], size[1], p.Layout == "nhwc", uint64(i))
		}
		return err
	}}, nil
}

// augmented returns image i after augmentation.
func augmented(aug augment.Pipeline, p picture.Picture, i int, size [2]int) (picture.Picture, error) {
	p, err := aug.Picture(p, uint64(i))
	if err == nil && size != [2]int{p.H, p.W} {
		err = fmt.Errorf("%d×%d pixels after augmentation (%s), want %d×%d: say how pictures come to that size (RandomResizedCrop, "+
			"Resize, CenterCrop)", p.W, p.H, aug, size[1], size[0])
	}
	return p, err
}

// augmentation returns Augment, resolved for images with the resolved preprocessing p.
func (o Options) augmentation(p preprocess.Settings) (augment.Pipeline, error) {
	aug, err := o.Augment.Resolve(p.Image.InputSize[0], p.Image.InputSize[1])
	if err == nil {
		err = aug.CheckChannels(p.Planes())
	}
	switch {
	case err != nil:
		return aug, fmt.Errorf("augmentation: %w", err)
	case o.Uint8 && aug.Erases():
		return aug, fmt.Errorf("augmentation: %s: RandomErasing changes normalised values, and the network takes uint8", aug)
	}
	return aug, o.checkNormalize(p)
}

// checkNormalize compares the Normalize of the augmentation, if any, with the preprocessing. A network that takes uint8
// normalises internally.
func (o Options) checkNormalize(p preprocess.Settings) error {
	mean, std := o.Augment.Mean, o.Augment.Std
	if inUnits, _, err := p.InUnits(); err == nil {
		p = inUnits
	}
	ofPixels, stdOfPixels := p.Unit()
	if o.Uint8 || mean == nil && std == nil || alike(mean, ofPixels, 0) && alike(std, stdOfPixels, 1) {
		return nil
	}
	return fmt.Errorf("augmentation: Normalize has mean %v, std %v, and the preprocessing mean %v, std %v: want the same", mean,
		std, p.Mean, p.Std)
}

// printedTo is the largest difference to a number that was printed with four digits, as in printed tensors.
const printedTo = 6e-5

// alike compares two means or standard deviations. Each has one value, or one per channel.
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
		return math.NaN() // a value for each of another number of channels
	}
	for c := range max(len(a), len(b)) {
		if !(math.Abs(at(a, c)-at(b, c)) <= printedTo) {
			return false
		}
	}
	return true
}

// inputSize sets the height and width that the network leaves open. They come from the augmentation, or else from h and
// w.
func (o Options) inputSize(p preprocess.Settings, shape []int64, h, w int) (preprocess.Settings, []int64, error) {
	p.Image = preprocess.Transform{InputSize: p.Image.InputSize} // augmentation replaces the transform
	ah, aw, err := o.Augment.Size()
	if err != nil {
		return p, shape, fmt.Errorf("augmentation: %w", err)
	}
	if ah != 0 {
		h, w = ah, aw
	}
	if len(shape) != 3 {
		return p, shape, nil // Resolve returns the error
	}
	shape = slices.Clone(shape)
	at := sides(p, shape)
	for i, side := range [2]int{h, w} {
		if at[i] < 1 && p.Image.InputSize[i] == 0 && side != 0 {
			at[i] = int64(side)
		}
	}
	return p, shape, nil
}

// arrayPictures returns the dataset of stored uint8 images. They are preprocessed like image files.
func arrayPictures(e *examples, example func(i int) []byte, opts Options) (Dataset, error) {
	p, err := opts.preprocess()
	if err != nil {
		return nil, err
	}
	shape := slices.Clone(opts.Shape)
	if len(shape) == 0 || slices.Max(shape) < 1 { // the shape gives at most the channels; the images give the size
		shape = plane(e.shape)
	}
	s, err := storedPictures(p, e.shape, shape)
	if err != nil {
		return nil, err
	}
	if len(opts.Shape) == 0 || slices.Max(opts.Shape) < 1 {
		setSize(p, shape, -1, -1)
	}
	augmented := !opts.Augment.None()
	if augmented {
		p.Image = preprocess.Transform{} // the transform is for files
	} else if p.Image.InputSize == [2]int{} {
		setSize(p, shape, s.h, s.w)
	}
	d, err := opts.pictures(e, p, shape, s.h, s.w, func(p preprocess.Settings, i int, use func(picture.Picture) error) error {
		return use(s.picture(p, example(i)))
	})
	if err != nil || augmented {
		return d, err
	}
	// All images have the same size, so a failure for one would occur for all.
	resolved, err := p.Resolve(shape)
	if err == nil {
		_, err = resolved.Image.Apply(picture.New(s.w, s.h, resolved.Planes()))
	}
	return d, err
}

// storedAs describes how the bytes of an example form an image.
type storedAs struct {
	h, w     int
	channels int // interleaved, as in images; 0 if the example has the network's layout
}

// plane returns the shape of an example, with the channel dimension that grey images may lack.
func plane(shape []int64) []int64 {
	if len(shape) == 2 {
		return slices.Insert(slices.Clone(shape), 0, 1)
	}
	return slices.Clone(shape)
}

// storedPictures finds the layout of stored examples for a network that takes shape. They may have the network's own
// layout, or H×W or H×W×C with 1, 3 or 4 channels, as most programs save images. It fails if they have neither layout,
// or may have both.
func storedPictures(p preprocess.Settings, stored, shape []int64) (s storedAs, err error) {
	if len(shape) != 3 || len(stored) != 2 && len(stored) != 3 {
		return s, mismatch(stored, shape)
	}
	last := p.LayoutOf(shape) == "nhwc"
	channels := shape[0]
	if last {
		channels = shape[2]
	}
	if channels > 0 && channels != 1 && channels != 3 {
		return s, mismatch(stored, shape)
	}
	of := plane(stored)
	a, b, c := int(of[0]), int(of[1]), int(of[2])
	grey := channels == 1 || p.Channels == "grey"
	switch {
	case !last && !grey && a == 3 && c == 3:
		return s, fmt.Errorf("examples of shape %d, of which the channels may come first or last, and the network takes %d: save them "+
			"as image files", stored, shape)
	// With one channel, the position of the dimension of size 1 does not matter in memory.
	case grey && a == 1, !last && a == 3 && !grey:
		return storedAs{h: b, w: c}, nil
	case grey && c == 1, last && c == 3 && !grey:
		return storedAs{h: a, w: b}, nil
	case len(stored) == 2 && c != 3 && c != 4: // otherwise it is more likely a single image
		return storedAs{b, c, 1}, nil
	case len(stored) == 3 && (c == 1 || c == 3 || c == 4):
		return storedAs{a, b, c}, nil
	}
	return s, mismatch(stored, shape)
}

// sides returns the height and the width in the shape of an example. They share memory with shape.
func sides(p preprocess.Settings, shape []int64) []int64 {
	if p.LayoutOf(shape) == "nhwc" {
		return shape[:2]
	}
	return shape[1:]
}

// setSize sets the height and width that the network's shape leaves open. A negative height or width opens the
// dimension.
func setSize(p preprocess.Settings, shape []int64, h, w int) {
	at := sides(p, shape)
	for i, side := range []int{h, w} {
		if side < 0 || at[i] < 1 {
			at[i] = int64(side)
		}
	}
}

// picture returns an example as an image for the resolved preprocessing. The image may share memory with the example.
func (s storedAs) picture(p preprocess.Settings, example []byte) picture.Picture {
	switch s.channels {
	case 0:
		return p.Picture(example, s.h, s.w)
	case 4: // alpha is dropped, as with files
		rgb := picture.New(s.w, s.h, 3)
		for i := range s.h * s.w {
			copy(rgb.Pix[3*i:], example[4*i:4*i+3])
		}
		return rgb.As(p.Planes())
	}
	return picture.Picture{W: s.w, H: s.h, C: s.channels, Pix: example}.As(p.Planes())
}
