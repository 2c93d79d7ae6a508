// Package jpeg decodes JPEG files with the same bits as libjpeg-turbo's defaults: baseline, extended and progressive
// files with Huffman coding and 8-bit samples.
//
// Networks were trained on libjpeg's pixels, and the standard library's image/jpeg gives others. It repeats chroma
// samples, where libjpeg interpolates, and its inverse DCT rounds differently. It also lacks some chroma samplings.
// The section numbers in comments refer to ITU-T T.81.
//
// # Invariants
//
// Files are untrusted: memory is bounded by the size in the header and by the length of the file.
package jpeg

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// An Image is a JPEG file that has been read in part.
type Image struct {
	W, H int // pixels

	data         []byte
	at           int // offset of the next segment
	progressive  bool
	components   []component
	hmax, vmax   int // maxima of the components' h and v
	mcusX, mcusY int // minimum coded units, each of hmax·8 by vmax·8 pixels
	jfif         bool
	adobe        int // colour transform of Adobe's segment, -1 without one
	quant        [4]*[64]uint16
	dc, ac       [4]*huffman
	restart      int // MCUs between restart markers, 0 for none
	scans        int
	block        [64]int16 // scratch
}

// A component is one plane: luma, chroma or an ink.
type component struct {
	id     byte
	h, v   int // sampling factors
	table  byte
	w, ht  int         // samples
	stride int         // samples of a row, in whole MCUs
	plane  []byte      // in whole MCUs
	coeffs [][64]int16 // of blocks, row by row, in whole MCUs; nil unless progressive
	quant  *[64]uint16 // the table at the component's first scan
}

// Markers, table B.1.
const (
	markerSOF0 = 0xc0
	markerSOF2 = 0xc2
	markerDHT  = 0xc4
	markerRST0 = 0xd0
	markerSOI  = 0xd8
	markerEOI  = 0xd9
	markerSOS  = 0xda
	markerDQT  = 0xdb
	markerDRI  = 0xdd
	markerAPP0 = 0xe0
	markerAPPE = 0xee
)

// maxScans is far more than real files have, about 10. It bounds the decoding time of small files, because a scan
// with little data can change many blocks.
const maxScans = 500

// Open reads a file up to the frame header, which contains the size. The caller must refuse sizes that are too large
// before it calls Decode.
func Open(data []byte) (*Image, error) {
	f := &Image{data: data, at: 2, adobe: -1}
	for f.components == nil {
		if end, err := f.next(); err != nil {
			return nil, err
		} else if end {
			return nil, errors.New("no image before the end marker")
		}
	}
	return f, nil
}

// Channels returns the number of channels that Decode returns: 1 or 3.
func (f *Image) Channels() int { return min(len(f.components), 3) }

// Buffers returns the number of bytes that Decode needs in addition to its result. These are the planes and, if the
// file is progressive, the coefficients.
func (f *Image) Buffers() int64 {
	n := int64(0)
	for _, c := range f.components {
		n += int64(c.stride) * int64(f.mcusY*c.v*8)
	}
	if f.progressive {
		n *= 1 + 2 // 16 bits for each sample
	}
	return n
}

// Decode returns the pixels row by row. A grey image has W·H bytes; all others have three interleaved channels, red
// first. Decode may be called once.
func (f *Image) Decode() (pix []byte, channels int, err error) {
	for end := false; !end; {
		if end, err = f.next(); err != nil {
			return nil, 0, err
		}
	}
	if f.scans == 0 {
		return nil, 0, errors.New("no image before the end marker")
	}
	for i := range f.components {
		c := &f.components[i]
		if c.quant == nil {
			return nil, 0, fmt.Errorf("no scan has component %d", i)
		}
		if f.progressive {
			c.reconstruct()
		}
	}
	pix, channels = f.colours()
	return pix, channels, nil
}

// next reads the next segment and reports whether it is the end marker.
func (f *Image) next() (end bool, err error) {
	data := f.data
	// Skip bytes that are not a marker, as libjpeg does.
	for f.at+1 < len(data) && (data[f.at] != 0xff || data[f.at+1] == 0 || data[f.at+1] == 0xff) {
		f.at++
	}
	if f.at+1 >= len(data) {
		return false, io.ErrUnexpectedEOF
	}
	marker := data[f.at+1]
	f.at += 2
	if marker == markerEOI || marker == 0x01 || markerRST0 <= marker && marker <= markerSOI {
		return marker == markerEOI, nil // these markers have no content
	}
	if f.at+2 > len(data) {
		return false, io.ErrUnexpectedEOF
	}
	n := int(binary.BigEndian.Uint16(data[f.at:]))
	if n < 2 {
		return false, fmt.Errorf("segment %#x of length %d", marker, n)
	}
	if f.at+n > len(data) {
		return false, io.ErrUnexpectedEOF
	}
	body := data[f.at+2 : f.at+n]
	f.at += n
	if marker == markerSOS {
		used, err := f.scan(body, data[f.at:])
		f.at += used
		return false, err
	}
	return false, f.segment(marker, body)
}

// segment reads a segment that is not a scan.
func (f *Image) segment(marker byte, body []byte) error {
	switch marker {
	case markerSOF0, markerSOF0 + 1, markerSOF2:
		f.progressive = marker == markerSOF2
		return f.header(body)
	case markerDHT:
		return f.huffmanTables(body)
	case markerDQT:
		return f.quantTables(body)
	case markerDRI:
		if len(body) < 2 {
			return errors.New("short DRI segment")
		}
		f.restart = int(binary.BigEndian.Uint16(body))
	case markerAPP0:
		f.jfif = f.jfif || len(body) >= 14 && string(body[:5]) == "JFIF\x00"
	case markerAPPE:
		if len(body) >= 12 && string(body[:5]) == "Adobe" {
			f.adobe = int(body[11])
		}
	default:
		if markerSOF0 < marker && marker < markerSOI {
			return fmt.Errorf("lossless, hierarchical or arithmetic coding (marker %#x), want baseline or progressive", marker)
		}
	}
	return nil
}

// header reads a frame header, B.2.2.
func (f *Image) header(b []byte) error {
	if f.components != nil {
		return errors.New("two frame headers")
	}
	if len(b) < 6 || len(b) != 6+3*int(b[5]) {
		return errors.New("frame header of wrong length")
	}
	if b[0] != 8 {
		return fmt.Errorf("%d bits for a sample, want 8", b[0])
	}
	f.H, f.W = int(binary.BigEndian.Uint16(b[1:])), int(binary.BigEndian.Uint16(b[3:]))
	n := int(b[5])
	if n != 1 && n != 3 && n != 4 {
		return fmt.Errorf("%d components, want 1, 3 or 4", n)
	}
	f.components = make([]component, n)
	for i := range f.components {
		c := &f.components[i]
		s := b[6+3*i:]
		c.id, c.h, c.v, c.table = s[0], int(s[1]>>4), int(s[1]&15), s[2]
		if c.h < 1 || c.h > 4 || c.v < 1 || c.v > 4 || c.table > 3 {
			return fmt.Errorf("component %d: sampling %d×%d, table %d", i, c.h, c.v, c.table)
		}
		f.hmax, f.vmax = max(f.hmax, c.h), max(f.vmax, c.v)
	}
	f.mcusX, f.mcusY = ceilDiv(f.W, 8*f.hmax), ceilDiv(f.H, 8*f.vmax)
	for i := range f.components {
		c := &f.components[i]
		if f.hmax%c.h != 0 || f.vmax%c.v != 0 {
			return fmt.Errorf("component %d: sampling %d×%d of %d×%d, want a whole ratio", i, c.h, c.v, f.hmax, f.vmax)
		}
		c.w, c.ht = ceilDiv(f.W*c.h, f.hmax), ceilDiv(f.H*c.v, f.vmax)
		c.stride = f.mcusX * c.h * 8
	}
	return nil
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// quantTables reads quantisation tables, B.2.4.1.
func (f *Image) quantTables(b []byte) error {
	for len(b) > 0 {
		wide, id := b[0]>>4, b[0]&15
		size := 64 * (1 + int(wide))
		if wide > 1 || id > 3 || len(b) < 1+size {
			return errors.New("bad quantisation table")
		}
		q := new([64]uint16)
		for i := range q {
			if wide == 1 {
				q[zigzag[i]] = binary.BigEndian.Uint16(b[1+2*i:])
			} else {
				q[zigzag[i]] = uint16(b[1+i])
			}
		}
		f.quant[id] = q
		b = b[1+size:]
	}
	return nil
}

// zigzag maps the position of a coefficient in the file to its place in a block, row by row (figure A.6). Damaged
// files may exceed it by up to 15.
var zigzag = [64 + 16]uint8{
	0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5,
	12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
	58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
	63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63,
}
