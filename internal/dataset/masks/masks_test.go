package masks

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/target"
)

const width, height = 6, 4 // of the pictures

// encoded returns an image as a file of the format that an extension names.
func encoded(t testing.TB, ext string, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch ext {
	case ".png":
		err = png.Encode(&b, img)
	case ".gif":
		err = gif.Encode(&b, img, nil)
	case ".bmp":
		err = bmp.Encode(&b, img)
	case ".tif":
		err = tiff.Encode(&b, img, nil)
	case ".jpg":
		err = jpeg.Encode(&b, img, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// black is a mask of zeros.
func black() image.Image { return image.NewGray(image.Rect(0, 0, width, height)) }

// enlarged changes the size that the header of a file names. The pixels stay few.
func enlarged(t testing.TB, ext string, file []byte, w, h uint32) []byte {
	t.Helper()
	file = bytes.Clone(file)
	little, big := binary.LittleEndian, binary.BigEndian
	switch ext {
	case ".png":
		big.PutUint32(file[16:], w)
		big.PutUint32(file[20:], h)
		big.PutUint32(file[29:], crc32.ChecksumIEEE(file[12:29]))
	case ".gif":
		little.PutUint16(file[6:], uint16(w))
		little.PutUint16(file[8:], uint16(h))
	case ".bmp":
		little.PutUint32(file[18:], w)
		little.PutUint32(file[22:], h)
	case ".tif":
		at := little.Uint32(file[4:])
		for entry := file[at+2:]; len(entry) >= 12; entry = entry[12:] {
			switch tag := little.Uint16(entry); tag {
			case 256, 257: // width and height
				little.PutUint16(entry[2:], 4) // LONG
				little.PutUint32(entry[8:], map[uint16]uint32{256: w, 257: h}[tag])
			}
		}
	default:
		t.Fatal(ext)
	}
	return file
}

// folder is a picture im/a.png of 6×4 pixels, and a folder m for its mask.
type folder struct {
	testing.TB
	dir     string
	picture string
}

func newFolder(t testing.TB) *folder {
	f := &folder{t, t.TempDir(), ""}
	f.picture = f.write("im/a.png", encoded(t, ".png", image.NewRGBA(image.Rect(0, 0, width, height))))
	f.at("m/")
	return f
}

// at returns a path in the folder, and makes the folders of it.
func (f *folder) at(name string) string {
	f.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.MkdirAll(filepath.Dir(filepath.Join(f.dir, name+"x")), 0o777); err != nil {
		f.Fatal(err)
	}
	return path
}

func (f *folder) write(name string, content []byte) string {
	f.Helper()
	path := f.at(name)
	if err := os.WriteFile(path, content, 0o666); err != nil {
		f.Fatal(err)
	}
	return path
}

// load reads the labels of the picture from the masks in m.
func (f *folder) load(kind target.Kind, memory int64, ignore *int) (target.Target, error) {
	labels, _, err := Open(filepath.Join(f.dir, "m"), kind, target.Positions{Width: 1, Ignore: ignore}, Pictures{
		Len: 1, Whole: true, Decoder: listing.Decoder{Budget: listing.NewBudget(memory)},
		Open: func(int) (*listing.Example, error) { return listing.File(f.picture), nil },
	})
	if err != nil {
		return labels, err
	}
	return labels.Load(0)
}

// refused checks that the mask is refused with a message that names it.
func (f *folder) refused(mask string, memory int64, want string) {
	f.Helper()
	_, err := f.load(target.Classes, memory, nil)
	if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), f.dir) || strings.Count(err.Error(), f.at("m/")) > 1 {
		f.Errorf("%s: error %v, want %q with the path once", mask, err, want)
	}
}

// A mask that is no regular file is refused like such a picture. Nothing waits for it, and nothing reads without end.
func TestNotRegular(t *testing.T) {
	for _, ext := range extensions {
		for what, make := range map[string]func(path string) error{
			"pipe":           func(path string) error { return syscall.Mkfifo(path, 0o666) },
			"device":         func(path string) error { return os.Symlink("/dev/zero", path) },
			"terminal":       func(path string) error { return os.Symlink("/dev/tty", path) },
			"link to itself": func(path string) error { return os.Symlink(filepath.Base(path), path) },
			"dangling link":  func(path string) error { return os.Symlink("nowhere", path) },
			"socket": func(path string) error {
				l, err := net.Listen("unix", path)
				if err == nil {
					t.Cleanup(func() { l.Close() })
				}
				return err
			},
		} {
			f := newFolder(t)
			path := f.at("m/a" + ext)
			if err := make(path); err != nil {
				t.Fatal(err)
			}
			want := path + ": not a regular file"
			switch what {
			case "dangling link":
				want = path + ": no such file or directory"
			case "link to itself":
				want = path + ": too many levels of symbolic links"
			}
			f.refused(what+ext, 0, want)
		}
	}
	f := newFolder(t)
	f.at("m/a.png/")
	f.refused("folder", 0, "a folder without masks")
	f.write("m/b.png", encoded(t, ".png", black()))
	f.refused("folder", 0, "m: 1 of 1 pictures have no mask: ")
}

// The size of a mask is compared with its picture's before a pixel is read, whatever the format. The decoding of a mask
// that has the size of its picture belongs to the memory of pictures.
func TestSizeFirst(t *testing.T) {
	const side, memory = 13000, 64 << 20
	for _, ext := range []string{".png", ".gif", ".bmp", ".tif", ".npy"} {
		f := newFolder(t)
		if ext == ".npy" {
			path := f.write("m/a.npy", numpy.Header("|u1", side, side))
			if err := os.Truncate(path, int64(len(numpy.Header("|u1", side, side))+side*side)); err != nil {
				t.Fatal(err)
			}
		} else {
			f.write("m/a"+ext, enlarged(t, ext, encoded(t, ext, black()), side, side))
		}
		reliability.Heap(t, 0, func() {
			f.refused(ext, memory, "m/a"+ext+": a mask of 13000×13000 pixels, and its picture has 6×4")
		})
		// The picture has the same size. Its pixels are not needed.
		f.picture = f.write("im/a.png", enlarged(t, ".png", encoded(t, ".png", black()), side, side))
		reliability.Heap(t, 0, func() {
			f.refused(ext, memory, "ing 13000×13000 pixels takes ")
		})
		f.refused(ext, memory, "want at most 64: Memory ")
	}
	f := newFolder(t)
	for _, shape := range [][]int{{math.MaxInt64, 2}, {1 << 62, 4}, {1 << 40, 1 << 10}, {0, 4}, {4}, {4, 6, 1}, {}} {
		f.write("m/a.npy", numpy.Header("<i8", shape...))
		reliability.Heap(t, 0, func() { f.refused(fmt.Sprint(shape), memory, "m/a.npy: ") })
	}
	f.picture = f.write("im/a.png", encoded(t, ".jpg", black())[:20])
	f.write("m/a.npy", numpy.Header("<i8", 4, 6))
	f.refused("a picture that is damaged", memory, "im/a.png: ")
}

// array is a .npy file of the pictures' size. Its last element has the given bytes.
func array(dtype string, last []byte) []byte {
	return append(append(numpy.Header(dtype, height, width), make([]byte, (width*height-1)*len(last))...), last...)
}

// A number of a mask is a class, a number that counts nowhere, or an error that names the file and the pixel.
func TestNumbers(t *testing.T) {
	u64 := func(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }
	f32 := func(v float32) []byte { return binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)) }
	const wrong = -2 // stands for an error
	for _, tt := range []struct {
		dtype string
		last  []byte
		want  int
	}{
		{"|u1", []byte{7}, 7}, {"|u1", []byte{255}, 255}, {"|i1", []byte{7}, 7}, {"|b1", []byte{1}, 1},
		{"|i1", []byte{255}, target.Unknown}, {"|i1", []byte{156}, target.Unknown}, {"|i1", []byte{128}, wrong}, {"|i1", []byte{254}, wrong},
		{"<u2", []byte{0, 1}, 256}, {">u2", []byte{0, 1}, 1}, {">i2", []byte{255, 156}, target.Unknown}, {"<u2", []byte{9, 0}, target.Unknown},
		{"<u4", []byte{255, 255, 255, 255}, math.MaxUint32}, {"<i4", []byte{0, 0, 0, 128}, wrong},
		{"<u8", u64(1 << 63), wrong}, {"<u8", u64(math.MaxUint64), wrong}, {"<u8", u64(math.MaxInt64), math.MaxInt64},
		{"<i8", u64(1 << 63), wrong}, {"<i8", u64(math.MaxUint64), target.Unknown}, {"<i8", u64(1<<64 - 2), wrong},
		{"<f4", f32(3.5), wrong}, {"<f4", f32(3), wrong}, {"<f4", f32(float32(math.NaN())), wrong}, {"<f8", u64(0), wrong},
		{"<c8", u64(0), wrong}, {"|S2", []byte("ab"), wrong}, {"|O", u64(0), wrong},
	} {
		f, ignore := newFolder(t), 9
		f.write("m/a.npy", array(tt.dtype, tt.last))
		got, err := f.load(target.Classes, 0, &ignore)
		switch {
		case tt.want == wrong && (err == nil || !strings.HasPrefix(err.Error(), filepath.Join(f.dir, "m", "a.npy")+": ")):
			t.Errorf("%s % x: %v, want an error that names the mask", tt.dtype, tt.last, err)
		case tt.want != wrong && (err != nil || got.Classes[width*height-1] != tt.want || got.Classes[0] != 0):
			t.Errorf("%s % x: %v, %v, want %d", tt.dtype, tt.last, got.Classes, err, tt.want)
		}
	}
	for _, tt := range []struct {
		last float32
		want string
	}{{2.5, ""}, {float32(math.NaN()), ""}, {float32(math.Inf(1)), "m/a.npy: position (3, 5): +Inf, want a number, or NaN where it is not known"}} {
		f := newFolder(t)
		f.write("m/a.npy", array("<f4", f32(tt.last)))
		got, err := f.load(target.Numbers, 0, nil)
		if v := float64(tt.last); tt.want == "" && (err != nil || got.Values[width*height-1] != v && v == v) || tt.want != "" && (err == nil || !strings.HasSuffix(err.Error(), tt.want)) {
			t.Errorf("%v: %v, %v, want %q", tt.last, got.Values, err, tt.want)
		}
	}
}

// Each format gives the numbers that it stores: grey levels of any depth, and indices. Colours, and formats that change
// numbers, are refused, whatever the name of the file.
func TestFormats(t *testing.T) {
	box := image.Rect(0, 0, width, height)
	grey, deep, indexed := image.NewGray(box), image.NewGray16(box), image.NewPaletted(box, color.Palette{color.White, color.Black, color.RGBA{R: 9, A: 255}})
	grey.Pix[1], deep.Pix[2], indexed.Pix[1] = 200, 1, 2
	few := image.NewPaletted(box, color.Palette{color.Black, color.White}) // 1 bit
	few.Pix[1] = 1
	bilevel := encoded(t, ".tif", grey)
	for name, tt := range map[string]struct {
		file []byte
		want int // at pixel 1, or −1 for an error
	}{
		"grey.png": {encoded(t, ".png", grey), 200}, "grey.tif": {encoded(t, ".tif", grey), 200}, "grey.bmp": {encoded(t, ".bmp", grey), 200},
		"deep.png": {encoded(t, ".png", deep), 256}, "deep.tif": {encoded(t, ".tif", deep), 256},
		"indexed.png": {encoded(t, ".png", indexed), 2}, "indexed.gif": {encoded(t, ".gif", indexed), 2}, "indexed.bmp": {encoded(t, ".bmp", indexed), 2},
		"few.png": {encoded(t, ".png", few), 1}, "npz.npy": {[]byte("PK\x05\x06" + strings.Repeat("\x00", 18)), -1},
		"jpeg.png": {encoded(t, ".jpg", grey), -1}, "png.bmp": {encoded(t, ".png", grey), 200}, "npy.png": {array("|u1", []byte{1}), -1},
		"colour.png": {encoded(t, ".png", image.NewNRGBA(box)), -1}, "colour.tif": {encoded(t, ".tif", image.NewRGBA(box)), -1}, "colour.bmp": {encoded(t, ".bmp", image.NewRGBA(box)), -1},
		"short.png": {encoded(t, ".png", grey)[:50], -1}, "short.tif": {bilevel[:len(bilevel)/2], -1}, "empty.png": {nil, -1}, "empty.npy": {nil, -1},
	} {
		f := newFolder(t)
		f.write("m/a"+filepath.Ext(name), tt.file)
		got, err := f.load(target.Classes, 0, nil)
		if tt.want < 0 {
			f.refused(name, 0, "m/a"+filepath.Ext(name)+": ")
		} else if err != nil || got.Classes[1] != tt.want || got.Classes[0] != 0 {
			t.Errorf("%s: %v, %v, want %d", name, got.Classes, err, tt.want)
		}
	}
}

// FuzzMask: a mask of any bytes gives a label for each pixel, or an error that names it. It takes little memory.
func FuzzMask(f *testing.F) {
	box := image.Rect(0, 0, width, height)
	for _, ext := range []string{".png", ".gif", ".bmp", ".tif"} {
		for _, img := range []image.Image{image.NewGray(box), image.NewGray16(box), image.NewPaletted(box, color.Palette{color.Black, color.White}), image.NewRGBA(box)} {
			f.Add(encoded(f, ext, img), false, true)
		}
		f.Add(enlarged(f, ext, encoded(f, ext, black()), 13000, 13000), false, true)
	}
	f.Add(encoded(f, ".jpg", black()), false, false)
	for _, dtype := range []string{"|u1", "<i8", ">u2", "<f4"} {
		f.Add(array(dtype, make([]byte, dtype[2]-'0')), true, dtype != "<f4")
	}
	made := newFolder(f)
	f.Fuzz(func(t *testing.T, mask []byte, isArray, classes bool) {
		files := &folder{t, made.dir, made.picture}
		name, other := "m/a.png", "m/a.npy"
		if isArray {
			name, other = other, name
		}
		os.Remove(files.at(other))
		files.write(name, mask)
		kind := target.Numbers
		if classes {
			kind = target.Classes
		}
		reliability.Heap(t, 64*len(mask), func() {
			got, err := files.load(kind, 1<<20, nil)
			switch {
			case err != nil && !strings.HasPrefix(err.Error(), filepath.Join(files.dir, name)+": "):
				t.Errorf("%v does not name %s", err, name)
			case err == nil && (got.Positions != width*height || len(got.Classes)+len(got.Values) != width*height):
				t.Errorf("%d labels of %d positions", len(got.Classes)+len(got.Values), got.Positions)
			}
		})
	})
}
