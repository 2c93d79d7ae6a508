package open

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate/shares"
	"github.com/swagwrap/swagwrap/internal/dataset/table"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/study/summary"
	"github.com/swagwrap/swagwrap/internal/task"
)

// EstimatedShares asks for an estimate from the predictions, where a file could be named.
const EstimatedShares = "estimate"

// maxShares is larger than any file of shares, in bytes.
const maxShares = summary.MaxSidecar

// CorrectShares makes an ensemble's calibration correct the class shares that a file has. threshold says that the user chose one.
func CorrectShares(path string, e *ensemble.Ensemble, threshold bool) error {
	if err := RefuseShares(e, threshold); err != nil {
		return err
	}
	if err := file.Input(path); err != nil {
		return BadInput(err)
	}
	now, training, err := readShares(path, e.Card.ClassNames)
	if err != nil {
		return BadInput(err,
			"a table with the columns class and share, a row for each class, or a .json such as {\"cat\": 0.3, \"dog\": 0.7}")
	}
	if l := e.Labelled; l != nil && training == nil {
		training = l.Training()
	}
	switch {
	case training == nil:
		return BadInput(fmt.Errorf("%s: does not know which class shares its probabilities assume", e.Path),
			"give "+path+" a column training with the shares of training", LabelledHint())
	case len(training) != len(now):
		return BadInput(fmt.Errorf("%s: shares of %d classes, and %s has %d", path, len(now), e.Path, len(training)))
	}
	e.Calibration = (&task.Shares{Training: training, Now: now}).With(e.Calibration)
	if err := e.Calibration.Sound(); err != nil {
		return BadInput(fmt.Errorf("%s: %w", path, err))
	}
	return nil
}

// LabelledHint says how an ensemble learns the shares of training.
func LabelledHint() string {
	return "store labelled predictions in it: " + setting.Line(setting.Calibrate.With(setting.Output.With("calibrated.safetensors"),
		setting.Ensemble.With("ENSEMBLE"), "PREDICTIONS")) + ", where PREDICTIONS are those of " +
		setting.Line(setting.Score.With(setting.Probs.String())) + " on validation data"
}

// RefuseShares refuses an ensemble with a guarantee or a threshold that holds for the shares of training alone. threshold says that the
// user chose one.
func RefuseShares(e *ensemble.Ensemble, threshold bool) error {
	switch {
	case !task.TraitsOf(e.Card.Task).Shares:
		return BadInput(fmt.Errorf("%s: %s: %w", e.Path, setting.Shares, task.ErrNoShares), "leave it out")
	case !e.Guarantee.Empty():
		return BadInput(fmt.Errorf("%s: %s: its guarantee holds for the shares of the examples that chose it, and not after a correction",
			e.Path, setting.Shares), "take the ensemble from before "+setting.Calibrate.With(setting.Coverage.String()))
	case e.Threshold > 0 && !threshold:
		return BadInput(fmt.Errorf("%s: %s: its threshold, %.4g, was chosen on probabilities without the correction", e.Path,
			setting.Shares, e.Threshold), "choose one for corrected probabilities, such as that of score: "+setting.Threshold.With("0.5"))
	}
	return nil
}

// readShares reads shares, and those of training if the file has them. classes are the names, or nil for numbers.
func readShares(path string, classes []string) (now, training []float64, err error) {
	if strings.EqualFold(filepath.Ext(path), ".json") {
		return readSharesJSON(path, classes)
	}
	t, err := table.OpenGaps(path)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range []string{"class", "share"} {
		if !slices.Contains(t.Names, name) {
			return nil, nil, fmt.Errorf("%s: no column %q among %q", path, name, t.Names)
		}
	}
	numbers := []string{"share"}
	if slices.Contains(t.Names, "training") {
		numbers = append(numbers, "training")
	}
	columns, err := t.Read([]string{"class"}, numbers)
	if err != nil {
		return nil, nil, err
	}
	by := func(name string) func(i int) float64 { return func(i int) float64 { return columns[name].At(i) } }
	if now, err = byClass(columns["class"].Texts, classes, by("share")); err == nil && len(numbers) > 1 {
		training, err = byClass(columns["class"].Texts, classes, by("training"))
	}
	return now, training, file.Error(path, err)
}

// readSharesJSON reads an object with a share of each class, or FILE.meta.json of predictions whose shares were estimated or given.
func readSharesJSON(path string, classes []string) (now, training []float64, err error) {
	js, err := file.Content(path, maxShares)
	if err != nil {
		return nil, nil, err
	}
	var s summary.Sidecar
	if json.Unmarshal(js, &s) == nil && s.Shares != nil && s.Ensemble.ID != "" {
		if s.Shares.Correction == nil {
			return nil, nil, fmt.Errorf("%s: its predictions are not corrected for class shares, so it says none", path)
		}
		return s.Shares.Correction.Now, s.Shares.Correction.Training, nil
	}
	var of map[string]float64
	if err := json.Unmarshal(js, &of); err != nil {
		return nil, nil, file.Error(path, err)
	}
	var list []string
	var values []float64
	for name, v := range of {
		list, values = append(list, name), append(values, v)
	}
	now, err = byClass(list, classes, func(i int) float64 { return values[i] })
	return now, nil, file.Error(path, err)
}

// byClass returns the values in the order of the classes. list names them, or has their numbers.
func byClass(list, classes []string, value func(i int) float64) ([]float64, error) {
	places, n := names.Places(classes), len(classes)
	if classes == nil {
		n = len(list)
	}
	out, seen := make([]float64, n), make([]bool, n)
	for i, name := range list {
		c, ok := places[names.Key(name)]
		if !ok {
			c, ok = names.Number(name)
		}
		if !ok || c >= n {
			return nil, fmt.Errorf("class %q is none of the %d classes", name, n)
		}
		if seen[c] {
			return nil, fmt.Errorf("class %q has two shares", name)
		}
		out[c], seen[c] = value(i), true
	}
	for c, ok := range seen {
		if !ok {
			return nil, fmt.Errorf("class %s has no share, want one of each class", names.Class(classes, c))
		}
	}
	return out, shares.Check(out)
}
