package main

import (
	"fmt"
	"io"
	"math"

	swaggeometry "github.com/swagwrap/swagwrap/swag/geometry"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/swag"
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
		Flags: flags([]cli.Flag{
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
		}, reportFlags, bnFlags, preprocessFlags, runFlags),
		Action: a.geometry,
	}
}

func (a *app) geometry(c *cli.Context) error {
	if err := positionals(c); err != nil {
		return err
	}
	l, err := landscapeFlags(c)
	if err != nil {
		return err
	}
	out, err := openReporting(c, append(c.Args().Slice(), c.String("bn-data"))...)
	if err != nil {
		return err
	}
	defer out.abort()
	if l.Network, err = a.openNetwork(c, c.Args().Get(0)); err != nil {
		return err
	}
	defer l.Network.Posterior.Close()
	if columns := l.Network.Posterior.Options.Columns; columns > 0 && c.Int("rank") != 0 && (c.Int("rank") < 2 || c.Int("rank") > columns) {
		return usagef("", "--rank %d: want 2 to %d, the columns of %s", c.Int("rank"), columns, l.Network.Posterior.Path)
	}
	if l.Geometry, err = swaggeometry.New(c.Context, l.Network.Posterior, c.Int("rank")); err != nil {
		return badInput(err, "fit without --diag-only keeps the deviations")
	}
	pre, err := preprocessing(c)
	if err != nil {
		return err
	}
	bn, err := a.batchNormData(c, []*ensemble.Network{l.Network}, pre)
	if err != nil {
		return err
	}
	if l.Data, err = openScored(c, c.Args().Get(1), c.String("labels"), l.Network, pre); err != nil {
		return err
	}
	engine, err := a.engine(c)
	if err != nil {
		return err
	}
	a.debugf(c, "%d networks, each over %s images", l.Points(), report.Thousands(l.Data.Len()))
	if err := a.settle(c, engine, bn, swag.SampleOptions{Seed: c.Uint64("seed"), Scale: l.Scale}); err != nil {
		return err
	}
	l.BatchNorm = bn.BatchNormData
	bar := a.progress(c, "geometry", l.Images())
	engine.Progress = bar.add
	g := &geometry{Landscape: l, batchNorm: bn}
	g.lines, g.planes, err = l.Run(c.Context, engine)
	bar.done()
	if err != nil {
		return badInput(err)
	}
	if out.wanted() {
		if err := out.write(g.page(engine.Runtime.Version())); err != nil {
			return err
		}
	}
	if c.Bool("json") {
		return badOutput(g.writeJSON(a.stdout))
	}
	if err := bn.writeWarnings(a.stdout); err != nil {
		return badOutput(err)
	}
	return badOutput(g.write(a.stdout))
}

func landscapeFlags(c *cli.Context) (*ensemble.Landscape, error) {
	l := &ensemble.Landscape{Scale: c.Float64("scale"), Directions: c.Int("directions"), Grid: c.Int("grid"), Extent: c.Float64("extent"), Decay: c.Float64("weight-decay")}
	for name, v := range map[string]float64{"scale": l.Scale, "extent": l.Extent} {
		if !(v > 0) || math.IsInf(v, 0) {
			return nil, usagef("", "--%s %g: want a positive number", name, v)
		}
	}
	switch {
	case !(l.Decay >= 0) || math.IsInf(l.Decay, 0):
		return nil, usagef("", "--weight-decay %g: want a number of at least 0", l.Decay)
	case l.Directions < 1:
		return nil, usagef("", "--directions %d: want at least 1", l.Directions)
	case l.Grid < 3 || l.Grid%2 == 0:
		return nil, usagef("an odd number has SWA in the middle", "--grid %d: want an odd number of at least 3", l.Grid)
	case c.Int("samples") < 0:
		return nil, usagef("", "--samples %d: want a positive number, or 0 for all", c.Int("samples"))
	}
	return l, nil
}

// geometry is a landscape with what was found.
type geometry struct {
	*ensemble.Landscape
	batchNorm *batchNorm
	lines     []ensemble.LossLine
	planes    []ensemble.LossPlane
}

// loss names what lines and planes show.
func (g *geometry) loss() string {
	if g.Decay > 0 {
		return fmt.Sprintf("NLL + %g/2·‖θ‖²", g.Decay)
	}
	return "NLL"
}

func (g *geometry) write(w io.Writer) error {
	fmt.Fprintf(w, "%s images, %s weights, rank %d, scale %g\n\n", report.Thousands(g.Data.Len()), report.Thousands(int(g.Network.Posterior.Len())), g.Geometry.Rank, g.Scale)
	for _, t := range []*report.Table{g.spectrumTable(), g.linesTable(), g.accuracyTable()} {
		if err := t.WriteText(w); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	for _, line := range g.verdict() {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// spectrumTable lists the variance along the directions.
func (g *geometry) spectrumTable() *report.Table {
	t := report.NewTable(
		report.Column{Header: "direction", Align: report.Right},
		report.Column{Header: "low-rank variance", Align: report.Right},
		report.Column{Header: "share", Align: report.Decimal},
		report.Column{Header: "sum", Align: report.Decimal},
		report.Column{Header: "diagonal variance", Align: report.Right},
		report.Column{Header: "standard deviation", Align: report.Right},
	)
	sum := 0.0
	for i, v := range g.Geometry.Eigenvalues {
		share := v / g.Geometry.LowRankTrace
		sum += share
		t.Row(fmt.Sprint(i+1), fourDigits(v), report.Percent(share, 1), report.Percent(sum, 1), fourDigits(g.Geometry.Diagonal[i][i]), fourDigits(g.Deviation(i)))
	}
	t.Note(fmt.Sprintf("Variances are squared Euclidean distances in weight space, without the scale; the standard deviation is a distance, of members at scale %g", g.Scale))
	return t
}

// linesTable shows the loss along the directions.
func (g *geometry) linesTable() *report.Table {
	n := decimals(g.lines)
	return g.alongTable(g.loss(), func(p ensemble.LossPoint) string { return report.Fixed(p.Loss(), n) })
}

func (g *geometry) accuracyTable() *report.Table {
	return g.alongTable("accuracy", func(p ensemble.LossPoint) string { return report.Percent(p.Accuracy, 1) })
}

func (g *geometry) alongTable(what string, cell func(ensemble.LossPoint) string) *report.Table {
	cols := []report.Column{{Header: what + " at", Align: report.Decimal}}
	for _, l := range g.lines {
		cols = append(cols, report.Column{Header: fmt.Sprintf("direction %d", l.I+1), Align: report.Decimal})
	}
	t := report.NewTable(cols...)
	for k := range g.Grid {
		row := []string{report.Signed(g.lines[0].Points[k].At[0]/g.lines[0].Deviation, 2) + " σ"}
		for _, l := range g.lines {
			row = append(row, cell(l.Points[k]))
		}
		t.Row(row...)
	}
	t.Note("σ is the posterior standard deviation along the direction; 0 is SWA")
	return t
}

// decimals returns how many the smallest loss needs to show two digits: that on
// training data can be near 0.
func decimals(lines []ensemble.LossLine) int {
	n := 4
	for _, l := range lines {
		for _, p := range l.Points {
			if v := math.Abs(p.Loss()); v > 0 && !math.IsInf(v, 0) {
				n = max(n, min(1-int(math.Floor(math.Log10(v))), 8))
			}
		}
	}
	return n
}

// fourDigits writes a number with four digits.
func fourDigits(v float64) string { return fmt.Sprintf("%.4g", v) }
