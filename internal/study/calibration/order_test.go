package calibration

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/dataset/fileorder"
	"github.com/swagwrap/swagwrap/internal/predictions"
)

// Labels in a file of their own belong to predictions by path. Without it their order must be known.
func TestLabelsByName(t *testing.T) {
	for name, tt := range map[string]struct {
		paths, labels, want string // labels are NAME=TARGET, or TARGET; an error begins with a word
		doubt               bool
	}{
		"by path":               {"1 10 2", "1=1 2=2 10=10", "[1 10 2]", false},
		"by path, more of them": {"1 10 2", "1=1 2=2 3=3 10=10", "[1 10 2]", false},
		"by path, one missing":  {"1 10 2", "1=1 2=2 3=3", `no row has the path "10", row 1`, false},
		"by path, one twice":    {"1 10 2", "1=1 10=2 10=3", `rows 1 and 2 have the same path "10"`, false},
		"the same rows":         {"1 1 2", "1=1 1=2 2=3", "[1 2 3]", false},
		"by place, in doubt":    {"1 10 2", "1 2 3", "row 1 is 10 or 2", true},
		"by place, by numbers":  {"1 2 10", "1 2 3", "[1 2 3]", false},
		"by place, padded":      {"01 02 10", "1 2 3", "[1 2 3]", false},
		"by place, rows":        {"a.npz[0] a.npz[1] a.npz[2]", "1 2 3", "[1 2 3]", false},
	} {
		dir := t.TempDir()
		preds, labels := filepath.Join(dir, "p.csv"), filepath.Join(dir, "t.csv")
		table := "path,mean,std\n"
		for _, path := range strings.Fields(tt.paths) {
			table += path + ",0,1\n"
		}
		write := func(path, text string) {
			if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		write(preds, table)
		table = strings.ReplaceAll(strings.ReplaceAll(tt.labels, "=", ","), " ", "\n") + "\n"
		if strings.Contains(tt.labels, "=") {
			table = "path,target\n" + table
		} else {
			table = "target\n" + table
		}
		write(labels, table)
		p, err := Read(preds, "regression", predictions.ReadOptions{Labels: labels})
		switch {
		case errors.As(err, new(*fileorder.Error)) != tt.doubt:
			t.Errorf("%s: %v, want a doubt: %v", name, err, tt.doubt)
		case err != nil && !strings.Contains(err.Error(), tt.want), err == nil && fmt.Sprint(p.Known.Values) != tt.want:
			t.Errorf("%s: %v, %v, want %s", name, p, err, tt.want)
		}
	}
}
