package dataset

import (
	"hash/maphash"

	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/picture"
)

// mostDecoded bounds the image files that are decoded to compare them with an array of pictures.
const mostDecoded = 500

// sharedPictures compares image files with an array of uint8 pictures. It decodes some of the files, and counts those whose
// pixels are in the array.
func sharedPictures(files, array *printer) int {
	e := examplesIn(array.all)
	if len(files.files) != 1 || len(files.values) > 0 || len(array.files) > 0 || len(array.values) != 1 || !e.bytes {
		return 0
	}
	seed := maphash.MakeSeed()
	have := map[uint64]bool{}
	for i := range array.n {
		have[maphash.Bytes(seed, e.stored(i))] = true
	}
	decoder, step := listing.Decoder{Budget: listing.NewBudget(0), Orientation: orientation(files.all)}, max(1, files.n/mostDecoded)
	found := 0
	for i := 0; i < files.n; i += step {
		x, err := files.files[0](i)
		if err != nil {
			continue
		}
		for _, layout := range layoutsOf(e.storedShape) {
			isIn := false
			x.Picture(decoder, layout.channels == 1, func(p picture.Picture) error { // one that cannot be read is not there
				b := layout.bytes(p)
				isIn = b != nil && have[maphash.Bytes(seed, b)]
				return nil
			})
			if isIn {
				found++
				break
			}
		}
	}
	return found
}

// orientation returns that of the pictures in d, which has image files.
func orientation(d Dataset) picture.Orientation {
	if p := examplesIn(d).pictures; p != nil {
		return p.Orientation
	}
	return picture.Pillow
}

// storedLayout says how an array stores pictures.
type storedLayout struct {
	h, w, channels int
	planes         bool // channel by channel
}

// layoutsOf returns the layouts that an array with examples of that shape may have.
func layoutsOf(shape []int64) (all []storedLayout) {
	if len(shape) == 2 {
		return []storedLayout{{int(shape[0]), int(shape[1]), 1, false}}
	}
	if len(shape) != 3 {
		return nil
	}
	a, b, c := int(shape[0]), int(shape[1]), int(shape[2])
	if c == 1 || c == 3 {
		all = append(all, storedLayout{a, b, c, false})
	}
	if a == 1 || a == 3 {
		all = append(all, storedLayout{b, c, a, true})
	}
	return all
}

// bytes returns the picture as the array would store it, or nil if it has another size.
func (l storedLayout) bytes(p picture.Picture) []byte {
	if p.H != l.h || p.W != l.w || p.C != l.channels {
		return nil
	}
	if !l.planes || l.channels == 1 {
		return p.Pix
	}
	out, n := make([]byte, len(p.Pix)), p.H*p.W
	for k, v := range p.Pix {
		out[k%p.C*n+k/p.C] = v
	}
	return out
}
