package picture

import (
	"bytes"
	"image/color"
)

// Memory returns about how many bytes Decode needs: the decoder's image, its buffers and the result. The bytes of the
// file are not included.
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
	if f.turns() != 0 { // the stored picture and the turned one
		n += int64(f.W) * int64(f.H) * int64(f.channels)
	}
	return f.buffers + n
}

// pixelBytes returns the bytes per pixel that Go's decoders use for a colour model.
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

// pngBuffers returns the bytes per pixel that image/png uses for a file with the given colour model.
func pngBuffers(data []byte, m color.Model) int64 {
	n := pixelBytes(m)
	// A transparent colour adds alpha to grey. Its chunk may stand anywhere in the file.
	if n < 4 && (m == color.GrayModel || m == color.Gray16Model) && bytes.Contains(data, []byte("tRNS")) {
		n *= 4
	}
	const interlaced = 28 // in IHDR
	if len(data) > interlaced && data[interlaced] != 0 {
		n *= 2 // the passes, then the whole image
	}
	return n
}

// tiffBuffers returns the bytes that x/image/tiff uses for the largest strip or tile of a file with the given tags.
// Compressed data may hold more than the pixels.
func tiffBuffers(tags map[uint16]tagValue, data []byte, w, h int) int64 {
	perPixel := int64(8) // the decoder's limit
	switch tags[tagCompression].first {
	case 0, 1: // none
		return int64(len(data))
	case 2, 3, 4: // facsimile, 1 bit per pixel
		perPixel = 1
	}
	bw, bh := int64(w), int64(h)
	if rows := tags[tagRowsPerStrip].first; rows > 0 {
		bh = min(bh, int64(rows))
	}
	if tw, th := tags[tagTileWidth].first, tags[tagTileLength].first; tw > 0 && th > 0 {
		bw, bh = int64(tw), int64(th)
	}
	const expansion = 4096 // the best ratio of any TIFF compression
	block := int64(len(data)) * expansion
	if bh > 0 && bw <= block/bh { // avoid overflow of the product
		block = min(block, bw*bh*perPixel)
	}
	return 3 * block // a growing buffer of up to 2·block is copied from one of half its size
}
