package main

import (
	"context"
	"fmt"

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

func geometryCommand(a *app) *command {
	o := &geometryOptions{studyOptions: studyOptions{app: a}}
	return &command{
		name:  "geometry",
		usage: "show the posterior's covariance, and the loss along its directions",
		args:  "POSTERIOR DATA",
		description: `Prints the spectrum of SWAG's covariance, and the loss on labelled data along its four leading eigenvectors, on lines and planes
through SWA. Batch-norm statistics are recomputed at each point. --report draws the planes, with contours of SWAG's density and
the checkpoints of SGD. Where SWAG fits, its contours follow the loss.

   swagwrap geometry --bn-data train.npz --report geometry.html posterior.safetensors train.npz

SWAG approximates the density on training data. The paper's loss includes the L2 regularisation: give the weight decay of the
training. Distances are Euclidean in weight space, or posterior standard deviations, which include the scale and the diagonal
part of the covariance.`,
		Table: o.rows(),
		run: func(ctx context.Context, args []string) error {
			o.args, o.Runtime.Free = args, false // no Monte Carlo error hides the rounding in losses of single networks
			return o.geometry(ctx)
		},
	}
}

// geometryOptions are the values of geometry's command line.
type geometryOptions struct {
	studyOptions
	points, rank, samples int
	decay                 float64
}

func (o *geometryOptions) rows() flags.Table {
	o.Table = flags.Join(flags.Table{
		flags.Labels(&o.Data.Labels),
		flags.Integer(flags.Row{
			Name:    "samples",
			Usage:   "take the loss over `N` examples, chosen by the seed; 0 for all",
			Default: "1000",
		}, &o.samples, 0, flags.MaxExamples),
		flags.IntegerIf(flags.Row{
			Name:    "points",
			Usage:   "run `N` points on each line, and N×N on each plane; odd",
			Default: "11",
		}, &o.points, fmt.Sprintf("3 to %d, and odd", maxPoints), func(n int) bool { return n >= 3 && n <= maxPoints && n%2 == 1 }),
		flags.Real(flags.Row{
			Name:    "scale",
			Usage:   "multiply the covariance by `ALPHA`",
			Default: fmt.Sprint(swag.LowRankPlusDiagonal.DefaultScale()),
			Given:   &o.GivenScale,
		}, &o.Scale, leastScale, flags.MaxScale),
		flags.Rank(flags.Row{Usage: "use the `K` columns that a fit of that rank would have kept", Preset: "all"}, &o.rank),
		flags.Real(flags.Row{Name: "weight-decay", Usage: "add `LAMBDA`/2·‖θ‖² to the loss"}, &o.decay, 0, maxDecay),
		flags.Seed(flags.Row{Usage: "`SEED` of the order of the examples", Then: o.finish}, &o.BatchNorm.Seed),
		flags.JSON(&o.report, "print JSON instead of tables"),
	}, flags.Report(&o.report), flags.Study(&o.StudyOptions))
	return o.Table
}

func (o *geometryOptions) geometry(ctx context.Context) error {
	pages, err := o.openPages()
	if err != nil {
		return err
	}
	defer pages.Abort()
	l := &landscape.Landscape{Scale: o.Scale, Grid: o.points, Extent: landscape.UsualExtent, Decay: o.decay}
	in, err := o.OpenStudy(ctx, o.StudyOptions, o.args[:1], false)
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
	if l.Data, err = o.openScored(in, o.args[1], o.samples); err != nil {
		return err
	}
	o.Debugf("%d networks, each over %s", l.Points(), report.Plural(l.Data.Len(), dataset.Unit(l.Data)))
	run, err := o.startStudy(ctx, in, in.Draws(), ensemble.DefaultMembers,
		open.Probe{Data: l.Data, Path: o.args[1], Labelled: true})
	if err != nil {
		return err
	}
	l.BatchNorm = in.Inputs.BatchNorm
	found, err := runStudy(ctx, o.app, o.studyOptions, run, o.studyBar(ctx, "geometry", run.shard, l.Images()), nil, l.Run)
	if err != nil {
		return err
	}
	found.Statistics = in.BatchNorm.Findings
	return o.Show(pages, &found.Statistics, found.Show())
}
