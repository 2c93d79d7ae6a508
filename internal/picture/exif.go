package picture

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/hex"
	"io"
	"regexp"
)

// The orientation of a file: 2 to 8, or 0 for upright pictures and where nothing can be read. As in Pillow, Exif decides, and
// XMP where Exif has no tag of orientation. Damaged data has no orientation. No function follows a pointer twice, and none
// reads more than the file.

// exifOrientation reads the orientation of an Exif block, which has the form of a TIFF file. known reports whether there is
// a tag, valid or not.
func exifOrientation(b []byte) (orientation int, known bool) {
	for bytes.HasPrefix(b, exifMagic) {
		b = b[len(exifMagic):]
	}
	v, ok := readTags(b)[tagOrientation]
	if !ok {
		return 0, false
	}
	return v.orientation(), true
}

var exifMagic = []byte("Exif\x00\x00")

// orientation returns the value of a tag of orientation. Pillow takes no bytes, and no orientations outside 2 to 8.
func (v tagValue) orientation() int {
	if v.kind == octet || v.kind == undefined || v.first < 2 || v.first > 8 {
		return 0
	}
	return v.first
}

var xmpTag = regexp.MustCompile(`tiff:Orientation(?:="|>)([0-9])`)

// xmpOrientation reads the orientation of an XMP packet.
func xmpOrientation(b []byte) int {
	if m := xmpTag.FindSubmatch(b); m != nil && m[1][0] >= '2' && m[1][0] <= '8' {
		return int(m[1][0] - '0')
	}
	return 0
}

// orientationOf returns the orientation of an Exif block, or else that of an XMP packet. Either may be empty.
func orientationOf(exif, xmp []byte) int {
	if o, known := exifOrientation(exif); known {
		return o
	}
	return xmpOrientation(xmp)
}

// jpegOrientation reads the segments before the first scan. Exif may fill several.
func jpegOrientation(data []byte) int {
	const app1, scan = 0xe1, 0xda
	xmpMagic := []byte("http://ns.adobe.com/xap/1.0/\x00")
	var exif, xmp []byte
	for at := 2; at+4 <= len(data); {
		if data[at] != 0xff || data[at+1] == 0xff || data[at+1] == 0 {
			at++
			continue
		}
		marker, n := data[at+1], int(binary.BigEndian.Uint16(data[at+2:]))
		if marker == scan {
			break
		}
		if marker == 0x01 || marker >= 0xd0 && marker <= 0xd8 { // without content
			at += 2
			continue
		}
		if n < 2 || at+2+n > len(data) {
			break
		}
		body := data[at+4 : at+2+n]
		switch {
		case marker != app1:
		case bytes.HasPrefix(body, exifMagic) && exif == nil:
			exif = body[len(exifMagic):len(body):len(body)]
		case bytes.HasPrefix(body, exifMagic):
			exif = append(exif, body[len(exifMagic):]...)
		case bytes.HasPrefix(body, xmpMagic):
			xmp = body[len(xmpMagic):]
		}
		at += 2 + n
	}
	return orientationOf(exif, xmp)
}

// pngOrientation reads the chunks of a PNG file. The last one of a kind counts. Old programs write Exif as text.
func pngOrientation(data []byte) int {
	var exif, text, xmp []byte
	for at := len("\x89PNG\r\n\x1a\n"); at+8 <= len(data); {
		n, kind := int(binary.BigEndian.Uint32(data[at:])), string(data[at+4:at+8])
		if n > len(data)-at-8 || kind == "IEND" {
			break
		}
		body := data[at+8 : at+8+n]
		switch kind {
		case "eXIf":
			exif = body
		case "tEXt", "zTXt":
			if b, ok := bytes.CutPrefix(body, []byte("Raw profile type exif\x00")); ok {
				if kind == "zTXt" {
					b = inflate(b[min(1, len(b)):])
				}
				text = profile(b)
			}
		case "iTXt":
			if b, ok := bytes.CutPrefix(body, []byte("XML:com.adobe.xmp\x00")); ok {
				xmp = international(b)
			}
		}
		at += 8 + n + len("CRC.")
	}
	if exif == nil {
		exif = text
	}
	return orientationOf(exif, xmp)
}

// inflate unpacks text. Pillow refuses more than 1 MiB.
func inflate(b []byte) []byte {
	r, err := zlib.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil
	}
	out, _ := io.ReadAll(io.LimitReader(r, 1<<20)) // what could be read is enough
	return out
}

// profile decodes what ImageMagick writes: an empty line, the name and the length, and then hexadecimal digits.
func profile(b []byte) []byte {
	lines := bytes.SplitN(b, []byte("\n"), 4)
	if len(lines) < 4 {
		return nil
	}
	digits := bytes.ReplaceAll(lines[3], []byte("\n"), nil)
	out := make([]byte, len(digits)/2)
	n, _ := hex.Decode(out, digits[:len(out)*2])
	return out[:n]
}

// international returns the text of an iTXt chunk, behind its key.
func international(b []byte) []byte {
	if len(b) < 2 {
		return nil
	}
	packed := b[0] != 0
	parts := bytes.SplitN(b[2:], []byte{0}, 3) // language, translated key, text
	switch {
	case len(parts) < 3:
		return nil
	case packed:
		return inflate(parts[2])
	}
	return parts[2]
}

// webpOrientation reads the chunks of a WebP file.
func webpOrientation(data []byte) int {
	var exif, xmp []byte
	const head = 12 // RIFF, size, WEBP
	for body := data[min(head, len(data)):]; ; {
		id, chunk, rest, err := nextChunk(body)
		if err != nil {
			return orientationOf(exif, xmp)
		}
		switch {
		case id == "EXIF" && exif == nil:
			exif = chunk
		case id == "XMP " && xmp == nil:
			xmp = chunk
		}
		body = rest
	}
}
