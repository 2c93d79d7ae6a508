package dataset

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/preprocess"
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
	var g golden
	testfile.JSON(t, "testdata/golden.json", &g)
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
	var out []uint32
	buf := Floats(make([]float32, 2*product(d.Shape())))
	for idx := range (Order{}).Batches(d.Len(), 2) {
		vals, err := ReadBatch(d, buf, idx)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range vals.Floats {
			out = append(out, math.Float32bits(v))
		}
	}
	return out
}

// TestOpenGolden compares every value bit for bit with NumPy's, see testdata/make.py.
func TestOpenGolden(t *testing.T) {
	g := readGolden(t)
	image := []int64{3, 4, 2}
	imagenet := Options{Preprocess: preprocess.Settings{Mean: imagenetMean, Std: imagenetStd}}
	tests := []struct {
		path   string
		opts   Options
		want   string // key in golden.json
		shape  []int64
		labels []int
	}{
		{"u8.npy", Options{}, "u8", image, nil},
		{"u8.npy", imagenet, "u8 mean std", image, nil},
		{"u8.npy", Options{Preprocess: preprocess.Settings{Mean: []float64{0.5}, Std: []float64{0.25}}}, "u8 one mean", image, nil},
		{"u8.npy", Options{Preprocess: preprocess.Settings{Scale: 0.00392156862745098, Mean: imagenetMean, Std: imagenetStd}}, "u8 rescale", image, nil},
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
		{"f32.npy", Options{Labels: "t10k-labels-idx1-ubyte.gz"}, "f32", image, labelsAll},

		{"plain.npz", Options{}, "u8", image, labelsAll},
		{"plain.npz", Options{Labels: "y_u1.npy"}, "u8", image, labels127},
		{"medmnist.npz", Options{}, "u8", image, labelsAll},
		{"unlabelled.npz", Options{}, "f32", image, nil},
		{"positional.npz", Options{}, "u8", image, nil},

		{"t10k-images-idx3-ubyte", Options{}, "grey", []int64{1, 4, 2}, labelsAll},
		{"train-images.idx3-ubyte.gz", Options{}, "grey", []int64{1, 4, 2}, labelsAll},
		{"t10k-images-idx3-ubyte", Options{Labels: "y_i1.npy"}, "grey", []int64{1, 4, 2}, labels127},
	}
	for _, tt := range tests {
		name := strings.Join([]string{tt.path, tt.want, tt.opts.Labels}, " ")
		t.Run(name, func(t *testing.T) {
			tt.opts.Labels = td(tt.opts.Labels)
			d, err := Open([]string{td(tt.path)}, tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.shape, d.Shape()); diff != "" {
				t.Error("shape", diff)
			}
			if diff := cmp.Diff(tt.labels, d.Labels().Classes); diff != "" {
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

func gzipped(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(data)
	w.Close()
	return b.Bytes()
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
	tests := []struct {
		name string
		path string
		opts Options
		want string // without the path in front, which is checked too
	}{
		{"missing", td("nothing.npy"), Options{}, "no such file or directory"},
		{"folder", "testdata", Options{}, "no images in this folder, want files named .jpg .jpeg"},
		{"device", os.DevNull, Options{}, "not a regular file, want images or arrays"},
		{"empty file", file("0", nil), Options{}, "empty, want images (JPEG PNG WebP GIF BMP TIFF PGM PPM), a folder or a tar of them, a list of them (.txt .csv .tsv), or a .npy, .npz or IDX file"},
		{"pdf", file("a.npy", []byte("%PDF-1.7")), Options{}, `starts with "%PDF-1", want images`},
		{"zeros", file("zeros", make([]byte, 100)), Options{}, `starts with "\x00\x00\x00\x00\x00\x00", want`},

		{"npy scalar", td("scalar.npy"), Options{}, "an array of shape [], want the examples along the first of at least 2 dimensions"},
		{"npy one dimension", td("y_u1.npy"), Options{}, "an array of shape [5], want the examples along"},

		{"shape", td("u8.npy"), Options{Shape: []int64{3, 2, 4}}, "2×4 pixels, want 4×2: say how to resize images, or resize them"},
		{"mean", td("u8.npy"), Options{Preprocess: preprocess.Settings{Mean: []float64{1, 2}}}, "2 values of mean, want 1 or 3: the channels, first dimension of shape [3 4 2]"},
		{"std", td("grey.npy"), Options{Preprocess: preprocess.Settings{Std: imagenetStd}}, "3 values of std, want 1 or 1"},
		{"std zero", td("u8.npy"), Options{Preprocess: preprocess.Settings{Std: []float64{1, 0, 1}}}, "std [1 0 1], want positive numbers"},
		{"std tiny", td("f32.npy"), Options{Preprocess: preprocess.Settings{Std: []float64{1e-60}}}, "std [1e-60], want positive numbers"},
		{"mean nan", td("f32.npy"), Options{Preprocess: preprocess.Settings{Mean: []float64{math.NaN()}}}, "mean [NaN], want finite numbers"},
		{"scale", td("f32.npy"), Options{Preprocess: preprocess.Settings{Scale: -1}}, "scale -1, want a positive number"},
		{"overflow", td("u8.npy"), Options{Preprocess: preprocess.Settings{Scale: 1e38}}, "scale 1e+38, mean [], std [] overflow float32"},

		{"npy cut", file("cut", []byte("\x93NUMPY\x01")), Options{}, "truncated: unexpected EOF"},
		{"zip of others", file("pt.zip", []byte("PK\x05\x06"+strings.Repeat("\x00", 18))), Options{}, "a zip without .npy arrays, want an .npz file"},
		{"gzip header", file("bad.gz", []byte("\x1f\x8b\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")), Options{}, "gzip: invalid header"},
		{"gzip of text", file("text.gz", gzipped([]byte("hello world"))), Options{}, `starts with "hello ", want a .npy, .npz or IDX file`},
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

	if _, err := Open([]string{td("nothing.npy")}, Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v is not fs.ErrNotExist", err)
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
			err := d.Read(Floats(buf), i)
			if i != tt.bad && err != nil {
				t.Error(err)
			}
			if i == tt.bad && (err == nil || err.Error() != tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		}
		if _, err := ReadBatch(d, Floats(make([]float32, 24*5)), []int{0, tt.bad}); err == nil {
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
		"short dst":   func() { d.Read(Floats(make([]float32, 23)), 0) },
		"past end":    func() { d.Read(Floats(make([]float32, 24)), 5) },
		"negative":    func() { d.Read(Floats(make([]float32, 24)), -1) },
		"short batch": func() { ReadBatch(d, Floats(make([]float32, 47, 100)), []int{0, 1}) },
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
				if err := d.Read(Floats(buf), i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// FuzzArray: an array that can be opened can be read to its end.
func FuzzArray(f *testing.F) {
	for _, pattern := range []string{"*.np[yz]", "*-ubyte*", "*.idx"} {
		paths, _ := filepath.Glob(td(pattern))
		for _, path := range paths {
			b, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	path := filepath.Join(f.TempDir(), "x")
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		reliability.Heap(t, 25*len(b)+1<<18, func() { // what is packed may be a hundred times its size
			in, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			if d, err := openArray(path, in, Options{}); err == nil {
				d.Read(Floats(make([]float32, product(d.Shape()))), d.Len()-1)
			}
		})
	})
}

func BenchmarkRead(b *testing.B) {
	for _, dt := range []numpy.Type{{Name: "uint8", Kind: 'u', Size: 1}, {Name: "float32", Kind: 'f', Size: 4}, {Name: "float64", Kind: 'f', Size: 8}} {
		const elems = 3 * 224 * 224
		x := numpy.Array{Type: dt, Shape: []int{2, 3, 224, 224}, Data: make([]byte, 2*elems*dt.Size)}
		d, err := newArray("x", x, Options{Preprocess: preprocess.Settings{Mean: imagenetMean, Std: imagenetStd}})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(dt.Name, func(b *testing.B) {
			b.SetBytes(elems * 4)
			dst := make([]float32, elems)
			for b.Loop() {
				d.Read(Floats(dst), 1)
			}
		})
	}
}
