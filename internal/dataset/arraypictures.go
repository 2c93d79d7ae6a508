package dataset

import (
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/internal/picture"
	"github.com/swagwrap/swagwrap/internal/preprocess"
)

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
