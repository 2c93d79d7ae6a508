// Package picture turns the bytes of image files into 8-bit pixels, and resizes
// and crops them: what PIL.Image.open, convert and resize of Pillow 13 give, bit
// for bit. Decoding begins with [Size], which reads a header only.
//
// # Invariants
//
// A Picture has W·H·C bytes, C is 1 or 3, and neither side is longer than
// [MaxSide]. Files are untrusted: no more memory is taken than the size in the
// header and the length of the file justify, and what is damaged is an error.
//
// # Concurrency
//
// Functions keep no state; they may be called from any number of goroutines, and
// change no picture that they are given.
package picture

import (
	"errors"
	"fmt"
	"io"
)

// Limits on the size of an image. More than maxPixels is a decompression bomb to
// Pillow, too. A longer side than MaxSide is no picture; it would only make
// Resize hold long lists of weights.
const (
	maxPixels = 178956970
	MaxSide   = 1 << 20 // pixels
)

// Picture is an 8-bit image as Pillow holds it: rows from top to bottom, pixels
// from left to right, with C interleaved channels, 1 (mode L) or 3 (mode RGB).
type Picture struct {
	W, H, C int
	Pix     []byte // W·H·C
}

// New returns a black picture of w by h pixels with c channels.
func New(w, h, c int) Picture { return Picture{w, h, c, make([]byte, w*h*c)} }

// Row returns row y.
func (p Picture) Row(y int) []byte { return p.Pix[y*p.W*p.C : (y+1)*p.W*p.C] }

// A codec reads one kind of image file.
type codec struct {
	name  string
	magic []string // first bytes, where ? is any byte
	// size reads no more than it must.
	size func(data []byte) (w, h int, err error)
	// decode returns one channel where Pillow's mode has one (1, L, I;16), else
	// three. It may count on size having been called and accepted.
	decode func(data []byte) (Picture, error)
}

var codecs = []codec{
	{"JPEG", []string{"\xff\xd8\xff"}, sizeJPEG, decodeJPEG},
	{"PNG", []string{"\x89PNG\r\n\x1a\n"}, sizePNG, decodePNG},
	{"WebP", []string{"RIFF????WEBP"}, sizeWebP, decodeWebP},
	{"GIF", []string{"GIF87a", "GIF89a"}, sizeGIF, decodeGIF},
	{"BMP", []string{"BM"}, sizeBMP, decodeBMP},
	{"TIFF", []string{"II*\x00", "MM\x00*"}, sizeTIFF, decodeTIFF},
}

var errNotImage = errors.New("not an image, want JPEG, PNG, WebP, GIF, BMP or TIFF")

// Known says whether these first bytes of a file, 12 or more unless it is
// shorter, are those of an image that [Decode] reads.
func Known(head []byte) bool {
	_, err := codecOf(head)
	return err == nil
}

// codecOf tells the kind of a file by its first bytes. Names lie: ImageNet has a
// PNG file named .JPEG.
func codecOf(data []byte) (codec, error) {
	for _, c := range codecs {
		for _, m := range c.magic {
			if len(data) >= len(m) && matches(data[:len(m)], m) {
				return c, nil
			}
		}
	}
	if len(data) == 0 {
		return codec{}, errors.New("empty file, want an image")
	}
	return codec{}, errNotImage
}

func matches(b []byte, pattern string) bool {
	for i, x := range b {
		if pattern[i] != '?' && pattern[i] != x {
			return false
		}
	}
	return true
}

// Size returns the size in pixels of the image that [Decode] would return, from
// the header alone. It fails for sizes that Decode refuses. A small file may
// lawfully hold a large image: callers that decode several at once must limit the
// pixels, not the bytes. Decoding takes 6 to 15 bytes for each pixel.
func Size(data []byte) (w, h int, err error) {
	c, err := codecOf(data)
	if err != nil {
		return 0, 0, err
	}
	if w, h, err = c.size(data); err == nil {
		err = CheckSize(w, h)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", c.name, unexpectedEOF(err))
	}
	return w, h, nil
}

// CheckSize refuses sizes that are none of a picture, or a decompression bomb's.
func CheckSize(w, h int) error {
	switch {
	case w < 1 || h < 1:
		return fmt.Errorf("%d×%d pixels, want at least one", w, h)
	case w > MaxSide || h > MaxSide:
		return fmt.Errorf("%d×%d pixels, want at most %d along a side", w, h, MaxSide)
	case w*h > maxPixels:
		return fmt.Errorf("%d×%d pixels, want at most %d in all (a decompression bomb?)", w, h, maxPixels)
	}
	return nil
}

// Decode decodes the first frame of an image file of any kind to what
// PIL.Image.open(file).convert("RGB") gives, or convert("L") if grey. The kind is
// told by content. As there, alpha is dropped, not blended, 16-bit colours lose
// their low byte, 16-bit grey values are clipped at 255, colour profiles are
// ignored, and the orientation in Exif data is not applied (it is not by
// torchvision's loader), but the one in a TIFF file is. A truncated file is an
// error; bytes behind the image are not. Corrupt data is an error, too, where
// libjpeg only warns.
func Decode(data []byte, grey bool) (Picture, error) {
	w, h, err := Size(data)
	if err != nil {
		return Picture{}, err
	}
	c, _ := codecOf(data) // known, or Size would have failed
	p, err := c.decode(data)
	if err != nil {
		return Picture{}, fmt.Errorf("%s: %w", c.name, unexpectedEOF(err))
	}
	if p.W != w || p.H != h {
		return Picture{}, fmt.Errorf("%s: %d×%d pixels, want %d×%d as the header says", c.name, p.W, p.H, w, h)
	}
	if grey {
		return p.Grey(), nil
	}
	return p.rgb(), nil
}

// Grey weighs the channels as Pillow's convert("L") does: ITU-R 601 luma in
// 16-bit fixed point. A grey picture is returned as it is.
func (p Picture) Grey() Picture {
	if p.C == 1 {
		return p
	}
	g := New(p.W, p.H, 1)
	src := p.Pix
	for i := range g.Pix {
		s := src[3*i : 3*i+3 : 3*i+3]
		g.Pix[i] = Luma(s[0], s[1], s[2])
	}
	return g
}

// Luma is the grey level of a colour in Pillow's convert("L").
func Luma(r, g, b byte) byte {
	return byte((uint32(r)*19595 + uint32(g)*38470 + uint32(b)*7471 + 0x8000) >> 16)
}

func (p Picture) rgb() Picture {
	if p.C == 3 {
		return p
	}
	rgb := New(p.W, p.H, 3)
	for i, v := range p.Pix {
		d := rgb.Pix[3*i : 3*i+3 : 3*i+3]
		d[0], d[1], d[2] = v, v, v
	}
	return rgb
}

// unexpectedEOF says in our words what "EOF" and "unexpected EOF" mean here.
func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("truncated: %w", io.ErrUnexpectedEOF)
	}
	return err
}
