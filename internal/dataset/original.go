package dataset

import (
	"errors"
	"fmt"

	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/setting"
)

// OriginalSize returns the size of picture i of d before it was resized. d was opened with [Options].Original.
func OriginalSize(d Dataset, i int) (h, w int, err error) {
	switch v := d.(type) {
	case *view:
		return OriginalSize(v.Dataset, v.at(i))
	case *bytesView:
		return OriginalSize(v.Dataset, v.at(i))
	}
	if examplesIn(d).original == nil {
		return 0, 0, errors.New("its original size is not known: only image files keep it")
	}
	return examplesIn(d).original(i)
}

// keepOriginal makes [OriginalSize] known. Preprocessing must show the network whole pictures.
func (e *examples) keepOriginal(p preprocess.Settings, shape []int64, at func(i int) (*listing.Example, error),
	decoder listing.Decoder) error {
	p, err := p.Resolve(shape)
	if err != nil {
		return err
	}
	if t := p.Image; t.CropMode == preprocess.Center || t.CropMode == preprocess.Squash && t.ResizeSize != t.InputSize {
		return fmt.Errorf("the preprocessing crops pictures (%s), so the network says nothing about their borders: fit with %s, or "+
			"score the crops", t.CropMode, setting.Preprocess.With("crop-mode=squash"))
	}
	e.original = func(i int) (h, w int, err error) { return headerSize(at, i, decoder) }
	return nil
}

// Enlarge resamples an array [h w n] to [toH toW n], in bilinear interpolation between the centres of pixels, as PyTorch's
// interpolate(mode="bilinear", align_corners=False) does. It makes pictures smaller as well.
func Enlarge(from []float64, h, w, n, toH, toW int) []float64 {
	out := make([]float64, toH*toW*n)
	for y := range toH {
		top, bottom, down := between(y, h, toH)
		for x := range toW {
			left, right, across := between(x, w, toW)
			to := out[(y*toW+x)*n:][:n]
			for _, part := range []struct {
				p     int
				share float64
			}{{top*w + left, (1 - down) * (1 - across)}, {top*w + right, (1 - down) * across}, {bottom*w + left, down * (1 - across)},
				{bottom*w + right, down * across}} {
				for k, v := range from[part.p*n:][:n] {
					to[k] += float64(part.share * v)
				}
			}
		}
	}
	return out
}

// between returns the two of n pixels that pixel i of size lies between, and its distance from the first.
func between(i, n, size int) (first, second int, share float64) {
	at := max((float64(i)+0.5)*float64(n)/float64(size)-0.5, 0)
	first = min(int(at), n-1)
	return first, min(first+1, n-1), min(at-float64(first), 1)
}
