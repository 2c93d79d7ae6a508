package numpy

import (
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sbinet/npyio/npy"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/weights"
)

func td(name string) string { return filepath.Join("../dataset/testdata", name) }

// openImages opens a file and reads its images.
func openImages(path, key string) (Array, error) {
	f, err := Open(path)
	if err != nil {
		return Array{}, err
	}
	defer f.Close()
	if key == "" {
		if key, err = f.Pick(Images, ""); err != nil {
			return Array{}, err
		}
	}
	return f.Read(key, Images)
}

// What is read is what was hashed.
func TestChanged(t *testing.T) {
	b, err := os.ReadFile(td("plain.npz"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "changed.npz")
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Read(f.Keys[0], Images); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 10); err != nil {
		t.Fatal(err)
	}
	_, err = f.Read(f.Keys[0], Images)
	if changed := (*weights.ChangedError)(nil); !errors.As(err, &changed) || changed.Path != path {
		t.Errorf("error %v", err)
	}
}

func TestErrors(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, data []byte) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, data, 0o666); err != nil {
			t.Fatal(err)
		}
		return p
	}
	read := func(name string) []byte {
		b, err := os.ReadFile(td(name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	npyFile := func(dict string, data ...byte) []byte {
		b := append([]byte("\x93NUMPY\x01\x00"), byte(len(dict)), byte(len(dict)>>8))
		return append(append(b, dict...), data...)
	}
	// deflated makes an .npz with one array of n zeros behind the given header.
	deflated := func(dict string, n int) []byte {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		f, err := w.Create("x.npy")
		if err != nil {
			t.Fatal(err)
		}
		f.Write(npyFile(dict))
		f.Write(make([]byte, n))
		w.Close()
		return b.Bytes()
	}
	twice := func() []byte {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		w.Create("x.npy")
		w.Create("x.npy")
		w.Close()
		return b.Bytes()
	}
	gz := func(data []byte) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		w.Write(data)
		w.Close()
		return b.Bytes()
	}
	flip := func(b []byte, at int) []byte {
		b = bytes.Clone(b)
		if at < 0 {
			at += len(b)
		}
		b[at] ^= 0xff
		return b
	}
	u8, plain, mnist := read("u8.npy"), read("plain.npz"), read("t10k-images-idx3-ubyte")
	const ok = "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2), }"
	dict := func(old, new string) []byte { return npyFile(strings.Replace(ok, old, new, 1), 1, 2) }

	tests := []struct {
		name string
		path string
		key  string
		want string // without the path in front, which is checked too
	}{
		{"npy cut in data", file("cut", u8[:len(u8)-1]), "", "truncated: 119 bytes of data, want 120 for shape [5 3 4 2] of uint8"},
		{"npy too long", file("long", append(bytes.Clone(u8), 0)), "", "bytes after the array, want exactly 120"},
		{"npy cut in header", file("cut2", u8[:50]), "", "truncated: unexpected EOF"},
		{"npy cut in magic", file("cut3", u8[:7]), "", "truncated: unexpected EOF"},
		{"npy version", file("v9", append([]byte("\x93NUMPY\x09\x00"), u8[8:]...)), "", "npy format version 9, want 1 to 3"},
		{"npy header length", file("hl", []byte("\x93NUMPY\x02\x00\xff\xff\xff\xff")), "", "npy header of 4294967295 bytes, want at most 65536"},
		{"npy no dict", file("nd", npyFile("\n")), "", `npy header: "", want a dict`},
		{"npy dict", file("d0", dict("'descr'", "'order'")), "", "npy header: at \"'order': '|u1', 'fortran_order': False, \", want descr, fortran_order or shape"},
		{"npy dict twice", file("d1", dict("'descr'", "'descr': '|u1', 'descr'")), "", "npy header: descr given twice"},
		{"npy dict short", file("d2", dict("'descr': '|u1', ", "")), "", "npy header: 2 entries, want descr, fortran_order and shape"},
		{"npy dict order", file("d3", dict("False", "'F'")), "", "npy header: fortran_order \"'F'\", want True or False"},
		{"npy dict shape", file("d4", dict("(1, 2)", "'12'")), "", "npy header: shape \"'12'\", want a tuple"},
		{"npy dict spaces", file("d5", dict("(1, 2)", "(1 2)")), "", `npy header: shape "(1 2)": dimension`},
		{"npy dimension overflow", file("d6", dict("(1, 2)", "(1, 99999999999999999999)")), "", `value out of range`},
		{"npy product overflow", file("d7", dict("(1, 2)", "(4294967296, 4294967296)")), "", "shape [4294967296 4294967296] overflows"},
		{"npy product overflow to small", file("d8", dict("(1, 2)", "(3, 6148914691236517206)")), "", "overflows"},
		{"npy larger than file", file("d9", dict("(1, 2)", "(1, 1000000000000)")), "", "truncated: 2 bytes of data, want 1000000000000"},
		{"npy dimensions", file("d10", dict("(1, 2)", "("+strings.Repeat("1, ", 33)+")")), "", "npy header: 33 dimensions, want at most 32"},
		{"npy zero", td("empty.npy"), "", "shape [0 1 2 2], want at least one element"},
		{"npy empty descr", file("d11", dict("'|u1'", "''")), "", `examples of type "", want uint8, float32 or float64`},
		{"npy unordered float", file("d12", dict("|u1", "|f4")), "", `examples of type "|f4", want`},
		{"float16", td("f16.npy"), "", "examples of type float16, want uint8, float32 or float64"},
		{"int64 images", td("i64.npy"), "", "examples of type int64, want uint8, float32 or float64"},
		{"bool", td("bool.npy"), "", "examples of type bool, want uint8, float32 or float64"},
		{"object", td("object.npy"), "", "examples of type object, want uint8, float32 or float64: its elements are pickled Python objects; save it again as np.asarray(a, dtype=...)"},
		{"record", td("record.npy"), "", "examples of type record, want uint8, float32 or float64"},
		{"npz cut", file("cut.npz", plain[:len(plain)-30]), "", "bad .npz: zip: not a valid zip file"},
		{"npz bad checksum", file("crc.npz", flip(plain, bytes.Index(plain, []byte("images.npy"))+200)), "", `array "images": zip: checksum error`},
		{"zip of others", file("pt.zip", bytes.ReplaceAll(plain, []byte(".npy"), []byte(".pkl"))), "", "a zip without .npy arrays, want an .npz file"},
		{"npz twice", file("twice.npz", twice()), "", `two arrays named "x", want one`},
		{"npz ambiguous", td("splits.npz"), "", `any of "x_test", "x_train" could be the examples: save one of them`},
		{"npz no names", td("two.npz"), "", `cannot tell which of "arr_0", "arr_1" holds the examples: call it images`},
		{"npz larger than data", file("lie.npz", deflated(strings.Replace(ok, "(1, 2)", "(1, 2000)", 1), 2)), "", `array "x": truncated: unexpected EOF`},
		{"npz bomb", file("bomb.npz", deflated(strings.Replace(ok, "(1, 2)", "(1, 200000000)", 1), 2)), "", `array "x": shape [1 200000000] of uint8 takes 200000000 bytes, want at most`},
		{"idx cut", file("mnist", mnist[:len(mnist)-8]), "", "truncated: 32 bytes of data, want 40 for shape [5 4 2] of uint8"},
		{"idx cut in header", file("mnist1", mnist[:9]), "", "truncated: unexpected EOF"},
		{"idx no dimensions", file("mnist2", []byte{0, 0, 8, 0}), "", "0 dimensions, want 1 to 32"},
		{"idx bomb", file("mnist3", []byte("\x00\x00\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")), "", "overflows"},
		{"idx ints", file("mnist4", []byte("\x00\x00\x0c\x02\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x01")), "", "examples of type int32, want"},
		{"gzip cut", file("cut.gz", gz(mnist)[:40]), "", "truncated: unexpected EOF"},
		{"gzip checksum", file("crc.gz", flip(gz(mnist), -5)), "", "gzip: invalid checksum"},
		{"gzip header", file("bad.gz", []byte("\x1f\x8b\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")), "", "gzip: invalid header"},
		{"gzip of text", file("text.gz", gz([]byte("hello world"))), "", `starts with "hello ", want a .npy, .npz or IDX file`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := openImages(tt.path, tt.key)
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.HasPrefix(err.Error(), tt.path+": ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s: %s", err, tt.path, tt.want)
			}
		})
	}
}

func TestLabelErrors(t *testing.T) {
	tests := []struct{ labels, want string }{
		{"y_huge.npy", "label 0 is 9223372036854775808, want a class number"},
		{"y_short.npy", "4 labels for 5 examples in testdata/f32.npy"},
		{"y_onehot.npy", "labels of shape [5 10], want [5] or [5 1] (class numbers, not one-hot)"},
		{"unlabelled.npz", `no labels among "X"`},
		{"object.npy", "labels of type object, want an integer type (class numbers), or floats that are whole numbers: its elements are pickled"},
		{"none.npy", "no such file or directory"},
		{".", "a folder, want a .npy, .npz or IDX file"},
		{"make.py", `starts with "\"\"\"Wri", want a .npy, .npz or IDX file`},
		{"splits.npz", `any of "y_test", "y_train" could be the labels`},
	}
	for _, tt := range tests {
		t.Run(tt.labels, func(t *testing.T) {
			_, _, err := OpenLabels(td(tt.labels), "", 5, "testdata/f32.npy")
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.HasPrefix(err.Error(), td(tt.labels)+": ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s: %s", err, td(tt.labels), tt.want)
			}
		})
	}
}

// TestLabels: every integer type and shape, and the label file of an image file.
func TestLabels(t *testing.T) {
	all, small := []int{3, 0, 9, 1, 200}, []int{3, 0, 9, 1, 127}
	for _, tt := range []struct {
		path, beside string
		want         []int
	}{
		{"y_u1.npy", "", small}, {"y_i1.npy", "", small}, {"y_u2.npy", "", small}, {"y_i2.npy", "", small}, {"y_u4.npy", "", small},
		{"y_i4.npy", "", small}, {"y_u8.npy", "", small}, {"y_i8.npy", "", small}, {"y_be_i2.npy", "", small}, {"y_be_i8.npy", "", small},
		{"y_column.npy", "", all}, {"plain.npz", "", all}, {"splits.npz", "x_test", all}, {"t10k-labels-idx1-ubyte.gz", "", all},
	} {
		got, sum, err := OpenLabels(td(tt.path), tt.beside, 5, "x")
		if err != nil || !slices.Equal(got, tt.want) || len(sum) != 64 {
			t.Errorf("%s: %v, %q, %v, want %v", tt.path, got, sum, err, tt.want)
		}
	}
}

// TestPick: labels go with the images that they stand beside.
func TestPick(t *testing.T) {
	for _, tt := range []struct{ path, images, wantImages, wantLabels string }{
		{"plain.npz", "", "images", "labels"},
		{"splits.npz", "x_test", "x_test", "y_test"},
		{"unlabelled.npz", "", "X", ""},
		{"two.npz", "arr_0", "arr_0", ""},
		{"u8.npy", "", "", ""},
	} {
		f, err := Open(td(tt.path))
		if err != nil {
			t.Fatal(err)
		}
		images := tt.images
		if images == "" {
			images, err = f.Pick(Images, "")
		}
		if err != nil || images != tt.wantImages {
			t.Errorf("%s: images %q, %v, want %q", tt.path, images, err, tt.wantImages)
		}
		labels, err := f.Pick(Labels, images)
		if err != nil || labels != tt.wantLabels {
			t.Errorf("%s: labels %q, %v, want %q", tt.path, labels, err, tt.wantLabels)
		}
		f.Close()
	}
}

// TestPickOther: what stands beside labels alone needs no name of its own.
func TestPickOther(t *testing.T) {
	for keys, want := range map[string]string{"fingerprint,labels": "fingerprint", "y,ids": "ids", "fingerprint,mask,labels": "", "labels": "", "fingerprint,names": ""} {
		f := &File{Path: "a.npz", Keys: strings.Split(keys, ",")}
		if got, err := f.Pick(Images, ""); got != want || (err == nil) != (want != "") {
			t.Errorf("of %s: %q, %v, want %q", keys, got, err, want)
		}
	}
}

// TestHeader: what is written is read again.
func TestHeader(t *testing.T) {
	for _, shape := range [][]int{{2}, {2, 3}, {1, 2, 3, 4}} {
		n := 1
		for _, d := range shape {
			n *= d
		}
		b := Header("<f8", shape...)
		if len(b)%64 != 0 {
			t.Errorf("%v: %d bytes before the elements, want a multiple of 64", shape, len(b))
		}
		want := make([]float64, n)
		for i := range want {
			want[i] = float64(i) / 3
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(want[i]))
		}
		f, err := open("x.npy", bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		x, err := f.Read("", Images)
		if err != nil || !slices.Equal(x.Shape, shape) || !slices.Equal(x.Float64s(), want) {
			t.Errorf("%v: %v %v, %v", shape, x.Shape, x.Type, err)
		}
	}
}

// TestTruncated cuts good files at every length: an error each time, and no panic.
func TestTruncated(t *testing.T) {
	for name, key := range map[string]string{
		"u8.npy": "", "v2.npy": "", "plain.npz": "images", "splits.npz": "x_test",
		"t10k-images-idx3-ubyte": "", "train-images.idx3-ubyte.gz": "",
	} {
		b, err := os.ReadFile(td(name))
		if err != nil {
			t.Fatal(err)
		}
		for n := range b {
			c, err := open(name, bytes.NewReader(b[:n]), int64(n))
			if err == nil {
				var found string
				if found = key; found == "" {
					found, err = c.Pick(Images, "")
				}
				if err == nil {
					_, err = c.Read(found, Images)
				}
			}
			if err == nil || !strings.HasPrefix(err.Error(), name+": ") {
				t.Fatalf("%s cut to %d bytes: %v", name, n, err)
			}
		}
	}
}

// TestBombMemory: a small file must not make us take much memory.
func TestBombMemory(t *testing.T) {
	head := "{'descr': '|u1', 'fortran_order': False, 'shape': (1000, 1000000, 1000), }"
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(head)), 0)
	p := filepath.Join(t.TempDir(), "bomb.npy")
	if err := os.WriteFile(p, append(b, head...), 0o666); err != nil {
		t.Fatal(err)
	}
	var err error
	if n := reliability.Allocated(func() { _, err = openImages(p, "") }); n > 1<<20 {
		t.Errorf("%d bytes allocated", n)
	}
	if err == nil {
		t.Error("no error")
	}
}

// TestNpyio reads what another implementation writes.
func TestNpyio(t *testing.T) {
	var b bytes.Buffer
	want := []float32{1.5, -2, 3, 1e-30}
	if err := npy.Write(&b, want); err != nil {
		t.Fatal(err)
	}
	a, err := readArray(bufio.NewReader(&b), int64(b.Len()), false, Images)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{4}, a.Shape); diff != "" {
		t.Error(diff)
	}
	for i, v := range want {
		if got := a.Float64s()[i]; got != float64(v) {
			t.Errorf("element %d is %v, want %v", i, got, v)
		}
	}
}

// checkRead is the body of the fuzz targets: never a panic, never more memory
// than the input allows, and an array that is what its shape says.
func checkRead(t *testing.T, b []byte) {
	c, err := open("f", bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return
	}
	keys := c.Keys
	if c.Keys == nil {
		keys = []string{""}
	}
	for _, key := range keys[:min(len(keys), 3)] {
		for _, r := range []Role{Images, Labels} {
			var a Array
			var err error
			reliability.Heap(t, maxExpansion/4*len(b)+1<<18, func() { a, err = c.Read(key, r) })
			if err != nil {
				continue
			}
			n := a.Type.Size
			for _, d := range a.Shape {
				n *= d
			}
			if n != len(a.Data) || n > freeBytes+maxExpansion*len(b) {
				t.Fatalf("%d bytes for shape %v of %s", len(a.Data), a.Shape, a.Type.Name)
			}
			if r.What == "labels" {
				count := 0
				if len(a.Shape) > 0 {
					count = a.Shape[0]
				}
				if labels, err := a.labels(count, "x"); err == nil && len(labels) != count {
					t.Fatal("labels")
				}
			}
		}
	}
}

func fuzzSeeds(f *testing.F, patterns ...string) {
	for _, p := range patterns {
		paths, _ := filepath.Glob(td(p))
		for _, path := range paths {
			b, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
}

func FuzzNPY(f *testing.F) {
	fuzzSeeds(f, "*.npy")
	f.Fuzz(checkRead)
}

func FuzzNPZ(f *testing.F) {
	fuzzSeeds(f, "*.npz")
	f.Fuzz(checkRead)
}

func FuzzIDX(f *testing.F) {
	fuzzSeeds(f, "*-ubyte*", "*.idx")
	f.Fuzz(checkRead)
}

// TestManyArrays: the work of opening grows with the number of arrays, and not with its square.
func TestManyArrays(t *testing.T) {
	const arrays = 200_000
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := range arrays {
		if _, err := w.CreateRaw(&zip.FileHeader{Name: fmt.Sprintf("layer.%d.weight.npy", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	reliability.CPU(t, 20*time.Second, func() {
		if f, err := open("many.npz", bytes.NewReader(b.Bytes()), int64(b.Len())); err != nil || len(f.Keys) != arrays {
			t.Errorf("%v", err)
		}
	})
}

// Every type of numbers is read to its value.
func TestFloat64(t *testing.T) {
	for dtype, want := range map[string]struct {
		bytes []byte
		value float64
	}{
		"|b1": {[]byte{1}, 1}, "|u1": {[]byte{200}, 200}, "|i1": {[]byte{200}, -56}, "<u2": {[]byte{1, 2}, 513}, "<i2": {[]byte{0xfe, 0xff}, -2},
		"<i4": {[]byte{0, 0, 0, 0x80}, math.MinInt32}, "<u4": {[]byte{0, 0, 0, 0x80}, 1 << 31}, ">i4": {[]byte{0xff, 0xff, 0xff, 0xfd}, -3},
		"<i8": {[]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, -1}, "<u8": {[]byte{0, 0, 0, 0, 0, 0, 0, 0x80}, 1 << 63},
		"<f2": {[]byte{0, 0xc0}, -2}, "<f4": {[]byte{0, 0, 0x80, 0x3f}, 1}, "<f8": {[]byte{0, 0, 0, 0, 0, 0, 0xf0, 0x3f}, 1},
	} {
		b := append(Header(dtype, 1), want.bytes...)
		a, err := readArray(bufio.NewReader(bytes.NewReader(b)), int64(len(b)), false, Values)
		if err != nil || a.Float64(0) != want.value {
			t.Errorf("%s: %v, %v, want %v", dtype, a, err, want.value)
		}
	}
	for _, dtype := range []string{"<c8", "|S3", "<U2", "|O", "<f1", "<M8"} {
		b := append(Header(dtype, 1), make([]byte, 8)...)
		if _, err := readArray(bufio.NewReader(bytes.NewReader(b)), int64(len(b)), false, Values); err == nil || !strings.Contains(err.Error(), "want bool, an integer type, float16") {
			t.Errorf("%s: %v", dtype, err)
		}
	}
}

// Examples that are read one at a time are those that are read together, from stored and from compressed files.
func TestEach(t *testing.T) {
	for _, name := range []string{"plain.npz", "medmnist.npz", "f32be.npy"} {
		f, err := Open(td(name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		key := ""
		if f.Keys != nil {
			key = f.Keys[0]
		}
		want, err := f.Read(key, Values)
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		err = f.Each(key, Values, func(i int, one Array) error {
			if i*len(one.Data) != len(got) || !slices.Equal(one.Shape, want.Shape[1:]) {
				t.Errorf("%s: example %d of shape %v", name, i, one.Shape)
			}
			got = append(got, one.Data...)
			return nil
		})
		if err != nil || !bytes.Equal(got, want.Data) {
			t.Errorf("%s: %d bytes, want %d, %v", name, len(got), len(want.Data), err)
		}
	}
}

// A file of a terabyte that is no array, or has another size than its header names, is not read to its end.
func TestHugeFile(t *testing.T) {
	for header, want := range map[string]string{
		"":                                  `starts with "\x00\x00\x00\x00\x00\x00", want a .npy, .npz or IDX file`,
		string(Header("|u1", 2, 3)):         "bytes after the array, want exactly 6 for shape [2 3] of uint8",
		string(Header("<f8", 1<<25, 1<<25)): "truncated: ",
		"\x00\x00\x08\x01\x00\x00\x00\x02":  "bytes after the array, want exactly 2 for shape [2] of uint8",
		"PK\x03\x04":                        "bad .npz: zip: not a valid zip file",
	} {
		path := filepath.Join(t.TempDir(), "x")
		err := os.WriteFile(path, []byte(header), 0o666)
		if err == nil {
			err = os.Truncate(path, 1<<40)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); err == nil || !strings.HasPrefix(err.Error(), path+": "+want) {
			t.Errorf("%q: error %v, want %s", header, err, want)
		}
	}
}
