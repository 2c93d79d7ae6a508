//go:build !noparquet

package predictions

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Sets of classes and flags in all formats: an empty set, a full one, and an example without a prediction.
func TestGuaranteedColumns(t *testing.T) {
	s := &Schema{Columns: []task.Column{
		{Name: task.SetColumn, Kind: task.Subset, Shape: []int{3}}, {Name: task.SizeColumn}, {Name: task.AbstainColumn, Kind: task.Flag},
	}, Errors: true, Width: 3}
	rows := []*Row{
		{Path: "a", Label: -1, Values: []float64{0, 1, 1, 2, 0}},
		{Path: "b", Label: -1, Values: []float64{0, 0, 0, 0, 1}},
		{Path: "c", Label: -1, Values: []float64{1, 1, 1, 3, 0}},
		{Path: "d", Label: -1, Error: "gone"},
	}
	write := func(format string) []byte {
		var b bytes.Buffer
		err := Write(&b, format, s, t.TempDir(), func(f func(*Row) error) error {
			for _, r := range rows {
				if err := f(r); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	for format, want := range map[string][]string{
		".csv":   {"path,label,set,set_size,abstain,error", "a,,1 2,2,false,", "b,,,0,true,", "c,,0 1 2,3,false,", "d,,,,,gone"},
		".jsonl": {`"set":[1,2],"set_size":2,"abstain":false`, `"set":[],"set_size":0,"abstain":true`, `"set":[0,1,2],"set_size":3,"abstain":false`, `"set_size":null,"abstain":null,"error":"gone"`},
	} {
		got := string(write(format))
		for _, line := range want {
			if !strings.Contains(got, line) {
				t.Errorf("%s: no %s in\n%s", format, line, got)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "x.npz")
	if err := os.WriteFile(path, write(".npz"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := numpy.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, shape, err := f.Shape(task.SetColumn); err != nil || len(shape) != 2 || shape[0] != 4 || shape[1] != 3 {
		t.Errorf("the mask has the shape %d, %v", shape, err)
	}
	if !bytes.Contains(write(".npz"), []byte("\x00\x01\x01\x00\x00\x00\x01\x01\x01\x00\x00\x00")) || !bytes.Contains(write(".npz"), []byte("|b1")) {
		t.Error("the mask is not there, or no booleans")
	}
	type row struct {
		Set     []int32 `parquet:"set,list"`
		Abstain *bool   `parquet:"abstain,optional"`
	}
	b := write(".parquet")
	got, err := parquet.Read[row](bytes.NewReader(b), int64(len(b)))
	if err != nil || len(got) != 4 {
		t.Fatalf("%v %v", got, err)
	}
	if len(got[0].Set) != 2 || got[0].Set[1] != 2 || *got[0].Abstain || len(got[1].Set) != 0 || !*got[1].Abstain || len(got[2].Set) != 3 || got[3].Abstain != nil {
		t.Errorf("%+v", got)
	}
}
