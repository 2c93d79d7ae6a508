package dataset

import (
	"errors"
	"fmt"
)

// Limits on the size of an image. More than maxPixels is a decompression bomb to
// Pillow, too. A longer side than maxSide is no picture; it would only make
// resize hold long lists of weights.
const (
	maxPixels = 178956970
	maxSide   = 1 << 20
)

// pixels is an 8-bit image as Pillow holds it: rows from top to bottom, pixels
// from left to right, with C interleaved channels, 1 (mode L) or 3 (mode RGB).
type pixels struct {
	W, H, C int
	Pix     []byte // W·H·C
}

func newPixels(w, h, c int) pixels { return pixels{w, h, c, make([]byte, w*h*c)} }

// row returns row y.
func (p pixels) row(y int) []byte { return p.Pix[y*p.W*p.C : (y+1)*p.W*p.C] }

// A codec reads one kind of image file.
type codec struct {
	name  string
	magic []string // first bytes, where ? is any byte
	// size reads no more than it must.
	size func(data []byte) (w, h int, err error)
	// decode returns one channel where Pillow's mode has one (1, L, I;16), else
	// three. It may count on size having been called and accepted.
	decode func(data []byte) (pixels, error)
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

// imageSize returns the size of the image that decodeImage would return, from
// the header alone. It fails for sizes that decodeImage refuses. A small file may
// lawfully hold a large image: callers that decode several at once must limit the
// pixels, not the bytes. Decoding takes 6 to 15 bytes for each pixel.
func imageSize(data []byte) (w, h int, err error) {
	c, err := codecOf(data)
	if err != nil {
		return 0, 0, err
	}
	if w, h, err = c.size(data); err == nil {
		err = checkSize(w, h)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", c.name, unexpectedEOF(err))
	}
	return w, h, nil
}

func checkSize(w, h int) error {
	switch {
	case w < 1 || h < 1:
		return fmt.Errorf("%d×%d pixels, want at least one", w, h)
	case w > maxSide || h > maxSide:
		return fmt.Errorf("%d×%d pixels, want at most %d along a side", w, h, maxSide)
	case w*h > maxPixels:
		return fmt.Errorf("%d×%d pixels, want at most %d in all (a decompression bomb?)", w, h, maxPixels)
	}
	return nil
}

// decodeImage decodes the first frame of an image file of any kind to what
// PIL.Image.open(file).convert("RGB") gives, or convert("L") if grey. The kind is
// told by content. As there, alpha is dropped, not blended, 16-bit colours lose
// their low byte, 16-bit grey values are clipped at 255, colour profiles are
// ignored, and the orientation in Exif data is not applied (it is not by
// torchvision's loader), but the one in a TIFF file is. A truncated file is an
// error; bytes behind the image are not. Corrupt data is an error, too, where
// libjpeg only warns.
func decodeImage(data []byte, grey bool) (pixels, error) {
	w, h, err := imageSize(data)
	if err != nil {
		return pixels{}, err
	}
	c, _ := codecOf(data) // known, or imageSize would have failed
	p, err := c.decode(data)
	if err != nil {
		return pixels{}, fmt.Errorf("%s: %w", c.name, unexpectedEOF(err))
	}
	if p.W != w || p.H != h {
		return pixels{}, fmt.Errorf("%s: %d×%d pixels, want %d×%d as the header says", c.name, p.W, p.H, w, h)
	}
	if grey {
		return toGrey(p), nil
	}
	return toRGB(p), nil
}

// toGrey weighs the channels as Pillow's convert("L") does: ITU-R 601 luma in
// 16-bit fixed point.
func toGrey(p pixels) pixels {
	if p.C == 1 {
		return p
	}
	g := newPixels(p.W, p.H, 1)
	src := p.Pix
	for i := range g.Pix {
		s := src[3*i : 3*i+3 : 3*i+3]
		g.Pix[i] = byte((uint32(s[0])*19595 + uint32(s[1])*38470 + uint32(s[2])*7471 + 0x8000) >> 16)
	}
	return g
}

func toRGB(p pixels) pixels {
	if p.C == 3 {
		return p
	}
	rgb := newPixels(p.W, p.H, 3)
	for i, v := range p.Pix {
		d := rgb.Pix[3*i : 3*i+3 : 3*i+3]
		d[0], d[1], d[2] = v, v, v
	}
	return rgb
}
