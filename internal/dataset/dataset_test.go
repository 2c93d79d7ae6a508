package dataset

import (
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sbinet/npyio/npy"
)

var (
	labelsAll = []int{3, 0, 9, 1, 200}
	labels127 = []int{3, 0, 9, 1, 127}
)

type golden struct {
	Values  map[string][]uint32 `json:"values"`
	Shuffle map[string][]int    `json:"shuffle"`
	First10 []int               `json:"first10"`
}

func readGolden(t *testing.T) golden {
	t.Helper()
	b, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

func td(name string) string {
	if name == "" {
		return ""
	}
	return filepath.Join("testdata", name)
}

// readAll returns the bit patterns of every value.
func readAll(t *testing.T, d Dataset) []uint32 {
	t.Helper()
	elems := 1
	for _, s := range d.Shape() {
		elems *= int(s)
	}
	var out []uint32
	buf := make([]float32, 2*elems)
	for idx := range (Order{}).Batches(d.Len(), 2) {
		vals, err := ReadBatch(d, buf, idx)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range vals {
			out = append(out, math.Float32bits(v))
		}
	}
	return out
}

// TestOpenGolden compares every value bit for bit with NumPy's, see testdata/make.py.
func TestOpenGolden(t *testing.T) {
	g := readGolden(t)
	image := []int64{3, 4, 2}
	imagenet := Options{Preprocess: Preprocess{Mean: imagenetMean, Std: imagenetStd}}
	tests := []struct {
		path   string
		opts   Options
		want   string // key in golden.json
		shape  []int64
		labels []int
	}{
		{"u8.npy", Options{}, "u8", image, nil},
		{"u8.npy", imagenet, "u8 mean std", image, nil},
		{"u8.npy", Options{Preprocess: Preprocess{Mean: []float64{0.5}, Std: []float64{0.25}}}, "u8 one mean", image, nil},
		{"u8.npy", Options{Preprocess: Preprocess{Scale: 0.00392156862745098, Mean: imagenetMean, Std: imagenetStd}}, "u8 rescale", image, nil},
		{"f32.npy", Options{}, "f32", image, nil},
		{"f32.npy", imagenet, "f32 mean std", image, nil},
		{"f32be.npy", Options{}, "f32", image, nil},
		{"v2.npy", Options{}, "f32", image, nil},
		{"v3.npy", Options{}, "f32", image, nil},
		{"f64.npy", Options{}, "f64", image, nil},
		{"float.idx", Options{}, "f32", image, nil},
		{"table.npy", Options{}, "f32", []int64{24}, nil},
		{"grey.npy", Options{}, "grey", []int64{1, 4, 2}, nil},
		{"grey.npy", Options{Shape: []int64{4, 2}}, "grey", []int64{4, 2}, nil},
		{"grey.npy", Options{Shape: []int64{4, 1, 2}}, "grey", []int64{4, 1, 2}, nil},

		{"f32.npy", Options{Labels: "y_u1.npy"}, "f32", image, labels127},
		{"f32.npy", Options{Labels: "y_i1.npy"}, "f32", image, labels127},
		{"f32.npy", Options{Labels: "y_u2.npy"}, "f32", image, labels127},
		{"f32.npy", Options{Labels: "y_i2.npy"}, "f32", image, labels127},
		{"f32.npy", Options{Labels: "y_u4.npy"}, "f32", image, labels127},
		{"f32.npy", Options{Labels: "y_i4.npy"}, "f32", image, labels127},
		{"f32.npy", Options{Labels: "y_u8.npy"}, "f32", image, labels127},
		{"f32.npy", Options{Labels: "y_i8.npy"}, "f32", image, labels127},
		{"f32.npy", Options{Labels: "y_be_i2.npy"}, "f32", image, labels127},
		{"f32.npy", Options{Labels: "y_be_i8.npy"}, "f32", image, labels127},
		{"f32.npy", Options{Labels: "y_column.npy"}, "f32", image, labelsAll},
		{"f32.npy", Options{Labels: "plain.npz"}, "f32", image, labelsAll},
		{"f32.npy", Options{Labels: "splits.npz", LabelsKey: "y_test"}, "f32", image, labelsAll},
		{"f32.npy", Options{Labels: "t10k-labels-idx1-ubyte.gz"}, "f32", image, labelsAll},

		{"plain.npz", Options{}, "u8", image, labelsAll},
		{"plain.npz", Options{Labels: "y_u1.npy"}, "u8", image, labels127},
		{"medmnist.npz", Options{}, "u8", image, labelsAll},
		{"splits.npz", Options{ImagesKey: "x_test"}, "u8", image, labelsAll},
		{"unlabelled.npz", Options{}, "f32", image, nil},
		{"positional.npz", Options{}, "u8", image, nil},
		{"two.npz", Options{ImagesKey: "arr_0"}, "u8", image, nil},
		{"two.npz", Options{ImagesKey: "arr_0", LabelsKey: "arr_1"}, "u8", image, labelsAll},

		{"t10k-images-idx3-ubyte", Options{}, "grey", []int64{1, 4, 2}, labelsAll},
		{"train-images.idx3-ubyte.gz", Options{}, "grey", []int64{1, 4, 2}, labelsAll},
		{"t10k-images-idx3-ubyte", Options{Labels: "y_i1.npy"}, "grey", []int64{1, 4, 2}, labels127},
	}
	for _, tt := range tests {
		name := strings.Join([]string{tt.path, tt.want, tt.opts.Labels, tt.opts.ImagesKey}, " ")
		t.Run(name, func(t *testing.T) {
			tt.opts.Labels = td(tt.opts.Labels)
			d, err := Open([]string{td(tt.path)}, tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.shape, d.Shape()); diff != "" {
				t.Error("shape", diff)
			}
			if diff := cmp.Diff(tt.labels, d.Labels()); diff != "" {
				t.Error("labels", diff)
			}
			if diff := cmp.Diff(g.Values[tt.want], readAll(t, d)); diff != "" {
				t.Error("values", diff)
			}
			if got, want := d.Name(3), tt.path+"[3]"; got != want {
				t.Errorf("Name(3) = %q, want %q", got, want)
			}
		})
	}
}

func TestSources(t *testing.T) {
	d, err := Open([]string{td("t10k-images-idx3-ubyte")}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte.gz"} {
		src := d.Sources()[i]
		out, err := exec.Command("sha256sum", td(want)).Output()
		if err != nil {
			t.Fatal(err)
		}
		if src.Path != td(want) || src.SHA256 != string(out[:64]) {
			t.Errorf("source %d is %v, want %s %s", i, src, td(want), out[:64])
		}
	}
}

func TestOpenErrors(t *testing.T) {
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
		opts Options
		want string // without the path in front, which is checked too
	}{
		{"missing", td("nothing.npy"), Options{}, "no such file or directory"},
		{"folder", "testdata", Options{}, "no images in this folder, want files named .jpg .jpeg"},
		{"device", os.DevNull, Options{}, "not a regular file, want images or arrays"},
		{"empty file", file("0", nil), Options{}, "empty, want images (JPEG PNG WebP GIF BMP TIFF), a folder or a tar of them, a list of them (.txt .csv .tsv), or a .npy, .npz or IDX file"},
		{"pdf", file("a.npy", []byte("%PDF-1.7")), Options{}, `starts with "%PDF-1", want images`},
		{"zeros", file("zeros", make([]byte, 100)), Options{}, `starts with "\x00\x00\x00\x00\x00\x00", want`},

		{"npy cut in data", file("cut", u8[:len(u8)-1]), Options{}, "truncated: 119 bytes of data, want 120 for shape [5 3 4 2] of uint8"},
		{"npy too long", file("long", append(bytes.Clone(u8), 0)), Options{}, "bytes after the array, want exactly 120"},
		{"npy cut in header", file("cut2", u8[:50]), Options{}, "truncated: unexpected EOF"},
		{"npy cut in magic", file("cut3", u8[:7]), Options{}, "truncated: unexpected EOF"},
		{"npy version", file("v9", append([]byte("\x93NUMPY\x09\x00"), u8[8:]...)), Options{}, "npy format version 9, want 1 to 3"},
		{"npy header length", file("hl", []byte("\x93NUMPY\x02\x00\xff\xff\xff\xff")), Options{}, "npy header of 4294967295 bytes, want at most 65536"},
		{"npy no dict", file("nd", npyFile("\n")), Options{}, `npy header: "", want a dict`},
		{"npy dict", file("d0", dict("'descr'", "'order'")), Options{}, "npy header: at \"'order': '|u1', 'fortran_order': False, \", want descr, fortran_order or shape"},
		{"npy dict twice", file("d1", dict("'descr'", "'descr': '|u1', 'descr'")), Options{}, "npy header: descr given twice"},
		{"npy dict short", file("d2", dict("'descr': '|u1', ", "")), Options{}, "npy header: 2 entries, want descr, fortran_order and shape"},
		{"npy dict order", file("d3", dict("False", "'F'")), Options{}, "npy header: fortran_order \"'F'\", want True or False"},
		{"npy dict shape", file("d4", dict("(1, 2)", "'12'")), Options{}, "npy header: shape \"'12'\", want a tuple"},
		{"npy dict spaces", file("d5", dict("(1, 2)", "(1 2)")), Options{}, `npy header: shape "(1 2)": dimension`},
		{"npy dimension overflow", file("d6", dict("(1, 2)", "(1, 99999999999999999999)")), Options{}, `value out of range`},
		{"npy product overflow", file("d7", dict("(1, 2)", "(4294967296, 4294967296)")), Options{}, "shape [4294967296 4294967296] overflows"},
		{"npy product overflow to small", file("d8", dict("(1, 2)", "(3, 6148914691236517206)")), Options{}, "overflows"},
		{"npy larger than file", file("d9", dict("(1, 2)", "(1, 1000000000000)")), Options{}, "truncated: 2 bytes of data, want 1000000000000"},
		{"npy dimensions", file("d10", dict("(1, 2)", "("+strings.Repeat("1, ", 33)+")")), Options{}, "npy header: 33 dimensions, want at most 32"},
		{"npy zero", td("empty.npy"), Options{}, "shape [0 1 2 2], want at least one element"},
		{"npy scalar", td("scalar.npy"), Options{}, "images of shape [], want the examples along the first of at least 2 dimensions"},
		{"npy one dimension", td("y_u1.npy"), Options{}, "images of shape [5], want the examples along"},
		{"npy empty descr", file("d11", dict("'|u1'", "''")), Options{}, `images of type "", want uint8, float32 or float64`},
		{"npy unordered float", file("d12", dict("|u1", "|f4")), Options{}, `images of type "|f4", want`},

		{"fortran", td("fortran.npy"), Options{}, "images in Fortran order, want C order: save it again as np.ascontiguousarray(a)"},
		{"float16", td("f16.npy"), Options{}, "images of type float16, want uint8, float32 or float64"},
		{"int64 images", td("i64.npy"), Options{}, "images of type int64, want uint8, float32 or float64"},
		{"bool", td("bool.npy"), Options{}, `images of type "|b1", want uint8, float32 or float64`},
		{"object", td("object.npy"), Options{}, "images of type object, want uint8, float32 or float64: its elements are pickled Python objects; save it again as np.asarray(a, dtype=...)"},
		{"record", td("record.npy"), Options{}, "images of type record, want uint8, float32 or float64"},
		{"images key of npy", td("u8.npy"), Options{ImagesKey: "x"}, `no arrays with names, want an .npz file for key "x"`},
		{"labels key of npy", td("u8.npy"), Options{LabelsKey: "y"}, `no arrays with names, want an .npz file for key "y"`},

		{"shape", td("u8.npy"), Options{Shape: []int64{3, 2, 4}}, "examples of shape [3 4 2], want [3 2 4]"},
		{"channels last", td("nhwc.npy"), Options{Shape: []int64{3, 4, 2}}, "examples of shape [4 2 3], want [3 4 2]: channels come last; save it again as np.ascontiguousarray(a.transpose(0, 3, 1, 2))"},
		{"mean", td("u8.npy"), Options{Preprocess: Preprocess{Mean: []float64{1, 2}}}, "2 values of mean, want 1 or 3: the channels, first dimension of shape [3 4 2]"},
		{"std", td("grey.npy"), Options{Preprocess: Preprocess{Std: imagenetStd}}, "3 values of std, want 1 or 1"},
		{"std zero", td("u8.npy"), Options{Preprocess: Preprocess{Std: []float64{1, 0, 1}}}, "std [1 0 1], want positive numbers"},
		{"std tiny", td("f32.npy"), Options{Preprocess: Preprocess{Std: []float64{1e-60}}}, "std [1e-60], want positive numbers"},
		{"mean nan", td("f32.npy"), Options{Preprocess: Preprocess{Mean: []float64{math.NaN()}}}, "mean [NaN], want finite numbers"},
		{"scale", td("f32.npy"), Options{Preprocess: Preprocess{Scale: -1}}, "scale -1, want a positive number"},
		{"overflow", td("u8.npy"), Options{Preprocess: Preprocess{Scale: 1e38}}, "scale 1e+38, mean [], std [] overflow float32"},

		{"npz cut", file("cut.npz", plain[:len(plain)-30]), Options{}, "bad .npz: zip: not a valid zip file"},
		{"npz bad checksum", file("crc.npz", flip(plain, bytes.Index(plain, []byte("images.npy"))+200)), Options{}, `array "images": zip: checksum error`},
		{"zip of others", file("pt.zip", bytes.ReplaceAll(plain, []byte(".npy"), []byte(".pkl"))), Options{}, "a zip without .npy arrays, want an .npz file"},
		{"npz twice", file("twice.npz", twice()), Options{}, `two arrays named "x", want one`},
		{"npz key", td("plain.npz"), Options{ImagesKey: "x"}, `no array "x", want one of "images", "labels"`},
		{"npz labels key", td("plain.npz"), Options{LabelsKey: "x"}, `no array "x", want one of "images", "labels"`},
		{"npz ambiguous", td("splits.npz"), Options{}, `any of "x_test", "x_train" could be the images, want a key that names one`},
		{"npz no names", td("two.npz"), Options{}, `cannot tell which array holds the images, want a key that names one of "arr_0", "arr_1"`},
		{"npz larger than data", file("lie.npz", deflated(strings.Replace(ok, "(1, 2)", "(1, 2000)", 1), 2)), Options{}, `array "x": truncated: unexpected EOF`},
		{"npz bomb", file("bomb.npz", deflated(strings.Replace(ok, "(1, 2)", "(1, 200000000)", 1), 2)), Options{}, `array "x": shape [1 200000000] of uint8 takes 200000000 bytes, want at most`},

		{"idx cut", file("mnist", mnist[:len(mnist)-8]), Options{}, "truncated: 32 bytes of data, want 40 for shape [5 4 2] of uint8"},
		{"idx cut in header", file("mnist1", mnist[:9]), Options{}, "truncated: unexpected EOF"},
		{"idx no dimensions", file("mnist2", []byte{0, 0, 8, 0}), Options{}, "0 dimensions, want 1 to 32"},
		{"idx bomb", file("mnist3", []byte("\x00\x00\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")), Options{}, "overflows"},
		{"idx ints", file("mnist4", []byte("\x00\x00\x0c\x02\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x01")), Options{}, "images of type int32, want"},
		{"gzip cut", file("cut.gz", gz(mnist)[:40]), Options{}, "truncated: unexpected EOF"},
		{"gzip checksum", file("crc.gz", flip(gz(mnist), -5)), Options{}, "gzip: invalid checksum"},
		{"gzip header", file("bad.gz", []byte("\x1f\x8b\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")), Options{}, "gzip: invalid header"},
		{"gzip of text", file("text.gz", gz([]byte("hello world"))), Options{}, `starts with "hello ", want a .npy, .npz or IDX file`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Open([]string{tt.path}, tt.opts)
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.HasPrefix(err.Error(), tt.path+": ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s: %s", err, tt.path, tt.want)
			}
		})
	}

	labelTests := []struct{ labels, want string }{
		{"y_float.npy", "labels of type float64, want an integer type (class numbers)"},
		{"y_negative.npy", "label 2 is -1, want 0 or more"},
		{"y_huge.npy", "label 0 is 9223372036854775808, want a class number"},
		{"y_short.npy", "4 labels for 5 images in testdata/f32.npy"},
		{"y_onehot.npy", "labels of shape [5 10], want [5] or [5 1] (class numbers, not one-hot)"},
		{"unlabelled.npz", `no labels among "X", want a labels key`},
		{"object.npy", "labels of type object, want an integer type (class numbers): its elements are pickled"},
		{"none.npy", "no such file or directory"},
		{".", "a folder, want a .npy, .npz or IDX file"},
		{"make.py", `starts with "\"\"\"Wri", want a .npy, .npz or IDX file`},
		{"splits.npz", `any of "y_test", "y_train" could be the labels`},
	}
	for _, tt := range labelTests {
		t.Run("labels "+tt.labels, func(t *testing.T) {
			_, err := Open([]string{td("f32.npy")}, Options{Labels: td(tt.labels)})
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.HasPrefix(err.Error(), td(tt.labels)+": ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s: %s", err, td(tt.labels), tt.want)
			}
		})
	}

	if _, err := Open([]string{td("nothing.npy")}, Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v is not fs.ErrNotExist", err)
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
			c, err := newContainer(name, bytes.NewReader(b[:n]), int64(n))
			if err == nil {
				var found string
				if found, err = c.pick(key, imageRole, ""); err == nil {
					_, err = c.load(found, imageRole)
				}
			}
			if err == nil || !strings.HasPrefix(err.Error(), name+": ") {
				t.Fatalf("%s cut to %d bytes: %v", name, n, err)
			}
		}
	}
}

func TestReadNotFinite(t *testing.T) {
	for _, tt := range []struct {
		path string
		bad  int
		want string
	}{
		{"nan.npy", 3, "testdata/nan.npy[3]: element [2 1 0] is NaN, want finite float32 values"},
		{"big.npy", 1, "testdata/big.npy[1]: element [0 0 1] is +Inf, want finite float32 values"},
	} {
		d, err := Open([]string{td(tt.path)}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]float32, 24)
		for i := range d.Len() {
			err := d.Read(buf, i)
			if i != tt.bad && err != nil {
				t.Error(err)
			}
			if i == tt.bad && (err == nil || err.Error() != tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		}
		if _, err := ReadBatch(d, make([]float32, 24*5), []int{0, tt.bad}); err == nil {
			t.Error("ReadBatch: no error")
		}
	}
}

func TestReadPanics(t *testing.T) {
	d, err := Open([]string{td("u8.npy")}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]func(){
		"short dst":   func() { d.Read(make([]float32, 23), 0) },
		"past end":    func() { d.Read(make([]float32, 24), 5) },
		"negative":    func() { d.Read(make([]float32, 24), -1) },
		"short batch": func() { ReadBatch(d, make([]float32, 47, 100), []int{0, 1}) },
	} {
		func() {
			defer func() {
				if s, _ := recover().(string); !strings.HasPrefix(s, "dataset: ") {
					t.Errorf("%s: panic %q", name, s)
				}
			}()
			f()
		}()
	}
}

func TestReadConcurrent(t *testing.T) {
	d, err := Open([]string{td("u8.npy")}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			buf := make([]float32, 24)
			for i := range d.Len() {
				if err := d.Read(buf, i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// TestBombMemory: a small file must not make us take much memory.
func TestBombMemory(t *testing.T) {
	head := "{'descr': '|u1', 'fortran_order': False, 'shape': (1000, 1000000, 1000), }"
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(head)), 0)
	p := filepath.Join(t.TempDir(), "bomb.npy")
	if err := os.WriteFile(p, append(b, head...), 0o666); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Open([]string{p}, Options{})
	runtime.ReadMemStats(&after)
	if err == nil {
		t.Error("no error")
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes allocated", n)
	}
}

// TestNpyio reads what another implementation writes.
func TestNpyio(t *testing.T) {
	var b bytes.Buffer
	want := []float32{1.5, -2, 3, 1e-30}
	if err := npy.Write(&b, want); err != nil {
		t.Fatal(err)
	}
	a, err := readArray(bufio.NewReader(&b), int64(b.Len()), false, imageRole)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{4}, a.shape); diff != "" {
		t.Error(diff)
	}
	var n normalizer
	n, _ = Preprocess{}.normalizer([]int64{4}, false)
	got := make([]float32, 4)
	if n.applyFloat(got, a.data, 4); !cmp.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// checkRead is the body of the fuzz targets: never a panic, never more memory
// than the input allows, and an array that is what its shape says.
func checkRead(t *testing.T, b []byte) {
	c, err := newContainer("f", bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return
	}
	keys := c.keys
	if c.zip == nil {
		keys = []string{""}
	}
	for _, key := range keys[:min(len(keys), 3)] {
		for _, r := range []role{imageRole, labelRole} {
			a, err := c.load(key, r)
			if err != nil {
				continue
			}
			n := a.dtype.size
			for _, d := range a.shape {
				n *= d
			}
			if n != len(a.data) || n > freeBytes+maxExpansion*len(b) {
				t.Fatalf("%d bytes for shape %v of %s", len(a.data), a.shape, a.dtype.name)
			}
			if r.what == "labels" {
				if labels, err := decodeLabels(a, a.shape0(), "x"); err == nil && len(labels) != a.shape[0] {
					t.Fatal("labels")
				}
				continue
			}
			if d, err := newArrays("f", a, Options{}); err == nil {
				d.Read(make([]float32, d.elems), d.n-1)
			}
		}
	}
}

func (a array) shape0() int {
	if len(a.shape) == 0 {
		return 0
	}
	return a.shape[0]
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

func BenchmarkRead(b *testing.B) {
	for _, dt := range []dtype{{"uint8", 'u', 1, false}, {"float32", 'f', 4, false}, {"float64", 'f', 8, false}} {
		const elems = 3 * 224 * 224
		x := array{dtype: dt, shape: []int{2, 3, 224, 224}, data: make([]byte, 2*elems*dt.size)}
		d, err := newArrays("x", x, Options{Preprocess: Preprocess{Mean: imagenetMean, Std: imagenetStd}})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(dt.name, func(b *testing.B) {
			b.SetBytes(elems * 4)
			dst := make([]float32, elems)
			for b.Loop() {
				d.Read(dst, 1)
			}
		})
	}
}
