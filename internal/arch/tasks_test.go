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
	// Before a network has run there is no task to ask.
	"internal/infer/ending.go":          {1, "before the first run there is no task yet, and numbers have no form"},
	"internal/infer/head.go":            {1, "the graph of a variance head is checked before there is a task"},
	"internal/infer/graph.go":           {1, "the form is asked for before there is a task"},
	"internal/infer/intake/scores.go":   {2, "the check decides what scores are before they belong to a task"},
	"internal/infer/firstbatch.go":      {1, "before the first run there is no task yet, and only lists of positions have a longest example"},
	"internal/infer/rounding/sides.go":  {1, "before the first run there is no task, and a whole batch of positions takes much memory"},
	"internal/infer/intake/few.go":      {2, "the check decides what scores are before they belong to a task"},
	"internal/infer/intake/run.go":      {7, "the check of scores reads the output's axis before there is a task, and numbers have a check of their own"},
	"internal/infer/intake/findings.go": {2, "numbers, and scores of several positions, are checked each time"},
	"internal/infer/intake/batch.go":    {1, "the check of batches runs before there is a task: large examples make small batches"},
	"internal/study/compare/compare.go": {2, "members are kept, and passes are left out, before the first run"},

	// The layout of an array or of a graph is not that of outcomes.
	"internal/infer/carried.go":   {1, "two halves of a window are compared along the output's axis"},
	"internal/statedict/apply.go": {1, "the lines of PyTorch name the output's axis, and no network runs"},
	"internal/ensemble/fused.go":  {2, "the nodes of a joint model read scores along the output's axis"},

	// The outcome of one example may be as large as all other memory.
	"internal/infer/chunk.go":      {3, "such outcomes are added in place, in blocks that all cores share"},
	"internal/ensemble/tiled.go":   {1, "only positions make tiles, whose outcomes are joined row by row"},
	"internal/ensemble/rows.go":    {1, "maps of positions are written while their example is there"},
	"internal/ensemble/scoring.go": {1, "maps of positions are written while their example is there"},

	// Files of predictions are read before there is a network.
	"internal/predictions/positions.go":         {4, "the kind of labels is needed to read them, tells which axis they leave over, and which rows are padding"},
	"internal/predictions/read.go":              {1, "the error names the task of columns that are not of classes"},
	"internal/predictions/rows.go":              {1, "the error names the flag for predictions of that task"},
	"internal/study/calibration/predictions.go": {1, "arrays of these tasks are read as such of positions"},
	"internal/study/summary/sidecar.go":         {1, "the columns of a language model are those of classes: only the sidecar tells them apart"},

	// Commands decide by the model card, before a network is opened or has run.
	"cmd/swagwrap/calibrate.go":              {4, "an ensemble is compared with predictions whose task it does not have, a threshold with its card, and a flag lists the tasks"},
	"cmd/swagwrap/compare.go":                {4, "texts are damaged as such, before the first run"},
	"cmd/swagwrap/exporthub.go":              {3, "the Hub has other names for models of texts and of positions, and numbers have no labels"},
	"cmd/swagwrap/exportweb.go":              {1, "a page shows one answer for each example"},
	"internal/hub/hub.go":                    {2, "the Hub names two labels for one logit, and has other names for models of positions"},
	"cmd/swagwrap/export.go":                 {1, "the outputs of the model are described before there is a task"},
	"cmd/swagwrap/groups.go":                 {1, "the units of a text are its documents, whatever a flag says"},
	"cmd/swagwrap/merge.go":                  {1, "parts of predictions of positions have no outcomes to calibrate by folds"},
	"cmd/swagwrap/ood.go":                    {2, "a column of a file decides the unit of its axis, and numbers have spreads under many names"},
	"cmd/swagwrap/pixels.go":                 {3, "maps and sizes of pictures are only of networks that score positions"},
	"cmd/swagwrap/sample.go":                 {1, "a warning about few examples does not hold for pixels and tokens, of which each has many"},
	"cmd/swagwrap/score.go":                  {3, "formats and maps that need several positions, or one, are refused before the first run"},
	"cmd/swagwrap/settle.go":                 {1, "a stopping rule for pixels and tokens is refused before the first run"},
	"cmd/swagwrap/summary.go":                {1, "outcomes of positions are not calibrated by folds after a run"},
	"cmd/swagwrap/internal/describe/card.go": {1, "a file is shown, and no network is opened"},
	"internal/open/card.go":                  {1, "flags about numbers are refused before a network is opened"},
	"internal/open/data.go":                  {3, "the kind of targets is needed to read them, and a text only goes to a language model"},
	"internal/open/fit.go":                   {2, "the card is made before there is a task, with the axis of scores"},
	"internal/open/network.go":               {1, "a task that is given later is refused before a network is opened"},
	"internal/open/study.go":                 {2, "the kind of targets is needed to read them, and options that need the outcomes of all examples are refused before the first run"},
}

// Code outside internal/task does not ask which task it has, or whether examples have several positions. The exceptions are in
// asked.
func TestTasksAreNotAsked(t *testing.T) {
	name := `"(classes|binary|labels|regression)"`
	question := regexp.MustCompile(`(==|!=) ` + name + `|` + name + ` (==|!=)|case ` + name + `|task\.(Truth|Numeric)\(` +
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
			own := strings.HasPrefix(path, "internal/task/by") || path == "internal/study/compare/show/json.go" || path == "internal/predictions/spread.go" // keys of files
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
