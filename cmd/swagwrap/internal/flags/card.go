package flags

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/augment"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/dataset/table"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/word"
	"github.com/swagwrap/swagwrap/swag"
)

// CardFlags set the model card, which describes the network's inputs and outputs. Fit takes them once.
var CardFlags = Join([]cli.Flag{
	&cli.StringFlag{Name: "card", Usage: "read the model card from `FILE.json`, or from what inspect --json prints. Other flags change it"},
	OneOf(&cli.StringFlag{Name: "task", Usage: "`TASK` of the network: " + strings.Join(append(task.Names(), task.Auto), "|"), DefaultText: task.Auto + ", as the graph or names of classes tell it"}, append(task.Names(), task.Auto)...),
	&cli.StringFlag{Name: "output-name", Usage: "the scores are the networks' output `NAME`", DefaultText: "the one that its name or its width shows"},
	ScoresFlag,
	WholeIf("1 or -1", func(n int) bool { return n == 1 || n == -1 }, &cli.IntFlag{Name: "class-axis", Usage: "the scores of a pixel or token are on axis `N` of the output: 1 is the one after the batch, -1 the last", DefaultText: "what names and the number of axes say"}),
	Whole(math.MinInt32, math.MaxInt32, &cli.IntFlag{Name: "ignore-index", Usage: "leave out pixels and tokens with the label `N`, such as 255; negative labels, such as -100, are always left out", DefaultText: "none"}),
	&cli.StringFlag{Name: "state", Usage: "carry states from window to window of a text: `IN=OUT,IN=OUT` says which output is the next value of which input. none says that no input is a state", DefaultText: "found at recurrent operators, or by names such as h0 and hn"},
	&cli.StringFlag{Name: "class-names", Usage: "read the names of the classes from `PATH`: a file with one a line, or JSON, or a folder of class folders"},
	columnsFlag("columns named as the input, or beginning with its name and _; for an only input all but labels and path"),
	padFlag,
	AugmentFlag("unknown: pictures are used plain, with a note"),
	preprocessFlag("nothing but a size that the network says"),
}, targetFlags)

// OnCard reports whether a flag belongs to the model card.
func OnCard(name string) bool {
	return slices.ContainsFunc(CardFlags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
}

// targetFlags describe the scores of a regression.
var targetFlags = []cli.Flag{
	&cli.StringFlag{Name: "targets", Usage: "of a regression: \"head=H mean=M std=S\". The second half of the scores is H: none|variance|log-variance|softplus of it. The scores z are targets M + S·z. `SPEC` may begin with a file of training targets, which gives M and S, and name its column: \"train.csv column=price\""},
	NoiseFlag("without a variance head: the standard deviation `STD` of targets about their means, in their own units", "fitted on validation data by compare and calibrate"),
}

// Card has the values of [CardFlags].
type Card struct {
	File                   string // the card to begin with, or ""
	Task, Output, Scores   string
	ClassAxis, IgnoreIndex Given[int]
	State                  Given[string]
	ClassNames             string
	Columns                []string
	Pad                    string
	Augment                Given[string]
	Preprocess             string
	Targets                string
	NoiseStd               Given[[]float64]
}

// ReadCard reads [CardFlags].
func ReadCard(c *cli.Context) Card {
	return Card{File: c.String("card"), Task: c.String("task"), Output: c.String("output-name"), Scores: c.String("scores"),
		ClassAxis: ReadGiven(c, "class-axis", c.Int), IgnoreIndex: ReadGiven(c, "ignore-index", c.Int), State: ReadGiven(c, "state", c.String),
		ClassNames: c.String("class-names"), Columns: c.StringSlice("columns"), Pad: c.String("pad"), Augment: ReadGiven(c, "augment", c.String),
		Preprocess: c.String("preprocess"), Targets: c.String("targets"), NoiseStd: ReadGiven(c, "noise-std", c.Float64Slice)}
}

// targets makes the part of the model card about targets.
func (k Card) targets(card swag.Card) (*swag.Targets, error) {
	if !task.Numeric(card.Task) {
		if k.Targets != "" || k.NoiseStd.Set {
			return nil, console.Usagef("say that it is one: --task regression", "--targets and --noise-std are for a regression")
		}
		return nil, nil
	}
	var t swag.Targets
	known := card.Targets != nil
	if known {
		t = *card.Targets
	}
	told, err := setTargets(k.Targets, &t)
	if err != nil {
		return nil, err
	}
	if !told && !known {
		return nil, console.Usagef("--targets head=variance, or head=log-variance, or head=softplus: the second half of the scores\n--targets head=none: all scores are means", "--task regression: the graph does not tell which scores are variances")
	}
	if k.NoiseStd.Set {
		t.NoiseStd = k.NoiseStd.Value
	}
	switch {
	case len(t.Mean) != len(t.Std):
		return nil, console.Usagef("", "--targets: %d means and %d standard deviations, want as many", len(t.Mean), len(t.Std))
	case t.VarianceHead != "" && t.NoiseStd != nil:
		return nil, console.Usagef("", "--noise-std with a variance head: want one of them")
	}
	if _, err := infer.RegressionSpec(swag.Card{Targets: &t}); err != nil {
		return nil, console.Usagef("", "%w", err)
	}
	return &t, nil
}

// setTargets reads --targets. told reports whether it says what the variance head is.
func setTargets(spec string, t *swag.Targets) (told bool, err error) {
	words := strings.Fields(strings.ReplaceAll(spec, ";", " "))
	path := ""
	if len(words) > 0 && !strings.Contains(words[0], "=") {
		path, words = words[0], words[1:]
	}
	var named listing.Columns
	for _, w := range words {
		if value, ok := strings.CutPrefix(w, "column="); ok {
			named.Labels = strings.Split(value, ",")
		}
	}
	switch {
	case path != "":
		if err := targetUnits(path, named, t); err != nil {
			return false, err
		}
	case named.Labels != nil:
		return false, console.Usagef("--targets \"train.csv column=price\"", "--targets: column without a file")
	}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "column": // of the file
		case "head":
			if told, t.VarianceHead = true, value; value == "none" {
				t.VarianceHead = ""
			} else if err := regression.VarianceHead(value).Check(); err != nil {
				return told, console.Usagef("", "--targets: head: %w", err)
			}
		case "mean":
			t.Mean, err = word.Reals(value, -mostTarget, mostTarget)
		case "std":
			t.Std, err = word.Reals(value, leastNoise, mostNoise)
		default:
			err = word.Check(key, "head", "mean", "std", "column")
		}
		if err != nil {
			return told, console.Usagef("--targets \"head=none mean=3.5 std=0.8\"", "--targets: %s %w", key, err)
		}
	}
	return told, nil
}

// targetUnits sets the mean and standard deviation of the targets in a file.
func targetUnits(path string, named listing.Columns, t *swag.Targets) error {
	all, err := dataset.ReadTargets(path, named)
	if err != nil {
		return console.BadInput(err)
	}
	t.Mean, t.Std = nil, nil
	for k := range all.Width {
		var column []float64
		for i := k; i < len(all.Values); i += all.Width {
			column = append(column, all.Values[i])
		}
		u, err := regression.FitUnits(column)
		if err != nil {
			return console.BadInput(fmt.Errorf("%s: target %d: %w", path, k, err))
		}
		t.Mean, t.Std = append(t.Mean, u.Mean), append(t.Std, u.Std)
	}
	return nil
}

// TargetFile returns the file of training targets that --targets names, or "".
func (k Card) TargetFile() string {
	if w := strings.Fields(k.Targets); len(w) > 0 && !strings.Contains(w[0], "=") {
		return w[0]
	}
	return ""
}

// Change updates a model card.
func (k Card) Change(card swag.Card) (_ swag.Card, err error) {
	if path := k.File; path != "" {
		if card, err = readCard(path); err != nil {
			return card, console.BadInput(err, "swagwrap inspect --json POSTERIOR shows a card, and docs/formats.md#model-card its keys")
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
	card.Output = cmp.Or(k.Output, card.Output)
	card.Scores = cmp.Or(k.Scores, card.Scores)
	if path := k.ClassNames; path != "" {
		if card.ClassNames, err = listing.ReadClassNames(path); err != nil {
			return card, console.BadInput(err)
		}
	}
	if k.ClassAxis.Set {
		card.ClassAxis = k.ClassAxis.Value
	}
	if k.State.Set {
		if card.State, err = readState(k.State.Value); err != nil {
			return card, err
		}
	}
	if k.IgnoreIndex.Set {
		card.IgnoreIndex = &k.IgnoreIndex.Value
	}
	if card.Pad, err = readPad(k.Pad, card); err != nil {
		return card, err
	}
	p, err := Preprocessing(k.Preprocess, card)
	if err != nil {
		return card, err
	}
	if !reflect.DeepEqual(p, preprocess.Settings{}) {
		card.Preprocess, err = json.Marshal(p)
	}
	return card, err
}

// Numbers parses a list of numbers within bounds, the value of a flag, with commas between. It returns nil if the flag was not
// given. The hint shows the right form.
func Numbers(c *cli.Context, flag, hint string, least, most float64) ([]float64, error) {
	s := c.String(flag)
	if s == "" {
		return nil, nil
	}
	out, err := word.Reals(s, least, most)
	if err != nil {
		return nil, console.Usagef(hint, "--%s %w", flag, err)
	}
	return out, nil
}

// ColumnsFlag says which columns of a table feed the network, for one command.
var ColumnsFlag = columnsFlag("as at fit")

func columnsFlag(preset string) cli.Flag {
	return &cli.StringSliceFlag{Name: "columns", Usage: "of a table, such as data.csv or data.parquet, feed the network's only input from the columns `A,B,C`; of several inputs INPUT=A,B,C, once for each; * stands for any letters", DefaultText: preset}
}

var padFlag = &cli.StringFlag{Name: "pad", Usage: "fill up lists of a table that are shorter than others with `V`, or of several inputs INPUT=V,INPUT=V: token ids with the tokenizer's pad token, masks with 0"}

// readColumns reads --columns, or returns the columns of the model card.
func readColumns(said []string, card swag.Card) (map[string][]string, error) {
	if len(said) == 0 {
		return card.Columns, nil
	}
	columns := map[string][]string{}
	for _, text := range said {
		input, names := splitInput(text)
		if columns[input] != nil {
			return nil, console.Usagef("", "--columns %q: input %q is there twice", text, input)
		}
		var err error
		if columns[input], err = table.Split(names); err != nil {
			return nil, console.Usagef("--columns age,bmi, or of several inputs --columns meta=age,bmi", "--columns %w", err)
		}
	}
	return columns, nil
}

// readPad reads --pad, or returns the values of the model card.
func readPad(said string, card swag.Card) (map[string]float64, error) {
	if said == "" {
		return card.Pad, nil
	}
	pad := map[string]float64{}
	for _, text := range strings.Split(said, ",") {
		input, value := splitInput(text)
		v, err := word.Real(value, -mostPad, mostPad)
		if _, twice := pad[input]; err == nil && twice {
			err = fmt.Errorf("%q: input %q is there twice", said, input)
		}
		if err != nil {
			return nil, console.Usagef("--pad 0, or of several inputs --pad input_ids=0,attention_mask=0", "--pad %w", err)
		}
		pad[input] = v
	}
	return pad, nil
}

const (
	mostPad = 1 << 53 // token numbers up to it are exact in float64
	maxAxis = 7       // of a state
)

// readState reads --state. Batch axes that nobody names with @ are not known yet.
func readState(said string) ([]swag.StatePair, error) {
	pairs := []swag.StatePair{}
	if said == "none" {
		return pairs, nil
	}
	for _, text := range strings.Split(said, ",") {
		in, out, _ := strings.Cut(strings.TrimSpace(text), "=")
		axis := -1
		if name, at, said := strings.Cut(out, "@"); said {
			n, err := word.Whole(at, 0, maxAxis)
			if err != nil {
				return nil, console.Usagef("--state h0=hn@1,c0=cn@1 says the number of the batch axis", "--state %s: axis %w", text, err)
			}
			out, axis = name, n
		}
		twice := slices.ContainsFunc(pairs, func(p swag.StatePair) bool { return p.In == in || p.Out == out })
		if in == "" || out == "" || twice {
			return nil, console.Usagef("--state h0=hn,c0=cn", "--state %q: want INPUT=OUTPUT for each state, or none", said)
		}
		pairs = append(pairs, swag.StatePair{In: in, Out: out, Axis: axis})
	}
	return pairs, nil
}

// splitInput splits INPUT=VALUE. Without "=" the input is "".
func splitInput(text string) (input, value string) {
	if input, value, named := strings.Cut(text, "="); named {
		return input, value
	}
	return "", text
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
	if err != nil {
		return card, fmt.Errorf("%s: model card: %w", path, err)
	}
	return card, nil
}

// Columns reads the values of --columns, or returns the columns of the model card, by the names of the network's inputs. It also
// returns the padding of the model card by these names.
func Columns(said []string, card swag.Card, g *infer.Graph) (columns map[string][]string, pad map[string]float64, err error) {
	if columns, err = readColumns(said, card); err != nil {
		return nil, nil, err
	}
	if columns, err = ofInputs("columns", columns, g); err != nil {
		return nil, nil, err
	}
	pad, err = ofInputs("pad", card.Pad, g)
	return columns, pad, err
}

// ofInputs returns the values by input name. A value without an input name is for the only input.
func ofInputs[T any](flag string, said map[string]T, g *infer.Graph) (map[string]T, error) {
	var names []string
	out := map[string]T{}
	for _, input := range g.Inputs {
		names = append(names, input.Name)
		v, ok := said[input.Name]
		if !ok && len(g.Inputs) == 1 {
			v, ok = said[""]
		}
		if ok {
			out[input.Name] = v
		}
	}
	switch {
	case len(out) == len(said) && len(out) > 0:
		return out, nil
	case len(out) >= len(said):
		return nil, nil
	case len(names) == 1:
		return nil, console.Usagef("", "--%s: want it once for the inputs %q", flag, names)
	}
	return nil, console.Usagef("", "--%s: want it by name for the inputs %q", flag, names)
}
