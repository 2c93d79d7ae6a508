package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/inputs"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/store"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/swag"
)

// storeFlags are the flags of studies that several jobs may share.
var storeFlags = []cli.Flag{
	&cli.StringFlag{Name: "store", Usage: "keep the outputs of networks in `FOLDER`, and compute nothing twice"},
	&cli.StringFlag{Name: "part", Usage: "with --store, run part `I/N` of the networks, I from 0, and print no result; auto/N takes I from Slurm, Kubernetes or AWS Batch"},
}

// openStore makes the engine use the store of a study, and sets its shard of the networks. results are flags whose
// outputs a part does not make.
func (a *app) openStore(c *cli.Context, e *infer.Engine, results ...string) error {
	i, n, err := parsePart(c, append(results, "report", "plots", "json")...)
	if err != nil {
		return err
	}
	dir := c.String("store")
	switch {
	case dir == "" && n > 0:
		return flags.Usagef("name a folder that all parts reach: --store FOLDER", "--part without --store")
	case dir == "":
		return nil
	}
	if e.Store, err = store.Open(dir, flags.Producer(), ort.Processor()); err != nil {
		return flags.BadOutput(err)
	}
	if n > 0 {
		e.Shard = &infer.Shard{Index: i, Of: n}
	}
	return nil
}

// tellStore prints how many results came from the store.
func (a *app) tellStore(c *cli.Context, e *infer.Engine) {
	if e.Store == nil {
		return
	}
	switch found, missing := e.Store.Counts(); missing {
	case 0:
		a.Logf(c, "%s: nothing was computed, all %s of networks were found", c.String("store"), report.Plural(found, "result"))
	default:
		a.Logf(c, "%s: %s of networks computed, %s found", c.String("store"), report.Plural(missing, "result"), report.Thousands(found))
	}
	a.warnProcessors(c, c.String("store")+": computed", e.Store.Machines())
}

// withPages returns the action of a study, whose pages are opened before it and removed if it fails.
func (a *app) withPages(study func(*cli.Context, *flags.Pages) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		pages, err := a.OpenPages(c)
		if err != nil {
			return err
		}
		defer pages.Abort()
		return study(c, pages)
	}
}

// startStudy opens ONNX Runtime and the store of a study, prepares the study's inputs, and measures the precision. Members
// are drawn as how says. Messages call the data path. The flags results have outputs that a part does not make.
func (a *app) startStudy(c *cli.Context, in *inputs.Study, how swag.SampleOptions, members int, data dataset.Dataset, path string, results ...string) (*infer.Engine, error) {
	engine, err := a.Engine(c)
	if err != nil {
		return nil, err
	}
	if err := a.openStore(c, engine, results...); err != nil {
		return nil, err
	}
	if err := a.Prepare(c, in, engine, how, data, path); err != nil {
		return nil, err
	}
	return engine, a.DrawnPrecision(c, engine, in, how, members, data)
}

// studyBar starts the progress bar of a study, or of a part of it. images is the number of images that all networks of the
// study see together.
func (a *app) studyBar(c *cli.Context, e *infer.Engine, images int64) *flags.Bar {
	if e.Shard != nil {
		images /= int64(e.Shard.Of)
	}
	return a.Progress(c, c.Command.Name, images)
}

// runStudy runs a study. For a part it calls fill, which runs a share of the networks for the store, and returns nil.
func runStudy[R any](a *app, c *cli.Context, e *infer.Engine, bar *flags.Bar, fill func(context.Context, *infer.Engine) error, run func(context.Context, *infer.Engine) (*R, error)) (found *R, err error) {
	e.Progress = bar.Add
	if e.Shard != nil {
		err = fill(c.Context, e)
	} else {
		found, err = run(c.Context, e)
	}
	bar.Done()
	if err == nil {
		a.tellStore(c, e)
	}
	return found, flags.BadInput(err)
}

// labelledOf returns the examples with a known label. Windows of a text all have one.
func labelledOf(d dataset.Dataset) (dataset.Dataset, error) {
	labels := d.Labels()
	if _, text := dataset.CutOf(d); text || !labels.Dense() {
		return d, nil
	}
	var rows []int
	for i := range d.Len() {
		known, err := labels.Part(i, i+1).AnyKnown()
		if err != nil {
			return nil, flags.BadInput(err)
		}
		if known {
			rows = append(rows, i)
		}
	}
	if len(rows) == d.Len() {
		return d, nil
	}
	return dataset.Picked(d, rows), nil
}

// openScored opens labelled data that many networks read. --samples limits it. Pictures and lists without a label are left out,
// because they have no loss.
func openScored(c *cli.Context, in *inputs.Study, path string) (dataset.Dataset, error) {
	d, err := in.Open(c, path, flags.Labels(c, ""), true)
	if err == nil {
		d, err = labelledOf(d)
	}
	if n := c.Int("samples"); err == nil && n > 0 && n < d.Len() {
		d = dataset.Subset(d, dataset.Order{Shuffle: true, Seed: c.Uint64("seed"), Limit: n})
	}
	return d, err
}
