package flags

import (
	"math"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/internal/dataset/table"
	"github.com/swagwrap/swagwrap/internal/infer"
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
