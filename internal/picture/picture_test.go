package picture

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"image"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/testfile"
)

const pictures = "../../fixtures/images"

// pictureGolden is golden.json of fixtures/images; make.py there says what the
// fields mean.
type pictureGolden struct {
	Files map[string]struct {
		Kind, Mode string
		Size       [2]int
		RGB, Grey  string
		Resized    map[string]string
		Cropped    map[string]string
	}
	Geometry []struct {
		Size    [2]int
		Resize  int
		Resized [2]int
		Crop    [2]int
		At      [2]int
	}
}

func readPictureGolden(t *testing.T) pictureGolden {
	t.Helper()
	var g pictureGolden
	testfile.JSON(t, filepath.Join(pictures, "golden.json"), &g)
	return g
}

func readPicture(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(pictures, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// decodeData decodes the bytes of a file.
func decodeData(data []byte, grey bool) (Picture, error) {
	f, err := Open(data)
	if err != nil {
		return Picture{}, err
	}
	return f.Decode(grey)
}

func decode(t testing.TB, name string, grey bool) Picture {
	t.Helper()
	p, err := decodeData(readPicture(t, name), grey)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return p
}

func digest(parts ...Picture) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p.Pix)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// TestPictures compares every file with what Pillow and torchvision made of it,
// bit for bit: decoded, as grey, resized by every filter, and cropped. -v prints
// the table.
func TestPictures(t *testing.T) {
	golden := readPictureGolden(t)
	entries, err := os.ReadDir(filepath.Join(pictures, "files"))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(golden.Files) {
		t.Errorf("%d files, %d in golden.json", len(entries), len(golden.Files))
	}
	kinds := map[string]int{}
	for _, entry := range entries {
		name := entry.Name()
		want, ok := golden.Files[name]
		if !ok {
			t.Errorf("%s: not in golden.json", name)
			continue
		}
		p, grey := decode(t, "files/"+name, false), decode(t, "files/"+name, true)
		if p.W != want.Size[0] || p.H != want.Size[1] || p.C != 3 || grey.C != 1 {
			t.Errorf("%s: %d×%d×%d and ×%d, want %v, 3 and 1", name, p.W, p.H, p.C, grey.C, want.Size)
			continue
		}
		exact := func(what, got, want string) string {
			if got != want {
				t.Errorf("%s: %s: not what Pillow gives", name, what)
				return "differs"
			}
			return "exact"
		}
		row := []any{name, want.Kind, want.Mode, fmt.Sprintf("%d×%d", p.W, p.H), exact("RGB", digest(p), want.RGB), exact("grey", digest(grey), want.Grey)}
		if len(want.Resized) != len(filters) || len(want.Cropped) == 0 {
			t.Errorf("%s: golden.json has %d and %d filters, want all %d and some", name, len(want.Resized), len(want.Cropped), len(filters))
		}
		var resized, cropped string
		for filter, want := range want.Resized {
			resized = exact("resized by "+filter, resizedDigest(t, p, grey, filter), want)
		}
		for filter, want := range want.Cropped {
			f, _ := ParseFilter(filter)
			w, h := ShortSide(p.W, p.H, 104)
			q, err := Resize(p, w, h, f, CentreCrop(w, h, 96, 96))
			if err != nil {
				t.Fatal(err)
			}
			cropped = exact("resized by "+filter+" and cropped", digest(q), want)
		}
		t.Logf("%-50s %-4s %-5s %9s  decoded %s, grey %s, resized %s, cropped %s", append(row, resized, cropped)...)
		kinds[want.Kind]++
	}
	t.Logf("%d files: %v", len(entries), kinds)
}

// resizedDigest resizes to sizes() of make.py.
func resizedDigest(t *testing.T, p, grey Picture, filter string) string {
	t.Helper()
	f, err := ParseFilter(filter)
	if err != nil {
		t.Fatal(err)
	}
	whole := func(p Picture, w, h int) Picture {
		q, err := Resize(p, w, h, f, image.Rect(0, 0, w, h))
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	return digest(
		whole(p, max(1, p.W*3/7), max(1, p.H*2/5)),
		whole(p, p.W+p.W/3+1, max(1, p.H/2)),
		whole(p, max(1, p.W/2), p.H),
		whole(p, 61, 37),
		whole(grey, 61, 37))
}

// TestKind has files under every name but their own: none is looked at.
func TestKind(t *testing.T) {
	tests := []struct {
		data string
		want string
	}{
		{"", "empty file, want an image"},
		{"\xff\xd8", "not an image"},
		{"<html>404</html>", "not an image"},
		{"RIFF\x04\x00\x00\x00WAVE", "not an image"},
		{"II+\x00\x08\x00\x00\x00", "TIFF: BigTIFF"},
		{"BM", "BMP: truncated: unexpected EOF"},
		{"GIF89a", "GIF: "},
		{"II*\x00", "TIFF: truncated"},
		{"MM\x00*\xff\xff\xff\xff", "TIFF: "},
		{"RIFF\x04\x00\x00\x00WEBP", "WebP: truncated: unexpected EOF"},
		{"\x89PNG\r\n\x1a\n", "PNG: truncated"},
		{"\xff\xd8\xff", "JPEG: truncated"},
	}
	for _, tt := range tests {
		_, err := decodeData([]byte(tt.data), false)
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%q: error %v, want %q", tt.data, err, tt.want)
		}
	}
}

// TestRefused names what Pillow reads and this package does not, or what neither
// does.
func TestRefused(t *testing.T) {
	tests := map[string]string{
		"testimgari.jpg":                   "JPEG: lossless, hierarchical or arithmetic coding (marker 0xc9), want baseline or progressive",
		"pal8rle.bmp":                      "BMP: compressed, of 16 bits or of OS/2, want",
		"rgb16-565.bmp":                    "BMP: compressed, of 16 bits or of OS/2, want",
		"pal8os2.bmp":                      "BMP: compressed, of 16 bits or of OS/2, want",
		"hopper_gray_4bpp.tif":             "TIFF: unsupported: BitsPerSample of 4. Save it as grey levels, palette or RGB of 8 bits, or as PNG",
		"tiff_strip_cmyk_jpeg.tif":         "TIFF: JPEG compression, which is not read: save it with LZW, Deflate or no compression, or as PNG",
		"tiff_tiled_planar_16bit_RGB.tiff": "TIFF: colours in separate planes, want them interleaved",
		"no_palette.gif":                   "GIF: gif: no color table",
		"decompression_bomb.gif":           "GIF: gif: frame bounds larger than image bounds",
		"zero_width.gif":                   "GIF: 0×",
		"invalid-noend.png":                "PNG: truncated: unexpected EOF",
	}
	entries, err := os.ReadDir(filepath.Join(pictures, "refused"))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(tests) {
		t.Errorf("%d files, want %d", len(entries), len(tests))
	}
	for name, want := range tests {
		_, err := decodeData(readPicture(t, "refused/"+name), false)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
	}
}

// onePerKind is a file of every kind that ends with the pixels of its only frame.
var onePerKind = []string{"hopper.jpg", "video-001.progressive.jpeg", "re-ycck-420.jpg", "rgb_trns.png", "hopper.webp", "tux.lossless.webp", "hopper.gif", "rgb24.bmp", "16bit.cropped.tif"}

func TestTruncatedPicture(t *testing.T) {
	for _, name := range onePerKind {
		data := readPicture(t, "files/"+name)
		for _, n := range []int{len(data) / 20, len(data) / 3, len(data) * 9 / 10, len(data) - len(data)/50 - 1} {
			if _, err := decodeData(data[:n:n], false); err == nil {
				t.Errorf("%s: no error after %d of %d bytes", name, n, len(data))
			}
		}
	}
}

func TestTrailingJunk(t *testing.T) {
	for _, name := range onePerKind {
		data := readPicture(t, "files/"+name)
		want := decode(t, "files/"+name, false)
		got, err := decodeData(append(slices.Clone(data), bytes.Repeat([]byte{0xff, 0xd8, 0}, 100)...), false)
		if err != nil || !bytes.Equal(got.Pix, want.Pix) {
			t.Errorf("%s: bytes behind the image change it: %v", name, err)
		}
	}
}

// TestSize: Open sees bombs from the header, without taking memory for them.
func TestSize(t *testing.T) {
	header := func(w, h uint32) []byte {
		ihdr := slices.Concat([]byte("IHDR"), binary.BigEndian.AppendUint32(nil, w), binary.BigEndian.AppendUint32(nil, h), []byte{8, 2, 0, 0, 0})
		return slices.Concat([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), ihdr, binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(ihdr)))
	}
	tests := []struct {
		w, h uint32
		want string
	}{
		{13377, 13377, ""},
		{13378, 13378, "PNG: 13378×13378 pixels, want at most 178956970 in all (a decompression bomb?)"},
		{1 << 20, 170, ""},
		{1<<20 + 1, 1, "PNG: 1048577×1 pixels, want at most 1048576 along a side"},
		{1<<31 - 1, 1<<31 - 1, "PNG: "},
	}
	for _, tt := range tests {
		data := header(tt.w, tt.h)
		f, err := Open(data)
		if tt.want == "" {
			if err != nil || f.W != int(tt.w) || f.H != int(tt.h) {
				t.Errorf("%d×%d: %d×%d, %v", tt.w, tt.h, f.W, f.H, err)
			}
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%d×%d: error %v, want %q", tt.w, tt.h, err, tt.want)
		}
		if _, derr := decodeData(data, false); derr == nil || derr.Error() != err.Error() {
			t.Errorf("%d×%d: decoding says %v, Open %v", tt.w, tt.h, derr, err)
		}
	}
}

// FuzzDecode: no panic, no more memory than the size lets expect, and
// results that hang together.
func FuzzDecode(f *testing.F) {
	for _, dir := range []string{"files", "refused"} {
		entries, err := os.ReadDir(filepath.Join(pictures, dir))
		if err != nil {
			f.Fatal(err)
		}
		for _, e := range entries {
			if data := readPicture(f, filepath.Join(dir, e.Name())); len(data) < 6000 {
				f.Add(data, len(data)%2 == 0)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, grey bool) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f, sizeErr := Open(data)
		w, h := f.W, f.H
		if w*h > 1<<20 {
			return
		}
		p, err := decodeData(data, grey)
		runtime.ReadMemStats(&after)
		// What is allocated in all, freed or not. A decoder may refuse a size late
		// that its header told.
		if used, limit := after.TotalAlloc-before.TotalAlloc, uint64(64*w*h+64*len(data)+4<<20); used > limit {
			t.Errorf("%d bytes for %d×%d pixels in %d bytes, want at most %d", used, w, h, len(data), limit)
		}
		if err != nil {
			return
		}
		if sizeErr != nil || p.W != w || p.H != h {
			t.Errorf("Open %d×%d, %v; decoded %d×%d", w, h, sizeErr, p.W, p.H)
		}
		if (p.C == 1) != grey || len(p.Pix) != p.W*p.H*p.C {
			t.Errorf("%d×%d×%d: %d bytes", p.W, p.H, p.C, len(p.Pix))
		}
	})
}

// BenchmarkPicture is the work for one image of ImageNet's usual size: decode,
// Resize(256), CenterCrop(224).
func BenchmarkPicture(b *testing.B) {
	data := readPicture(b, "files/re-500x375.jpg")
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := decodeData(data, false); err != nil {
				b.Fatal(err)
			}
		}
	})
	p := decode(b, "files/re-500x375.jpg", false)
	w, h := ShortSide(p.W, p.H, 256)
	keep := CentreCrop(w, h, 224, 224)
	for _, f := range []Filter{Nearest, Bilinear, Bicubic, Lanczos} {
		b.Run("resize/"+f.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Resize(p, w, h, f, keep)
			}
		})
	}
	b.Run("both", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p, err := decodeData(data, false)
			if err != nil {
				b.Fatal(err)
			}
			Resize(p, w, h, Bilinear, keep)
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "images/s")
	})
}

// TestImage: a picture's colours are those of the standard library's image.
func TestImage(t *testing.T) {
	for _, grey := range []bool{false, true} {
		p := decode(t, "files/hopper.gif", grey)
		img := p.Image()
		if img.Bounds() != image.Rect(0, 0, p.W, p.H) {
			t.Fatalf("%v, want %d×%d", img.Bounds(), p.W, p.H)
		}
		for i := range p.W * p.H {
			r, g, b, a := img.At(i%p.W, i/p.W).RGBA()
			got := []byte{byte(r >> 8), byte(g >> 8), byte(b >> 8)}
			if want := p.Pix[i*p.C : (i+1)*p.C]; !bytes.Equal(got[:p.C], want) || a != 0xffff {
				t.Fatalf("pixel %d is %d, want %d", i, got, want)
			}
		}
	}
}
