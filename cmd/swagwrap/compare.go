package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/report"
)

func (a *app) compareCommand() *cli.Command {
	return &cli.Command{
		Name:      "compare",
		Usage:     "show what SWAG buys against SGD, SWA, temperature scaling and others",
		ArgsUsage: "POSTERIOR... TEST",
		Description: `Evaluates the last SGD iterate, the ensemble of all iterates, SWA with stale and with recomputed batch-norm
statistics, SWA with temperature and with vector scaling, with dropout left on where the graph keeps it, and with a Laplace
approximation of its last layer, SWAG-Diagonal and SWAG on labelled test data, and prints a table and a verdict.

   swagwrap compare --bn-data train.npz --val val.npz posterior.safetensors test.npz

Temperatures and the like are fitted on --val, or without it on one half of the test data for the other. NLL is the mean
per image in nats. "at best T" is each method's NLL with a temperature of its own, fitted on one half of the test data and
applied to the other, so that the comparison is fair. The last column is a paired bootstrap over the test images.

Several posteriors, such as those of runs with different seeds, add deep ensembles of their last iterates and of their
SWAs, and MultiSWAG, which has as many members in all as SWAG. The other rows are then of the first posterior. The
isotropic control, noise of SWAG's size without its shape, is run with --methods all.

   swagwrap compare --bn-data train.npz --val val.npz seed-1.safetensors seed-2.safetensors seed-3.safetensors test.npz`,
		Flags: flags([]cli.Flag{
			&cli.StringFlag{Name: "labels", Usage: "read the test labels from `FILE`"},
			&cli.StringFlag{Name: "ece", Usage: "bins of the calibration error: equal-mass|equal-width|swag-reference", Value: calibrate.EqualMass.String()},
			&cli.StringFlag{Name: "metrics", Usage: "print the `SET` of metrics: main, or all for further ones and each method with scalings of its own", Value: "main"},
			&cli.BoolFlag{Name: "json", Usage: "print JSON instead of a table: everything, unrounded"},
			&cli.StringFlag{Name: "save", Usage: "write labels and each method's probabilities to `FILE.npz`"},
		}, reportFlags, lineupFlags),
		Action: a.compare,
	}
}

func (a *app) compare(c *cli.Context) error {
	if c.NArg() < 2 {
		return usagef("swagwrap compare --help shows an example", "%s, want POSTERIOR... TEST", plural(c.NArg(), "argument"))
	}
	posteriors, test := c.Args().Slice()[:c.NArg()-1], c.Args().Get(c.NArg()-1)
	allMetrics := c.String("metrics") == "all"
	if !allMetrics && c.String("metrics") != "main" {
		return usagef("", "--metrics %q: want main or all", c.String("metrics"))
	}
	cmp := &ensemble.Comparison{Scalings: allMetrics || c.Bool("json")}
	var err error
	if cmp.ECE.Binning, err = binning(c.String("ece")); err != nil {
		return err
	}
	pages, err := openReporting(c, comparedFiles(c)...)
	if err != nil {
		return err
	}
	defer pages.abort()
	saved, err := openSaved(c)
	if err != nil {
		return err
	}
	defer saved.abort()

	l, err := a.openLineup(c, posteriors)
	defer l.close()
	if err != nil {
		return err
	}
	if cmp.Test, err = l.openLabelled(test, c.String("labels")); err != nil {
		return err
	}
	cmp.Lineup, cmp.Validation = l.Lineup, l.validation
	if cmp.Validation == nil {
		a.warnf(c, "without --val, temperatures are fitted on one half of the test data and applied to the other")
	}
	cmp.Save = saved.add

	engine, err := a.engine(c)
	if err != nil {
		return err
	}
	if err := a.settleLineup(c, l, &cmp.Lineup, engine); err != nil {
		return err
	}
	bar := a.progress(c, "compare", cmp.Images())
	engine.Progress = bar.add
	methods, err := cmp.Run(c.Context, engine)
	bar.done()
	if err != nil {
		return badInput(err)
	}
	for _, note := range cmp.Notes {
		a.warnf(c, "%s", note)
	}
	if err := saved.finish(cmp.Test.Labels()); err != nil {
		return err
	}
	if pages.wanted() {
		page := &report.Report{Title: "SWAG and its alternatives", Provenance: lineupProvenance(l, engine.Runtime.Version())}
		page.Provenance = append(page.Provenance, sourceFacts("test", cmp.Test)...)
		if err := pages.write(comparePage(page, cmp, l.batchNorm, methods)); err != nil {
			return err
		}
	}
	if c.Bool("json") {
		return badOutput(writeCompareJSON(a.stdout, cmp, l.batchNorm, methods))
	}
	if err := l.batchNorm.writeWarnings(a.stdout); err != nil {
		return badOutput(err)
	}
	return badOutput(writeComparison(a.stdout, cmp, methods, allMetrics))
}

// comparedFiles are the inputs that no output may overwrite.
func comparedFiles(c *cli.Context) []string {
	return append(c.Args().Slice(), c.String("bn-data"), c.String("val"), c.String("labels"), c.String("val-labels"))
}

// savedPredictions is what --save writes.
type savedPredictions struct {
	out     *output // nil without --save
	archive *predictions.Archive
	taken   map[string]bool
}

func openSaved(c *cli.Context) (*savedPredictions, error) {
	path := c.String("save")
	if path == "" {
		return &savedPredictions{}, nil
	}
	if !strings.HasSuffix(strings.ToLower(path), ".npz") {
		return nil, usagef("", "--save %s: want a name that ends in .npz", path)
	}
	out, err := createOutput(path, c.Bool("force"), comparedFiles(c)...)
	if err != nil {
		return nil, err
	}
	return &savedPredictions{out, predictions.NewArchive(out), make(map[string]bool)}, nil
}

// add writes the probabilities of a method under its key, and a number where
// there are several of it.
func (s *savedPredictions) add(m *ensemble.Method, probs []float64, classes int) error {
	if s.out == nil {
		return nil
	}
	name := "probs_" + strings.ReplaceAll(m.Key, "-", "_")
	for i, first := 2, name; s.taken[name]; i++ {
		name = fmt.Sprintf("%s_%d", first, i)
	}
	s.taken[name] = true
	return badOutput(s.archive.Floats(name, probs, len(probs)/classes, classes))
}

func (s *savedPredictions) finish(labels []int) error {
	if s.out == nil {
		return nil
	}
	if err := s.archive.Ints("labels", labels, len(labels)); err != nil {
		return badOutput(err)
	}
	if err := s.archive.Close(); err != nil {
		return badOutput(err)
	}
	return s.out.commit()
}

func (s *savedPredictions) abort() {
	if s.out != nil {
		s.out.abort()
	}
}

func binning(s string) (calibrate.Binning, error) {
	for _, b := range []calibrate.Binning{calibrate.EqualMass, calibrate.EqualWidth, calibrate.SwagReference} {
		if s == b.String() {
			return b, nil
		}
	}
	return 0, usagef("", "--ece %q: want equal-mass, equal-width or swag-reference", s)
}

// finite is nil, which JSON writes as null, for what is not a finite number.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
