package main

import (
	"math"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study/landscape"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/swag/geometry"
)

func (a *app) geometryCommand() *cli.Command {
	return &cli.Command{
		Name:      "geometry",
		Usage:     "show the posterior's covariance, and the loss along its directions",
		ArgsUsage: "POSTERIOR DATA",
		Description: `Prints the spectrum of SWAG's covariance and the loss on labelled data along its leading eigenvectors, on lines and planes
through SWA, with batch-norm statistics recomputed at each point. With --report the planes are drawn, under contours of
SWAG's density and the iterates of SGD: where SWAG fits, its contours follow the loss.

   swagwrap geometry --bn-data train.npz --report geometry.html posterior.safetensors train.npz

On the training data it is the density that SWAG approximates. The paper's loss has the L2 regularisation in it: give the
weight decay of the training. Distances are Euclidean in weight space, or posterior standard deviations, which hold the
scale and the diagonal part of the covariance.`,
		Flags: flags.Join([]cli.Flag{
			&cli.StringFlag{Name: "labels", Usage: "read the labels from `FILE`"},
			&cli.IntFlag{Name: "samples", Usage: "take the loss over `N` images, chosen by the seed; 0 for all", Value: 1000},
			&cli.IntFlag{Name: "directions", Usage: "show the loss along the `N` leading eigenvectors", Value: 4},
			&cli.IntFlag{Name: "grid", Usage: "run `N` points on each line, and N×N on each plane; odd", Value: 11},
			&cli.Float64Flag{Name: "extent", Usage: "go `X` posterior standard deviations to each side", Value: 2.5},
			&cli.Float64Flag{Name: "scale", Usage: "multiply the covariance by `ALPHA`", Value: swag.LowRankPlusDiagonal.DefaultScale()},
			&cli.IntFlag{Name: "rank", Usage: "use the `K` columns that a fit of that rank would have kept", DefaultText: "all"},
			&cli.Float64Flag{Name: "weight-decay", Usage: "add `LAMBDA`/2·‖θ‖² to the loss"},
			&cli.Uint64Flag{Name: "seed", Usage: "`SEED` of the order of the images", Value: 1},
			&cli.BoolFlag{Name: "json", Usage: "print JSON instead of tables"},
		}, flags.ReportFlags, flags.BatchNormFlags, flags.DataFlags, flags.RunFlags),
		Action: a.geometry,
	}
}

func (a *app) geometry(c *cli.Context) error {
	if err := flags.Positionals(c); err != nil {
		return err
	}
	l, err := landscapeFlags(c)
	if err != nil {
		return err
	}
	pages, err := a.OpenPages(c)
	if err != nil {
		return err
	}
	defer pages.Abort()
	if l.Network, err = a.OpenNetwork(c, c.Args().Get(0)); err != nil {
		return err
	}
	defer l.Network.Posterior.Close()
	if columns := l.Network.Posterior.Options.Columns; columns > 0 && c.Int("rank") != 0 && (c.Int("rank") < 2 || c.Int("rank") > columns) {
		return flags.Usagef("", "--rank %d: want 2 to %d, the columns of %s", c.Int("rank"), columns, l.Network.Posterior.Path)
	}
	if l.Geometry, err = geometry.New(c.Context, l.Network.Posterior, c.Int("rank")); err != nil {
		return flags.BadInput(err, "fit without --diag-only keeps the deviations")
	}
	pre, err := flags.Preprocessing(c, l.Network.Posterior.Card)
	if err != nil {
		return err
	}
	bn, err := a.OpenBatchNorm(c, []*infer.Network{l.Network}, pre)
	if err != nil {
		return err
	}
	if l.Data, err = openScored(c, c.Args().Get(1), c.String("labels"), l.Network, pre); err != nil {
		return err
	}
	engine, err := a.Engine(c)
	if err != nil {
		return err
	}
	a.Debugf(c, "%d networks, each over %s images", l.Points(), report.Thousands(l.Data.Len()))
	if err := a.CheckStudy(c, engine, bn, nil, l.Data, c.Args().Get(1)); err != nil {
		return err
	}
	if err := a.ChooseSampleSize(c, engine, bn, swag.SampleOptions{Seed: c.Uint64("seed"), Scale: l.Scale}); err != nil {
		return err
	}
	l.BatchNorm = bn.Training
	if engine.Provider.Precision == ort.BF16 { // no Monte Carlo error hides the rounding in losses of single networks, so auto is float32
		d := batchnorm.Draws{Network: l.Network, BatchNorm: l.BatchNorm, How: swag.SampleOptions{Seed: c.Uint64("seed"), Scale: l.Scale}, Count: defaultMembers}
		if err := a.DrawnPrecision(c, engine, d, l.Data); err != nil {
			return err
		}
	}
	bar := a.Progress(c, "geometry", l.Images())
	engine.Progress = bar.Add
	found, err := l.Run(c.Context, engine)
	bar.Done()
	if err != nil {
		return flags.BadInput(err)
	}
	found.Statistics = bn.BatchNorm
	return a.Show(c, pages, &bn.BatchNorm, found)
}

func landscapeFlags(c *cli.Context) (*landscape.Landscape, error) {
	l := &landscape.Landscape{Scale: c.Float64("scale"), Directions: c.Int("directions"), Grid: c.Int("grid"), Extent: c.Float64("extent"), Decay: c.Float64("weight-decay")}
	for name, v := range map[string]float64{"scale": l.Scale, "extent": l.Extent} {
		if !(v > 0) || math.IsInf(v, 0) {
			return nil, flags.Usagef("", "--%s %g: want a positive number", name, v)
		}
	}
	switch {
	case !(l.Decay >= 0) || math.IsInf(l.Decay, 0):
		return nil, flags.Usagef("", "--weight-decay %g: want a number of at least 0", l.Decay)
	case l.Directions < 1:
		return nil, flags.Usagef("", "--directions %d: want at least 1", l.Directions)
	case l.Grid < 3 || l.Grid%2 == 0:
		return nil, flags.Usagef("an odd number has SWA in the middle", "--grid %d: want an odd number of at least 3", l.Grid)
	case c.Int("samples") < 0:
		return nil, flags.Usagef("", "--samples %d: want a positive number, or 0 for all", c.Int("samples"))
	}
	return l, nil
}
