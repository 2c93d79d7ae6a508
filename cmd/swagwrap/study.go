package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/inputs"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/swag"
)

// startStudy opens ONNX Runtime and the store of a study, and prepares the study's inputs. Members are drawn as how says.
// Messages call the data path. The flags results have outputs that a part does not make.
func (a *app) startStudy(c *cli.Context, in *inputs.Study, how swag.SampleOptions, data dataset.Dataset, path string, results ...string) (*infer.Engine, error) {
	engine, err := a.Engine(c)
	if err != nil {
		return nil, err
	}
	if err := a.openStore(c, engine, in.Networks(), results...); err != nil {
		return nil, err
	}
	return engine, a.Prepare(c, in, engine, how, data, path)
}

// runStudy runs a study with a progress bar.
func runStudy[R any](a *app, c *cli.Context, e *infer.Engine, bar *flags.Bar, run func(context.Context, *infer.Engine) (R, error)) (R, error) {
	e.Progress = bar.Add
	found, err := run(c.Context, e)
	bar.Done()
	if err == nil {
		a.tellStore(c, e)
	}
	return found, flags.BadInput(err)
}

// openScored opens labelled data that many networks read. --samples limits it.
func openScored(c *cli.Context, in *inputs.Study, path string) (dataset.Dataset, error) {
	d, err := in.Open(c, path, c.String("labels"), true)
	if n := c.Int("samples"); err == nil && n > 0 && n < d.Len() {
		d = dataset.Subset(d, dataset.Order{Shuffle: true, Seed: c.Uint64("seed"), Limit: n})
	}
	return d, err
}
