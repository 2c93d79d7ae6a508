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
