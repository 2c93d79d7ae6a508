package predictions

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
)

// wantedHere is a number, a row and a matrix of each example.
var wantedHere = []Wanted{{Names: []string{"target", "y"}}, {Names: []string{"mean"}, Cells: []string{"mean_%d"}}, {Names: []string{"member_mean"}, Cells: []string{"member_%d_mean", "member_%d_mean_%d"}}}

func TestReadRows(t *testing.T) {
	nan := math.NaN()
	for _, tt := range []struct {
		name, text   string
		target, mean []float64
		member       []float64
		err          string
	}{
		{"a.csv", "\ufeffpath,y,mean_1,mean_0\na,1,2,3\nb,,5,\n", []float64{1, nan}, []float64{3, 2, nan, 5}, nil, ""},
		{"a.tsv", "mean\ttarget\n2\t1\n", []float64{1}, []float64{2}, nil, ""},
		{"m.csv", "member_1_mean_0,member_0_mean_0,member_0_mean_1,member_1_mean_1\n3,1,2,4\n", nil, nil, []float64{1, 2, 3, 4}, ""},
		{"l.jsonl", `{"error":"x"}` + "\n" + `{"y":1,"mean":[2,null],"member_mean":[[1,2],[3,4]]}` + "\n" + `{"y":null,"mean":null}` + "\n",
			[]float64{nan, 1, nan}, []float64{nan, nan, 2, nan, nan, nan}, slices.Concat([]float64{nan, nan, nan, nan}, []float64{1, 2, 3, 4}, []float64{nan, nan, nan, nan}), ""},
		{"c.jsonl", `{"target":1,"mean_0":2,"mean_1":3}` + "\n", []float64{1}, []float64{2, 3}, nil, ""},
		{"w.jsonl", `{"mean":[1,2]}` + "\n" + `{"mean":[1]}` + "\n", nil, nil, nil, `w.jsonl: row 1: column "mean": a list of 1, want 2 as in the rows before`},
		{"t.jsonl", `{"mean":"high"}` + "\n", nil, nil, nil, `line 1, column "mean": "high", want a number`},
		{"d.csv", "mean_0,mean_0\n1,2\n", nil, nil, nil, `two columns are named "mean_0"`},
		{"g.csv", "mean_0,mean_2\n1,2\n", nil, nil, nil, "2 columns mean_…, want 3: one for each index"},
		{"n.csv", "mean\nlow\n", nil, nil, nil, `line 2, column "mean": "low", want a number`},
		{"e.csv", "mean\n", nil, nil, nil, "e.csv: no rows"},
		{"x.txt", "mean\n", nil, nil, nil, `format of predictions ".txt"`},
		{"p.parquet", "PAR1", nil, nil, nil, "too short for a Parquet file"},
	} {
		path := filepath.Join(t.TempDir(), tt.name)
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := ReadRows(path, wantedHere)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v, want %s", tt.name, err, tt.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		same := func(a, b float64) bool { return a == b || a != a && b != b }
		for name, want := range map[string][]float64{"target": tt.target, "mean": tt.mean, "member_mean": tt.member} {
			if !slices.EqualFunc(r.Values[name], want, same) {
				t.Errorf("%s: %s %v, want %v", tt.name, name, r.Values[name], want)
			}
		}
	}
	if _, err := ReadRows(filepath.Join(t.TempDir(), "gone.csv"), wantedHere); err == nil {
		t.Error("a file that is not there")
	}
}

// Rows of whatever bytes are errors, or as many of each kind as there are rows.
func FuzzReadRows(f *testing.F) {
	exts := []string{".csv", ".jsonl", ".parquet", ".npz"}
	f.Add(0, []byte("y,mean_0,mean_1\n0.5,0.5,1\n"))
	f.Add(1, []byte(`{"mean":[0.5,0.5],"y":1}`))
	f.Add(2, parquetSeed())
	f.Add(3, []byte("PK\x03\x04"))
	f.Fuzz(func(t *testing.T, kind int, data []byte) {
		path := filepath.Join(t.TempDir(), "x"+exts[uint(kind)%4])
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		var r *Rows
		var err error
		reliability.Heap(t, len(data), func() { r, err = ReadRows(path, wantedHere) })
		if err != nil {
			return
		}
		for name, values := range r.Values {
			if values != nil && (r.Len < 1 || len(values)%r.Len != 0) {
				t.Fatalf("%d values of %s in %d rows", len(values), name, r.Len)
			}
		}
	})
}
