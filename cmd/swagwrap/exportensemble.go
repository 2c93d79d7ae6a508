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
	"github.com/swagwrap/swagwrap/internal/infer/intake"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/truth"
	"github.com/swagwrap/swagwrap/onnxio/fused"
)

// ensembleFlags control the export of an ensemble as one model.
var ensembleFlags = []cli.Flag{
	&cli.StringFlag{Name: "members", Usage: "take the members `LIST` of the ensemble, such as 0-9", DefaultText: "all"},
	flags.OneOf(&cli.StringFlag{Name: "storage", Usage: "store weights as `S`: f32|int8. int8 keeps their mean in float32, and each member's deviations in 8 bits", Value: "f32"}, storages...),
	&cli.BoolFlag{Name: "external-data", Usage: "put the weights into a file beside the model, as is done above 2 GiB"},
	&cli.BoolFlag{Name: "with-preprocessing", Usage: "take 8-bit pixels of the network's size, [batch, height, width, channels], and normalise them in the model"},
	&cli.StringFlag{Name: "check", Usage: "run the images `DATA` through the model and through the members, and say how far they are apart"},
}

// onlyOf refuses flags that apply only to something else.
func onlyOf(c *cli.Context, list []cli.Flag, what string) error {
	for _, f := range list {
		if name := f.Names()[0]; c.IsSet(name) {
			return flags.Usagef("", "--%s is for %s", name, what)
		}
	}
	return nil
}

// storages are the words of --storage.
var storages = []string{fused.Float32: "f32", fused.Int8: "int8"}

// exportEnsemble writes the ensemble at path as one model.
func (a *app) exportEnsemble(c *cli.Context, out *modelOutput, path string) error {
	storage := slices.Index(storages, c.String("storage"))
	e, err := a.openEnsemble(c, path) // open it first: a damaged posterior must be reported as damaged
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
	j := &ensemble.Fused{Ensemble: e, Members: e.All(), Pixels: c.Bool("with-preprocessing"), Storage: fused.Storage(storage), External: c.Bool("external-data"),
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
	unknown := slices.ContainsFunc(j.Networks, (*infer.Network).Undecided)
	if j.Needs() || unknown || c.IsSet("check") {
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
	if data == nil && unknown {
		if err := a.checkOnNoise(c, engine, j.Networks); err != nil {
			return err
		}
	}
	if data != nil {
		if err := batchOf(engine, e); err != nil {
			return err
		}
		in := flags.Intake{Networks: j.Networks, Data: data, Path: c.String("check"), Trained: e.Components[0].Intake}
		if _, err := a.CheckIntake(c, engine, in); err != nil {
			return err
		}
	}
	if data == nil {
		return a.writeFused(c, j, engine, out, nil)
	}
	var d ensemble.Difference
	err = a.writeFused(c, j, engine, out, func() (err error) {
		d, err = j.Check(c.Context, engine, out.path, data)
		return flags.BadInput(err)
	})
	if err != nil {
		return err
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

// checkOnNoise decides the form of scores if nothing is recorded about it. Rows of probabilities add up to 1 for any
// input.
func (a *app) checkOnNoise(c *cli.Context, e *infer.Engine, networks []*infer.Network) error {
	for _, n := range networks {
		if !n.Undecided() {
			continue
		}
		noise, err := infer.NewNoise(n, intake.Examples)
		if err != nil {
			return flags.BadInput(fmt.Errorf("%s: %w", n.Posterior.Path, err), "give examples: --check DATA, or say what the scores are: --scores logits|probabilities|log-probabilities")
		}
		if _, err := a.CheckIntake(c, e, flags.Intake{Networks: []*infer.Network{n}, Data: noise, Path: "noise", Noise: true}); err != nil {
			return err
		}
	}
	return nil
}

// writeFused writes the model, runs check on it, and prints its size.
func (a *app) writeFused(c *cli.Context, j *ensemble.Fused, engine *infer.Engine, out *modelOutput, check func() error) error {
	m, err := j.Model(c.Context, engine)
	if err != nil {
		return flags.BadInput(err)
	}
	name := filepath.Base(out.path)
	model, data, err := m.Size(name)
	if err == nil && model > fused.Largest {
		m.External()
		model, data, err = m.Size(name)
	}
	if err != nil {
		return flags.BadInput(err)
	}
	create := func(file string) (io.Writer, error) { return out.create(file) }
	if err := j.Write(c.Context, m, name, create, c.Int("threads")); err != nil {
		return flags.BadInput(err) // files being written have their own error
	}
	if err := out.commit(check); err != nil {
		return err
	}
	a.Logf(c, "%s: %s, %s", out.path, report.Plural(len(j.Members), "member"), megabytes(model+data))
	return nil
}

// megabytes formats a size.
func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
