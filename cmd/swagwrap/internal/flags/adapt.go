package flags

import (
	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/open"
)

// AdaptFlags say to which data batch-norm statistics are adapted. more says what else --adapt takes.
func AdaptFlags(more string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "adapt", Usage: "adapt batch-norm statistics to the data in `TARGET`, which differ from training and need no labels" + more},
		Real(leastAdapt, 1, &cli.Float64Flag{Name: "adapt-weight", Usage: "with --adapt, and compare --shift: a share `W` of the statistics is of the target, and the rest of training", Value: batchnorm.DefaultWeight}),
	}
}

// leastAdapt is a weight that changes nothing that matters.
const leastAdapt = 1e-3

// ReadAdapt reads [AdaptFlags].
func ReadAdapt(c *cli.Context) (open.AdaptOptions, error) {
	o := open.AdaptOptions{Data: c.String("adapt"), Weight: c.Float64("adapt-weight")}
	if (o.Data == "" || o.Data == open.NoTarget) && c.String("shift") == "" {
		return o, Refuse(c, "leave it out, or say to which data: --adapt TARGET", "--*: needs a target", "adapt-weight")
	}
	return o, nil
}
