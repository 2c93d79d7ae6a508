package picture

import (
	"errors"
	"fmt"
	"image"
	"io"

	"golang.org/x/image/tiff"
)

// tiffKind is the name of the format.
const tiffKind = "TIFF"

// Tags of TIFF 6.0 that Go's decoder ignores or does not report.
const (
	tagBits         = 258
	tagCompression  = 259
	tagPhotometric  = 262
	tagFillOrder    = 266
	tagOrientation  = 274
	tagSamples      = 277
	tagRowsPerStrip = 278
	tagPlanes       = 284
	tagT4Options    = 292
	tagT6Options    = 293
	tagPredictor    = 317
	tagTileWidth    = 322
	tagTileLength   = 323
	tagExtraSamples = 338
	tagSampleFormat = 339
	tagXMP          = 700
)

// Values of tags.
const (
	compressedRLE, compressedGroup3, compressedGroup4 = 2, 3, 4 // facsimile
	whiteIsZero, blackIsZero, rgbColours              = 0, 1, 2 // photometric interpretations
	separatePlanes                                    = 2
	premultiplied, alpha                              = 1, 2 // extra samples
)

// openTIFF opens a TIFF file and decodes its first page.
func openTIFF(data []byte) (File, error) {
	if data[2] == '+' || data[3] == '+' {
		return File{}, errors.New("BigTIFF, which is not read: save it as TIFF of less than 4 GB, or as PNG")
	}
	tags := readTags(data)
	if err := tiffUnread(tags); err != nil {
		return File{}, err
	}
	first := func(tag uint16) int { return tags[tag].first }
	decode := func(r io.Reader) (image.Image, error) {
		img, err := tiff.Decode(r)
		invertTIFF(img, first)
		return img, err
	}
	f, _, err := standard(data, tiff.DecodeConfig, decode, func(img image.Image) (Picture, error) {
		switch m := img.(type) {
		case *image.RGBA:
			if first(tagExtraSamples) == premultiplied {
				divideByAlpha(m.Pix, 4, 1)
			}
		case *image.RGBA64:
			if first(tagExtraSamples) == premultiplied {
				divideByAlpha(m.Pix, 8, 2)
			}
		}
		return fromImage(img)
	})
	if err != nil {
		if unread := tiff.UnsupportedError(""); errors.As(err, &unread) {
			err = fmt.Errorf("unsupported: %s. Save it as grey levels, palette or RGB of 8 bits, or as PNG", string(unread))
		}
		return f, err
	}
	f.buffers += tiffBuffers(tags, data, f.W, f.H)
	f.scale = greyScale(max(1, first(tagBits)))
	if v, ok := tags[tagOrientation]; ok {
		f.tag = v.orientation()
	} else {
		f.tag = xmpOrientation(tags[tagXMP].bytes(data))
	}
	return f, nil
}

// invertTIFF inverts what Go's decoder has inverted in another way than Pillow. It inverts facsimile, where 0 is white, for
// one of the two interpretations only, and 16 bits, where Pillow ignores that white is zero.
func invertTIFF(img image.Image, first func(tag uint16) int) {
	photometric, fax := first(tagPhotometric), first(tagCompression) == compressedGroup3 || first(tagCompression) == compressedGroup4
	switch m := img.(type) {
	case *image.Gray:
		if fax && photometric == blackIsZero {
			invert(m.Pix, 0xff)
		}
	case *image.Paletted:
		if fax {
			invert(m.Pix, 1)
		}
	case *image.Gray16:
		if photometric == whiteIsZero {
			invert(m.Pix, 0xff)
		}
	}
}

func invert(pix []byte, mask byte) {
	for i := range pix {
		pix[i] ^= mask
	}
}

// tiffUnread returns an error for files that Pillow reads, and that Go's decoder does not read or reads in another way. The
// error uses the common names.
func tiffUnread(tags map[uint16]tagValue) error {
	first := func(tag uint16) int { return tags[tag].first }
	compression := first(tagCompression)
	if name, ok := map[int]string{
		compressedRLE: "CCITT RLE",
		6:             "old JPEG",
		7:             "JPEG",
		34887:         "LERC",
		34925:         "LZMA",
		50000:         "Zstandard",
		50001:         "WebP",
	}[compression]; ok {
		return fmt.Errorf("%s compression, which is not read: save it with LZW, Deflate or no compression, or as PNG", name)
	}
	if name, ok := map[int]string{
		4:     "a transparency mask instead of",
		5:     "CMYK",
		6:     "YCbCr",
		8:     "CIELab",
		32803: "raw camera",
		34892: "raw camera",
	}[first(tagPhotometric)]; ok {
		return fmt.Errorf("%s colours, which are not read: convert it to RGB", name)
	}
	if name, ok := map[int]string{
		2: "signed numbers",
		3: "floating-point numbers",
		4: "pixels of an unknown kind",
		5: "complex numbers",
		6: "complex numbers",
	}[first(tagSampleFormat)]; ok {
		return fmt.Errorf("%s (SampleFormat %d), which are not read: save it with 8 or 16 bits without a sign", name,
			first(tagSampleFormat))
	}
	group3, group4 := compression == compressedGroup3, compression == compressedGroup4
	differences := compression == 5 || compression == 8 || compression == 32946 // LZW and Deflate, which a predictor is for
	const twoDimensional, uncompressed, fillBits = 1, 2, 4
	switch samples, bits := tags[tagSamples], tags[tagBits]; {
	case first(tagFillOrder) == 2 && !group3 && !group4:
		return errors.New("the bits of each byte in reverse order (FillOrder 2), which is read with CCITT compression only: save it " +
			"again, or as PNG")
	case group3 && first(tagT4Options)&twoDimensional != 0:
		return errors.New("CCITT Group 3 compression in two dimensions, which is not read: save it with Group 4, LZW or Deflate, or as PNG")
	case group3 && first(tagT4Options)&uncompressed != 0, group4 && first(tagT6Options)&uncompressed != 0:
		return errors.New("CCITT compression with uncompressed parts, which is not read: save it with LZW or Deflate, or as PNG")
	case group3 && first(tagT4Options)&fillBits != 0:
		return errors.New("CCITT Group 3 compression with fill bits, which is not read: save it with Group 4, LZW or Deflate, or as PNG")
	case (group3 || group4) && max(1, bits.first) != 1:
		return fmt.Errorf("CCITT compression of %d bits, want 1", bits.first)
	case first(tagPredictor) == 3 && differences:
		return errors.New("the predictor for floating-point numbers, which is not read: save it without a predictor, or as PNG")
	case first(tagPredictor) == 2 && !differences:
		return fmt.Errorf("a predictor with compression %d, which has none: save it with LZW or Deflate, or as PNG", max(1, compression))
	case samples.count > 0 && bits.count > 0 && int64(samples.first) != bits.count:
		return fmt.Errorf("%d samples for each pixel, and BitsPerSample for %d: save it again, or as PNG", samples.first, bits.count)
	case bits.count > 1 && first(tagPlanes) == separatePlanes:
		return errors.New("colours in separate planes, want them interleaved")
	case first(tagPhotometric) == rgbColours && bits.count == 4 && first(tagExtraSamples) != premultiplied &&
		first(tagExtraSamples) != alpha:
		return errors.New("RGB with a fourth sample that is not alpha (ExtraSamples), which is not read: save it as RGB or RGBA, or as PNG")
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
