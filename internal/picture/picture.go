// Package picture decodes image files to 8-bit pixels, and resizes and crops them. The results equal those of Pillow
// 13's PIL.Image.open, convert and resize, bit for bit. Decoding begins with [Open], which reads only the header.
//
// # Invariants
//
// A [Picture] has W·H·C bytes, C is 1 or 3, and neither side is longer than [MaxSide]. Files are untrusted: memory is
// bounded by the size in the header and by the length of the file. Damaged data is an error.
//
// # Concurrency
//
// Functions keep no state and do not change their arguments; they may be called from any number of goroutines.
package picture

import (
	"errors"
	"fmt"
	"image"
	"strings"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/picture/jpeg"
)

// Limits on the size of an image. Pillow, too, treats more than maxPixels as a decompression bomb. A side longer than
// MaxSide is never a real picture and would give Resize long lists of weights.
const (
	maxPixels = 178956970
	MaxSide   = 1 << 20 // pixels
)

// Picture is an 8-bit image in Pillow's layout: rows from top to bottom, and pixels from left to right. It has C
// interleaved channels, 1 (mode L) or 3 (mode RGB).
type Picture struct {
	W, H, C int
	Pix     []byte // W·H·C
}

// New returns a black picture of w by h pixels with c channels.
func New(w, h, c int) Picture { return Picture{w, h, c, make([]byte, w*h*c)} }

// Row returns row y.
func (p Picture) Row(y int) []byte { return p.Pix[y*p.W*p.C : (y+1)*p.W*p.C] }

// A codec reads one format of image files.
type codec struct {
	name  string
	magic []string // first bytes; ? matches any byte
	open  opener
	// extensions are those of the format's files. numbers are those of files whose pixels can be the numbers of classes; nil
	// for a format that does not keep numbers.
	extensions, numbers []string
	files               []string // what messages call the files; nil stands for the name
}

// An opener reads the header of a file, and no more than necessary.
type opener func(data []byte) (File, error)

// codecs are all formats. Other packages ask for their names and extensions here.
var codecs = []codec{
	{"JPEG", []string{"\xff\xd8\xff"}, openJPEG, []string{".jpg", ".jpeg"}, nil, nil},
	{"PNG", []string{"\x89PNG\r\n\x1a\n"}, openPNG, []string{".png"}, []string{".png"}, nil},
	{"WebP", []string{"RIFF????WEBP"}, openWebP, []string{".webp"}, nil, nil},
	{"GIF", []string{"GIF87a", "GIF89a"}, openGIF, []string{".gif"}, []string{".gif"}, nil},
	{"BMP", []string{"BM"}, openBMP, []string{".bmp"}, []string{".bmp"}, nil},
	{tiffKind, []string{"II*\x00", "MM\x00*", "II+\x00", "MM\x00+"}, openTIFF, []string{".tif", ".tiff"}, []string{".tif", ".tiff"}, nil},
	{"Netpbm", netpbmMagic(), openNetpbm, []string{".pgm", ".ppm"}, []string{".pgm"}, []string{"PGM", "PPM"}},
}

// Extensions returns the extensions of all image files: torchvision's IMG_EXTENSIONS, and .gif.
func Extensions() []string { return collect(func(c codec) []string { return c.extensions }) }

// NumberExtensions returns the extensions of files whose pixels can be the numbers of classes.
func NumberExtensions() []string { return collect(func(c codec) []string { return c.numbers }) }

// LossyExtensions returns the extensions of formats that do not keep the numbers of pixels.
func LossyExtensions() []string {
	return collect(func(c codec) []string {
		if c.numbers != nil {
			return nil
		}
		return c.extensions
	})
}

// Formats returns the names of all formats, for messages.
func Formats() []string {
	return collect(func(c codec) []string {
		if c.files != nil {
			return c.files
		}
		return []string{c.name}
	})
}

func collect(of func(codec) []string) (all []string) {
	for _, c := range codecs {
		all = append(all, of(c)...)
	}
	return all
}

// Known reports whether head begins an image file that [Open] reads. It needs 12 bytes, unless the file is shorter.
func Known(head []byte) bool {
	_, err := codecOf(head)
	return err == nil
}

// codecOf detects the format of a file by its first bytes. Extensions are unreliable: ImageNet has a PNG file named
// .JPEG.
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
	names := Formats()
	last := len(names) - 1
	return codec{}, fmt.Errorf("not an image, want %s or %s", strings.Join(names[:last], ", "), names[last])
}

func matches(b []byte, pattern string) bool {
	for i, x := range b {
		if pattern[i] != '?' && pattern[i] != x {
			return false
		}
	}
	return true
}

// File is an image file whose header has been read.
type File struct {
	W, H int // size in pixels, as Decode returns it
	kind string

	tag         int // the orientation of the stored pixels, 2 to 8, or 0 if they are upright
	orientation Orientation

	// decode decodes the stored pixels to one channel if Pillow's mode has one (1, L, I;16), else to three. The size has
	// been checked before.
	decode   func() (Picture, error)
	channels int   // number of channels that decode returns
	buffers  int64 // approximate bytes that decode needs in addition to its result

	// image decodes the file without a change of its numbers, except that grey levels are multiplied by scale. It is nil
	// for a format that does not keep numbers.
	image func() (image.Image, error)
	scale byte
}

// Open reads the header of an image file and detects its format by content. It fails for sizes that Decode refuses. A
// small file may validly contain a large image, so callers must limit [File.Memory], not the size of files.
func Open(data []byte) (File, error) {
	c, err := codecOf(data)
	if err != nil {
		return File{}, err
	}
	f, err := c.open(data)
	if err == nil {
		err = CheckSize(f.W, f.H)
	}
	if err != nil {
		return File{}, fmt.Errorf("%s: %w", c.name, file.Truncated(err))
	}
	f.kind = c.name
	if f.turns() >= 5 {
		f.W, f.H = f.H, f.W
	}
	return f, nil
}

// Kind returns the name of the format.
func (f File) Kind() string { return f.kind }

// Decode decodes the first frame like PIL.Image.open(file).convert("RGB"), or convert("L") if grey. As in Pillow:
//
//   - alpha is dropped, not blended
//   - 16-bit colours lose their low byte, and 16-bit grey values are clipped at 255
//   - colour profiles are ignored
//   - the orientation of TIFF is applied, and that of other formats is not, unless [File.Oriented] says otherwise
//
// A truncated file is an error; bytes after the image are not. Corrupt data is an error too, where libjpeg only
// warns. Decode may be called once.
func (f File) Decode(grey bool) (Picture, error) {
	p, err := f.decode()
	if err != nil {
		return Picture{}, fmt.Errorf("%s: %w", f.kind, file.Truncated(err))
	}
	p = orient(p, f.turns())
	if p.W != f.W || p.H != f.H {
		return Picture{}, fmt.Errorf("%s: %d×%d pixels, want %d×%d as the header says", f.kind, p.W, p.H, f.W, f.H)
	}
	if grey {
		return p.As(1), nil
	}
	return p.As(3), nil
}

// As returns the picture with 1 or 3 channels, like Pillow's convert("L") or convert("RGB"). It returns p if p has
// this number of channels already.
func (p Picture) As(channels int) Picture {
	if channels == 1 {
		return p.grey()
	}
	return p.rgb()
}

// CheckSize returns an error for a size that is not valid for a picture, or that indicates a decompression bomb.
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

// grey converts the picture like Pillow's convert("L"), to ITU-R 601 luma in 16-bit fixed point. It returns a grey
// picture unchanged.
func (p Picture) grey() Picture {
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

// Luma returns the grey level of a colour, as Pillow's convert("L") computes it.
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

// Image returns the picture as a type of the standard library. A grey image shares its memory with p.
func (p Picture) Image() image.Image {
	r := image.Rect(0, 0, p.W, p.H)
	if p.C == 1 {
		return &image.Gray{Pix: p.Pix, Stride: p.W, Rect: r}
	}
	img := image.NewRGBA(r)
	for i := range p.W * p.H {
		copy(img.Pix[4*i:], p.Pix[3*i:3*i+3])
		img.Pix[4*i+3] = 255
	}
	return img
}

func openJPEG(data []byte) (File, error) {
	f, err := jpeg.Open(data)
	if err != nil {
		return File{}, err
	}
	return File{W: f.W, H: f.H, tag: jpegOrientation(data), channels: f.Channels(), buffers: f.Buffers(), decode: func() (Picture, error) {
		pix, channels, err := f.Decode()
		return Picture{f.W, f.H, channels, pix}, err
	}}, nil
}
