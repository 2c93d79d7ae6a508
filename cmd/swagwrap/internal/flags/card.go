package flags

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/internal/dataset/table"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/word"
	"github.com/swagwrap/swagwrap/swag"
)

// Card makes the rows that set the model card, which describes the network's inputs and outputs. Fit takes them once.
func Card(k *open.CardOptions) Table {
	tasks := append(task.Names(), task.Auto)
	return Table{
		Text(Row{
			Name:  "card",
			Usage: "read the model card from `FILE.json`, or from what inspect --json prints. Other flags change it",
		}, &k.File),
		OneOf(Row{
			Name:   "task",
			Usage:  "`TASK` of the network: " + strings.Join(tasks, "|"),
			Preset: task.Auto + ", as the graph or names of classes tell it",
		}, &k.Task, tasks...),
		Text(Row{
			Name:   "output-name",
			Usage:  "the scores are the networks' output `NAME`",
			Preset: "the one that its name or its width shows",
		}, &k.Output),
		Scores(&k.Scores),
		ClassAxis(&k.ClassAxis.Value, &k.ClassAxis.Set),
		Integer(Row{
			Name:   "ignore-index",
			Usage:  "leave out pixels and tokens with the label `N`, such as 255; negative labels, such as -100, are always left out",
			Preset: "none",
			Given:  &k.IgnoreIndex.Set,
		}, &k.IgnoreIndex.Value, math.MinInt32, math.MaxInt32),
		Parsed(Row{
			Name: "state",
			Usage: "carry states from window to window of a text: `IN=OUT,IN=OUT` says which output is the next value of which input. " +
				"none says that no input is a state",
			Preset: "found at recurrent operators, or by names such as h0 and hn",
			Hint:   "--state h0=hn,c0=cn, or --state h0=hn@1,c0=cn@1, which says the number of the batch axis",
			Given:  &k.State.Set,
		}, &k.State.Value, parseState),
		Text(Row{
			Name:  "class-names",
			Usage: "read the names of the classes from `PATH`: a file with one a line, or JSON, or a folder of class folders",
		}, &k.ClassNames),
		columns(&k.Columns, "columns named as the input, or beginning with its name and _; for an only input all but labels and path"),
		Parsed(Row{
			Name: "pad",
			Usage: "fill up lists of a table that are shorter than others with `V`, or of several inputs INPUT=V,INPUT=V: token ids with " +
				"the tokenizer's pad token, masks with 0",
			Hint: "--pad 0, or of several inputs --pad input_ids=0,attention_mask=0",
		}, &k.Pad, parsePad),
		Augment(&k.Augment, "unknown: pictures are used plain, with a note"),
		Preprocess(&k.Preprocess, "nothing but a size that the network says"),
		FileOrder(&k.FileOrder, "a question where it matters"),
		Parsed(Row{
			Name: "targets",
			Usage: "of a regression: \"head=H mean=M std=S\". The second half of the scores is H: none|variance|log-variance|softplus, " +
				"or std|log-std|softplus-std of a standard deviation. The scores z are targets M + S·z. `SPEC` may begin with a file of " +
				"training targets, which gives M and S, and name its column: \"train.csv column=price\"",
			Hint: "--targets \"head=none mean=3.5 std=0.8\", or --targets \"train.csv column=price\"",
		}, &k.Targets, parseTargets),
		Noise(Row{
			Usage:  "without a variance head: the standard deviation `STD` of targets about their means, in their own units",
			Preset: "fitted on validation data by compare and calibrate",
			Given:  &k.NoiseStd.Set,
		}, &k.NoiseStd.Value),
	}
}

// OnCard returns a flag of the model card with the word for its value, or "" for a flag that does not belong there.
func OnCard(name string) string {
	r := Card(new(open.CardOptions)).Row(name)
	if r == nil {
		return ""
	}
	_, value := r.explained()
	return "--" + name + value
}

// ClassAxis makes the row that says where the scores of a pixel or token are.
func ClassAxis(field *int, given *bool) *Row {
	return IntegerIf(Row{
		Name:   "class-axis",
		Usage:  "the scores of a pixel or token are on axis `N` of the output: 1 is the one after the batch, -1 the last",
		Preset: "what names and the number of axes say",
		Given:  given,
	}, field, "1 or -1", func(n int) bool { return n == 1 || n == -1 })
}

// Numbers returns a function that parses numbers within bounds, with commas between.
func Numbers(least, most float64) func(string) ([]float64, error) {
	return func(s string) ([]float64, error) { return word.Reals(s, least, most) }
}

// columns makes the row that says which columns of a table feed the network. preset describes the default.
func columns(field *map[string][]string, preset string) *Row {
	return Repeated(Row{
		Name: "columns",
		Usage: "of a table, such as data.csv or data.parquet, feed the network's only input from the columns `A,B,C`; of several " +
			"inputs INPUT=A,B,C, once for each; * stands for any letters",
		Preset: preset,
		Hint:   "--columns age,bmi, or of several inputs --columns meta=age,bmi",
	}, func(text string) (err error) {
		if *field == nil {
			*field = map[string][]string{}
		}
		input, names := splitInput(text)
		if (*field)[input] != nil {
			return fmt.Errorf("%q: input %q is there twice", text, input)
		}
		(*field)[input], err = table.Split(names)
		return err
	})
}

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
				return t, errors.New("column without a file")
			}
		case "head":
			if t.Head = (open.Given[string]{Value: value, Set: true}); value == "none" {
				t.Head.Value = ""
			} else if err := regression.VarianceHead(value).Check(); err != nil {
				return t, fmt.Errorf("head: %w", err)
			}
		case "mean":
			t.Mean, err = word.Reals(value, -mostTarget, mostTarget)
		case "std":
			t.Std, err = word.Reals(value, leastNoise, mostNoise)
		default:
			err = word.Check(key, "head", "mean", "std", "column")
		}
		if err != nil {
			return t, fmt.Errorf("%s %w", key, err)
		}
	}
	return t, nil
}

func parsePad(stated string) (map[string]float64, error) {
	if stated == "" {
		return nil, nil
	}
	pad := map[string]float64{}
	for _, text := range strings.Split(stated, ",") {
		input, value := splitInput(text)
		v, err := word.Real(value, -mostPad, mostPad)
		if _, twice := pad[input]; err == nil && twice {
			err = fmt.Errorf("%q: input %q is there twice", stated, input)
		}
		if err != nil {
			return nil, err
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
func parseState(stated string) ([]swag.StatePair, error) {
	pairs := []swag.StatePair{}
	if stated == "none" {
		return pairs, nil
	}
	for _, text := range strings.Split(stated, ",") {
		in, out, _ := strings.Cut(strings.TrimSpace(text), "=")
		axis := -1
		if name, at, stated := strings.Cut(out, "@"); stated {
			n, err := word.Integer(at, 0, maxAxis)
			if err != nil {
				return nil, fmt.Errorf("%s: axis %w", text, err)
			}
			out, axis = name, n
		}
		twice := slices.ContainsFunc(pairs, func(p swag.StatePair) bool { return p.In == in || p.Out == out })
		if in == "" || out == "" || twice {
			return nil, fmt.Errorf("%q: want INPUT=OUTPUT for each state, or none", stated)
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
