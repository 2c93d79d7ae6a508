package picture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"io"

	"golang.org/x/image/tiff"
)

// Tags of TIFF 6.0 that Go's decoder ignores or does not report.
const (
	tagBits         = 258
	tagCompression  = 259
	tagPhotometric  = 262
	tagOrientation  = 274
	tagRowsPerStrip = 278
	tagPlanes       = 284
	tagTileWidth    = 322
	tagTileLength   = 323
	tagExtraSamples = 338
)

// openTIFF opens a TIFF file and decodes its first page. Pillow applies the orientation of TIFF files, unlike that of
// other formats.
func openTIFF(data []byte) (File, error) {
	tags := tiffTags(data)
	if err := tiffUnread(tags); err != nil {
		return File{}, err
	}
	orientation := tags[tagOrientation]
	decode := func(r io.Reader) (image.Image, error) {
		img, err := tiff.Decode(r)
		if v, ok := tags[tagPhotometric]; ok && v == 0 { // white is zero: Pillow ignores this with 16 bits, so undo it
			if m, ok := img.(*image.Gray16); ok {
				for i := range m.Pix {
					m.Pix[i] ^= 0xff
				}
			}
		}
		return img, err
	}
	f, _, err := standard(data, tiff.DecodeConfig, decode, func(img image.Image) (Picture, error) {
		const separate, premultiplied = 2, 1
		switch m := img.(type) {
		case *image.RGBA:
			if tags[tagExtraSamples] == premultiplied {
				divideByAlpha(m.Pix, 4, 1)
			}
		case *image.RGBA64:
			if tags[tagExtraSamples] == premultiplied {
				divideByAlpha(m.Pix, 8, 2)
			}
		}
		p, err := fromImage(img)
		if p.C > 1 && tags[tagPlanes] == separate {
			return Picture{}, errors.New("colours in separate planes, want them interleaved")
		}
		return orient(p, orientation), err
	})
	if err != nil {
		return f, err
	}
	f.buffers += tiffBuffers(tags, data, f.W, f.H)
	f.scale = greyScale(max(1, tags[tagBits]))
	if orientation > 1 {
		f.image = func() (image.Image, error) {
			return nil, fmt.Errorf("the tag of orientation turns it (%d): save it upright", orientation)
		}
		f.buffers += int64(f.W) * int64(f.H) * int64(f.channels)
	}
	if orientation >= 5 {
		f.W, f.H = f.H, f.W
	}
	return f, nil
}

// tiffUnread returns an error for files that Pillow reads and Go's decoder does not. The error uses the common names.
func tiffUnread(tags map[uint16]int) error {
	if name, ok := map[int]string{6: "old JPEG", 7: "JPEG", 34887: "LERC", 34925: "LZMA", 50000: "Zstandard", 50001: "WebP"}[tags[tagCompression]]; ok {
		return fmt.Errorf("%s compression, which is not read: save it with LZW, Deflate or no compression, or as PNG", name)
	}
	if name, ok := map[int]string{5: "CMYK", 6: "YCbCr", 8: "CIELab"}[tags[tagPhotometric]]; ok {
		return fmt.Errorf("%s colours, which are not read: convert it to RGB", name)
	}
	return nil
}

// divideByAlpha undoes the multiplication by alpha in the first byte of each channel. It rounds down.
func divideByAlpha(pix []byte, step, channel int) {
	for ; len(pix) > 0; pix = pix[step:] {
		a := int(pix[3*channel])
		for c := 0; c < 3*channel; c += channel {
			if a == 0 {
				pix[c] = 0
			} else {
				pix[c] = byte(min(int(pix[c])*255/a, 255))
			}
		}
	}
}

// orient turns an image upright, given its orientation tag.
func orient(p Picture, orientation int) Picture {
	if orientation < 2 || orientation > 8 {
		return p
	}
	flipX := orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8
	flipY := orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7
	swap := orientation >= 5
	q := New(p.W, p.H, p.C)
	if swap {
		q.W, q.H = p.H, p.W
	}
	for y := range q.H {
		row := q.Row(y)
		for x := range q.W {
			sx, sy := x, y
			if swap {
				sx, sy = y, x
			}
			if flipX {
				sx = p.W - 1 - sx
			}
			if flipY {
				sy = p.H - 1 - sy
			}
			copy(row[x*p.C:(x+1)*p.C], p.Row(sy)[sx*p.C:])
		}
	}
	return q
}

// tiffTags returns the tags of the first page whose type is BYTE, SHORT or LONG. Each has the first value that is stored in
// its entry.
func tiffTags(data []byte) map[uint16]int {
	if len(data) < 8 {
		return nil
	}
	var order binary.ByteOrder = binary.LittleEndian
	if data[0] == 'M' {
		order = binary.BigEndian
	}
	start := int(order.Uint32(data[4:]))
	if start > len(data)-2 {
		return nil
	}
	const octet, short, long, entry = 1, 3, 4, 12 // types, and bytes of an entry
	tags, rest := map[uint16]int{}, data[start+2:]
	for n := order.Uint16(data[start:]); n > 0 && len(rest) >= entry; n-- {
		tag := order.Uint16(rest)
		if _, seen := tags[tag]; !seen {
			switch order.Uint16(rest[2:]) {
			case octet:
				tags[tag] = int(rest[8])
			case short:
				tags[tag] = int(order.Uint16(rest[8:]))
			case long:
				tags[tag] = int(order.Uint32(rest[8:]))
			}
		}
		rest = rest[entry:]
	}
	return tags
}
