package dataset

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/preprocess"
)

// TestUnreadable: a broken image is an error of its own row that names the file;
// its neighbours are read as if it were not there.
func TestUnreadable(t *testing.T) {
	root := t.TempDir()
	small, err := os.ReadFile(filepath.Join(imageFixtures, "transforms-24x24.png"))
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(root, name) }
	want := map[string]string{
		"00.png": "", "02.png": "", "99.png": "",
		"01.png": "not an image, want JPEG, PNG, WebP, GIF, BMP, TIFF, PGM or PPM",
		"03.png": "empty file, want an image",
		"04.png": "PNG: ",
		"05.png": "PNG: 65500×65500 pixels, want at most 178956970 in all (a decompression bomb?)",
		"07.png": "no such file or directory",
	}
	write(t, at("00.png"), small)
	write(t, at("01.png"), []byte("%PDF-1.7 is no image"))
	write(t, at("02.png"), small)
	write(t, at("03.png"), nil)
	write(t, at("04.png"), small[:len(small)/2])
	write(t, at("05.png"), pngHeader(65500, 65500))
	write(t, at("99.png"), small)
	if err := os.Symlink("nowhere", at("07.png")); err != nil {
		t.Fatal(err)
	}

	d, err := Open([]string{root}, any24)
	if err != nil {
		t.Fatal(err)
	}
	if d.Len() != len(want) {
		t.Fatalf("%d rows, want %d", d.Len(), len(want))
	}
	var first []float32
	for i := range d.Len() {
		x := make([]float32, 3*24*24)
		err := d.Read(Floats(x), i)
		msg := want[filepath.Base(d.Name(i))]
		switch {
		case msg == "" && err != nil:
			t.Error(err)
		case msg == "" && first == nil:
			first = x
		case msg == "":
			for j := range x {
				if x[j] != first[j] {
					t.Fatalf("%s: other values than before the broken files", d.Name(i))
				}
			}
		case err == nil || !strings.HasPrefix(err.Error(), d.Name(i)+": "+msg):
			t.Errorf("%v\nwant %s: %s", err, d.Name(i), msg)
		}
		if msg == "no such file or directory" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v is not fs.ErrNotExist", err)
		}
	}
}

// TestImageChanges: files change after Open.
func TestImageChanges(t *testing.T) {
	small, err := os.ReadFile(filepath.Join(imageFixtures, "transforms-24x24.png"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.jpeg") // names do not matter
	write(t, path, small)
	d, err := Open([]string{path}, Options{Shape: []int64{3, 24, 30}})
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]byte, 3*24*30)
	read := func(want string) {
		t.Helper()
		if err := d.(Bytes).Pixels(dst, 0); err == nil || err.Error() != path+": "+want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	read("24×24 pixels, want 30×24: say how to resize images, or resize them")
	os.Remove(path)
	read("no such file or directory")
	if err := os.Mkdir(path, 0o777); err != nil {
		t.Fatal(err)
	}
	read("not a regular file, want an image")
}

// pngHeader is a PNG file of the given size without pixels.
func pngHeader(w, h uint32) []byte {
	b := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
	b = binary.BigEndian.AppendUint32(b, w)
	b = binary.BigEndian.AppendUint32(b, h)
	b = append(b, 8, 2, 0, 0, 0)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[12:]))
}

func TestImagesPanic(t *testing.T) {
	d, err := Open([]string{filepath.Join(imageFixtures, "transforms-24x24.png")}, any24)
	if err != nil {
		t.Fatal(err)
	}
	const n = 3 * 24 * 24
	for name, f := range map[string]func(){
		"Read":          func() { d.Read(Floats(make([]float32, n-1)), 0) },
		"Pixels":        func() { d.(Bytes).Pixels(make([]byte, n+1), 0) },
		"Normalize dst": func() { d.(Bytes).Normalize(make([]float32, n-1), make([]byte, n)) },
		"Normalize src": func() { d.(Bytes).Normalize(make([]float32, n), make([]byte, n-1)) },
		"past end":      func() { d.Read(Floats(make([]float32, n)), 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

// TestUint8: a network that takes uint8 gets stored values, and no mean.
func TestUint8(t *testing.T) {
	path := filepath.Join(imageFixtures, "transforms-24x24.png")
	for _, input := range []string{path, td("u8.npy")} {
		opts := Options{Uint8: true}
		if input == path {
			opts.Shape = any24.Shape
		}
		d, err := Open([]string{input}, opts)
		if err != nil {
			t.Fatal(err)
		}
		n := product(d.Shape())
		x, b := make([]float32, n), make([]byte, n)
		if err := errors.Join(d.Read(Floats(x), 0), d.(Bytes).Pixels(b, 0)); err != nil {
			t.Fatal(err)
		}
		for i := range x {
			if x[i] != float32(b[i]) {
				t.Fatalf("%s: value %d is %v, want %d", input, i, x[i], b[i])
			}
		}
		opts.Preprocess.Mean = []float64{0.5}
		if _, err := Open([]string{input}, opts); err == nil || !strings.Contains(err.Error(), "mean [0.5], std [], scale 0, but the network takes uint8 values") {
			t.Error(err)
		}
	}
	if _, err := Open([]string{td("f32.npy")}, Options{Uint8: true}); err == nil || !strings.Contains(err.Error(), "float32 values, and the network takes uint8") {
		t.Error(err)
	}
	d, err := Open([]string{td("f32.npy")}, Options{})
	if _, ok := d.(Bytes); err != nil || ok {
		t.Error("float32 values are no bytes", err)
	}
}

// TestImagesConcurrent reads one dataset from many goroutines.
func TestImagesConcurrent(t *testing.T) {
	p, err := preprocess.Preset("imagenet")
	if err != nil {
		t.Fatal(err)
	}
	d, err := Open([]string{filepath.Join(imageFixtures, "transforms-*.png")}, Options{Shape: []int64{3, 32, 32}, Preprocess: p})
	if err != nil {
		t.Fatal(err)
	}
	want := make([][]float32, d.Len())
	for i := range want {
		want[i] = make([]float32, 3*32*32)
		if err := d.Read(Floats(want[i]), i); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for k := range 8 {
		wg.Go(func() {
			x := make([]float32, 3*32*32)
			for j := range 5 * d.Len() {
				i := (j + k) % d.Len()
				if err := d.Read(Floats(x), i); err != nil {
					t.Error(err)
				}
				for c := range x {
					if x[c] != want[i][c] {
						t.Errorf("%s: other values in goroutine %d", d.Name(i), k)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkImages: a PNG of 500×375 pixels to 224×224, and a JPEG.
func BenchmarkImages(b *testing.B) {
	m := image.NewRGBA(image.Rect(0, 0, 500, 375))
	for i := range m.Pix {
		m.Pix[i] = byte(i*i>>8 ^ i>>3)
	}
	for y := range 375 {
		m.Set(y, y, color.RGBA{255, 0, 0, 255})
	}
	var buf bytes.Buffer
	if err := png.Encode(&buf, m); err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "x.png")
	write(b, path, buf.Bytes())
	p, err := preprocess.Preset("imagenet")
	if err != nil {
		b.Fatal(err)
	}
	d, err := Open([]string{path}, Options{Shape: []int64{3, 224, 224}, Preprocess: p})
	if err != nil {
		b.Fatal(err)
	}
	bytes, x := make([]byte, 3*224*224), make([]float32, 3*224*224)
	b.Run("Pixels", func(b *testing.B) {
		for b.Loop() {
			if err := d.(Bytes).Pixels(bytes, 0); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Normalize", func(b *testing.B) {
		for b.Loop() {
			d.(Bytes).Normalize(x, bytes)
		}
	})
}

// BenchmarkFolder lists 10,000 images in 10 class folders.
func BenchmarkFolder(b *testing.B) {
	root := b.TempDir()
	for i := range 10_000 {
		path := filepath.Join(root, fmt.Sprint(i%10), fmt.Sprintf("%06d.jpg", i))
		if i < 10 {
			write(b, path, nil)
		} else if err := os.WriteFile(path, nil, 0o666); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := Open([]string{root}, any24); err != nil {
			b.Fatal(err)
		}
	}
}

// TestMemory: a picture that needs more memory than there may be is an error, before it
// is decoded, and so is a file.
func TestMemory(t *testing.T) {
	path := filepath.Join(imageFixtures, "transforms-151x101.png")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	need := info.Size() + (4+3)*151*101
	for memory, want := range map[int64]string{
		0:               "",
		need:            "",
		need - 1:        "decoding 151×101 pixels takes 1 MiB, want at most 0: Memory 1M allows it",
		info.Size() - 1: "reading a file of this size takes 1 MiB, want at most 0: Memory 1M allows it",
	} {
		d, err := Open([]string{path}, Options{Shape: []int64{3, 101, 151}, Memory: memory})
		if err != nil {
			t.Fatal(err)
		}
		err = d.Read(Floats(make([]float32, 3*101*151)), 0)
		if tooMuch := new(listing.MemoryError); want == "" && err != nil || want != "" && (!errors.As(err, &tooMuch) || err.Error() != path+": "+want) {
			t.Errorf("%d bytes: %v, want %s", memory, err, want)
		}
	}
}

// tarOf makes a tar of files, given as name, content, name, content ...
func tarOf(t testing.TB, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		if err := w.WriteHeader(&tar.Header{Name: files[i], Size: int64(len(files[i+1])), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		w.Write([]byte(files[i+1]))
	}
	w.Close()
	return b.Bytes()
}

// TestTarMember: an example of a tar that is broken, or gone since.
func TestTarMember(t *testing.T) {
	small, err := os.ReadFile(filepath.Join(imageFixtures, "transforms-24x24.png"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.tar")
	b := tarOf(t, "a.png", string(small), "b.png", "no image", "c.png", string(small[:len(small)-20]), "d.png", string(small))
	write(t, path, b)
	d, err := Open([]string{path}, any24)
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]float32, 3*24*24)
	for i, want := range []string{"", "/b.png: not an image, want JPEG", "/c.png: PNG: ", ""} {
		err := d.Read(Floats(dst), i)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), path+want) {
			t.Errorf("example %d: %v, want %s", i, err, want)
		}
	}
	write(t, path, b[:len(b)-2048])
	if err := d.Read(Floats(dst), 3); err == nil || err.Error() != path+"/d.png: truncated: unexpected EOF" {
		t.Error(err)
	}
	os.Remove(path)
	if err := d.Read(Floats(dst), 0); err == nil || err.Error() != path+"/a.png: no such file or directory" {
		t.Error(err)
	}
}
