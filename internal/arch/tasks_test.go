package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// asked lists the places outside internal/task that ask which task they have, or whether examples have several positions,
// with the reason for each. Anything else is a method of the task, or one of its further interfaces.
var asked = map[string]struct {
	times  int
	reason string
}{
	// The layout of an array or of a graph is not that of outcomes.
	"internal/infer/stateful.go":  {1, "two halves of a window are compared along the output's axis"},
	"internal/infer/probe/run.go": {1, "the scores of a position are read along the output's axis, before there is a task"},
	"internal/statedict/apply.go": {1, "the lines of PyTorch name the output's axis, and no network runs"},
	"internal/ensemble/fused.go":  {1, "the nodes of a joint model read scores along the output's axis"},
	"internal/open/fit.go":        {1, "the card keeps the axis of scores"},

	// Words, not questions.
	"internal/infer/probe/record.go": {1, "it asks what decided the form: By has the word labels too"},
	"internal/open/data.go":          {1, "the hint names the task of language models"},
	"cmd/swagwrap/calibrate.go":      {1, "a flag lists the tasks"},

	"internal/open/study.go": {1, "other images may have labels of another kind, unless a class is one number"},
	"internal/hub/hub.go":    {1, "the Hub names two labels for one logit, also where no network has run"},
}

// Code outside internal/task does not ask which task it has, or whether examples have several positions. The exceptions are in
// asked.
func TestTasksAreNotAsked(t *testing.T) {
	name := `"(classes|binary|labels|regression)"`
	question := regexp.MustCompile(`(==|!=) ` + name + `|` + name + ` (==|!=)|case ` + name + `|\.Labels (==|!=) target\.` +
		`|\.Axis\(\)|\bNextToken\b|\b[iI]sText\(\)`)
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

// Nothing outside internal/task names a method of calibration: the calibration answers what is asked of it.
func TestCalibrationsAreNotAsked(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`\btask\.By[A-Z]|"(svs|sms|venn-abers|platt|isotonic|variances)"`)
	root, files := os.DirFS("../.."), 0
	for _, top := range []string{"internal", "cmd"} {
		err := fs.WalkDir(root, top, func(path string, d fs.DirEntry, err error) error {
			own := strings.HasPrefix(path, "internal/task/by") || path == "internal/predictions/spread.go" // keys of files
			if err != nil || d.IsDir() || own || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files++
			source, err := fs.ReadFile(root, path)
			for _, found := range name.FindAll(source, -1) {
				t.Errorf("%s names the calibration %s: let the calibration answer", path, found)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 100 {
		t.Errorf("%d files were read", files)
	}
}
