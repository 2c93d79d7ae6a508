package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// asked lists the places outside internal/task that ask which task they have, with the reason for each. Anything else
// is a method of the task, or one of its further interfaces.
var asked = map[string]struct {
	times  int
	reason string
}{
	"internal/infer/ending.go":               {1, "before the first run there is no task yet, and numbers have no form"},
	"internal/infer/head.go":                 {1, "the graph of a variance head is checked before there is a task"},
	"internal/infer/graph.go":                {1, "the form is asked for before there is a task"},
	"internal/infer/intake/scores.go":        {2, "the check decides what scores are before they belong to a task"},
	"internal/infer/intake/run.go":           {1, "numbers have a check of their own"},
	"internal/predictions/positions.go":      {1, "the kind of labels is needed to read them"},
	"internal/predictions/rows.go":           {1, "the error names the flag for predictions of that task"},
	"internal/study/compare/compare.go":      {2, "members are kept, and passes are left out, before the first run"},
	"cmd/swagwrap/calibrate.go":              {3, "an ensemble is compared with predictions whose task it does not have, and a threshold with its card"},
	"cmd/swagwrap/export.go":                 {1, "the outputs of the model are described before there is a task"},
	"cmd/swagwrap/internal/describe/card.go": {1, "a file is shown, and no network is opened"},
	"cmd/swagwrap/ood.go":                    {1, "a column of a file decides the unit of its axis"},
	"internal/open/card.go":                  {1, "flags about numbers are refused before a network is opened"},
	"internal/open/data.go":                  {1, "the kind of targets is needed to read them"},
	"internal/open/fit.go":                   {1, "the card is made before there is a task"},
	"internal/open/study.go":                 {1, "the kind of targets is needed to read them"},
}

// Code outside internal/task does not ask which task it has, but for the places in asked.
func TestTasksAreNotAsked(t *testing.T) {
	name := `"(classes|binary|labels|regression)"`
	question := regexp.MustCompile(`(==|!=) ` + name + `|` + name + ` (==|!=)|case ` + name + `|task\.(Truth|Numeric)\(`)
	root, found := os.DirFS("../.."), map[string]int{}
	for _, top := range []string{"internal", "cmd"} {
		err := fs.WalkDir(root, top, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || filepath.Dir(path) == "internal/task" {
				return err
			}
			source, err := fs.ReadFile(root, path)
			if n := len(question.FindAll(source, -1)); n > 0 {
				found[path] = n
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for path, n := range found {
		if want := asked[path]; n != want.times {
			t.Errorf("%s asks %d times which task it has, want %d: let the task say it, or list it here with the reason", path, n, want.times)
		}
	}
	for path, want := range asked {
		if found[path] == 0 || want.reason == "" {
			t.Errorf("%s asks no more which task it has, or has no reason: shorten the list", path)
		}
	}
}
