package dataset_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/dataset/listing"
)

func TestReadTargets(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []float64
		width      int
		err        string
	}{
		{"list.csv", "path,target\na.png,1.5\nb.png,-2e3\n", []float64{1.5, -2000}, 1, ""},
		{"table.csv", "\ufeffage,target_0,note,target_1\n3,1,\"a, b\",2\n# no row\n4,'-3,x,4\n", []float64{1, 2, -3, 4}, 2, ""},
		{"table.tsv", "x\tlabel\n0\t7\n", []float64{7}, 1, ""},
		{"lines.jsonl", "{\"targets\": [1, 2.5]}\n{\"targets\": [3, 4]}\n", []float64{1, 2.5, 3, 4}, 2, ""},
		{"ragged.jsonl", "{\"target\": [1, 2]}\n{\"target\": [3]}\n", nil, 0, `ragged.jsonl[1]: 1 labels, and others have 2`},
		{"none.csv", "path,price\na,1\n", nil, 0, `none.csv: no column target, or target_0, target_1 …, among "path", "price"`},
		{"text.csv", "target\nmany\n", nil, 0, `text.csv[0]: label 0 is "many", want a number`},
		{"nan.csv", "target_0,target_1\n1,2\n3,NaN\n", nil, 0, `nan.csv[1]: target 1 is NaN, want a finite number`},
		{"missing.csv", "x,target\n1,2\n3\n", nil, 0, "missing.csv: line 3, column 1: wrong number of fields"},
		{"empty.csv", "target\n", nil, 0, "empty.csv: no rows, want some"},
		{"list.txt", "a.png 1", nil, 0, "list.txt: "},
	} {
		path := filepath.Join(t.TempDir(), tt.name)
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := dataset.ReadTargets(path, listing.Columns{})
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v, want %s", tt.name, err, tt.err)
			}
			continue
		}
		if err != nil || !slices.Equal(got.Values, tt.want) || got.Width != tt.width {
			t.Errorf("%s: %v, %v, want %v", tt.name, got, err, tt.want)
		}
	}
}

func TestReadClassNames(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"names.csv":   {"x,label\n1,no\n2,yes\n3,no\n", []string{"no", "yes"}},
		"numbers.csv": {"x,label\n1,0\n2,1\n", nil},
		"mixed.csv":   {"x,label\n1,0\n2,yes\n", nil},
		"none.csv":    {"x,price\n1,high\n", nil},
		"broken.csv":  {"x,label\n1\n", nil},
		"list.txt":    {"a.png no\n", nil},
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := dataset.ReadClassNames(path, listing.Columns{}); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
