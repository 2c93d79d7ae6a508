package flags

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/word"
)

// AdaptFlags say to which data batch-norm statistics are adapted. more says what else --adapt takes.
func AdaptFlags(more string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name:  "adapt",
			Usage: "adapt batch-norm statistics to the data in `TARGET`, which differ from training and need no labels" + more,
		},
		Real(leastAdapt, 1, &cli.Float64Flag{
			Name:  "adapt-weight",
			Usage: "with --adapt, and compare --shift: a share `W` of the statistics is of the target, and the rest of training",
			Value: batchnorm.DefaultWeight,
		}),
	}
}

// maxBlock bounds the examples of a block.
const maxBlock = 1e9

// RefuseNoTarget refuses values of --adapt that are for score alone.
func RefuseNoTarget(o open.AdaptOptions) error {
	switch {
	case o.Data == open.NoTarget:
		return console.Usagef("leave it out", "--adapt none is for score, of an ensemble that was adapted")
	case o.Blocks > 0:
		return console.Usagef("--adapt TARGET adapts to all of a target", "--adapt %s is for score", o.Data)
	}
	return nil
}

// leastAdapt is a weight that changes nothing that matters.
const leastAdapt = 1e-3

// ReadAdapt reads [AdaptFlags].
func ReadAdapt(c *cli.Context) (o open.AdaptOptions, err error) {
	o = open.AdaptOptions{Data: c.String("adapt"), Weight: c.Float64("adapt-weight")}
	if n, ok := strings.CutPrefix(o.Data, open.WholeBlocks); ok {
		if o.Blocks, err = word.Whole(n, batchnorm.LeastTarget, maxBlock); err != nil {
			return o, console.Usagef("--adapt "+open.WholeBlocks+"512", "--adapt %s: %w", o.Data, err)
		}
	}
	if (o.Data == "" || o.Data == open.NoTarget) && c.String("shift") == "" {
		return o, Refuse(c, "leave it out, or say to which data: --adapt TARGET", "--*: needs a target", "adapt-weight")
	}
	return o, nil
}
