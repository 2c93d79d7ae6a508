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

// sharedRun is the run of a study, or of a part of it.
type sharedRun struct {
	infer.Run
	shard *infer.Shard // of the networks; nil for all
}

// openStore opens the store and the shard of a study that runs on an engine. results are flags whose outputs a part does
// not make.
func (a *app) openStore(c *cli.Context, e *infer.Engine, results ...string) (run sharedRun, err error) {
	run.Engine = e
	i, n, err := parsePart(c, append(results, "report", "plots", "json")...)
	if err != nil {
		return run, err
	}
	dir := c.String("store")
	switch {
	case dir == "" && n > 0:
		return run, flags.Usagef("name a folder that all parts reach: --store FOLDER", "--part without --store")
	case dir == "":
		return run, nil
	}
	if n > 0 {
		run.shard = &infer.Shard{Index: i, Of: n}
	}
	run.Store, err = store.Open(dir, flags.Producer(), ort.Processor())
	return run, flags.BadOutput(err)
}

// tellStore prints how many results came from the store.
func (a *app) tellStore(c *cli.Context, kept *store.Store) {
	if kept == nil {
		return
	}
	switch found, missing := kept.Counts(); missing {
	case 0:
		a.Logf(c, "%s: nothing was computed, all %s of networks were found", c.String("store"), report.Plural(found, "result"))
	default:
		a.Logf(c, "%s: %s of networks computed, %s found", c.String("store"), report.Plural(missing, "result"), report.Thousands(found))
	}
	a.warnProcessors(c, c.String("store")+": computed", kept.Machines())
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
func (a *app) startStudy(c *cli.Context, in *inputs.Study, how swag.SampleOptions, members int, data dataset.Dataset, path string, results ...string) (run sharedRun, err error) {
	engine, err := a.Engine(c)
	if err != nil {
		return run, err
	}
	if run, err = a.openStore(c, engine, results...); err != nil {
		return run, err
	}
	if err := a.Prepare(c, in, run.Run, how, data, path); err != nil {
		return run, err
	}
	run.Engine, err = a.DrawnPrecision(c, run.Run, in, how, members, data)
	return run, err
}

// studyBar starts the progress bar of a study, or of a part of it. images is the number of images that all networks of the
// study see together.
func (a *app) studyBar(c *cli.Context, shard *infer.Shard, images int64) *flags.Bar {
	if shard != nil {
		images /= int64(shard.Of)
	}
	return a.Progress(c, c.Command.Name, images)
}

// runStudy runs a study. For a part it calls fill, which runs a share of the networks for the store, and returns nil.
func runStudy[R any](a *app, c *cli.Context, on sharedRun, bar *flags.Bar, fill func(context.Context, infer.Run, *infer.Shard) error, run func(context.Context, infer.Run) (*R, error)) (found *R, err error) {
	on.Progress = bar.Add
	if on.shard != nil {
		err = fill(c.Context, on.Run, on.shard)
	} else {
		found, err = run(c.Context, on.Run)
	}
	bar.Done()
	if err == nil {
		a.tellStore(c, on.Store)
	}
	return found, flags.BadInput(err)
}

// openScored opens labelled data that many networks read. --samples limits it.
func openScored(c *cli.Context, in *inputs.Study, path string) (dataset.Dataset, error) {
	d, err := in.Open(c, path, flags.Labels(c, ""), true)
	if n := c.Int("samples"); err == nil && n > 0 && n < d.Len() {
		d = dataset.Subset(d, dataset.Order{Shuffle: true, Seed: c.Uint64("seed"), Limit: n})
	}
	return d, err
}
