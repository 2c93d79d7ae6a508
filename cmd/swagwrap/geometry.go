package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/ort"
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
			flags.SamplesFlag(&cli.IntFlag{Name: "samples", Usage: "take the loss over `N` examples, chosen by the seed; 0 for all", Value: 1000}),
			flags.WholeIf(fmt.Sprintf("3 to %d, and odd", maxPoints), func(n int) bool { return n >= 3 && n <= maxPoints && n%2 == 1 },
				&cli.IntFlag{Name: "points", Usage: "run `N` points on each line, and N×N on each plane; odd", Value: 11}),
			flags.Real(leastScale, flags.MaxScale, &cli.Float64Flag{Name: "scale", Usage: "multiply the covariance by `ALPHA`", Value: swag.LowRankPlusDiagonal.DefaultScale()}),
			flags.RankFlag(&cli.IntFlag{Name: "rank", Usage: "use the `K` columns that a fit of that rank would have kept", DefaultText: "all"}),
			flags.Real(0, maxDecay, &cli.Float64Flag{Name: "weight-decay", Usage: "add `LAMBDA`/2·‖θ‖² to the loss"}),
			flags.SeedFlag("`SEED` of the order of the examples"),
			&cli.BoolFlag{Name: "json", Usage: "print JSON instead of tables"},
		}, flags.ReportFlags, flags.BatchNormFlags, flags.DataFlags, flags.RunFlags),
		Action: a.withPages(a.geometry),
	}
}

func (a *app) geometry(c *cli.Context, pages *flags.Pages) error {
	l := &landscape.Landscape{Scale: c.Float64("scale"), Grid: c.Int("points"), Extent: landscape.UsualExtent, Decay: c.Float64("weight-decay"), Recomputing: flags.AsAsked(c)}
	in, err := a.OpenStudy(c, c.Args().Slice()[:1], false)
	if err != nil {
		return err
	}
	defer in.Close()
	l.Network = in.Runs[0].Network
	p, rank := l.Network.Posterior, c.Int("rank")
	if columns := p.Options.Columns; columns > 0 && rank > columns {
		return flags.Usagef("", "--rank %d: want 2 to %d, the columns of %s", rank, columns, p.Path)
	}
	if l.Geometry, err = geometry.New(c.Context, p, rank); err != nil {
		return flags.BadInput(err, "fit without --rank 0 keeps the deviations")
	}
	if l.Data, err = openScored(c, in, c.Args().Get(1)); err != nil {
		return err
	}
	a.Debugf(c, "%d networks, each over %s", l.Points(), report.Plural(l.Data.Len(), dataset.Unit(l.Data)))
	if c.String("precision") == ort.Auto { // no Monte Carlo error hides the rounding in losses of single networks
		c.Set("precision", ort.F32)
	}
	engine, err := a.startStudy(c, in, in.Draws(), ensemble.DefaultMembers, l.Data, c.Args().Get(1))
	if err != nil {
		return err
	}
	l.BatchNorm = in.Inputs.BatchNorm
	found, err := runStudy(a, c, engine, a.studyBar(c, engine, l.Images()), nil, l.Run)
	if err != nil {
		return err
	}
	found.Statistics = in.BatchNorm.BatchNorm
	return a.Show(c, pages, &found.Statistics, found)
}
