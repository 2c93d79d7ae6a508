package dataset

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/picture"
	"github.com/swagwrap/swagwrap/internal/preprocess"
)

// npy writes an array of the given type, whose elements are values.
func npy(dtype string, values []float64, shape ...int) []byte {
	b := numpy.Header(dtype, shape...)
	for _, v := range values {
		switch dtype {
		case "<f4":
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
		case "<f8":
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		default:
			b = append(b, binary.LittleEndian.AppendUint64(nil, uint64(int64(v)))[:dtype[2]-'0']...)
		}
	}
	return b
}

// arraysIn writes arrays to an .npz, or to a folder for a name without that extension.
func arraysIn(t *testing.T, path string, arrays map[string][]byte) string {
	t.Helper()
	put := func(name string) (io.Writer, func() error, error) {
		f, err := os.Create(filepath.Join(path, name))
		return f, f.Close, err
	}
	if strings.HasSuffix(path, ".npz") {
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		z := zip.NewWriter(f)
		defer z.Close()
		put = func(name string) (io.Writer, func() error, error) {
			w, err := z.Create(name)
			return w, func() error { return nil }, err
		}
	} else if err := os.MkdirAll(path, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		b := arrays[name]
		w, done, err := put(name + ".npy")
		if err == nil {
			_, err = w.Write(b)
		}
		if err == nil {
			err = done()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// three are the inputs of a network that takes pictures, numbers and tokens.
var three = []Field{
	{Name: "image", Shape: []int64{1, 2, 2}, Dims: []string{"", "", ""}, Type: "float32"},
	{Name: "x", Shape: []int64{2}, Dims: []string{""}, Type: "float64"},
	{Name: "ids", Shape: []int64{-1}, Dims: []string{"sequence"}, Type: "int64"},
}

func good() map[string][]byte {
	return map[string][]byte{
		"image":  npy("|u1", []float64{0, 51, 102, 255, 255, 255, 0, 0}, 2, 1, 2, 2),
		"x":      npy("<f8", []float64{1.5, -2, 3, 4}, 2, 2),
		"ids":    npy("<i2", []float64{7, -8, 9, 10, 11, 12}, 2, 3),
		"labels": npy("|i1", []float64{1, 0}, 2),
	}
}

// examplesOf returns all examples.
func examplesOf(t *testing.T, d Dataset) (all []Values) {
	t.Helper()
	size, err := SizeOf(d)
	if err != nil {
		t.Fatal(err)
	}
	for i := range d.Len() {
		row := size.Make(1)
		if err := d.Read(row, i); err != nil {
			t.Fatal(err)
		}
		all = append(all, row)
	}
	return all
}

// records returns the numbers of all examples, in the order of the fields.
func records(t *testing.T, d Dataset) (all [][]float32) {
	t.Helper()
	for _, v := range examplesOf(t, d) {
		var row []float32
		for k := range Fields(d) {
			own := v.Field(Fields(d), k)
			row = append(row, own.Floats...)
			for _, n := range own.Ints {
				row = append(row, float32(n))
			}
		}
		all = append(all, row)
	}
	return all
}

// An example has the parts of all fields, one behind the other: pictures preprocessed, and all
// else as it is. An .npz and a folder are alike but for where they are.
func TestRecord(t *testing.T) {
	opts := Options{Fields: three, Preprocess: preprocess.Settings{Mean: []float64{0.5}, Std: []float64{0.5}}}
	want := [][]float32{{-1, -0.6, -0.2, 1, 1.5, -2, 7, -8, 9}, {1, 1, -1, -1, 3, 4, 10, 11, 12}}
	var first string
	for _, name := range []string{"a.npz", "folder"} {
		d, err := Open([]string{arraysIn(t, filepath.Join(t.TempDir(), name), good())}, opts)
		if err != nil {
			t.Fatal(err)
		}
		if got := records(t, d); !slices.EqualFunc(got, want, func(a, b []float32) bool {
			return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Abs(float64(x-y)) < 1e-6 })
		}) {
			t.Errorf("%s: rows are %v, want %v", name, got, want)
		}
		if !slices.Equal(d.Labels().Classes, []int{1, 0}) || d.Name(1) != name+"[1]" || len(d.Sources()) != map[string]int{"a.npz": 1, "folder": 4}[name] {
			t.Errorf("%s: labels %v, name %q, sources %v", name, d.Labels(), d.Name(1), d.Sources())
		}
		for what, d := range map[string]Dataset{"all": d, "part": Part(d, 1, 2), "subset": Subset(d, Order{Limit: 1})} {
			if f := Fields(d); len(f) != 3 || !slices.Equal(f[2].Shape, []int64{3}) || f[2].Size() != (Size{Ints: 3}) || !f[2].Integer() || f[1].Integer() {
				t.Errorf("%s, %s: fields %v", name, what, f)
			}
		}
		if got := records(t, Part(d, 1, 2)); !slices.Equal(got[0], records(t, d)[1]) {
			t.Errorf("%s: the part is %v", name, got)
		}
		if id := ID(d); id == "" || id == first {
			t.Errorf("%s: the id is %q", name, id)
		} else {
			first = id
		}
	}
}

// The id of a record distinguishes contents and fields, and not labels in a file of their own.
func TestRecordID(t *testing.T) {
	id := func(arrays map[string][]byte, change func(*Options)) string {
		opts := Options{Fields: slices.Clone(three)}
		if change != nil {
			change(&opts)
		}
		d, err := Open([]string{arraysIn(t, filepath.Join(t.TempDir(), "d"), arrays)}, opts)
		if err != nil {
			t.Fatal(err)
		}
		return ID(d)
	}
	was := id(good(), nil)
	other := good()
	other["labels"] = npy("|i1", []float64{0, 0}, 2)
	if id(other, nil) != was {
		t.Error("the labels are part of it")
	}
	other = good()
	other["ids"] = npy("<i2", []float64{7, -8, 9, 10, 11, 13}, 2, 3)
	if id(other, nil) == was {
		t.Error("a token is no part of it")
	}
	if id(good(), func(o *Options) { o.Fields[1].Type = "float32" }) == was {
		t.Error("an input's type is no part of it")
	}
}

// What cannot be the network's inputs is refused, by the name of the array.
func TestRecordRefused(t *testing.T) {
	for want, change := range map[string]func(map[string][]byte, *Options){
		`no array "ids" among`:                            func(a map[string][]byte, _ *Options) { delete(a, "ids") },
		`array "extra": neither an input`:                 func(a map[string][]byte, _ *Options) { a["extra"] = a["x"] },
		`any of "labels", "y" could be the labels`:        func(a map[string][]byte, _ *Options) { a["y"] = a["labels"] },
		`array "x": 3 examples, want 2 as input "image"`:  func(a map[string][]byte, _ *Options) { a["x"] = npy("<f8", make([]float64, 6), 3, 2) },
		`array "x": examples of shape [3], want [2]`:      func(a map[string][]byte, _ *Options) { a["x"] = npy("<f8", make([]float64, 6), 2, 3) },
		`array "ids": examples of shape [], want [-1]`:    func(a map[string][]byte, _ *Options) { a["ids"] = npy("<i8", make([]float64, 2), 2) },
		`array "ids": float32 values, want whole numbers`: func(a map[string][]byte, _ *Options) { a["ids"] = npy("<f4", make([]float64, 6), 2, 3) },
		`element [1] of example 1 is 16777217, want -16777216 to 16777216: float32`: func(a map[string][]byte, _ *Options) {
			a["x"] = npy("<i4", []float64{0, 0, 0, 1<<24 + 1}, 2, 2)
		},
		`element [2] of example 1 is 4294967296, want -2147483648 to 2147483647: input "ids" takes int32`: func(a map[string][]byte, o *Options) {
			o.Fields[2].Type = "int32"
			a["ids"] = npy("<i8", []float64{0, 0, 0, 0, 0, 1 << 32}, 2, 3)
		},
		`element [2] of example 1 is 9223372036854775808, want -9223372036854775808 to 9223372036854775807`: func(a map[string][]byte, _ *Options) {
			a["ids"] = npy("<u8", []float64{0, 0, 0, 0, 0, 1 << 63}, 2, 3)
		},
		`element [0] of example 1 is -1, want 0 to 65535`: func(a map[string][]byte, o *Options) {
			o.Fields[2].Type = "uint16"
			a["ids"] = npy("|i1", []float64{0, 0, 0, -1, 0, 0}, 2, 3)
		},
		`element [1] of example 0 is 128, want -128 to 127`: func(a map[string][]byte, o *Options) {
			o.Fields[2].Type = "int8"
			a["ids"] = npy("|u1", []float64{0, 128, 0, 0, 0, 0}, 2, 3)
		},
		`array "image": int64 for input "image", which takes pictures: want uint8, float32 or float64`: func(a map[string][]byte, _ *Options) { a["image"] = npy("<i8", make([]float64, 8), 2, 1, 2, 2) },
		`array "x": a single number`: func(a map[string][]byte, _ *Options) { a["x"] = npy("<f8", []float64{1}) },
		`"sequence" is 2 in input "also": want the same`: func(a map[string][]byte, o *Options) {
			o.Fields = slices.Insert(o.Fields, 0, Field{Name: "also", Shape: []int64{-1}, Dims: []string{"sequence"}, Type: "bool"})
			a["also"] = npy("|b1", make([]float64, 4), 2, 2)
		},
		"label 0 is 1, and there are 1 class names": func(_ map[string][]byte, o *Options) { o.Known.Classes = []string{"one"} },
	} {
		arrays, opts := good(), Options{Fields: slices.Clone(three)}
		change(arrays, &opts)
		_, err := Open([]string{arraysIn(t, filepath.Join(t.TempDir(), "a.npz"), arrays)}, opts)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "a.npz: ") {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	_, err := Open([]string{"testdata/plain.npz", "testdata/plain.npz"}, Options{Fields: three})
	if err == nil || !strings.Contains(err.Error(), "2 inputs, and the network takes several tensors") {
		t.Error(err)
	}
}

// An example with a value that is not finite cannot be read; the others can.
func TestRecordNotFinite(t *testing.T) {
	arrays := good()
	arrays["x"] = npy("<f8", []float64{1, 2, 3, math.NaN()}, 2, 2)
	d, err := Open([]string{arraysIn(t, filepath.Join(t.TempDir(), "a.npz"), arrays)}, Options{Fields: three})
	if err != nil {
		t.Fatal(err)
	}
	size, err := SizeOf(d)
	if err != nil {
		t.Fatal(err)
	}
	row := size.Make(1)
	if err := d.Read(row, 0); err != nil {
		t.Error(err)
	}
	if err := d.Read(row, 1); err == nil || !strings.Contains(err.Error(), `a.npz: array "x": element [1] of example 1 is NaN`) {
		t.Error(err)
	}
}

// In a folder there may be pictures in the place of an array, with their names and classes.
func TestRecordOfPictures(t *testing.T) {
	fields := []Field{{Name: "image", Shape: []int64{3, 8, 8}, Dims: make([]string, 3), Type: "float32"}, {Name: "x", Shape: []int64{2}, Dims: []string{""}, Type: "float32"}}
	files, err := filepath.Abs("../../fixtures/images/files")
	if err != nil {
		t.Fatal(err)
	}
	dir := arraysIn(t, filepath.Join(t.TempDir(), "d"), map[string][]byte{"x": npy("<f4", []float64{1, 2, 3, 4}, 2, 2)})
	list := "path,label\n" + files + "/hopper.jpg,1\n" + files + "/camera.png,0\n"
	if err := os.WriteFile(filepath.Join(dir, "image.csv"), []byte(list), 0o666); err != nil {
		t.Fatal(err)
	}
	squash := preprocess.Settings{Image: preprocess.Transform{CropMode: preprocess.Squash}}
	d, err := Open([]string{dir}, Options{Fields: fields, Preprocess: squash})
	if err != nil {
		t.Fatal(err)
	}
	alone, err := Open([]string{filepath.Join(files, "hopper.jpg")}, Options{Shape: fields[0].Shape, Preprocess: squash})
	if err != nil {
		t.Fatal(err)
	}
	want := make([]float32, 3*8*8)
	if err := alone.Read(Floats(want), 0); err != nil {
		t.Fatal(err)
	}
	if got := records(t, d)[0]; !slices.Equal(got, append(want, 1, 2)) {
		t.Error("the picture is another than by itself")
	}
	// A changed picture keeps the numbers of the other input.
	black := Changed(Picked(d, []int{1, 0, 1}), memory.NewPool(0), func(p picture.Picture, i int) picture.Picture {
		if i != 1 {
			p = picture.New(p.W, p.H, p.C)
		}
		return p
	}, "black")
	dark := make([]float32, 3*8*8)
	if w, h := PictureSize(d); !Pictured(d) || w != 8 || h != 8 || ID(black) == ID(d) {
		t.Errorf("pictures of %d×%d", w, h)
	}
	if got := records(t, black); !slices.Equal(got[1], append(want, 1, 2)) || !slices.Equal(got[0], append(dark, 3, 4)) || !slices.Equal(black.Labels().Classes, []int{0, 1, 0}) {
		t.Errorf("changed pictures: %v", got)
	}
	if !slices.Equal(d.Labels().Classes, []int{1, 0}) || filepath.Base(d.Name(0)) != "hopper.jpg" || len(d.Sources()) != 2 {
		t.Errorf("labels %v, name %q, sources %v", d.Labels(), d.Name(0), d.Sources())
	}
	if err := os.WriteFile(filepath.Join(dir, "image.npy"), npy("<f4", nil), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Open([]string{dir}, Options{Fields: fields}); err == nil || !strings.Contains(err.Error(), `both image.csv and image.npy could be input "image"`) {
		t.Error(err)
	}
}

// A mask beside a coloured picture is no picture; a second picture of as many colours is.
func TestPictures(t *testing.T) {
	f := func(dtype string, shape ...int64) Field { return Field{Shape: shape, Type: dtype} }
	got := Pictures([]Field{f("float32", 4), f("float32", 3, 8, 8), f("float16", 1, 8, 8), f("uint8", 3, 9, 9), f("int64", 3, 8, 8), f("float32", 3, -1, -1)}, preprocess.Settings{})
	if want := []bool{false, true, false, true, false, true}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Examples are images if they have the shape of one, also in a part of the data. Rows of numbers and predictions are not.
func TestUnit(t *testing.T) {
	f := func(dtype string, shape ...int64) Field { return Field{Shape: shape, Type: dtype} }
	for _, tc := range []struct {
		want string
		d    Dataset
	}{
		{"example", nil},
		{"image", &values{examples: &examples{n: 2, shape: []int64{3, 8, 8}}}},
		{"image", &values{examples: &examples{n: 2, shape: []int64{8, 8, 1}}}},
		{"example", &values{examples: &examples{n: 2, shape: []int64{8, 8}}}},
		{"example", &values{examples: &examples{n: 2, shape: []int64{30}}}},
		{"image", &record{examples: &examples{n: 2, shape: []int64{66}, fields: []Field{f("float32", 2), f("float32", 1, 8, 8)}}}},
		{"example", &record{examples: &examples{n: 2, shape: []int64{66}, fields: []Field{f("int64", 1, 8, 8)}}}},
	} {
		if got := Unit(tc.d); got != tc.want {
			t.Errorf("%+v: %q, want %q", tc.d, got, tc.want)
		} else if tc.d != nil && Unit(Part(tc.d, 0, 1)) != got {
			t.Errorf("%+v: another word for a part", tc.d)
		}
	}
}

// WriteBatch writes an array for each field, of the input's type, which Open reads again.
func TestWriteBatchOfRecords(t *testing.T) {
	fields := slices.Clone(three)
	fields[2].Type = "int32"
	d, err := Open([]string{arraysIn(t, filepath.Join(t.TempDir(), "a.npz"), good())}, Options{Fields: fields})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := WriteBatch(&b, d, 128, false, false); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "batch.npz")
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := numpy.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if x, err := f.Read("ids", numpy.Values); err != nil || x.Type.Name != "int32" || x.Float64(1) != -8 {
		t.Errorf("%v %v, %v", x.Type, x.Data, err)
	}
	again, err := Open([]string{path}, Options{Fields: fields})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(records(t, again), records(t, d), slices.Equal) {
		t.Errorf("read again it is %v, want %v", records(t, again), records(t, d))
	}
}

// Labels of a file of their own win, and where none are wanted, what stands there may be anything.
func TestRecordLabels(t *testing.T) {
	arrays := good()
	own := filepath.Join(t.TempDir(), "own.npy")
	if err := os.WriteFile(own, npy("|u1", []float64{2, 3}, 2), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.npz", "folder"} {
		path := arraysIn(t, filepath.Join(t.TempDir(), name), arrays)
		d, err := Open([]string{path}, Options{Fields: three, Labels: own})
		if err != nil || !slices.Equal(d.Labels().Classes, []int{2, 3}) || d.Sources()[len(d.Sources())-1].Path != own {
			t.Errorf("%s: %v", name, err)
		}
		arrays["labels"] = npy("<f4", []float64{0.5, 0.5}, 2)
		if d, err = Open([]string{arraysIn(t, path, arrays)}, Options{Fields: three, Unlabelled: true}); err != nil || !d.Labels().None() {
			t.Errorf("%s: %v", name, err)
		}
		if _, err = Open([]string{path}, Options{Fields: three}); err == nil || !strings.Contains(err.Error(), "label 0 is 0.5, want a class number") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
