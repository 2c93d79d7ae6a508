package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
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

// kept says where a study keeps the outputs of networks, and which part of them a job runs.
type kept struct {
	folder string // or ""
	part   part
}

// readKept reads [storeFlags]. results are flags whose outputs a part does not make.
func readKept(c *cli.Context, results ...string) (k kept, err error) {
	k.folder = c.String("store")
	if k.part, err = readPart(c, append(results, "report", "plots", "json")...); err == nil && k.folder == "" && k.part.Of > 0 {
		err = console.Usagef("name a folder that all parts reach: --store FOLDER", "--part without --store")
	}
	return k, err
}

// openStore makes the engine use the store of a study, and sets its shard of the networks.
func (a *app) openStore(k kept, e *infer.Engine) (err error) {
	if k.folder == "" {
		return nil
	}
	if e.Store, err = store.Open(k.folder, console.Producer(), ort.Processor()); err != nil {
		return console.BadOutput(err)
	}
	if k.part.Of > 0 {
		e.Shard = &infer.Shard{Index: k.part.Index, Of: k.part.Of}
	}
	return nil
}

// tellStore prints how many results came from the store.
func (a *app) tellStore(folder string, e *infer.Engine) {
	if e.Store == nil {
		return
	}
	switch found, missing := e.Store.Counts(); missing {
	case 0:
		a.Logf("%s: nothing was computed, all %s of networks were found", folder, report.Plural(found, "result"))
	default:
		a.Logf("%s: %s of networks computed, %s found", folder, report.Plural(missing, "result"), report.Thousands(found))
	}
	a.warnProcessors(folder+": computed", e.Store.Machines())
}

// studyOptions has what the commands of studies share.
type studyOptions struct {
	flags.Study
	report console.Report
	kept   kept
	args   []string
}

// readStudyOptions reads them. results are flags whose outputs a part does not make.
func readStudyOptions(c *cli.Context, results ...string) (o studyOptions, err error) {
	o.report, o.args = flags.Report(c), c.Args().Slice()
	if o.kept, err = readKept(c, results...); err != nil {
		return o, err
	}
	o.Study, err = flags.ReadStudy(c)
	return o, err
}

// openPages opens the pages of a study.
func (a *app) openPages(o studyOptions) (*console.Pages, error) {
	return a.OpenPages(o.report, o.kept.part.Of == 0)
}

// startStudy opens ONNX Runtime and the store of a study, prepares the study's inputs, and measures the precision. Members
// are drawn as how says. Messages call the data path.
func (a *app) startStudy(ctx context.Context, o studyOptions, in *inputs.Study, how swag.SampleOptions, members int, data dataset.Dataset, path string) (*infer.Engine, error) {
	engine, err := a.Engine(o.Runtime)
	if err != nil {
		return nil, err
	}
	if err := a.openStore(o.kept, engine); err != nil {
		return nil, err
	}
	if err := a.Prepare(ctx, in, engine, how, data, path); err != nil {
		return nil, err
	}
	return engine, a.DrawnPrecision(ctx, o.Runtime, engine, in, how, members, data)
}

// studyBar starts the progress bar of a study, or of a part of it. images is the number of images that all networks of the
// study see together.
func (a *app) studyBar(ctx context.Context, name string, e *infer.Engine, images int64) *console.Bar {
	if e.Shard != nil {
		images /= int64(e.Shard.Of)
	}
	return a.Progress(ctx, name, images)
}

// runStudy runs a study. For a part it calls fill, which runs a share of the networks for the store, and returns nil.
func runStudy[R any](ctx context.Context, a *app, o studyOptions, e *infer.Engine, bar *console.Bar, fill func(context.Context, *infer.Engine) error, run func(context.Context, *infer.Engine) (*R, error)) (found *R, err error) {
	e.Progress = bar.Add
	if e.Shard != nil {
		err = fill(ctx, e)
	} else {
		found, err = run(ctx, e)
	}
	bar.Done()
	if err == nil {
		a.tellStore(o.kept.folder, e)
	}
	return found, console.BadInput(err)
}

// openScored opens labelled data that many networks read: n examples, or all for 0.
func (a *app) openScored(o studyOptions, in *inputs.Study, path string, n int) (dataset.Dataset, error) {
	d, err := a.OpenOf(in, path, o.Labels.Main, true)
	if err == nil && n > 0 && n < d.Len() {
		d = dataset.Subset(d, dataset.Order{Shuffle: true, Seed: o.Seed, Limit: n})
	}
	return d, err
}
