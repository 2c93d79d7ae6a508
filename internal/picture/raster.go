package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"

	"golang.org/x/image/bmp"
)

// The formats that Go's decoders decode exactly. The functions below convert the result to Pillow's.

// standard opens a file. It reads the header with config; the File decodes with decode and converts with pixels. It
// also returns the colour model of the header.
func standard(data []byte, config func(io.Reader) (image.Config, error), decode func(io.Reader) (image.Image, error),
	pixels func(image.Image) (Picture, error)) (File, color.Model, error) {
	c, err := config(bytes.NewReader(data))
	f := File{W: c.Width, H: c.Height, channels: 3, image: func() (image.Image, error) { return decode(bytes.NewReader(data)) }}
	f.decode = func() (Picture, error) {
		img, err := f.image()
		if err != nil {
			return Picture{}, err
		}
		return pixels(img)
	}
	if c.ColorModel == color.GrayModel || c.ColorModel == color.Gray16Model {
		f.channels = 1
	}
	f.buffers = int64(c.Width) * int64(c.Height) * pixelBytes(c.ColorModel)
	return f, c.ColorModel, err
}

func openPNG(data []byte) (File, error) {
	f, model, err := standard(data, png.DecodeConfig, png.Decode, func(img image.Image) (Picture, error) {
		// Go decodes 16-bit grey with a transparent value as NRGBA64.
		if n, ok := img.(*image.NRGBA64); ok && data[24] == 16 && data[25] == 0 {
			return clip16(n.Pix, n.Stride, 8, n.Rect), nil
		}
		return fromImage(img)
	})
	f.buffers = int64(f.W) * int64(f.H) * pngBuffers(data, model)
	if err == nil {
		const depth = 24 // in IHDR
		f.scale = greyScale(int(data[depth]))
		f.tag = pngOrientation(data)
	}
	return f, err
}

func openBMP(data []byte) (File, error) {
	f, _, err := standard(data, bmp.DecodeConfig, bmp.Decode, fromImage)
	if errors.Is(err, bmp.ErrUnsupported) {
		err = errors.New("compressed, of 16 bits or of OS/2, want uncompressed BMP with 1, 2, 4, 8, 24 or 32 bits")
	}
	return f, err
}

// fromImage converts an image of Go's decoders to a picture and drops alpha.
func fromImage(img image.Image) (Picture, error) {
	b := img.Bounds()
	switch m := img.(type) {
	case *image.Gray:
		p := New(b.Dx(), b.Dy(), 1)
		for y := range p.H {
			copy(p.Row(y), m.Pix[y*m.Stride:])
		}
		return p, nil
	case *image.Gray16:
		return clip16(m.Pix, m.Stride, 2, b), nil
	case *image.Paletted:
		var palette colours
		for i, c := range m.Palette {
			palette[i] = rgb(c)
		}
		return indexed(m, &palette), nil
	case *image.RGBA:
		return threeOf(m.Pix, m.Stride, 4, 1, b), nil
	case *image.NRGBA:
		return threeOf(m.Pix, m.Stride, 4, 1, b), nil
	case *image.RGBA64:
		return threeOf(m.Pix, m.Stride, 8, 2, b), nil
	case *image.NRGBA64:
		return threeOf(m.Pix, m.Stride, 8, 2, b), nil
	}
	return Picture{}, fmt.Errorf("unknown colour model %T", img)
}

// threeOf takes the first byte of each of the first three channels. Pixels are step bytes from each other and channels channel
// bytes.
func threeOf(pix []byte, stride, step, channel int, b image.Rectangle) Picture {
	p := New(b.Dx(), b.Dy(), 3)
	for y := range p.H {
		d, s := p.Row(y), pix[y*stride:]
		for ; len(d) > 0; d, s = d[3:], s[step:] {
			d[0], d[1], d[2] = s[0], s[channel], s[2*channel]
		}
	}
	return p
}

// clip16 takes 16-bit grey values, the first two of every step bytes. Pillow does not scale them down but clips them
// at 255.
func clip16(pix []byte, stride, step int, b image.Rectangle) Picture {
	p := New(b.Dx(), b.Dy(), 1)
	for y := range p.H {
		d, s := p.Row(y), pix[y*stride:]
		for x := range d {
			d[x] = byte(min(binary.BigEndian.Uint16(s[x*step:]), 255))
		}
	}
	return p
}

// colours is a palette. Colours that the file does not list are black.
type colours [256][3]byte

func indexed(m *image.Paletted, palette *colours) Picture {
	p := New(m.Rect.Dx(), m.Rect.Dy(), 3)
	for y := range p.H {
		row := p.Row(y)
		for x, v := range m.Pix[y*m.Stride:][:p.W] {
			copy(row[3*x:], palette[v][:])
		}
	}
	return p
}

// rgb returns the colour of a palette entry as stored. The RGBA method of color.Color would multiply it by alpha.
func rgb(c color.Color) [3]byte {
	switch c := c.(type) {
	case color.NRGBA:
		return [3]byte{c.R, c.G, c.B}
	case color.RGBA:
		return [3]byte{c.R, c.G, c.B}
	case color.RGBA64:
		return [3]byte{byte(c.R >> 8), byte(c.G >> 8), byte(c.B >> 8)}
	}
	return [3]byte{}
}
