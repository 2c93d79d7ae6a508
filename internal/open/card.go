package open

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"

	"github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/internal/augment"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/dataset/fileorder"
	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/word"
	"github.com/swagwrap/swagwrap/swag"
)

// CardOptions describe the inputs and outputs of a network. They make a model card, or change one.
type CardOptions struct {
	File                   string // the card to begin with, or ""
	Task, Output, Scores   string
	ClassAxis, IgnoreIndex Given[int]
	State                  Given[[]swag.StatePair]
	ClassNames             string
	FileOrder              string
	Columns                map[string][]string // by input
	Pad                    map[string]float64  // by input
	Augment                Given[string]
	Preprocess             string
	Targets                TargetOptions
	NoiseStd               Given[[]float64]
}

// TargetOptions describe the scores of a regression.
type TargetOptions struct {
	File      string        // training targets, which give the mean and the standard deviation, or ""
	Columns   []string      // of the file that hold the targets, or nil
	Head      Given[string] // what the second half of the scores is. An empty text stands for no second half.
	Mean, Std []float64     // of each target, or nil
}

// given reports whether something is known about targets.
func (o TargetOptions) given() bool {
	return o.File != "" || o.Head.Set || o.Mean != nil || o.Std != nil
}

// change sets what the options say.
func (o TargetOptions) change(t *swag.Targets) error {
	if o.File != "" {
		if err := targetUnits(o.File, listing.Columns{Labels: o.Columns}, t); err != nil {
			return err
		}
	}
	if o.Head.Set {
		t.VarianceHead = o.Head.Value
	}
	if o.Mean != nil {
		t.Mean = o.Mean
	}
	if o.Std != nil {
		t.Std = o.Std
	}
	return nil
}

// targets makes the part of the model card about targets.
func (k CardOptions) targets(card swag.Card) (*swag.Targets, error) {
	if !task.TraitsOf(card.Task).Targets {
		if k.Targets.given() || k.NoiseStd.Set {
			return nil, Usagef("say that it is one: "+setting.Task.With("regression"), "%s and %s are for a regression", setting.Targets,
				setting.NoiseStd)
		}
		return nil, nil
	}
	var t swag.Targets
	if card.Targets != nil {
		t = *card.Targets
	}
	if err := k.Targets.change(&t); err != nil {
		return nil, err
	}
	if k.NoiseStd.Set {
		t.NoiseStd = k.NoiseStd.Value
	}
	switch {
	case len(t.Mean) != len(t.Std):
		return nil, Usagef("", "%s: %d means and %d standard deviations, want as many", setting.Targets, len(t.Mean), len(t.Std))
	case t.VarianceHead != "" && t.NoiseStd != nil:
		return nil, Usagef("", "%s with a variance head: want one of them", setting.NoiseStd)
	}
	if _, err := infer.RegressionSpec(swag.Card{Targets: &t}); err != nil {
		return nil, Usagef("", "%w", err)
	}
	return &t, nil
}

// checkHead fails if neither the options nor the card before them say what the second half of the scores is. Of an odd number of
// scores all are means.
func (k CardOptions) checkHead(before swag.Card, scores int) (err error) {
	if k.File != "" {
		if before, err = readCard(k.File); err != nil {
			return BadInput(err)
		}
	}
	if before.Targets != nil || k.Targets.Head.Set || scores%2 == 1 {
		return nil
	}
	return Usagef(setting.Targets.With("head=none: all scores are means. Or ")+"head=variance, log-variance, softplus, std, log-std or "+
		"softplus-std: what the second half of the scores gives",
		"%s: the graph does not tell which of the scores are variances", setting.Task.With("regression"))
}

// targetUnits sets the mean and standard deviation of the targets in a file.
func targetUnits(path string, named listing.Columns, t *swag.Targets) error {
	all, err := dataset.ReadTargets(path, named)
	if err != nil {
		return BadInput(err)
	}
	t.Mean, t.Std = nil, nil
	for k := range all.Width {
		var column []float64
		for i := k; i < len(all.Values); i += all.Width {
			column = append(column, all.Values[i])
		}
		u, err := regression.FitUnits(column)
		if err != nil {
			return BadInput(fmt.Errorf("%s: target %d: %w", path, k, err))
		}
		t.Mean, t.Std = append(t.Mean, u.Mean), append(t.Std, u.Std)
	}
	return nil
}

// Change updates a model card.
func (k CardOptions) Change(card swag.Card) (_ swag.Card, err error) {
	if path := k.File; path != "" {
		if card, err = readCard(path); err != nil {
			return card, BadInput(err, setting.Line(setting.Inspect.With(setting.JSON.String(),
				"POSTERIOR"))+" shows a card, and docs/formats.md#model-card its keys")
		}
	}
	if k.Augment.Set {
		p, _, err := Augmentation(k.Augment, card)
		if err != nil {
			return card, err
		}
		card.Augment = p.String()
	}
	if card.Task = cmp.Or(k.Task, card.Task); card.Task == task.Auto {
		card.Task, card.Targets = "", nil // drop earlier settings
	}
	if card.Targets, err = k.targets(card); err != nil {
		return card, err
	}
	card.Output, card.FileOrder = cmp.Or(k.Output, card.Output), cmp.Or(k.FileOrder, card.FileOrder)
	card.Scores = cmp.Or(k.Scores, card.Scores)
	if path := k.ClassNames; path != "" {
		if card.ClassNames, err = listing.ReadClassNames(path); err != nil {
			return card, BadInput(err)
		}
	}
	if k.ClassAxis.Set {
		card.ClassAxis = k.ClassAxis.Value
	}
	if k.State.Set {
		card.State = k.State.Value
	}
	if k.IgnoreIndex.Set {
		card.IgnoreIndex = &k.IgnoreIndex.Value
	}
	if k.Pad != nil {
		card.Pad = k.Pad
	}
	p, err := Preprocessing(k.Preprocess, card)
	if err != nil {
		return card, err
	}
	switch plain := reflect.DeepEqual(p, preprocess.Settings{}); {
	case !plain:
		card.Preprocess, err = json.Marshal(p)
	case k.Preprocess != "":
		card.Preprocess = nil // as given, whatever another card says
	}
	return card, err
}

// maxCard bounds the size of a model card in bytes. It may have the names of 22,000 classes.
const maxCard = 16 << 20

// readCard reads a model card from a JSON file: the card itself, or an object that has it under the key card.
func readCard(path string) (card swag.Card, err error) {
	js, err := file.Read(path, maxCard)
	if err != nil {
		return card, err
	}
	var outer struct{ Card json.RawMessage }
	if err := json.Unmarshal(js, &outer); err != nil {
		return card, fmt.Errorf("%s: %w", path, err)
	}
	if outer.Card != nil {
		js = outer.Card
	}
	if text := ""; json.Unmarshal(js, &text) == nil { // as in the metadata of a file
		js = []byte(text)
	}
	d := json.NewDecoder(bytes.NewReader(js))
	d.DisallowUnknownFields()
	if err := d.Decode(&card); err != nil {
		return card, fmt.Errorf("%s: model card: %w", path, err)
	}
	if card.Task != "" {
		err = word.Check(card.Task, task.Names()...)
	}
	if err == nil && card.Augment != "" {
		_, err = augment.Parse(card.Augment)
	}
	if err == nil && card.Scores != "" {
		_, err = task.ParseForm(card.Scores)
	}
	if err == nil {
		_, err = fileorder.Parse(card.FileOrder)
	}
	if err != nil {
		return card, fmt.Errorf("%s: model card: %w", path, err)
	}
	return card, nil
}

// columns returns the given columns, or else those of the model card, by the names of the network's inputs. It also returns
// the padding of the model card by these names.
func columns(given map[string][]string, card swag.Card, g *infer.Graph) (columns map[string][]string, pad map[string]float64, err error) {
	if given == nil {
		given = card.Columns
	}
	if columns, err = ofInputs("columns", given, g); err != nil {
		return nil, nil, err
	}
	pad, err = ofInputs("pad", card.Pad, g)
	return columns, pad, err
}

// ofInputs returns the values by input name. A value without an input name is for the only input.
func ofInputs[T any](flag string, stated map[string]T, g *infer.Graph) (map[string]T, error) {
	var names []string
	out := map[string]T{}
	for _, input := range g.Inputs {
		names = append(names, input.Name)
		v, ok := stated[input.Name]
		if !ok && len(g.Inputs) == 1 {
			v, ok = stated[""]
		}
		if ok {
			out[input.Name] = v
		}
	}
	switch {
	case len(out) == len(stated) && len(out) > 0:
		return out, nil
	case len(out) >= len(stated):
		return nil, nil
	case len(names) == 1:
		return nil, Usagef("", "--%s: want it once for the inputs %q", flag, names)
	}
	return nil, Usagef("", "--%s: want it by name for the inputs %q", flag, names)
}

// Augmentation returns the given augmentation, or else that of the model card. told is false if neither has an augmentation.
func Augmentation(given Given[string], card swag.Card) (p augment.Pipeline, told bool, err error) {
	spec := given.Value
	switch info, statErr := os.Stat(spec); {
	case !given.Set && card.Augment == "":
		return p, false, nil
	case !given.Set:
		if p, err = augment.Parse(card.Augment); err != nil {
			err = BadInput(fmt.Errorf("model card: augment: %w", err))
		}
		return p, true, err
	case statErr == nil && !info.IsDir():
		p, err = augment.ReadFile(spec)
		return p, true, BadInput(err)
	}
	if p, err = augment.Parse(spec); err != nil {
		err = Usagef("", "%s: %w", setting.Augment, err)
	}
	return p, true, err
}

// Preprocessing returns the preprocessing of a command's data. It is that of the model card, with the given changes.
func Preprocessing(change string, card swag.Card) (preprocess.Settings, error) {
	p, err := preprocess.Decode(card.Preprocess)
	if err != nil {
		return p, BadInput(fmt.Errorf("model card: %w", err))
	}
	if change == "" {
		return p, nil
	}
	p, err = p.With(change)
	if errors.As(err, new(*preprocess.SpecError)) {
		return p, Usagef("", "%s: %w", setting.Preprocess, err)
	}
	return p, BadInput(err)
}
