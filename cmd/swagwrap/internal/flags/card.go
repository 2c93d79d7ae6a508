package flags

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/dataset/table"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
)

// CardFlags set the model card, which describes the network's inputs and outputs. Fit takes them once.
var CardFlags = Join([]cli.Flag{
	OneOf(&cli.StringFlag{Name: "task", Usage: "the network's scores are those of `TASK`: " + strings.Join(append(task.Names(), task.Auto), "|"), DefaultText: task.Auto + ", as the graph or names of classes tell it"}, append(task.Names(), task.Auto)...),
	&cli.StringFlag{Name: "output-name", Usage: "the scores are the networks' output `NAME`", DefaultText: "the first"},
	ScoresFlag,
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
	&cli.StringFlag{Name: "variance-head", Usage: "of a regression: the second half of the scores `IS` variance|log-variance|softplus of it, or there is none"},
	&cli.Float64SliceFlag{Name: "target-mean", Usage: "the network's numbers z are targets `M` + S·z; once for each target, or for all"},
	&cli.Float64SliceFlag{Name: "target-std", Usage: "`S` of these"},
	&cli.StringFlag{Name: "target-units", Usage: "take both from the training targets in `FILE`, as their mean and standard deviation over n: an .npz, .npy, .csv, .tsv, .parquet or .jsonl"},
	&cli.Float64SliceFlag{Name: "noise-std", Usage: "without a variance head: targets are `STD` about their means, in their own units", DefaultText: "fitted on validation data by compare and calibrate"},
}

// targets makes the part of the model card about targets.
func targets(c *cli.Context, card swag.Card) (*swag.Targets, error) {
	if !task.Numeric(card.Task) {
		if slices.ContainsFunc(targetFlags, func(f cli.Flag) bool { return c.IsSet(f.Names()[0]) }) {
			return nil, Usagef("say that it is one: --task regression", "--variance-head, --target-mean, --target-std, --target-units and --noise-std are for a regression")
		}
		return nil, nil
	}
	var t swag.Targets
	head, given := c.String("variance-head"), c.IsSet("variance-head")
	if card.Targets != nil {
		t = *card.Targets
	} else if !given {
		return nil, Usagef("--variance-head variance|log-variance|softplus: the second half of the scores\n--variance-head none: all scores are means", "--task regression: the graph does not tell which scores are variances")
	}
	if given {
		if t.VarianceHead = head; head == "none" {
			t.VarianceHead = ""
		} else if err := regression.VarianceHead(head).Check(); err != nil {
			return nil, Usagef("", "--variance-head: %w", err)
		}
	}
	if err := targetUnits(c, &t); err != nil {
		return nil, err
	}
	for name, to := range map[string]*[]float64{"target-mean": &t.Mean, "target-std": &t.Std, "noise-std": &t.NoiseStd} {
		if c.IsSet(name) {
			*to = c.Float64Slice(name)
		}
	}
	switch {
	case len(t.Mean) != len(t.Std):
		return nil, Usagef("", "%d of --target-mean and %d of --target-std, want as many", len(t.Mean), len(t.Std))
	case t.VarianceHead != "" && t.NoiseStd != nil:
		return nil, Usagef("", "--noise-std beside a variance head: want one of them")
	}
	if _, err := infer.RegressionSpec(swag.Card{Targets: &t}); err != nil {
		return nil, Usagef("", "%w", err)
	}
	return &t, nil
}

// targetUnits sets the mean and standard deviation of the targets in the file --target-units.
func targetUnits(c *cli.Context, t *swag.Targets) error {
	path := c.String("target-units")
	switch {
	case path == "":
		return nil
	case c.IsSet("target-mean") || c.IsSet("target-std"):
		return Usagef("", "--target-units and --target-mean or --target-std: want the file, or the numbers")
	}
	all, err := dataset.ReadTargets(path)
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

// Card updates a model card with the flags.
func Card(c *cli.Context, card swag.Card) (_ swag.Card, err error) {
	if c.IsSet("augment") {
		p, _, err := Augmentation(c, card)
		if err != nil {
			return card, err
		}
		card.Augment = p.String()
	}
	if card.Task = cmp.Or(c.String("task"), card.Task); card.Task == task.Auto {
		card.Task, card.Targets = "", nil // drop earlier settings
	}
	if card.Targets, err = targets(c, card); err != nil {
		return card, err
	}
	card.Output = cmp.Or(c.String("output-name"), card.Output)
	card.Scores = cmp.Or(c.String("scores"), card.Scores)
	if path := c.String("class-names"); path != "" {
		if card.ClassNames, err = listing.ReadClassNames(path); err != nil {
			return card, BadInput(err)
		}
	}
	if card.Pad, err = readPad(c, card); err != nil {
		return card, err
	}
	p, err := Preprocessing(c, card)
	if err != nil {
		return card, err
	}
	if !reflect.DeepEqual(p, preprocess.Settings{}) {
		card.Preprocess, err = json.Marshal(p)
	}
	return card, err
}

// Numbers parses a comma-separated list of numbers. It returns nil if the flag was not given. The hint shows the right
// form.
func Numbers(c *cli.Context, flag, hint string) ([]float64, error) {
	s := c.String(flag)
	if s == "" {
		return nil, nil
	}
	var out []float64
	for _, part := range strings.Split(s, ",") {
		v, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, Usagef(hint, "--%s %q: not a list of numbers", flag, s)
		}
		out = append(out, v)
	}
	return out, nil
}

// ColumnsFlag says which columns of a table feed the network, for one command.
var ColumnsFlag = columnsFlag("what was said at fit")

func columnsFlag(preset string) cli.Flag {
	return &cli.StringSliceFlag{Name: "columns", Usage: "of a table, such as data.csv or data.parquet, feed the network's only input from the columns `A,B,C`; of several inputs INPUT=A,B,C, once for each; * stands for any letters", DefaultText: preset}
}

var padFlag = &cli.StringFlag{Name: "pad", Usage: "fill up lists of a table that are shorter than others with `V`, or of several inputs INPUT=V,INPUT=V: token ids with the tokenizer's pad token, masks with 0"}

// readColumns reads --columns, or returns the columns of the model card.
func readColumns(c *cli.Context, card swag.Card) (map[string][]string, error) {
	said := c.StringSlice("columns")
	if len(said) == 0 {
		return card.Columns, nil
	}
	columns := map[string][]string{}
	for _, text := range said {
		input, names := splitInput(text)
		if columns[input] != nil {
			return nil, Usagef("", "--columns %q: input %q is there twice", text, input)
		}
		var err error
		if columns[input], err = table.Split(names); err != nil {
			return nil, Usagef("--columns age,bmi, or of several inputs --columns meta=age,bmi", "--columns %w", err)
		}
	}
	return columns, nil
}

// readPad reads --pad, or returns the values of the model card.
func readPad(c *cli.Context, card swag.Card) (map[string]float64, error) {
	said := c.String("pad")
	if said == "" {
		return card.Pad, nil
	}
	pad := map[string]float64{}
	for _, text := range strings.Split(said, ",") {
		input, value := splitInput(text)
		v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if _, twice := pad[input]; err != nil || twice || math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, Usagef("--pad 0, or of several inputs --pad input_ids=0,attention_mask=0", "--pad %q: want a number for each input", said)
		}
		pad[input] = v
	}
	return pad, nil
}

// splitInput splits INPUT=VALUE. Without "=" the input is "".
func splitInput(text string) (input, value string) {
	if input, value, named := strings.Cut(text, "="); named {
		return input, value
	}
	return "", text
}

// Columns reads --columns, or returns the columns of the model card, by the names of the network's inputs. It also
// returns the padding of the model card by these names.
func Columns(c *cli.Context, card swag.Card, g *infer.Graph) (columns map[string][]string, pad map[string]float64, err error) {
	if columns, err = readColumns(c, card); err != nil {
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
		return nil, Usagef("", "--%s: want it once for the inputs %q", flag, names)
	}
	return nil, Usagef("", "--%s: want it by name for the inputs %q", flag, names)
}
