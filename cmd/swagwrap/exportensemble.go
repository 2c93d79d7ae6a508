package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/truth"
	"github.com/swagwrap/swagwrap/onnxio/joint"
)

// ensembleFlags say how an ensemble becomes one model.
var ensembleFlags = []cli.Flag{
	&cli.StringFlag{Name: "members", Usage: "take the members `LIST` of the ensemble, such as 0-9", DefaultText: "all"},
	&cli.StringFlag{Name: "storage", Usage: "store weights as `S`: f32|int8. int8 keeps their mean in float32, and each member's deviations in 8 bits", Value: "f32"},
	&cli.BoolFlag{Name: "external-data", Usage: "put the weights into a file beside the model, as is done above 2 GiB"},
	&cli.BoolFlag{Name: "with-preprocessing", Usage: "take 8-bit pixels of the network's size, [batch, height, width, channels], and normalise them in the model"},
	&cli.StringFlag{Name: "check", Usage: "run the images `DATA` through the model and through the members, and say how far they are apart"},
}

// onlyOf refuses flags that are of use for something else.
func onlyOf(c *cli.Context, list []cli.Flag, what string) error {
	for _, f := range list {
		if name := f.Names()[0]; c.IsSet(name) {
			return flags.Usagef("", "--%s is for %s", name, what)
		}
	}
	return nil
}

// storages are the words of --storage.
var storages = []string{joint.Float32: "f32", joint.Int8: "int8"}

// exportEnsemble writes the ensemble at path as one model.
func (a *app) exportEnsemble(c *cli.Context, out *modelOutput, path string) error {
	storage := slices.Index(storages, c.String("storage"))
	if storage < 0 {
		return flags.Usagef("", "--storage %q: want f32 or int8", c.String("storage"))
	}
	e, err := a.openEnsemble(c, path) // first: a damaged posterior lies in no reader's format, and must be called damaged
	if err != nil {
		return err
	}
	for _, flag := range []string{"checkpoint", "template", "template-checkpoint", "seed", "scale", "rank", "diagonal", "antithetic", "bn", "bn-data"} {
		if c.IsSet(flag) {
			return flags.Usagef("", "--%s is for a POSTERIOR: the members of %s are drawn", flag, path)
		}
	}
	if c.IsSet("check") && flags.IsStdout(out.path) {
		return flags.Usagef("name a file: -o model.onnx", "--check reads the model again, and it goes to standard output")
	}
	j := &ensemble.Joint{Ensemble: e, Members: e.All(), Pixels: c.Bool("with-preprocessing"), Storage: joint.Storage(storage), External: c.Bool("external-data"),
		Producer: "swagwrap", Version: flags.Version()}
	if c.IsSet("members") {
		if j.Members, err = ensemble.ParseRanges(c.String("members"), e.Members()); err != nil {
			return flags.Usagef("members are counted from 0", "--members %w", err)
		}
		if len(j.Members) < e.Members() && (e.Temperature > 0 || e.Vector != nil) {
			a.Warnf(c, "%s: its calibration was fitted to all %d members", path, e.Members())
		}
	}
	j.Networks, err = a.components(c, e)
	defer closeNetworks(j.Networks)
	if err != nil {
		return err
	}
	var engine *infer.Engine
	if j.Needs() || c.IsSet("check") {
		if engine, err = a.Engine(c); err != nil {
			return err
		}
	}
	var data dataset.Dataset
	if check := c.String("check"); check != "" { // before any work
		p, err := flags.Preprocessing(c, e.Card)
		if err != nil {
			return err
		}
		if data, err = flags.OpenData(c, []string{check}, "", j.Networks[0], p); err != nil {
			return err
		}
	}
	if err := a.writeJoint(c, j, engine, out); err != nil {
		return err
	}
	if data == nil {
		return nil
	}
	d, err := j.Check(c.Context, engine, out.path, data)
	if err != nil {
		out.remove() // a command that fails leaves no output
		return flags.BadInput(err)
	}
	if task.Truth(e.Card.Task) == truth.Numbers {
		a.Logf(c, "%s: on %s no mean or standard deviation is further than %.2g from that of the members themselves, in the targets' units",
			out.path, report.Plural(d.Examples, "example"), d.Largest)
		return nil
	}
	a.Logf(c, "%s: on %s no probability is further than %.2g from that of the members themselves, and %d of the predictions are others",
		out.path, report.Plural(d.Examples, "example"), d.Largest, d.Changed)
	return nil
}

// writeJoint writes the model and says how large it is.
func (a *app) writeJoint(c *cli.Context, j *ensemble.Joint, engine *infer.Engine, out *modelOutput) error {
	m, err := j.Model(c.Context, engine)
	if err != nil {
		return flags.BadInput(err)
	}
	name := filepath.Base(out.path)
	model, data, err := m.Size(name)
	if err == nil && model > joint.Largest {
		m.External()
		model, data, err = m.Size(name)
	}
	if err != nil {
		return flags.BadInput(err)
	}
	create := func(file string) (io.Writer, error) { return out.create(file) }
	if err := j.Write(c.Context, m, name, create, c.Int("threads")); err != nil {
		return flags.BadInput(err) // files being written speak for themselves
	}
	if err := out.commit(); err != nil {
		return err
	}
	a.Logf(c, "%s: %s, %s", out.path, report.Plural(len(j.Members), "member"), megabytes(model+data))
	return nil
}

// megabytes writes a size.
func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
