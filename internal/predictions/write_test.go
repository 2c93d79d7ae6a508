package predictions

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/swagwrap/swagwrap/fixtures/testfile"
	"github.com/swagwrap/swagwrap/internal/task"
)

var update = flag.Bool("update", false, "write testdata/rows.* anew; then run testdata/read_rows.py")

// classColumns are the columns of three classes. A ranking of one is not shown.
func classColumns(want task.RowOptions) []task.Column {
	three, err := task.New("", task.OutputSpec{Count: 3})
	if err != nil {
		panic(err)
	}
	columns := three.Columns(want)
	for i := range columns {
		columns[i].Hidden = columns[i].Hidden || columns[i].Kind == task.Ranked && want.Top < 2
	}
	return columns
}

// inventedRows are three, of which the second has an error.
func inventedRows() (*Schema, []Row) {
	nan, third, little := math.NaN(), float64(float32(1./3)), float64(float32(1e-30))
	rows := []Row{
		{Index: 0, Path: "a/one.jpg", Label: 2, Values: []float64{2, 0.625, 0.9, 0.8, 0.1, nan, nan,
			2, 0.625, 0, 0.25, 0.25, 0.125, 0.625, 0.5, 0, 0.5, 0, 0.25, 0.75}},
		{Index: 1, Path: `b,"ü".png`, Label: 0, Error: "b,\"ü\".png: JPEG: unexpected EOF"},
		{Index: 2, Path: "<c>&.png", Label: 1, Values: []float64{1, 1. / 3, math.Log(3), 1.5e-300, 0, nan, nan,
			1, 1. / 3, 0, 1. / 3, 1. / 3, 1. / 3, 1. / 3, third, third, third, 1, 0, little}},
	}
	return &Schema{Columns: classColumns(task.RowOptions{Top: 2, Outcomes: true, Members: 2}), Width: 3,
		Labels: true, Errors: true, ClassNames: []string{"cat", "dog, or wolf", "鳥"}}, rows
}

func iterate(rows []Row) func(func(*Row) error) error {
	return func(f func(*Row) error) error {
		for i := range rows {
			if err := f(&rows[i]); err != nil {
				return err
			}
		}
		return nil
	}
}

// The bytes of every format are those of testdata/rows.*, of which the test
// below says how pyarrow and NumPy read them.
func TestFormats(t *testing.T) {
	schema, rows := inventedRows()
	for _, format := range formats {
		var got bytes.Buffer
		if err := Write(&got, format, schema, t.TempDir(), iterate(rows)); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", "rows"+format)
		if *update {
			if err := os.WriteFile(path, got.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s: other bytes (go test -update, if that is meant)", path)
		}
	}
}

// What Python reads from the files: testdata/read_rows.py.
func TestPythonReads(t *testing.T) {
	var got map[string]map[string]any
	testfile.JSON(t, filepath.Join("testdata", "rows.json"), &got)
	schema, rows := inventedRows()
	column := func(of func(i int, r *Row) any, failed any) (list []any) {
		for i := range rows {
			if rows[i].Error != "" && failed != "read" {
				list = append(list, failed)
				continue
			}
			list = append(list, of(i, &rows[i]))
		}
		return list
	}
	null, nan := any(nil), any("nan")
	nans := func(n int) (list []any) {
		for range n {
			list = append(list, "nan")
		}
		return list
	}
	// value returns value i of a row, or those from i to j.
	value := func(i int) func(int, *Row) any { return func(_ int, r *Row) any { return r.Values[i] } }
	values := func(i, j int) func(int, *Row) any { return func(_ int, r *Row) any { return r.Values[i:j] } }
	top := func(_ int, r *Row) any { return []any{r.Values[7], r.Values[9]} }
	topProbability := func(_ int, r *Row) any { return []any{r.Values[8], r.Values[10]} }
	path := column(func(_ int, r *Row) any { return r.Path }, "read")
	want := map[string]map[string]any{
		"parquet": {
			"path": path, "label": []int{2, 0, 1}, "prediction": column(value(0), null),
			"name":       column(func(_ int, r *Row) any { return schema.ClassNames[int(r.Values[0])] }, null),
			"confidence": column(value(1), null), "predictive_entropy": column(value(2), null),
			"expected_entropy": column(value(3), null), "mutual_information": column(value(4), null),
			"top": column(top, []any{}), "top_probability": column(topProbability, []any{}), "probs": column(values(11, 14), []any{}),
			"member_probs": column(values(14, 20), []any{}),
			"error":        []any{nil, rows[1].Error, nil},
		},
		"npz": {
			"path": path, "label": []int{2, 0, 1}, "prediction": column(value(0), -1),
			"confidence": column(value(1), nan), "predictive_entropy": column(value(2), nan),
			"expected_entropy": column(value(3), nan), "mutual_information": column(value(4), nan),
			"top": column(top, []any{-1, -1}), "top_probability": column(topProbability, nans(2)), "probs": column(values(11, 14), nans(3)),
			"member_probs": column(func(_ int, r *Row) any { return []any{r.Values[14:17], r.Values[17:]} }, []any{nans(3), nans(3)}),
			"error":        []any{"", rows[1].Error, ""},
		},
	}
	// Through JSON, so that numbers have one type. Python writes those of float32
	// with more digits.
	js, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var plain map[string]map[string]any
	if err := json.Unmarshal(js, &plain); err != nil {
		t.Fatal(err)
	}
	near := cmp.Comparer(func(a, b float64) bool { return float32(a) == float32(b) })
	for _, format := range []string{"parquet", "npz"} {
		for name, values := range plain[format] {
			exact := name != "member_probs"
			if diff := cmp.Diff(values, got[format][name], cmp.FilterPath(func(cmp.Path) bool { return !exact }, near)); diff != "" {
				t.Errorf("%s of %s: %s", name, format, diff)
			}
		}
		if len(plain[format]) != len(got[format]) {
			t.Errorf("%s has %d columns, want %d", format, len(got[format]), len(plain[format]))
		}
	}
}

// Columns that are not asked for are not there.
func TestPlainColumns(t *testing.T) {
	_, rows := inventedRows()
	schema := &Schema{Columns: classColumns(task.RowOptions{Top: 1}), Width: 3}
	rows = rows[:1]
	rows[0].Label, rows[0].Values = -1, rows[0].Values[:9]
	want := map[string]string{
		".csv": "path,label,prediction,confidence,predictive_entropy,expected_entropy,mutual_information\n" +
			"a/one.jpg,,2,0.625,0.9,0.8,0.1\n",
		".jsonl": `{"path":"a/one.jpg","label":null,"prediction":2,"confidence":0.625,"predictive_entropy":0.9,"expected_entropy":0.8,"mutual_information":0.1}` + "\n",
	}
	for format, text := range want {
		var got bytes.Buffer
		if err := Write(&got, format, schema, t.TempDir(), iterate(rows)); err != nil {
			t.Fatal(err)
		}
		if got.String() != text {
			t.Errorf("%s: %s", format, got.String())
		}
	}
	for _, format := range []string{".parquet", ".npz"} {
		var got bytes.Buffer
		if err := Write(&got, format, schema, t.TempDir(), iterate(rows)); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"label", "name", "top", "probs", "error"} {
			if strings.Contains(got.String(), name+".npy") || format == ".parquet" && strings.Contains(got.String(), name) {
				t.Errorf("%s has a column %q", format, name)
			}
		}
	}
}

// A disk that fills up anywhere is an error of the writer, in every format.
func TestFormatsDiskFull(t *testing.T) {
	schema, rows := inventedRows()
	for _, format := range formats {
		var whole bytes.Buffer
		if err := Write(&whole, format, schema, t.TempDir(), iterate(rows)); err != nil {
			t.Fatal(err)
		}
		for room := 0; room < whole.Len(); room += max(1, whole.Len()/40) {
			if err := Write(&full{new(bytes.Buffer), room}, format, schema, t.TempDir(), iterate(rows)); !errors.Is(err, errFull) {
				t.Errorf("%s, room for %d of %d bytes: %v", format, room, whole.Len(), err)
			}
		}
	}
}

// Without a folder to hold arrays back in, there is no .npz.
func TestNPZWithoutFolder(t *testing.T) {
	schema, rows := inventedRows()
	if err := Write(new(bytes.Buffer), ".npz", schema, filepath.Join(t.TempDir(), "gone"), iterate(rows)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// parquetPaths returns the number of row groups and all paths.
func parquetPaths(t *testing.T, file []byte) (groups int, paths []string) {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		Path string `parquet:"path"`
	}
	rows, err := parquet.Read[row](bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		paths = append(paths, r.Path)
	}
	return len(f.RowGroups()), paths
}

// A spreadsheet must not compute what a file or a class is called; numbers stay numbers,
// and other formats have texts as they are.
func TestGuardedCSV(t *testing.T) {
	schema, rows := inventedRows()
	schema.ClassNames = []string{"+cat", "'=dog", "@bird"}
	rows[0].Path, rows[1].Path, rows[1].Error = `=HYPERLINK("x")`, "\tb.png", "-b.png: broken"
	rows[2].Values[1] = -0.5
	var b bytes.Buffer
	if err := Write(&b, ".csv", schema, t.TempDir(), iterate(rows)); err != nil {
		t.Fatal(err)
	}
	table, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := func(row int, column string) string { return table[row+1][slices.Index(table[0], column)] }
	for _, want := range []struct {
		row          int
		column, text string
	}{
		{0, "path", `'=HYPERLINK("x")`}, {1, "path", "'\tb.png"}, {1, "error", "'-b.png: broken"}, {2, "confidence", "-0.5"},
		{0, "name", "'@bird"}, {2, "name", "''=dog"}, {0, "top_1_name", "'@bird"}, {0, "top_2_name", "'+cat"},
	} {
		if got := at(want.row, want.column); got != want.text {
			t.Errorf("row %d: %s is %q, want %q", want.row, want.column, got, want.text)
		}
	}
	b.Reset()
	if err := Write(&b, ".jsonl", schema, t.TempDir(), iterate(rows)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), `"path":"=HYPERLINK(`) || !strings.Contains(b.String(), `"name":"@bird"`) {
		t.Errorf("%s", b.String())
	}
}
