package picture

import (
	"bytes"
	"image"
	"image/gif"
	"io"
)

// openGIF opens a GIF file and decodes its first frame. The rest of the canvas has the transparent colour, or colour
// 0 without one.
func openGIF(data []byte) (File, error) {
	c, err := gif.DecodeConfig(bytes.NewReader(data))
	canvas := image.Rect(0, 0, c.Width, c.Height)
	const frames = 3 // the frame as read, without interlacing, and on the canvas
	whole := func() (*image.Paletted, *colours, error) {
		img, err := gif.Decode(bytes.NewReader(data))
		if err != nil {
			return nil, nil, err
		}
		palette, fill, err := gifColours(data)
		if err != nil {
			return nil, nil, err
		}
		whole, frame := image.NewPaletted(canvas, nil), img.(*image.Paletted)
		if fill != 0 {
			for i := range whole.Pix {
				whole.Pix[i] = fill
			}
		}
		b := frame.Rect
		for y := b.Min.Y; y < b.Max.Y; y++ {
			copy(whole.Pix[whole.PixOffset(b.Min.X, y):], frame.Pix[frame.PixOffset(b.Min.X, y):][:b.Dx()])
		}
		return whole, &palette, nil
	}
	f := File{W: c.Width, H: c.Height, channels: 3, buffers: frames * int64(c.Width) * int64(c.Height)}
	f.image = func() (image.Image, error) {
		img, _, err := whole()
		return img, err
	}
	f.decode = func() (Picture, error) {
		img, palette, err := whole()
		if err != nil {
			return Picture{}, err
		}
		return indexed(img, palette), nil
	}
	return f, err
}

// gifColours returns the palette of the first frame and its transparent index, or 0. Go's decoder removes the colour
// of that index, but Pillow's convert("RGB") keeps it.
func gifColours(data []byte) (palette colours, transparent byte, err error) {
	short := false
	next := func(n int) []byte {
		b := make([]byte, n) // zeros beyond the end, which stop the loops below
		short = copy(b, data) < n || short
		data = data[min(n, len(data)):]
		return b
	}
	table := func(fields byte) { // reads a colour table if fields announces one
		if fields&0x80 == 0 {
			return
		}
		palette = colours{} // the frame's own replaces the global one
		for i := range 2 << (fields & 7) {
			palette[i] = [3]byte(next(3))
		}
	}
	table(next(13)[10]) // the screen's table of colours
	const (
		extension      = 0x21
		graphicControl = 0xf9
	)
	for next(1)[0] == extension {
		label := next(1)[0]
		for n := next(1)[0]; n > 0; n = next(1)[0] { // blocks, the last one empty
			block := next(int(n))
			if label == graphicControl && n >= 4 && block[0]&1 != 0 {
				transparent = block[3]
			}
		}
	}
	table(next(9)[8]) // the frame's table, after left, top, width, height and fields
	if short {
		err = io.ErrUnexpectedEOF
	}
	return palette, transparent, err
}
