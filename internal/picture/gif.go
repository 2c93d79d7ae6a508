package picture

import (
	"bytes"
	"image"
	"image/gif"
	"io"
)

func sizeGIF(data []byte) (w, h int, err error) { return size(data, gif.DecodeConfig) }

// decodeGIF decodes the first frame. What it leaves of the canvas is filled with
// the transparent colour, or else colour 0.
func decodeGIF(data []byte) (Picture, error) {
	img, err := gif.Decode(bytes.NewReader(data))
	if err != nil {
		return Picture{}, err
	}
	w, h, err := sizeGIF(data)
	if err != nil {
		return Picture{}, err
	}
	palette, fill, err := gifColours(data)
	if err != nil {
		return Picture{}, err
	}
	canvas := image.NewPaletted(image.Rect(0, 0, w, h), nil)
	if fill != 0 {
		for i := range canvas.Pix {
			canvas.Pix[i] = fill
		}
	}
	frame := img.(*image.Paletted)
	b := frame.Rect
	for y := b.Min.Y; y < b.Max.Y; y++ {
		copy(canvas.Pix[canvas.PixOffset(b.Min.X, y):], frame.Pix[frame.PixOffset(b.Min.X, y):][:b.Dx()])
	}
	return indexed(canvas, &palette), nil
}

// gifColours returns the palette of the first frame and its transparent index,
// or 0. Go's decoder blanks the colour of that index; convert("RGB") shows it.
func gifColours(data []byte) (palette colours, transparent byte, err error) {
	r := bytes.NewReader(data)
	table := func(fields byte) error { // reads one if fields announces it
		if fields&0x80 == 0 {
			return nil
		}
		palette = colours{} // the frame's own replaces the global one
		for i := range 2 << (fields & 7) {
			if _, err := io.ReadFull(r, palette[i][:]); err != nil {
				return err
			}
		}
		return nil
	}
	var screen [13]byte
	if _, err := io.ReadFull(r, screen[:]); err != nil {
		return palette, 0, err
	}
	if err := table(screen[10]); err != nil {
		return palette, 0, err
	}
	const (
		extension      = 0x21
		graphicControl = 0xf9
	)
	for {
		kind, err := r.ReadByte()
		if err != nil {
			return palette, 0, err
		}
		if kind != extension { // the frame: left, top, width, height, fields
			var frame [9]byte
			if _, err := io.ReadFull(r, frame[:]); err != nil {
				return palette, 0, err
			}
			return palette, transparent, table(frame[8])
		}
		label, err := r.ReadByte()
		if err != nil {
			return palette, 0, err
		}
		for { // blocks of at most 255 bytes, the last one empty
			n, err := r.ReadByte()
			if err != nil {
				return palette, 0, err
			}
			if n == 0 {
				break
			}
			block := make([]byte, n)
			if _, err := io.ReadFull(r, block); err != nil {
				return palette, 0, err
			}
			if label == graphicControl && n >= 4 && block[0]&1 != 0 {
				transparent = block[3]
			}
		}
	}
}
