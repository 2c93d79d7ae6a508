package dataset

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/dataset/table"
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/target"
)

// textFile writes a file of that name to a folder of its own.
func textFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	write(t, path, []byte(text))
	return path
}

func floats(name string, shape ...int64) Field {
	return Field{Name: name, Shape: shape, Dims: make([]string, len(shape)), Type: "float32"}
}

// Reading takes as long as there are columns: work that grows with their square would
// take many minutes here.
func TestWideTables(t *testing.T) {
	const columns = 50_000
	list := func(format, between string, n int) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteString(between)
			}
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	names, numbers, pairs := list("column%d", ",", columns), list("%d.5", ",", columns), list(`"column%d":1.5`, ",", columns)
	for _, tt := range []struct {
		name, text    string
		columns       int64
		chosenOptions []string
		want          string // of the error
	}{
		{"a.csv", names + "\n" + numbers + "\n" + numbers + "\n", columns, nil, ""},
		{"a.tsv", strings.ReplaceAll(names+"\n"+numbers+"\n"+numbers+"\n", ",", "\t"), columns, []string{"col*"}, ""},
		{"a.jsonl", "{" + pairs + "}\n{" + pairs + "}\n", columns, nil, ""},
		{"twice.csv", names + ",column7\n", columns, nil, `two columns are named "column7"`},
		{"more.jsonl", "{" + pairs + "}\n{" + pairs + `,"more":1}`, columns, nil, `line 2: "more" is not among the first line's`},
		{"no.csv", names + "\n" + numbers + "\n", columns, []string{"row"}, `"column19"] and 49980 more: which columns`},
	} {
		path := textFile(t, tt.name, tt.text)
		opts := Options{Fields: []Field{floats("x", tt.columns)}}
		if tt.chosenOptions != nil {
			opts.Columns = map[string][]string{"x": tt.chosenOptions}
		}
		d, err := Open([]string{path}, opts)
		if tt.want != "" {
			if err == nil || !strings.Contains(err.Error(), tt.want) || len(err.Error()) > 1000 {
				t.Errorf("%s: %.200v, want %s", tt.name, err, tt.want)
			}
		} else if err != nil || d.Len() != 2 {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// Columns come to the inputs that were named, that they are named after, that they begin with, or
// that are the only ones.
func TestTableColumns(t *testing.T) {
	const text = "path,age,meta_bmi,meta_bp,label,meta\na,1,2,3,1,8\nb,4,5,6,0,9\n"
	for _, tt := range []struct {
		name    string
		text    string
		fields  []Field
		columns map[string][]string
		want    string
	}{
		{"all of an only input", "age,bmi,label\n1,2,0\n3,4,1\n", []Field{floats("x", 2)}, nil, "[[1 2] [3 4]]"},
		{"of an open width", "age,bmi,label\n1,2,0\n3,4,1\n", []Field{floats("x", -1)}, nil, "[[1 2] [3 4]]"},
		{"said, in that order", text, []Field{floats("x", 2)}, map[string][]string{"x": {"meta_bp", "age"}}, "[[3 1] [6 4]]"},
		{"patterns", text, []Field{floats("x", 3)}, map[string][]string{"x": {"meta_*", "age"}}, "[[2 3 1] [5 6 4]]"},
		{"one number", "age\n1\n2\n", []Field{floats("x")}, nil, "[[1] [2]]"},
		{"a column of one", "age\n1\n2\n", []Field{floats("x", 1, 1)}, nil, "[[1] [2]]"},
		{"by name and by prefix", "age,meta_bmi,meta_bp,label\n1,2,3,1\n4,5,6,0\n", []Field{floats("meta", 2), floats("age", 1)}, nil, "[[2 3 1] [5 6 4]]"},
		{"a name before a prefix", text, []Field{floats("meta", 1)}, map[string][]string{"": nil}, "[[8] [9]]"},
		{"a label that is an input", "label,y\n1,2\n3,4\n", []Field{floats("label", 1), floats("y", 1)}, nil, "[[1 2] [3 4]]"},
	} {
		path := textFile(t, "a.csv", tt.text)
		d, err := Open([]string{path}, Options{Fields: tt.fields, Columns: tt.columns})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := fmt.Sprint(records(t, d)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		if strings.HasPrefix(tt.text, "path") && d.Name(1) != "b" || !strings.HasPrefix(tt.text, "path") && d.Name(1) != "a.csv[1]" {
			t.Errorf("%s: row 1 is named %q", tt.name, d.Name(1))
		}
	}
}

func TestTableRefused(t *testing.T) {
	tokens := Field{Name: "ids", Shape: []int64{-1}, Dims: []string{"sequence"}, Type: "int64"}
	mask := Field{Name: "mask", Shape: []int64{-1}, Dims: []string{"sequence"}, Type: "bool"}
	small := Field{Name: "x", Type: "int8"}
	for _, tt := range []struct {
		name, text string
		fields     []Field
		opts       Options
		want       string
		is         error
	}{
		{"a.csv", "a,b,label\n1,2,0\n", []Field{floats("x", 3)}, Options{}, `2 columns ["a" "b"] for input "x", which takes [3]`, table.ErrColumns},
		{"a.csv", "a,b,c,label\n1,2,3,0\n", []Field{floats("x", 2)}, Options{}, `3 columns ["a" "b" "c"] for input "x", which takes [2]`, table.ErrColumns},
		{"a.csv", "a,label\n1,0\n", []Field{floats("x", 1), floats("y", 1)}, Options{}, `no column for input "x" among "a", "label"`, table.ErrColumns},
		{"a.csv", "x,y,z\n1,0,2\n", []Field{floats("x", 1), floats("y", 1)}, Options{}, `column "z": neither of an input of the network nor a label`, table.ErrColumns},
		{"a.csv", "x\n1\n", []Field{floats("x", 1)}, Options{Columns: map[string][]string{"x": {"w"}}}, `input "x": no column "w" among ["x"]`, table.ErrColumns},
		{"a.csv", "x\n1\n", []Field{floats("x", 2)}, Options{Columns: map[string][]string{"x": {"x", "x"}}}, `column "x" is there twice`, nil},
		{"a.csv", "a,word\n1,x\n", []Field{floats("x", 2)}, Options{}, `line 2, column "word": "x", want a number`, nil},
		{"a.csv", "x\n1.5\n", []Field{small}, Options{}, `row 0, column "x": 1.5, want whole numbers: input "x" takes int8`, nil},
		{"a.csv", "x\n1\n128\n", []Field{small}, Options{}, `row 1, column "x": 128, want -128 to 127: input "x" takes int8`, nil},
		{"a.csv", "x\n1e39\n", []Field{floats("x", 1)}, Options{}, `row 0, column "x": 1e+39, want finite float32 values`, nil},
		{"a.csv", "x,label\n1,3.5\n2,\n", []Field{floats("x", 1)}, Options{}, `a.csv[0]: label 3.5, want whole numbers`, nil},
		{"a.csv", "x,label\n1,cat\n", []Field{floats("x", 1)}, Options{Known: names.Known{Classes: []string{"dog"}}}, `class "cat" is not among the 1 class names`, nil},
		{"a.csv", "x,target\n1,NaN\n", []Field{floats("x", 1)}, Options{Target: target.Numbers}, `target 0 is NaN, want a finite number`, nil},
		{"a.csv", "x,label_a,label_b\n1,0,2\n", []Field{floats("x", 1)}, Options{Target: target.Labels}, `label 1 is 2, want 0, 1, or -1`, nil},
		{"a.jsonl", `{"ids": [1, 2], "mask": [1, 1]}` + "\n" + `{"ids": [1], "mask": [1]}`, []Field{tokens, mask}, Options{}, `row 1, column "ids": a list of 1, and input "ids" wants 2`, ErrNoPad},
		{"a.jsonl", `{"ids": [1, 2], "mask": [1]}`, []Field{tokens, mask}, Options{}, `"sequence" is 2 in input "ids": want the same`, nil},
		{"a.jsonl", `{"ids": [1, 2], "mask": [1]}` + "\n" + `{"ids": [1], "mask": [1, 1]}`, []Field{tokens, mask}, Options{Pad: map[string]float64{"ids": 0, "mask": 0}}, `row 0: a list of 2 for input "ids", and of 1 for "mask": want the same`, nil},
		{"a.jsonl", `{"ids": [1, 2]}` + "\n" + `{"ids": [1]}`, []Field{tokens}, Options{Pad: map[string]float64{"ids": 0.5}}, `Pad ids=0.5: 0.5, want whole numbers`, nil},
		{"a.jsonl", `{"x": [1, 2, 3]}`, []Field{floats("x", 2)}, Options{}, `row 0, column "x": a list of 3, and input "x" takes 2`, nil},
		{"a.jsonl", `{"x": [1]}`, []Field{floats("x", 2)}, Options{}, `row 0, column "x": a list of 1, and input "x" wants 2`, ErrNoPad},
		{"a.jsonl", `{"x": [1], "y": 2}`, []Field{floats("z", 2)}, Options{}, `column "x": a list of 1, and input "z" wants 2`, nil},
		{"a.jsonl", `{"x": [[1]]}`, []Field{floats("x", 2)}, Options{}, `column "x": examples of shape [1 1], want [2]`, nil},
	} {
		path := textFile(t, tt.name, tt.text)
		tt.opts.Fields = tt.fields
		_, err := Open([]string{path}, tt.opts)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), filepath.Base(path)) || tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("%.60q: %v, want %s", tt.text, err, tt.want)
		}
	}
}

// Labels of a table are those of lists: classes by name or number, labels, and targets.
func TestTableTargets(t *testing.T) {
	x := []Field{floats("x", 1)}
	open := func(text string, opts Options) target.Target {
		opts.Fields = x
		d, err := Open([]string{textFile(t, "a.csv", text)}, opts)
		if err != nil {
			t.Fatal(err)
		}
		return d.Labels()
	}
	if got := open("x,class\n1,owl\n2,cat\n", Options{}); !slices.Equal(got.Classes, []int{1, 0}) {
		t.Errorf("classes %v", got)
	}
	if got := open("x,label\n1,owl\n2,cat\n", Options{Known: names.Known{Classes: []string{"owl", "ant", "cat"}}}); !slices.Equal(got.Classes, []int{0, 2}) {
		t.Errorf("classes %v", got)
	}
	if got := open("x,label_a,label_b\n1,1,\n2,0,1\n", Options{Target: target.Labels}); !slices.Equal(got.Values, []float64{1, -1, 0, 1}) || got.Width != 2 {
		t.Errorf("labels %v", got)
	}
	if got := open("target_1,x,target_0\n0.1,1,-1e-7\n3,2,4\n", Options{Target: target.Numbers}); !slices.Equal(got.Values, []float64{-1e-7, 0.1, 4, 3}) {
		t.Errorf("targets %v", got)
	}
	if got := open("x,label\n1,\n2,\n", Options{}); !got.None() {
		t.Errorf("no labels are %v", got)
	}
	if got := open("x,label\n1,?\n2,cat\n", Options{Unlabelled: true}); !got.None() {
		t.Errorf("labels that nobody wants are %v", got)
	}
	own := filepath.Join(t.TempDir(), "y.npy")
	write(t, own, npy("|i1", []float64{1, 0}, 2))
	if got := open("x,label\n1,?\n2,cat\n", Options{Labels: own}); !slices.Equal(got.Classes, []int{1, 0}) {
		t.Errorf("labels of a file are %v", got)
	}
}

// A target that is empty is not known, and neither 0 nor −1.
func TestTableGaps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	write(t, path, []byte("x,target\n1,\n2,-1\n"))
	d, err := Open([]string{path}, Options{Fields: []Field{floats("x", 1)}, Target: target.Numbers})
	if err != nil {
		t.Fatal(err)
	}
	labels := d.Labels()
	if first, n := Bare(d); first != 0 || n != 1 || !labels.Gaps() || labels.At(0).Known() || !labels.At(1).Known() || labels.Values[1] != -1 {
		t.Errorf("row %d of %d without a target: %v", first, n, labels.Values)
	}
}

// An image and numbers beside it are one table, with a path.
func TestTableOfPictures(t *testing.T) {
	path := textFile(t, "a.csv", "image,meta_a,meta_b,label\nx.png,1,2,1\ny.png,3,4,0\n")
	for i, name := range []string{"x.png", "y.png"} {
		writePNG(t, filepath.Join(filepath.Dir(path), name), 1, 1, 1, []byte{byte(255 * i)})
	}
	d, err := Open([]string{path}, Options{Fields: []Field{floats("image", 1, 1, 1), floats("meta", 2)}})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(records(t, d), d.Labels().Classes); got != "[[0 1 2] [1 3 4]] [1 0]" {
		t.Error(got)
	}
	if d.Name(0) != filepath.Join(filepath.Dir(path), "x.png") {
		t.Error(d.Name(0))
	}
	// A network of pictures alone takes a list, whatever other columns it has.
	list, err := Open([]string{path}, Options{Shape: []int64{1, 1, 1}, Fields: []Field{floats("image", 1, 1, 1)}})
	if err != nil || list.Len() != 2 || list.Sources()[0].Kind != "listing" {
		t.Errorf("%v, %v", list, err)
	}
	os.Remove(filepath.Join(filepath.Dir(path), "y.png"))
	if err := d.Read(Floats(make([]float32, 3)), 1); err == nil || !strings.Contains(err.Error(), "y.png: no such file") {
		t.Error(err)
	}
}

// Lists are filled up to the longest of all, and their lengths are known; where the network
// fixes their length, to that.
func TestRagged(t *testing.T) {
	const text = `{"ids": [5, 6, 7], "mask": [1, 1, 1]}` + "\n" + `{"ids": [], "mask": []}` + "\n" + `{"ids": [8], "mask": [1]}`
	tokens := Field{Name: "ids", Shape: []int64{-1}, Dims: []string{"sequence"}, Type: "int64"}
	mask := Field{Name: "mask", Shape: []int64{-1}, Dims: []string{"sequence"}, Type: "bool"}
	path := textFile(t, "a.jsonl", text)
	opts := Options{Fields: []Field{tokens, mask}, Pad: map[string]float64{"ids": 2, "mask": 0}}
	d, err := Open([]string{path}, opts)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(records(t, d)); got != "[[5 6 7 1 1 1] [2 2 2 0 0 0] [8 2 2 1 0 0]]" {
		t.Error(got)
	}
	for what, x := range map[string]struct {
		Dataset
		want []int
	}{"all": {d, []int{3, 0, 1}}, "part": {Part(d, 1, 3), []int{0, 1}}, "subset": {Subset(d, Order{Limit: 2}), []int{3, 0}}} {
		var got []int
		for i := range x.Dataset.Len() {
			got = append(got, Length(x.Dataset, 1, i))
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%s: lengths %d, want %d", what, got, x.want)
		}
	}
	was := ID(d)
	opts.Pad = map[string]float64{"ids": 1, "mask": 0}
	if d, err = Open([]string{path}, opts); err != nil || ID(d) == was {
		t.Errorf("what lists are filled up with is no part of the id: %v", err)
	}
	opts.Fields[0].Shape, opts.Fields[1].Shape = []int64{4}, []int64{4}
	if d, err = Open([]string{path}, opts); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(records(t, d)); got != "[[5 6 7 1 1 1 1 0] [1 1 1 1 0 0 0 0] [8 1 1 1 1 0 0 0]]" || Length(d, 0, 1) != -1 {
		t.Error(got)
	}
	steps := textFile(t, "b.jsonl", `{"x": [[1, 2], [3, 4]]}`+"\n"+`{"x": [[5, 6]]}`)
	d, err = Open([]string{steps}, Options{Fields: []Field{floats("x", -1, 2)}, Pad: map[string]float64{"x": -1}})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(records(t, d)); got != "[[1 2 3 4] [5 6 -1 -1]]" || Length(d, 0, 1) != 1 {
		t.Error(got)
	}
}

// Whole numbers come exact to the network, whatever file they are in.
func TestWide(t *testing.T) {
	want := []int64{1<<62 + 1, -1 << 63, 16777217, 3}
	x := Field{Name: "x", Shape: []int64{2}, Dims: []string{""}, Type: "int64"}
	b := npy("<i8", make([]float64, 4), 2, 2)
	for k, v := range want {
		for j := range 8 {
			b[len(b)-32+8*k+j] = byte(v >> (8 * j))
		}
	}
	other := npy("|i1", []float64{1, 0}, 2)
	for name, path := range map[string]string{
		"csv":    textFile(t, "a.csv", fmt.Sprintf("a,b\n%d,%d\n%d,%d\n", want[0], want[1], want[2], want[3])),
		"jsonl":  textFile(t, "a.jsonl", fmt.Sprintf("{\"x\": [%d, %d]}\n{\"x\": [%d, %d]}\n", want[0], want[1], want[2], want[3])),
		"npy":    textFile(t, "a.npy", string(b)),
		"npz":    arraysIn(t, filepath.Join(t.TempDir(), "a.npz"), map[string][]byte{"x": b, "labels": other}),
		"folder": arraysIn(t, filepath.Join(t.TempDir(), "a"), map[string][]byte{"x": b, "y": other}),
	} {
		opts := Options{Fields: []Field{x}}
		if name == "folder" {
			opts.Fields = append(opts.Fields, Field{Name: "y", Type: "int64"})
		}
		d, err := Open([]string{path}, opts)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []int64
		for _, row := range examplesOf(t, d) {
			got = append(got, row.Ints[:2]...)
		}
		if f := Fields(d)[0]; !slices.Equal(got, want) || f.Size() != (Size{Ints: 2}) {
			t.Errorf("%s: %d of field %v, want %d", name, got, f, want)
		}
		var saved strings.Builder
		if err := WriteBatch(&saved, d, 2, false, false); err != nil {
			t.Fatal(err)
		}
		again, err := Open([]string{textFile(t, "saved.np"+map[bool]string{true: "y", false: "z"}[len(opts.Fields) == 1], saved.String())}, opts)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := examplesOf(t, d), examplesOf(t, again); !reflect.DeepEqual(a, b) {
			t.Errorf("%s: a saved batch has %v, want %v", name, b, a)
		}
	}
	// Lists of other lengths are filled up, too.
	d, err := Open([]string{textFile(t, "b.jsonl", "{\"x\": [16777217]}\n{\"x\": [1, -16777219]}")}, Options{Fields: []Field{x}, Pad: map[string]float64{"x": -1}})
	if err != nil {
		t.Fatal(err)
	}
	if row := examplesOf(t, d)[0].Ints; !slices.Equal(row, []int64{1<<24 + 1, -1}) {
		t.Error(row)
	}
}
