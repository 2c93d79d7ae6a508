package picture

import (
	"bytes"
	"image/color"
)

// Memory returns about how many bytes Decode takes: what the decoder makes, its
// buffers, and the result. The file's own bytes are not among them.
func (f File) Memory(grey bool) int64 {
	n := int64(f.W) * int64(f.H)
	switch {
	case f.channels == 1 && !grey:
		n *= 1 + 3
	case f.channels == 3 && grey:
		n *= 3 + 1
	default:
		n *= int64(f.channels)
	}
	return f.buffers + n
}

// pixelBytes is what Go's decoders take for a pixel of a colour model.
func pixelBytes(m color.Model) int64 {
	switch m {
	case color.GrayModel:
		return 1
	case color.Gray16Model:
		return 2
	case color.RGBA64Model, color.NRGBA64Model:
		return 8
	}
	if _, ok := m.(color.Palette); ok {
		return 1
	}
	return 4
}

// pngBuffers is what image/png takes for a pixel of a file with the given model.
func pngBuffers(data []byte, m color.Model) int64 {
	n := pixelBytes(m)
	// A transparent colour, wherever in the file it says so, adds alpha to grey.
	if n < 4 && (m == color.GrayModel || m == color.Gray16Model) && bytes.Contains(data, []byte("tRNS")) {
		n *= 4
	}
	const interlaced = 28 // in IHDR
	if len(data) > interlaced && data[interlaced] != 0 {
		n *= 2 // the passes, then all
	}
	return n
}

// tiffBuffers is what x/image/tiff takes for the largest strip or tile, in bytes, of
// a file with the given tags. What is compressed may hold more than the pixels.
func tiffBuffers(tags map[uint16]int, data []byte, w, h int) int64 {
	perPixel := int64(8) // where the decoder stops
	switch tags[tagCompression] {
	case 0, 1: // none
		return int64(len(data))
	case 2, 3, 4: // of facsimiles, which have a bit for each
		perPixel = 1
	}
	bw, bh := int64(w), int64(h)
	if rows := tags[tagRowsPerStrip]; rows > 0 {
		bh = min(bh, int64(rows))
	}
	if tw, th := tags[tagTileWidth], tags[tagTileLength]; tw > 0 && th > 0 {
		bw, bh = int64(tw), int64(th)
	}
	const expansion = 4096 // no compression of TIFF does better
	block := int64(len(data)) * expansion
	if bh > 0 && bw <= block/bh { // else the product may overflow
		block = min(block, bw*bh*perPixel)
	}
	return 3 * block // a buffer grows to twice its size, from half of that
}
