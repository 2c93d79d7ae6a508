package dataset

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/target"
)

// typed is an array of a .npy file. Values are those of its type, little endian.
func typed[T any](dtype string, shape []int, values ...T) []byte {
	b, err := binary.Append(numpy.Header(dtype, shape...), binary.LittleEndian, values)
	if err != nil {
		panic(err)
	}
	return b
}

// Arrays of labels and numbers may be of any type; what cannot be either is refused, with
// the file, the row and the place in it.
func TestTargetsOfArrays(t *testing.T) {
	dir := t.TempDir()
	images := filepath.Join(dir, "x.npy")
	write(t, images, typed("<f4", []int{2, 3}, 1, 2, 3, 4, 5, float32(6)))
	nan := math.NaN()
	for _, tt := range []struct {
		name  string
		file  []byte
		kind  target.Kind
		want  []float64
		width int
		err   string
	}{
		{"bools", typed[uint8]("|b1", []int{2, 3}, 1, 0, 0, 1, 1, 0), target.Labels, []float64{1, 0, 0, 1, 1, 0}, 3, ""},
		{"ints", typed[int8]("|i1", []int{2, 2}, 1, 0, -1, 1), target.Labels, []float64{1, 0, -1, 1}, 2, ""},
		{"one label", typed[int64]("<i8", []int{2}, 1, 0), target.Labels, []float64{1, 0}, 1, ""},
		{"floats", typed("<f4", []int{2, 1}, 1, float32(0)), target.Labels, []float64{1, 0}, 1, ""},
		{"numbers", typed("<f8", []int{2}, -1.5, 1e9), target.Numbers, []float64{-1.5, 1e9}, 1, ""},
		{"two targets", typed("<f8", []int{2, 2}, 1.5, 2, 3, 4), target.Numbers, []float64{1.5, 2, 3, 4}, 2, ""},
		{"half precision", typed[uint16]("<f2", []int{2, 1}, 0x3e00, 0xc000), target.Numbers, []float64{1.5, -2}, 1, ""},
		{"big endian", typed[uint16](">i2", []int{2}, 0x0100, 0xffff), target.Numbers, []float64{1, -1}, 1, ""},

		{"no label", typed("<f8", []int{2, 2}, 1, 0, 0, 0.5), target.Labels, nil, 0, "row 1: label 1 is 0.5, want 0, 1, or -1"},
		{"label NaN", typed("<f8", []int{2, 1}, nan, 0), target.Labels, []float64{-1, 0}, 1, ""},
		{"target NaN", typed("<f8", []int{2, 2}, 1, 2, 3, nan), target.Numbers, nil, 0, "row 1: target 1 is NaN, want a finite number"},
		{"lengths", typed("<f8", []int{3}, 1.0, 2, 3), target.Numbers, nil, 0, "3 labels for 2 examples in " + images},
		{"shape", typed("<f8", []int{2, 1, 1}, 1.0, 2), target.Numbers, nil, 0, "labels of shape [2 1 1], want a number or a row for each example"},
		{"type", numpy.Header("|O", 2), target.Numbers, nil, 0, "labels of type object, want bool"},
		{"classes of floats", typed("<f8", []int{2}, 1.0, 2.5), target.Classes, nil, 0, "label 1 is 2.5, want a class number"},
		{"classes of rows", typed[int64]("<i8", []int{2, 2}, 1, 0, 0, 1), target.Classes, nil, 0, "want [2] or [2 1] (class numbers, not one-hot)"},
	} {
		path := filepath.Join(dir, "y.npy")
		write(t, path, tt.file)
		d, err := Open([]string{images}, Options{Labels: path, Target: tt.kind})
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: %v, want %s", tt.name, err, tt.err)
			}
			continue
		}
		if err != nil || !slices.Equal(d.Labels().Values, tt.want) || d.Labels().Width != tt.width {
			t.Errorf("%s: %v, %v", tt.name, d, err)
			continue
		}
		if got := Part(d, 1, 2).Labels(); !slices.Equal(got.Values, tt.want[tt.width:]) {
			t.Errorf("%s: part has %v", tt.name, got)
		}
		if got := Subset(d, Order{Limit: 1}).Labels(); !slices.Equal(got.Values, tt.want[:tt.width]) {
			t.Errorf("%s: subset has %v", tt.name, got)
		}
	}
}

// A list has a column for each label or number. Empty cells are not known.
func TestTargetsOfLists(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.png", "b.png", "c.png"} {
		writePNG(t, filepath.Join(dir, name), 2, 2, 3, make([]byte, 12))
	}
	opts := Options{Shape: []int64{3, 2, 2}}
	for _, tt := range []struct {
		name, ext, list string
		kind            target.Kind
		want            []float64
		err             string
	}{
		{"names", ".csv", "path,label_0,label_1\na.png,1,0\nb.png,,1\nc.png,0,0\n", target.Labels, []float64{1, 0, -1, 1, 0, 0}, ""},
		{"names of their own", ".csv", "image,oedema,fracture\na.png,1,0\nb.png,1,1\n", target.Labels, []float64{1, 0, 1, 1}, ""},
		{"only labels", ".csv", "id,image,label_x,label_y\n7,a.png,1,0\n8,b.png,1,1\n", target.Labels, []float64{1, 0, 1, 1}, ""},
		{"no header", ".tsv", "a.png\t1\t0\nb.png\t0\t1\n", target.Labels, []float64{1, 0, 0, 1}, ""},
		{"number", ".csv", "path,target\na.png,-2.5\nb.png,1e3\n", target.Numbers, []float64{-2.5, 1000}, ""},
		{"number in text", ".txt", "a.png 1.5\nb.png 2\n", target.Numbers, []float64{1.5, 2}, ""},
		{"none", ".csv", "path,label_0,label_1\na.png,,\nb.png,,\n", target.Labels, nil, ""},

		{"a word", ".csv", "path,label_0,label_1\na.png,1,cat\n", target.Labels, nil, `a.png: label 1 is "cat", want a number`},
		{"two", ".csv", "path,label_0,label_1\na.png,1,2\n", target.Labels, nil, "a.png: label 1 is 2, want 0, 1, or -1"},
		{"short", ".csv", "path,label_0,label_1\na.png,1,1\nb.png,1\n", target.Labels, nil, "line 3: 2 columns, want 3 as in the first line"},
		{"unknown number", ".csv", "path,target_0,target_1\na.png,1,\n", target.Numbers, nil, `a.png: label 1 is "?", want a number`},
		{"some", ".csv", "path,label_0,label_1\na.png,1,1\nb.png,,\n", target.Labels, []float64{1, 1, -1, -1}, ""},
		{"infinite", ".csv", "path,target\na.png,Inf\n", target.Numbers, nil, "target 0 is +Inf, want a finite number"},
		{"classes", ".csv", "a.png,1,0\n", target.Classes, nil, "3 columns, want 2"},
	} {
		path := filepath.Join(dir, "list"+tt.ext)
		write(t, path, []byte(tt.list))
		opts.Target = tt.kind
		d, err := Open([]string{path}, opts)
		switch {
		case tt.err != "":
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v, want %s", tt.name, err, tt.err)
			}
		case err != nil || !slices.Equal(d.Labels().Values, tt.want):
			t.Errorf("%s: %v, %v", tt.name, d, err)
		}
	}

	// A listing of one number is read in parts, too.
	write(t, filepath.Join(dir, "list.csv"), []byte("path,target\na.png,1.5\nb.png,-2\nc.png,0\n"))
	listing := filepath.Join(dir, "files.parquet")
	makeListing(t, listing, filepath.Join(dir, "list.csv"))
	opts.Target = target.Numbers
	for _, opts.Parted = range []bool{false, true} {
		d, err := Open([]string{listing}, opts)
		if err != nil {
			t.Fatal(err)
		}
		if err := Load(d, 1, 3); err != nil {
			t.Fatal(err)
		}
		if got := Part(d, 1, 3).Labels(); !slices.Equal(got.Values, []float64{-2, 0}) {
			t.Errorf("parted %v: %v", opts.Parted, got)
		}
	}
	// Names of folders are no numbers.
	if d, err := Open([]string{tree(t, "7/1.jpg", "8/1.jpg")}, Options{Shape: []int64{3, 2, 2}, Target: target.Numbers}); err != nil || !d.Labels().None() {
		t.Errorf("class folders of numbers: %v", err)
	}
}
