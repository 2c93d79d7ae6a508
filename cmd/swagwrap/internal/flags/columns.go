package flags

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/dataset/table"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/swag"
)

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
		input, names, several := strings.Cut(text, "=")
		if !several {
			input, names = "", text
		}
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
		input, value, several := strings.Cut(text, "=")
		if !several {
			input, value = "", text
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if _, twice := pad[input]; err != nil || twice || math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, Usagef("--pad 0, or of several inputs --pad input_ids=0,attention_mask=0", "--pad %q: want a number for each input", said)
		}
		pad[input] = v
	}
	return pad, nil
}

// ofInputs returns the values by input name. A value without an input name is for the only input.
func ofInputs[T any](flag string, said map[string]T, g *infer.Graph) (map[string]T, error) {
	var names []string
	for _, v := range g.Inputs {
		names = append(names, v.Name)
	}
	out := map[string]T{}
	for _, name := range names {
		v, ok := said[name]
		if !ok && len(names) == 1 {
			v, ok = said[""]
		}
		if ok {
			out[name] = v
		}
	}
	if len(out) < len(said) {
		return nil, Usagef("", "--%s: want %s for the inputs %q", flag, map[bool]string{true: "it once", false: "it by name"}[len(names) == 1], names)
	}
	if len(out) == 0 {
		return nil, nil
	}
	return out, nil
}

// tables sets how a command's tables are read, by its flags or the model card.
func tables(c *cli.Context, card swag.Card, g *infer.Graph, opts *dataset.Options) error {
	columns, err := readColumns(c, card)
	if err != nil {
		return err
	}
	if opts.Columns, err = ofInputs("columns", columns, g); err != nil {
		return err
	}
	opts.Pad, err = ofInputs("pad", card.Pad, g)
	return err
}

// DataHints returns hints for data that could not be opened.
func DataHints(err error) []string {
	switch {
	case errors.Is(err, preprocess.ErrNoSize):
		return []string{"fit --input-size SIZE says which size, or fit --preset NAME how the model was trained"}
	case errors.Is(err, table.ErrColumns):
		return []string{"--columns A,B,C says it, or of several inputs --columns INPUT=A,B,C; fit --columns remembers it"}
	case errors.Is(err, dataset.ErrArrays):
		return []string{"--arrays pixels normalises them as the model card says", "--arrays seen feeds them to the network unchanged"}
	case errors.Is(err, dataset.ErrNoPad):
		return []string{fmt.Sprintf("fit --pad says it, such as --pad %s", "input_ids=0,attention_mask=0: the tokenizer's pad token, and 0 for masks")}
	}
	return nil
}
