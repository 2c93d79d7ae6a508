package table

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
)

func write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(path string, text, numbers []string) (map[string]*Column, error) {
	t, err := Open(path)
	if err != nil {
		return nil, err
	}
	return t.Read(text, numbers)
}

// nested is a column as a JSON value for each row.
func nested(c *Column, n int) []any {
	var out []any
	at := 0
	var list func(shape []int) any
	list = func(shape []int) any {
		if len(shape) == 0 {
			at++
			return c.At(at - 1)
		}
		below := []any{}
		for range shape[0] {
			below = append(below, list(shape[1:]))
		}
		return below
	}
	for i := range n {
		if c.Lengths == nil {
			out = append(out, list(nil))
		} else {
			out = append(out, list(append([]int{c.Lengths[i]}, c.Inner...)))
		}
	}
	return out
}

// Numbers and lists of Parquet are those that PyArrow reads: testdata/make.py.
func TestParquetGolden(t *testing.T) {
	var golden map[string][]any
	testfile.JSON(t, "testdata/golden.json", &golden)
	var names []string
	for name := range golden {
		names = append(names, name)
	}
	columns, err := read("testdata/good.parquet", []string{"word", "class", "target", "marks"}, names)
	if err != nil {
		t.Fatal(err)
	}
	if len(golden) != 10 || len(columns) != 14 {
		t.Errorf("%d columns of %d", len(columns), len(golden))
	}
	for name, want := range golden {
		got := nested(columns[name], 7)
		for i := range want {
			if yes, ok := want[i].(bool); ok {
				want[i] = map[bool]float64{true: 1}[yes]
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if c := columns["whole"]; !slices.Equal(c.Ints, []int64{0, -1, 1 << 62, 16777217, 5, math.MinInt64, math.MaxInt64}) {
		t.Errorf("whole numbers %d", c.Ints)
	}
	for name, want := range map[string]string{
		"word":   `["a" "b" "" "" "a" "ü" "=1"]`,
		"class":  `["2" "" "0" "1" "2" "0" "1"]`,
		"target": `["0.1" "0.3333333333333333" "" "" "1e+300" "-0" "2"]`,
		"marks":  `["1 0" "0 1" "1 1" "0 0" " 1" "" ""]`,
	} {
		if got := fmt.Sprintf("%q", columns[name].Texts); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// What cannot be numbers is refused, by row and column.
func TestParquetRefused(t *testing.T) {
	for name, want := range map[string]string{
		"null":            `row 2, column "null": null, want a number`,
		"nan":             `row 1, column "nan": NaN, want a finite number`,
		"null list":       `row 1, column "null list": null, want a list`,
		"null in a list":  `row 1, column "null in a list": null, want a number`,
		"empty in a list": `row 1, column "empty in a list": element 1 of a list is of shape [0], and others are of [1]`,
		"other widths":    `row 1, column "other widths": element 1 of a list is of shape [1], and others are of [2]`,
		"large":           `row 1, column "large": 9223372036854775808, want at most 64 bits with a sign`,
		"text":            `all rows, column "text": STRING, want a number`,
		"fields":          `column "fields": a structure or a map`,
	} {
		_, err := read("testdata/bad.parquet", nil, []string{name})
		if err == nil || !strings.HasPrefix(err.Error(), "testdata/bad.parquet: "+want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	if _, err := read("testdata/empty.parquet", nil, []string{"x"}); err == nil || err.Error() != "testdata/empty.parquet: no rows, want some" {
		t.Error(err)
	}
	if _, err := read("testdata/bomb.parquet", nil, []string{"x"}); err == nil || !strings.Contains(err.Error(), "9000000 values in a file of") {
		t.Error(err)
	}
	b, err := os.ReadFile("testdata/good.parquet")
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(b); n += 307 {
		path := write(t, "cut.parquet", string(b[:n]))
		if _, err := read(path, nil, []string{"whole"}); err == nil {
			t.Fatalf("cut to %d of %d bytes: no error", n, len(b))
		}
	}
}

// CSV, tabs and JSON lines have the same columns.
func TestTexts(t *testing.T) {
	for name, text := range map[string]string{
		"a.csv":   "\ufeffage, \"b,mi\",on,word\n# a note\n1, 2.5,True,'=x\n\n2,1e3,False,\"y \"\"z\"\"\"\n16777217,-0.5,true,\n",
		"a.tsv":   "age\tb,mi\ton\tword\n1\t2.5\t1\t=x\n2\t1000\t0\ty \"z\"\n16777217\t-0.5\t1\t\n",
		"a.jsonl": "\ufeff{\"age\": 1, \"b,mi\": 2.5, \"on\": true, \"word\": \"=x\"}\n\n{\"word\": \"y \\\"z\\\"\", \"age\": 2, \"b,mi\": 1e3, \"on\": false}\n{\"age\": 16777217, \"b,mi\": -0.5, \"on\": true, \"word\": null}",
	} {
		if name == "a.tsv" {
			text = strings.ReplaceAll(text, `y "z"`, `"y ""z"""`)
		}
		path := write(t, name, text)
		c, err := read(path, []string{"word"}, []string{"age", "b,mi", "on"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := fmt.Sprint(c["age"].Ints, c["b,mi"].Floats, c["on"].Ints); got != "[1 2 16777217] [2.5 1000 -0.5] [1 0 1]" {
			t.Errorf("%s: %s", name, got)
		}
		if got := c["word"].Texts; !slices.Equal(got, []string{"=x", `y "z"`, ""}) {
			t.Errorf("%s: %q", name, got)
		}
		if !Is(path) {
			t.Errorf("%s is no table", name)
		}
	}
	c, err := read(write(t, "l.jsonl", "{\"x\": [1, 2.5], \"y\": [[1, 2]]}\n{\"x\": [], \"y\": []}\n{\"x\": [3], \"y\": [[3, 4], [5, 6]]}\n"), nil, []string{"x", "y"})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(nested(c["x"], 3), nested(c["y"], 3)); got != "[[1 2.5] [] [3]] [[[1 2]] [] [[3 4] [5 6]]]" {
		t.Error(got)
	}
}

func TestTextsRefused(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"a.csv", "", "empty, want a first line"},
		{"a.csv", "x,y\n", "no rows, want some"},
		{"a.csv", "1,2\n3,4\n", `first line ["1" "2"], want the names of the columns`},
		{"a.csv", "x,x\n1,2\n", `two columns are named "x"`},
		{"a.csv", "x,y\n1,2\n1\n", "line 3, column 1: wrong number of fields"},
		{"a.csv", "x,y\n1,2\n\n# note\n,3\n", `line 5, column "x": empty, want a number`},
		{"a.csv", "x\nNaN\n", `line 2, column "x": NaN, want a finite number`},
		{"a.csv", "x\n1e999\n", `line 2, column "x": +Inf, want a finite number`},
		{"a.tsv", "x\ty\n1,5\t2\n", `line 2, column "x": "1,5", a decimal comma, want a point`},
		{"a.csv", "x\n1\ntwo\n", `line 3, column "x": "two", want a number`},
		{"a.csv", "x\n\"1\n", `line 2, column 4: extraneous or missing " in quoted-field`},
		{"a.jsonl", "", "empty, want an object in each line"},
		{"a.jsonl", "[1]\n", "line 1: json: cannot unmarshal array"},
		{"a.jsonl", "{\"x\": 1}\n{\"x\": \"1\"}\n", `line 2, column "x": "1", want a number`},
		{"a.jsonl", "{\"x\": 1}\n{\"y\": 1}\n", `line 2, column "x": missing`},
		{"a.jsonl", "{\"x\": 1}\n{\"x\": 1, \"y\": 1}\n", `line 2: "y" is not among the first line's`},
		{"a.jsonl", "{\"x\": 1}\n{\"x\": [1]}\n", `line 2, column "x": lists and numbers`},
		{"a.jsonl", "{\"x\": [1]}\n{\"x\": 1}\n", `line 2, column "x": lists and numbers`},
		{"a.jsonl", "{\"x\": [[1], [1, 2]]}\n", `line 1, column "x": element 1 of a list is of shape [2], and others are of [1]`},
		{"a.jsonl", "{\"x\": [[1]]}\n{\"x\": [[1, 2]]}\n", `line 2, column "x": a list of shape [1 2], and others are of [1 1]`},
		{"a.jsonl", "{\"x\": [null]}\n", `line 1, column "x": null, want a number`},
		{"a.jsonl", "{\"x\": {}}\n", `line 1, column "x": "map[]", want a number`},
	} {
		path := write(t, tt.name, tt.text)
		if _, err := read(path, nil, []string{"x"}); err == nil || !strings.HasPrefix(err.Error(), path+": "+tt.want) {
			t.Errorf("%q: %v, want %s", tt.text, err, tt.want)
		}
	}
}

func TestIs(t *testing.T) {
	for _, name := range []string{"a.txt", "a.npz"} {
		if Is(write(t, name, "x\n1\n")) {
			t.Errorf("%s is a table", name)
		}
	}
	if Is(t.TempDir()) || Is("missing.csv") {
		t.Error("a folder, or nothing, is a table")
	}
}

func FuzzTable(f *testing.F) {
	for _, s := range []string{"x,y\n1,2.5\n3,\"4\"\n", "{\"x\": [1, [2]], \"y\": null}\n{\"x\": true}\n", "\ufeff'=x\ty\n"} {
		for k := range 3 {
			f.Add([]byte(s), k)
		}
	}
	for _, name := range []string{"good", "bad"} {
		b, err := os.ReadFile("testdata/" + name + ".parquet")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, 3)
	}
	f.Fuzz(func(t *testing.T, b []byte, k int) {
		path := write(t, "x"+Extensions[uint(k)%4], string(b))
		reliability.Heap(t, 25*len(b), func() { // a hundred times their size
			table, err := Open(path)
			if err != nil {
				return
			}
			c, err := table.Read(nil, table.Names)
			for name := range c {
				if err == nil && len(c) == 1 && c[name].Lengths == nil && c[name].Len() != table.Rows {
					t.Errorf("%q: %d of %d rows", name, c[name].Len(), table.Rows)
				}
			}
			table.Read(table.Names, nil)
		})
	})
}

// A table with gaps has NaN for a missing number, and no element for a missing list.
func TestGaps(t *testing.T) {
	nan := math.NaN()
	for name, tt := range map[string]struct {
		text    string
		x       []float64
		lengths []int // of l
		l       []float64
	}{
		"a.csv":   {"path,x\n#1,1\nb,\nc,-Inf\n", []float64{1, nan, math.Inf(-1)}, nil, nil},
		"a.jsonl": {"{\"error\": \"e\"}\n{\"x\": 2, \"l\": [1, null]}\n{\"x\": null, \"l\": []}\n{\"l\": null}\n", []float64{nan, 2, nan, nan}, []int{0, 2, 0, 0}, []float64{1, nan}},
	} {
		tab, err := OpenGaps(write(t, name, tt.text))
		if err != nil {
			t.Fatal(err)
		}
		columns, err := tab.Read(nil, []string{"x", "l"})
		if err != nil {
			t.Fatal(err)
		}
		for column, want := range map[string][]float64{"x": tt.x, "l": tt.l} {
			c := columns[column]
			if want == nil {
				continue
			}
			if !slices.EqualFunc(c.Floats, want, func(a, b float64) bool { return a == b || a != a && b != b }) {
				t.Errorf("%s: %s is %v, want %v", name, column, c.Floats, want)
			}
		}
		if c := columns["l"]; c != nil && !slices.Equal(c.Lengths, tt.lengths) {
			t.Errorf("%s: lengths %v, want %v", name, c.Lengths, tt.lengths)
		}
	}
	if _, err := OpenGaps(write(t, "empty.jsonl", "")); err == nil {
		t.Error("an empty file has columns")
	}
}

// A row has a bounded size: a file without line breaks, or with an open quote, is no single row of any size.
func TestLongRow(t *testing.T) {
	for name, begin := range map[string]string{"zeros.csv": "", "zeros.tsv": "", "quote.csv": "a,b\n1,\"", "name.csv": "a,\""} {
		path := write(t, name, begin)
		if err := os.Truncate(path, 1<<40); err != nil {
			t.Fatal(err)
		}
		const copies = 8 // of a growing buffer
		reliability.Heap(t, copies*maxObject/4, func() {
			table, err := OpenGaps(path)
			if err == nil {
				_, err = table.Read(table.Names, nil)
			}
			if err == nil || err.Error() != path+": a row of more than 67108864 bytes, want a line for each row" {
				t.Errorf("%s: error %v", name, err)
			}
		})
	}
}

// A table in memory is that of the file with the same bytes.
func TestInMemory(t *testing.T) {
	for name, content := range map[string]string{"x.csv": "a;b\n1,5;x\n2;y\n", "x.tsv": "a\tb\n1.5\tx\n2\ty\n", "x.jsonl": "{\"a\":1.5,\"b\":\"x\"}\n{\"a\":2,\"b\":\"y\"}\n"} {
		path := write(t, name, content)
		one, err1 := Open(path)
		two, err2 := InMemory(path, []byte(content))
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		a, err1 := one.Read([]string{"b"}, []string{"a"})
		b, err2 := two.Read([]string{"b"}, []string{"a"})
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(a["a"].Floats, b["a"].Floats) || !slices.Equal(a["b"].Texts, b["b"].Texts) || len(a["a"].Floats) != 2 || one.SHA256 != two.SHA256 {
			t.Errorf("%s: %+v, want %+v", name, b["a"], a["a"])
		}
	}
	if _, err := InMemory("x.csv", []byte("1,2\n")); err == nil || !strings.HasPrefix(err.Error(), "x.csv: first line") {
		t.Error(err)
	}
}
