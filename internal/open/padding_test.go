package open

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
)

type warned struct {
	quiet
	warnings *[]string
}

func (w warned) Warnf(format string, _ ...any) { *w.warnings = append(*w.warnings, format) }

// A network that looks for the pad token reads the scores of another place if something else is behind the mask.
func TestCheckPadding(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.jsonl")
	rows := `{"input_ids": [4, 5, 6], "attention_mask": [1, 1, 1], "label": 0}` + "\n" + `{"input_ids": [4, 0, 0], "attention_mask": [1, 0, 0], "label": 1}` + "\n"
	if err := os.WriteFile(path, []byte(rows), 0o666); err != nil {
		t.Fatal(err)
	}
	fields := []dataset.Field{{Name: "input_ids", Shape: []int64{3}, Type: "int64"}, {Name: "attention_mask", Shape: []int64{3}, Type: "int64"}}
	d, err := dataset.Open([]string{path}, dataset.Options{Fields: fields})
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		ends map[string]int64
		want bool
	}{
		"looks for another token": {map[string]int64{"input_ids": 50}, true},
		"looks for this token":    {map[string]int64{"input_ids": 0}, false},
		"has the mask only":       {nil, false},
	} {
		var warnings []string
		checkPadding(&Opener{Reporter: warned{warnings: &warnings}}, path, d, &infer.Graph{EndTokens: c.ends})
		if (len(warnings) > 0) != c.want || c.want && !strings.Contains(warnings[0], "the mask leaves out token") {
			t.Errorf("%s: %q", what, warnings)
		}
	}
}
