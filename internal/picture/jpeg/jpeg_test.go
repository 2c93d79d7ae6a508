package jpeg_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/picture"
)

const pictures = "../../../fixtures/images"

// Markers, table B.1.
const (
	markerSOF0 = 0xc0
	markerDHT  = 0xc4
	markerRST0 = 0xd0
	markerEOI  = 0xd9
	markerSOS  = 0xda
	markerDQT  = 0xdb
	markerDRI  = 0xdd
)

func readPicture(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(pictures, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// decode decodes a file as the program does: package picture refuses sizes.
func decode(data []byte) (picture.Picture, error) {
	f, err := picture.Open(data)
	if err != nil {
		return picture.Picture{}, err
	}
	return f.Decode(false)
}

// TestGolden compares with Pillow's pixels, bit for bit.
func TestGolden(t *testing.T) {
	var golden struct {
		Files map[string]struct{ Kind, RGB string }
	}
	if err := json.Unmarshal(readPicture(t, "golden.json"), &golden); err != nil {
		t.Fatal(err)
	}
	files := 0
	for name, want := range golden.Files {
		if want.Kind != "JPEG" {
			continue
		}
		files++
		p, err := decode(readPicture(t, "files/"+name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if sum := sha256.Sum256(p.Pix); hex.EncodeToString(sum[:]) != want.RGB {
			t.Errorf("%s: not what Pillow gives", name)
		}
	}
	if files < 10 {
		t.Errorf("%d files, want all kinds of JPEG", files)
	}
}

// TestBadJPEG changes a file where it hurts.
func TestBadJPEG(t *testing.T) {
	plain, progressive := readPicture(t, "files/hopper.jpg"), readPicture(t, "files/video-001.progressive.jpeg")
	restarts := readPicture(t, "files/video-001.restart2.jpeg")
	// find returns where the body of the first segment with that marker begins.
	find := func(data []byte, marker byte) int {
		i := bytes.Index(data, []byte{0xff, marker})
		if i < 0 {
			t.Fatalf("no marker %#x", marker)
		}
		return i + 4
	}
	cut := func(data []byte, marker byte) []byte { // without the segment
		i := find(data, marker)
		return slices.Delete(data, i-4, i-2+int(data[i-2])<<8+int(data[i-1]))
	}
	set := func(data []byte, at int, b ...byte) []byte { return slices.Replace(data, at, at+len(b), b...) }
	tests := []struct {
		name string
		from []byte
		edit func(d []byte) []byte
		want string
	}{
		{"12 bits", plain, func(d []byte) []byte { return set(d, find(d, markerSOF0), 12) }, "12 bits for a sample, want 8"},
		{"no height", plain, func(d []byte) []byte { return set(d, find(d, markerSOF0)+1, 0, 0) }, "128×0 pixels, want at least one"},
		{"two components", plain, func(d []byte) []byte { return set(d, find(d, markerSOF0)+5, 2) }, "frame header of wrong length"},
		{"sampling 0", plain, func(d []byte) []byte { return set(d, find(d, markerSOF0)+7, 0x20) }, "component 0: sampling 2×0, table 0"},
		{"sampling 3 of 2", plain, func(d []byte) []byte { return set(d, find(d, markerSOF0)+10, 0x31) }, "component 0: sampling 2×2 of 3×2, want a whole ratio"},
		{"two frames", plain, func(d []byte) []byte {
			i := find(d, markerSOF0)
			return slices.Insert(d, i-4, slices.Clone(d[i-4:i+15])...)
		}, "two frame headers"},
		{"no frame", plain, func(d []byte) []byte { return cut(d, markerSOF0) }, "a scan before the frame header"},
		{"no tables", plain, func(d []byte) []byte { return cut(cut(d, markerDQT), markerDQT) }, "a scan without its quantisation table"},
		{"no codes", plain, func(d []byte) []byte { return cut(d, markerDHT) }, "a scan without its Huffman table"},
		{"too many codes", plain, func(d []byte) []byte { return set(d, find(d, markerDHT)+1, 3) }, "bad Huffman table"},
		{"unknown component", plain, func(d []byte) []byte { return set(d, find(d, markerSOS)+1, 77) }, "bad scan header"},
		{"component twice", plain, func(d []byte) []byte { return set(d, find(d, markerSOS)+3, 1) }, "a scan with a component twice"},
		{"arithmetic", plain, func(d []byte) []byte { return set(d, find(d, markerSOF0)-3, 0xc9) }, "lossless, hierarchical or arithmetic coding (marker 0xc9)"},
		{"segment of length 1", plain, func(d []byte) []byte { return set(d, find(d, markerDQT)-2, 0, 1) }, "segment 0xdb of length 1"},
		{"end in a scan", plain, func(d []byte) []byte { return set(d, find(d, markerSOS)+500, 0xff, markerEOI) }, "too little data in a scan"},
		{"end after the header", plain, func(d []byte) []byte { return set(d, find(d, markerSOS)-4, 0xff, markerEOI) }, "no image before the end marker"},
		{"no end", plain, func(d []byte) []byte { return d[:len(d)-2] }, "truncated: unexpected EOF"},
		{"wrong restart", restarts, func(d []byte) []byte { return set(d, find(d, markerRST0+1)-3, markerRST0+5) }, "marker 0xd5, want restart marker 0xd1"},
		{"restarts too often", restarts, func(d []byte) []byte { return set(d, find(d, markerDRI), 0, 1) }, "marker 0xd9, want restart marker"},
		{"bad progression", progressive, func(d []byte) []byte { return set(d, find(d, markerSOS)+7, 0, 9) }, "bad progression in a scan header"},
		{"many scans", progressive, func(d []byte) []byte {
			d = d[:len(d)-2]
			last := d[bytes.LastIndex(d, []byte{0xff, markerSOS}):]
			return append(bytes.Join(append([][]byte{d}, slices.Repeat([][]byte{last}, 500)...), nil), 0xff, markerEOI)
		}, "more than 500 scans"},
	}
	for _, tt := range tests {
		_, err := decode(tt.edit(slices.Clone(tt.from)))
		if err == nil || !strings.HasPrefix(err.Error(), "JPEG: "+tt.want) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}
}

// TestJunkBetweenSegments: libjpeg skips what is not a marker.
func TestJunkBetweenSegments(t *testing.T) {
	data := readPicture(t, "files/hopper.jpg")
	want, err := decode(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, marker := range []byte{markerDQT, markerDHT, markerSOS, markerEOI} {
		at := bytes.LastIndex(data, []byte{0xff, marker})
		got, err := decode(slices.Insert(slices.Clone(data), at, 1, 2, 0xff, 0, 3, 0xff, 0xff))
		if err != nil || !bytes.Equal(got.Pix, want.Pix) {
			t.Errorf("junk before marker %#x: %v", marker, err)
		}
	}
}
