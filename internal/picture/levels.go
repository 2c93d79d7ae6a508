package picture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"image"

	"github.com/swagwrap/swagwrap/internal/file"
)

// Levels are the numbers that the pixels of a picture have: grey levels, or indices of a palette.
type Levels struct {
	W, H   int
	place  func(x, y int) (storedX, storedY int) // of turned pixels; nil if none is turned
	pix    []byte
	stride int  // bytes of a row
	bytes  int  // of a pixel, 1 or 2
	scale  byte // a grey level of few bits was multiplied by it
}

// At returns the number of pixel k, row by row.
func (l Levels) At(k int) int {
	x, y := k%l.W, k/l.W
	if l.place != nil {
		x, y = l.place(x, y)
	}
	at := y*l.stride + x*l.bytes
	if l.bytes == 2 {
		return int(binary.BigEndian.Uint16(l.pix[at:]))
	}
	return int(l.pix[at] / l.scale)
}

// LevelsMemory returns about how many bytes [File.Levels] needs.
func (f File) LevelsMemory() int64 { return f.buffers }

// Levels decodes the first frame to the numbers that the file stores. It fails for colours, and for formats that change
// numbers, such as JPEG. A file may be decoded once.
func (f File) Levels() (Levels, error) {
	if f.image == nil {
		return Levels{}, fmt.Errorf("%s does not keep the numbers of pixels: save it as PNG, TIFF, GIF or BMP", f.kind)
	}
	img, err := f.image()
	if err != nil {
		return Levels{}, fmt.Errorf("%s: %w", f.kind, file.Truncated(err))
	}
	l := Levels{W: f.W, H: f.H, bytes: 1, scale: 1}
	switch p := img.(type) {
	case *image.Gray:
		l.pix, l.stride, l.scale = p.Pix, p.Stride, max(1, f.scale)
	case *image.Gray16:
		l.pix, l.stride, l.bytes = p.Pix, p.Stride, 2
	case *image.Paletted:
		l.pix, l.stride = p.Pix, p.Stride
	default:
		return l, errors.New("colours or transparency, and these are no numbers: save it with a palette (mode P), or as grey levels " +
			"that are the numbers (mode L or I;16)")
	}
	b, w, h := img.Bounds(), f.W, f.H
	if o := f.turns(); o != 0 {
		if o >= 5 {
			w, h = h, w
		}
		l.place = upright(o, w, h)
	}
	if b != image.Rect(0, 0, w, h) {
		return l, fmt.Errorf("%s: %d×%d pixels, want %d×%d as the header says", f.kind, b.Dx(), b.Dy(), w, h)
	}
	return l, nil
}

// greyScale returns the factor by which Go's decoders multiply grey levels of fewer than 8 bits.
func greyScale(bits int) byte {
	if bits < 1 || bits > 8 {
		return 1
	}
	return byte(255 / (1<<bits - 1))
}
