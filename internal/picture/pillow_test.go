package picture

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// A pillowCase is a case of testdata/pillow.json.gz; pillow.py there says what the fields mean.
type pillowCase struct {
	Name, File, Refused, Numbers string
	Tag                          int
	Damaged                      bool
	Pillow, Apply, Ignore        *pillowSeen
}

type pillowSeen struct {
	Size   [2]int
	RGB, L string
}

func readPillowCases(t testing.TB) []pillowCase {
	t.Helper()
	f, err := os.Open("testdata/pillow.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	gz, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Cases []pillowCase }
	if err := json.NewDecoder(gz).Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all.Cases
}

func (c pillowCase) data(t testing.TB) []byte {
	t.Helper()
	data, err := hex.DecodeString(c.File)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// want returns what Pillow sees.
func (c pillowCase) want(o Orientation) *pillowSeen {
	switch {
	case o == Apply && c.Apply != nil:
		return c.Apply
	case o == Ignore && c.Ignore != nil:
		return c.Ignore
	}
	return c.Pillow
}

// sum is the hash of pillow.py.
func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])[:6]
}

// Each file has the pixels that Pillow sees, or is refused.
func TestPillow(t *testing.T) {
	refused := map[string]int{}
	for _, c := range readPillowCases(t) {
		data := c.data(t)
		for _, o := range []Orientation{Pillow, Ignore, Apply} {
			if c.Refused != "" {
				continue
			}
			f, err := Open(data)
			if err != nil {
				refused[err.Error()]++
				break
			}
			f, want := f.Oriented(o), c.want(o)
			if !c.Damaged && f.tag != c.Tag {
				t.Errorf("%s: orientation %d, want %d", c.Name, f.tag, c.Tag)
			}
			if got := [2]int{f.W, f.H}; got != want.Size {
				t.Errorf("%s: %s: size %d, want %d", c.Name, o, got, want.Size)
			}
			p, err := f.Decode(false)
			if err != nil {
				refused[err.Error()]++
				break
			}
			if got := sum(p.Pix); got != want.RGB {
				t.Errorf("%s: %s: other colours than Pillow's", c.Name, o)
			}
			if p, _ = decodeAs(data, o, true); sum(p.Pix) != want.L {
				t.Errorf("%s: %s: other grey levels than Pillow's", c.Name, o)
			}
		}
	}
	for what, n := range map[string]int{
		"FillOrder 2": 20, "in two dimensions": 8, "fill bits": 4, "CCITT RLE": 4, "unsupported: BitsPerSample of": 22, "a predictor with compression": 8,
		"SampleFormat": 4, "ExtraSamples": 3, "unsupported: extra samples": 2, "separate planes": 1, "CMYK": 1, "YCbCr": 1, "JPEG compression": 1, "LZMA": 1,
		"Zstandard": 1, "BigTIFF": 1, "BitsPerSample for 1": 1, "invalid color index": 1,
	} {
		for err, times := range refused {
			if strings.Contains(err, what) {
				n -= times
				delete(refused, err)
			}
		}
		if n != 0 {
			t.Errorf("%q: %d more files were to be refused so", what, n)
		}
	}
	for err := range refused {
		t.Errorf("refused: %s", err)
	}
}

func decodeAs(data []byte, o Orientation, grey bool) (Picture, error) {
	f, err := Open(data)
	if err != nil {
		return Picture{}, err
	}
	return f.Oriented(o).Decode(grey)
}

// Labels have the numbers of Pillow's arrays, except that grey levels of few bits are not spread over 0 to 255.
func TestPillowLevels(t *testing.T) {
	read := 0
	for _, c := range readPillowCases(t) {
		if c.Numbers == "" || strings.Contains(c.Name, " 2 bits") || strings.Contains(c.Name, " 4 bits") {
			continue
		}
		f, err := Open(c.data(t))
		if err != nil {
			continue
		}
		l, err := f.Levels()
		if err != nil {
			if f.image != nil && !strings.Contains(err.Error(), "color index") {
				t.Errorf("%s: %v", c.Name, err)
			}
			continue
		}
		var b bytes.Buffer
		for k := range l.W * l.H {
			binary.Write(&b, binary.LittleEndian, int32(l.At(k)))
		}
		if read++; sum(b.Bytes()) != c.Numbers || [2]int{l.W, l.H} != c.Pillow.Size {
			t.Errorf("%s: other numbers than Pillow's", c.Name)
		}
	}
	if read < 80 {
		t.Errorf("%d files have been read", read)
	}
}

// Every orientation turns the numbers of a mask as it turns a picture.
func TestOrientedLevels(t *testing.T) {
	read := 0
	for _, c := range readPillowCases(t) {
		f, err := Open(c.data(t))
		if err != nil || c.Tag == 0 || !slices.Contains([]string{"1", "L"}, modeOf(c)) {
			continue
		}
		for _, o := range []Orientation{Pillow, Ignore, Apply} {
			l, err := f.Oriented(o).Levels()
			if err != nil {
				continue
			}
			grey := make([]byte, l.W*l.H)
			for k := range grey {
				grey[k] = byte(l.At(k)) * l.scale
			}
			if read++; sum(grey) != c.want(o).L {
				t.Errorf("%s: %s: other numbers than Pillow's", c.Name, o)
			}
		}
	}
	if read < 20 {
		t.Errorf("%d files have been read", read)
	}
}

func modeOf(c pillowCase) string {
	for _, mode := range []string{"1", "L"} {
		if strings.Contains(c.Name, "mode "+mode+" ") {
			return mode
		}
	}
	if strings.HasPrefix(c.Name, "tiff group4") || strings.HasPrefix(c.Name, "tiff grey orientation") {
		return "L"
	}
	return ""
}

// Whatever an Exif block, an XMP packet or a file around them holds, reading its orientation ends and gives 0 or 2 to 8.
func FuzzOrientation(f *testing.F) {
	for _, c := range readPillowCases(f) {
		if c.Tag != 0 || c.Damaged {
			f.Add(c.data(f))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		exif, _ := exifOrientation(data)
		got := []int{exif, xmpOrientation(data), jpegOrientation(data), pngOrientation(data), webpOrientation(data), xmpOrientation(profile(data)), xmpOrientation(international(data))}
		for i, o := range got {
			if o != 0 && (o < 2 || o > 8) {
				t.Errorf("reader %d: orientation %d", i, o)
			}
		}
	})
}
