package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study/landscape"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/swag/geometry"
)

const (
	maxPoints  = 201   // 80,000 networks
	leastScale = 1e-12 // of the covariance, whose directions are shown; 0 has none
	maxDecay   = 1e6
)

func (a *app) geometryCommand() *cli.Command {
	return &cli.Command{
		Name:      "geometry",
		Usage:     "show the posterior's covariance, and the loss along its directions",
		ArgsUsage: "POSTERIOR DATA",
		Description: `Prints the spectrum of SWAG's covariance, and the loss on labelled data along its four leading eigenvectors, on lines and planes
through SWA. Batch-norm statistics are recomputed at each point. --report draws the planes, with contours of SWAG's density and
the checkpoints of SGD. Where SWAG fits, its contours follow the loss.

   swagwrap geometry --bn-data train.npz --report geometry.html posterior.safetensors train.npz

SWAG approximates the density on training data. The paper's loss includes the L2 regularisation: give the weight decay of the
training. Distances are Euclidean in weight space, or posterior standard deviations, which include the scale and the diagonal
part of the covariance.`,
		Flags: flags.Join([]cli.Flag{
			flags.LabelsFlag,
			flags.SamplesFlag(&cli.IntFlag{
				Name:  "samples",
				Usage: "take the loss over `N` examples, chosen by the seed; 0 for all",
				Value: 1000,
			}),
			flags.WholeIf(fmt.Sprintf("3 to %d, and odd", maxPoints), func(n int) bool { return n >= 3 && n <= maxPoints && n%2 == 1 },
				&cli.IntFlag{Name: "points", Usage: "run `N` points on each line, and N×N on each plane; odd", Value: 11}),
			flags.Real(leastScale, flags.MaxScale, &cli.Float64Flag{
				Name:  "scale",
				Usage: "multiply the covariance by `ALPHA`",
				Value: swag.LowRankPlusDiagonal.DefaultScale(),
			}),
			flags.RankFlag(&cli.IntFlag{
				Name:        "rank",
				Usage:       "use the `K` columns that a fit of that rank would have kept",
				DefaultText: "all",
			}),
			flags.Real(0, maxDecay, &cli.Float64Flag{Name: "weight-decay", Usage: "add `LAMBDA`/2·‖θ‖² to the loss"}),
			flags.SeedFlag("`SEED` of the order of the examples"),
			&cli.BoolFlag{Name: "json", Usage: "print JSON instead of tables"},
		}, flags.ReportFlags, flags.BatchNormFlags, flags.DataFlags, flags.RunFlags),
		Action: with(readGeometry, a.geometry),
	}
}

// geometryOptions are the values of geometry's command line.
type geometryOptions struct {
	studyOptions
	points, rank, samples int
	decay                 float64
}

func readGeometry(c *cli.Context) (o geometryOptions, err error) {
	o = geometryOptions{points: c.Int("points"), rank: c.Int("rank"), samples: c.Int("samples"), decay: c.Float64("weight-decay")}
	if o.studyOptions, err = readStudyOptions(c); o.Runtime.Free { // no Monte Carlo error hides the rounding in losses of single networks
		o.Runtime.Free = false
	}
	return o, err
}

func (a *app) geometry(ctx context.Context, o geometryOptions) error {
	pages, err := a.openPages(o.studyOptions)
	if err != nil {
		return err
	}
	defer pages.Abort()
	l := &landscape.Landscape{Scale: o.Scale, Grid: o.points, Extent: landscape.UsualExtent, Decay: o.decay}
	in, err := a.OpenStudy(ctx, o.StudyOptions, o.args[:1], false)
	if err != nil {
		return err
	}
	defer in.Close()
	l.Network = in.Runs[0].Network
	p, rank := l.Network.Posterior, o.rank
	if columns := p.Options.Columns; columns > 0 && rank > columns {
		return console.Usagef("", "--rank %d: want 2 to %d, the columns of %s", rank, columns, p.Path)
	}
	if l.Geometry, err = geometry.New(ctx, p, rank); err != nil {
		return console.BadInput(err, "fit without --rank 0 keeps the deviations")
	}
	if l.Data, err = a.openScored(o.studyOptions, in, o.args[1], o.samples); err != nil {
		return err
	}
	a.Debugf("%d networks, each over %s", l.Points(), report.Plural(l.Data.Len(), dataset.Unit(l.Data)))
	run, err := a.startStudy(ctx, o.studyOptions, in, in.Draws(), ensemble.DefaultMembers,
		open.Intake{Data: l.Data, Path: o.args[1], Labelled: true})
	if err != nil {
		return err
	}
	l.BatchNorm = in.Inputs.BatchNorm
	found, err := runStudy(ctx, a, o.studyOptions, run, a.studyBar(ctx, "geometry", run.shard, l.Images()), nil, l.Run)
	if err != nil {
		return err
	}
	found.Statistics = in.BatchNorm.Findings
	return a.Show(pages, &found.Statistics, found.Show())
}
