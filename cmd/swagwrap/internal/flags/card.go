package flags

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/dataset/table"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/word"
	"github.com/swagwrap/swagwrap/swag"
)

// CardFlags set the model card, which describes the network's inputs and outputs. Fit takes them once.
var CardFlags = Join([]cli.Flag{
	&cli.StringFlag{Name: "card", Usage: "read the model card from `FILE.json`, or from what inspect --json prints. Other flags change it"},
	OneOf(&cli.StringFlag{
		Name:        "task",
		Usage:       "`TASK` of the network: " + strings.Join(append(task.Names(), task.Auto), "|"),
		DefaultText: task.Auto + ", as the graph or names of classes tell it",
	}, append(task.Names(), task.Auto)...),
	&cli.StringFlag{
		Name:        "output-name",
		Usage:       "the scores are the networks' output `NAME`",
		DefaultText: "the one that its name or its width shows",
	},
	ScoresFlag,
	ClassAxisFlag,
	Whole(math.MinInt32, math.MaxInt32, &cli.IntFlag{
		Name:        "ignore-index",
		Usage:       "leave out pixels and tokens with the label `N`, such as 255; negative labels, such as -100, are always left out",
		DefaultText: "none",
	}),
	&cli.StringFlag{
		Name: "state",
		Usage: "carry states from window to window of a text: `IN=OUT,IN=OUT` says which output is the next value of which input. " +
			"none says that no input is a state",
		DefaultText: "found at recurrent operators, or by names such as h0 and hn",
	},
	&cli.StringFlag{
		Name:  "class-names",
		Usage: "read the names of the classes from `PATH`: a file with one a line, or JSON, or a folder of class folders",
	},
	columnsFlag("columns named as the input, or beginning with its name and _; for an only input all but labels and path"),
	padFlag,
	AugmentFlag("unknown: pictures are used plain, with a note"),
	preprocessFlag("nothing but a size that the network says"),
	fileOrderFlag("a question where it matters"),
}, targetFlags)

// OnCard reports whether a flag belongs to the model card.
func OnCard(name string) bool {
	return slices.ContainsFunc(CardFlags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
}

// targetFlags describe the scores of a regression.
var targetFlags = []cli.Flag{
	&cli.StringFlag{
		Name: "targets",
		Usage: "of a regression: \"head=H mean=M std=S\". The second half of the scores is H: none|variance|log-variance|softplus of " +
			"it. The scores z are targets M + S·z. `SPEC` may begin with a file of training targets, which gives M and S, and name its " +
			"column: \"train.csv column=price\"",
	},
	NoiseFlag("without a variance head: the standard deviation `STD` of targets about their means, in their own units",
		"fitted on validation data by compare and calibrate"),
}

// ClassAxisFlag says where the scores of a pixel or token are.
var ClassAxisFlag = WholeIf("1 or -1", func(n int) bool {
	return n == 1 || n == -1
}, &cli.IntFlag{
	Name:        "class-axis",
	Usage:       "the scores of a pixel or token are on axis `N` of the output: 1 is the one after the batch, -1 the last",
	DefaultText: "what names and the number of axes say",
})

// ReadCard reads [CardFlags].
func ReadCard(c *cli.Context) (k open.CardOptions, err error) {
	k = open.CardOptions{
		File:        c.String("card"),
		Task:        c.String("task"),
		Output:      c.String("output-name"),
		Scores:      c.String("scores"),
		ClassAxis:   ReadGiven(c, "class-axis", c.Int),
		IgnoreIndex: ReadGiven(c, "ignore-index", c.Int),
		ClassNames:  c.String("class-names"),
		Augment:     ReadGiven(c, "augment", c.String),
		Preprocess:  c.String("preprocess"),
		FileOrder:   c.String("file-order"),
		NoiseStd:    ReadGiven(c, "noise-std", c.Float64Slice),
	}
	if k.Targets, err = parseTargets(c.String("targets")); err != nil {
		return k, err
	}
	if k.State.Set = c.IsSet("state"); k.State.Set {
		if k.State.Value, err = parseState(c.String("state")); err != nil {
			return k, err
		}
	}
	if k.Columns, err = readColumns(c); err != nil {
		return k, err
	}
	k.Pad, err = parsePad(c.String("pad"))
	return k, err
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
	return &cli.StringSliceFlag{
		Name: "columns",
		Usage: "of a table, such as data.csv or data.parquet, feed the network's only input from the columns `A,B,C`; of several " +
			"inputs INPUT=A,B,C, once for each; * stands for any letters",
		DefaultText: preset,
	}
}

var padFlag = &cli.StringFlag{
	Name: "pad",
	Usage: "fill up lists of a table that are shorter than others with `V`, or of several inputs INPUT=V,INPUT=V: token ids with the " +
		"tokenizer's pad token, masks with 0",
}

// parseTargets parses --targets.
func parseTargets(spec string) (t open.TargetOptions, err error) {
	words := strings.Fields(strings.ReplaceAll(spec, ";", " "))
	if len(words) > 0 && !strings.Contains(words[0], "=") {
		t.File, words = words[0], words[1:]
	}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "column":
			if t.Columns = strings.Split(value, ","); t.File == "" {
				return t, console.Usagef("--targets \"train.csv column=price\"", "--targets: column without a file")
			}
		case "head":
			if t.Head = (open.Given[string]{Value: value, Set: true}); value == "none" {
				t.Head.Value = ""
			} else if err := regression.VarianceHead(value).Check(); err != nil {
				return t, console.Usagef("", "--targets: head: %w", err)
			}
		case "mean":
			t.Mean, err = word.Reals(value, -mostTarget, mostTarget)
		case "std":
			t.Std, err = word.Reals(value, leastNoise, mostNoise)
		default:
			err = word.Check(key, "head", "mean", "std", "column")
		}
		if err != nil {
			return t, console.Usagef("--targets \"head=none mean=3.5 std=0.8\"", "--targets: %s %w", key, err)
		}
	}
	return t, nil
}

// readColumns reads --columns.
func readColumns(c *cli.Context) (map[string][]string, error) {
	said := c.StringSlice("columns")
	if len(said) == 0 {
		return nil, nil
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

// parsePad parses --pad.
func parsePad(said string) (map[string]float64, error) {
	if said == "" {
		return nil, nil
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
	maxAxis = 7       // the last axis that a state can have
)

// parseState parses --state. Batch axes that nobody names with @ are not known yet.
func parseState(said string) ([]swag.StatePair, error) {
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
