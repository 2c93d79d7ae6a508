package ensemble

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swagwrap/swagwrap/internal/dataset"
)

var update = flag.Bool("update", false, "write testdata/rows.* anew; then run testdata/read_rows.py")

// named is data of which only the names matter.
type named struct {
	dataset.Dataset
	names []string
}

func (n named) Len() int          { return len(n.names) }
func (n named) Name(i int) string { return n.names[i] }

// inventedTable has three rows, of which the second has an error.
func inventedTable() (*Table, []Row) {
	rows := []Row{
		{Index: 0, Prediction: 2, Confidence: 0.625, PredictiveEntropy: 0.9, ExpectedEntropy: 0.8, MutualInformation: 0.1,
			Top: []Ranked{{2, 0.625}, {0, 0.25}}, Probabilities: []float64{0.25, 0.125, 0.625}, Members: []float32{0.5, 0, 0.5, 0, 0.25, 0.75}},
		{Index: 1, Prediction: -1, Error: "b,\"ü\".png: JPEG: unexpected EOF"},
		{Index: 2, Prediction: 1, Confidence: 1. / 3, PredictiveEntropy: math.Log(3), ExpectedEntropy: 1.5e-300, MutualInformation: 0,
			Top: []Ranked{{1, 1. / 3}, {0, 1. / 3}}, Probabilities: []float64{1. / 3, 1. / 3, 1. / 3}, Members: []float32{1. / 3, 1. / 3, 1. / 3, 1, 0, 1e-30}},
	}
	return &Table{Columns: Columns{Top: 2, Probabilities: true, Members: true}, Classes: 3, Members: 2, Errors: true,
		data:   named{names: []string{"a/one.jpg", `b,"ü".png`, "<c>&.png"}},
		labels: []int{2, 0, 1}, names: []string{"cat", "dog, or wolf", "鳥"}}, rows
}

func each(rows []Row) func(func(*Row) error) error {
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
	table, rows := inventedTable()
	for _, format := range Formats {
		var got bytes.Buffer
		if err := table.Write(&got, format, each(rows)); err != nil {
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
	js, err := os.ReadFile(filepath.Join("testdata", "rows.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]map[string]any
	if err := json.Unmarshal(js, &got); err != nil {
		t.Fatal(err)
	}
	table, rows := inventedTable()
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
	float := func(f func(*Row) float64) func(int, *Row) any {
		return func(_ int, r *Row) any { return f(r) }
	}
	confidence := float(func(r *Row) float64 { return r.Confidence })
	predictive := float(func(r *Row) float64 { return r.PredictiveEntropy })
	expected := float(func(r *Row) float64 { return r.ExpectedEntropy })
	mutual := float(func(r *Row) float64 { return r.MutualInformation })
	top := func(_ int, r *Row) any { return []any{r.Top[0].Class, r.Top[1].Class} }
	topProbability := func(_ int, r *Row) any { return []any{r.Top[0].Probability, r.Top[1].Probability} }
	probs := func(_ int, r *Row) any { return r.Probabilities }
	path := column(func(i int, _ *Row) any { return table.data.Name(i) }, "read")
	prediction := func(_ int, r *Row) any { return r.Prediction }
	want := map[string]map[string]any{
		"parquet": {
			"path": path, "label": []int{2, 0, 1}, "prediction": column(prediction, null),
			"name":       column(func(_ int, r *Row) any { return table.names[r.Prediction] }, null),
			"confidence": column(confidence, null), "predictive_entropy": column(predictive, null),
			"expected_entropy": column(expected, null), "mutual_information": column(mutual, null),
			"top": column(top, []any{}), "top_probability": column(topProbability, []any{}), "probs": column(probs, []any{}),
			"member_probs": column(func(_ int, r *Row) any { return r.Members }, []any{}),
			"error":        []any{nil, rows[1].Error, nil},
		},
		"npz": {
			"path": path, "label": []int{2, 0, 1}, "prediction": column(prediction, -1),
			"confidence": column(confidence, nan), "predictive_entropy": column(predictive, nan),
			"expected_entropy": column(expected, nan), "mutual_information": column(mutual, nan),
			"top": column(top, []any{-1, -1}), "top_probability": column(topProbability, nans(2)), "probs": column(probs, nans(3)),
			"member_probs": column(func(_ int, r *Row) any { return []any{r.Members[:3], r.Members[3:]} }, []any{nans(3), nans(3)}),
			"error":        []any{"", rows[1].Error, ""},
		},
	}
	// Through JSON, so that numbers have one type. Python writes those of float32
	// with more digits.
	js, err = json.Marshal(want)
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
	table, rows := inventedTable()
	table.Columns, table.Errors, table.labels, table.names = Columns{Top: 1}, false, nil, nil
	rows = rows[:1]
	rows[0].Top, rows[0].Probabilities, rows[0].Members = rows[0].Top[:1], nil, nil
	want := map[string]string{
		".csv": "path,label,prediction,confidence,predictive_entropy,expected_entropy,mutual_information\n" +
			"a/one.jpg,,2,0.625,0.9,0.8,0.1\n",
		".jsonl": `{"path":"a/one.jpg","label":null,"prediction":2,"confidence":0.625,"predictive_entropy":0.9,"expected_entropy":0.8,"mutual_information":0.1}` + "\n",
	}
	for format, text := range want {
		var got bytes.Buffer
		if err := table.Write(&got, format, each(rows)); err != nil {
			t.Fatal(err)
		}
		if got.String() != text {
			t.Errorf("%s: %s", format, got.String())
		}
	}
	for _, format := range []string{".parquet", ".npz"} {
		var got bytes.Buffer
		if err := table.Write(&got, format, each(rows)); err != nil {
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
	table, rows := inventedTable()
	for _, format := range Formats {
		var whole bytes.Buffer
		if err := table.Write(&whole, format, each(rows)); err != nil {
			t.Fatal(err)
		}
		for room := 0; room < whole.Len(); room += max(1, whole.Len()/40) {
			if err := table.Write(&full{new(bytes.Buffer), room}, format, each(rows)); !errors.Is(err, errFull) {
				t.Errorf("%s, room for %d of %d bytes: %v", format, room, whole.Len(), err)
			}
		}
	}
}

// A file of many rows is written in pieces: row groups are bounded, and so is
// the memory that they take.
func TestParquetRowGroups(t *testing.T) {
	table, rows := inventedTable()
	table.data = named{names: make([]string, 3000)}
	table.labels = make([]int, 3000)
	for i := range 3000 {
		table.data.(named).names[i] = fmt.Sprint("image ", i)
	}
	var got bytes.Buffer
	w := table.parquet(&got).(*parquetWriter)
	w.limit = 1000
	for i := range 3000 {
		r := rows[0]
		r.Index = i
		if err := w.Write(&r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	groups, read := readParquet(t, got.Bytes())
	if groups != 3 || len(read) != 3000 || read[2999] != "image 2999" {
		t.Errorf("%d row groups, %d rows", groups, len(read))
	}
}
