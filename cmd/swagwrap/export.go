package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

func (a *app) exportCommand() *cli.Command {
	return &cli.Command{
		Name:      "export",
		Usage:     "write an ensemble, a member or SWA as an ONNX model",
		ArgsUsage: "[POSTERIOR|ENSEMBLE]",
		Description: `Writes an ONNX model that any runtime loads: all members of an ensemble in one, or the checkpoints' own graph with other
weights.

   swagwrap export -o ensemble.onnx ensemble.safetensors
   swagwrap export -o member-007.onnx --member 7 ensemble.safetensors
   swagwrap export -o swa.onnx --bn-data train.npz posterior.safetensors

The model of an ensemble takes what the network takes, any number of examples at a time, and gives what score says of them:
prob, entropy and mutual_information, calibrated where the ensemble is. --storage int8 makes it about a quarter as large at
30 members. docs/deploy.md shows it in Python, JavaScript and servers.

From a posterior comes SWA, with batch-norm statistics recomputed from --bn-data (or, with --bn keep, those of the
last checkpoint, which do not go with averaged weights), or with --member a member drawn there and then. From an ensemble
comes the member --member, with the very weights and statistics that score uses. With --checkpoint FILE the checkpoint's own weights go the same way;
the result is the file itself, byte for byte, which shows that nothing but weights is ever changed. A checkpoint of
PyTorch becomes a model so, and needs no posterior where the exported graph is given:

   swagwrap export -o new.onnx --template model.onnx --template-checkpoint old.pt --checkpoint new.pt

External data goes into a file beside the model, as in the checkpoints.`,
		Flags: flags.Join(flags.OutputFlags, []cli.Flag{
			&cli.IntFlag{Name: "member", Usage: "write member `K` alone, counted from 0", Value: -1, DefaultText: "none"},
		}, ensembleFlags, []cli.Flag{
			&cli.StringFlag{Name: "checkpoint", Usage: "write the weights of the checkpoint `FILE`"},
			posteriorFlag,
			&cli.Uint64Flag{Name: "seed", Usage: "`SEED` of a posterior's members and of the order of the training images", Value: 1},
		}, flags.TemplateFlags, flags.CovarianceFlags, flags.BatchNormFlags, flags.DataFlags, flags.RunFlags),
		Action: a.export,
	}
}

func (a *app) export(c *cli.Context) error {
	if err := flags.Positionals(c); err != nil {
		return err
	}
	path := c.Args().First()
	out := &modelOutput{Env: a.Env, path: c.String("output"), force: c.Bool("force")}
	defer out.abort()
	if err := out.check(); err != nil { // before any work
		return err
	}

	if path == "" {
		return a.exportCheckpoint(c, out)
	}
	if !c.IsSet("member") && flags.KindOf(path) != flags.Posterior {
		return a.exportEnsemble(c, out, path)
	}
	if err := onlyOf(c, ensembleFlags, "one model of an ENSEMBLE"); err != nil {
		return err
	}
	var n *infer.Network
	var parameters, statistics weights.Vector
	var err error
	if c.IsSet("member") && flags.KindOf(path) != flags.Posterior {
		n, parameters, statistics, err = a.member(c, path)
	} else {
		n, parameters, statistics, err = a.fromPosterior(c, path)
	}
	if n != nil {
		defer n.Posterior.Close()
	}
	if err != nil {
		return err
	}
	if err := n.Files().Write(filepath.Base(out.path), out.create, n.Posterior.Layout, parameters, statistics); err != nil {
		return flags.BadInput(err) // files being written have their own error
	}
	if gives, err := n.Gives(); err == nil { // opening a posterior of an older version has warned already
		a.Logf(c, "%s gives %s", out.path, gives)
	}
	return out.commit(nil)
}

// exportCheckpoint writes --checkpoint as a model, without a posterior. The model is the template with the checkpoint's
// weights.
func (a *app) exportCheckpoint(c *cli.Context, out *modelOutput) error {
	for _, flag := range []string{"template", "checkpoint"} {
		if c.String(flag) == "" {
			return flags.Usagef("swagwrap export --help shows an example", "no POSTERIOR or ENSEMBLE: want --template and --checkpoint in its place")
		}
	}
	for _, flag := range []string{"member", "posterior", "seed", "scale", "rank", "diagonal", "antithetic", "bn", "bn-data"} {
		if c.IsSet(flag) {
			return flags.Usagef("", "--%s needs a POSTERIOR or ENSEMBLE", flag)
		}
	}
	if err := onlyOf(c, ensembleFlags, "an ENSEMBLE"); err != nil {
		return err
	}
	source, err := flags.OpenSource(c, nil)
	if err != nil {
		return err
	}
	defer source.Close()
	models, err := source.Open([]string{c.String("checkpoint")})
	if err != nil {
		return err
	}
	defer flags.CloseModels(models)
	if err := checkpoints.Sound(models[0]); err != nil {
		return flags.BadInput(err)
	}
	none := &weights.Layout{}
	t, err := onnxio.NewTemplate(models[0], none)
	if err == nil {
		err = t.Write(filepath.Base(out.path), out.create, none, weights.Slice{}, weights.Slice{})
	}
	if err != nil {
		return flags.BadInput(err) // files being written have their own error
	}
	notes, warnings := source.Remarks()
	for _, note := range notes {
		a.Logf(c, "%s", note)
	}
	for _, w := range warnings {
		a.Warnf(c, "%s", w)
	}
	return out.commit(nil)
}

// modelOutput is a model with its data files, written to one folder.
type modelOutput struct {
	*flags.Env
	path   string
	force  bool
	files  []*flags.Output
	buffer []*bufio.Writer
}

// check fails if the model itself cannot be written.
func (m *modelOutput) check() error {
	out, err := m.CreateResult(m.path, m.force, false)
	if err == nil {
		out.Abort()
	}
	return err
}

// create opens one of the files.
func (m *modelOutput) create(name string) (io.Writer, error) {
	path := m.path
	if name != filepath.Base(m.path) {
		if flags.IsStdout(m.path) {
			return nil, flags.Usagef("name a file: -o model.onnx", "%s: the model's data is in a file beside it, %s, and standard output is one file", m.path, name)
		}
		path = filepath.Join(filepath.Dir(m.path), filepath.FromSlash(name))
	}
	out, err := m.CreateResult(path, m.force, false)
	if err != nil {
		return nil, err
	}
	w := bufio.NewWriterSize(out, 1<<20)
	m.files, m.buffer = append(m.files, out), append(m.buffer, w)
	return w, nil
}

// commit puts the files in their places, the model last, and then calls check, which may be nil. If check fails, the
// files are removed.
func (m *modelOutput) commit(check func() error) error {
	for _, w := range m.buffer {
		if err := w.Flush(); err != nil {
			return flags.BadOutput(err)
		}
	}
	return flags.Together{Check: check}.Commit(m.files...)
}

func (m *modelOutput) abort() {
	for _, out := range m.files {
		out.Abort()
	}
}

// member returns member --member of the ensemble at path. It opens only the member's own posterior.
func (a *app) member(c *cli.Context, path string) (*infer.Network, weights.Vector, weights.Vector, error) {
	e, err := a.openEnsemble(c, path)
	if err != nil {
		return nil, nil, nil, err
	}
	k := c.Int("member")
	if k < 0 || k >= e.Members() {
		return nil, nil, nil, flags.Usagef("members are counted from 0", "--member %d: %s has %s", k, path, report.Plural(e.Members(), "member"))
	}
	if e.Temperature > 0 || e.Vector != nil {
		a.Warnf(c, "%s: its calibration is for the members' average, and is not in the exported member", path)
	}
	component, _ := e.Find(k)
	n, err := a.openComponent(c, e, component)
	if err != nil {
		return nil, nil, nil, err
	}
	parameters, statistics, err := e.Member(c.Context, k, n)
	return n, parameters, statistics, flags.BadInput(err)
}

// drawn returns one member. Its weights are drawn while they are written.
func drawn(ctx context.Context, p *swag.Posterior, opts swag.SampleOptions, member int) (weights.Vector, error) {
	s, err := swag.NewSampler(p, opts)
	if err != nil {
		return nil, err
	}
	return s.Vector(ctx, member), nil
}

// fromPosterior returns SWA, a member, or the weights of --checkpoint.
func (a *app) fromPosterior(c *cli.Context, path string) (*infer.Network, weights.Vector, weights.Vector, error) {
	n, err := a.OpenNetwork(c, path)
	if err != nil {
		return nil, nil, nil, err
	}
	if checkpoint := c.String("checkpoint"); checkpoint != "" {
		source, err := flags.OpenSource(c, n.Template())
		if err != nil {
			return n, nil, nil, err
		}
		n.Posterior.OnClose(source.Close)
		models, err := source.Open([]string{checkpoint})
		if err != nil {
			return n, nil, nil, err
		}
		n.Posterior.OnClose(models[0].Close)
		parameters, statistics, err := n.Vectors(models[0]) // the vectors read from the model
		return n, parameters, statistics, flags.BadInput(err)
	}
	opts, k := swag.SampleOptions{}, 0 // scale 0 is SWA
	if c.IsSet("member") {
		if opts, err = flags.Sampling(c); err != nil {
			return n, nil, nil, err
		}
		k = c.Int("member")
		if k < 0 || k >= swag.MaxMembers {
			return n, nil, nil, flags.Usagef("members are counted from 0", "--member %d: want 0 to %d", k, swag.MaxMembers-1)
		}
	}
	parameters, err := drawn(c.Context, n.Posterior, opts, k)
	if err != nil {
		return n, nil, nil, flags.Usagef("", "%w", err)
	}
	p, err := flags.Preprocessing(c, n.Posterior.Card)
	if err != nil {
		return n, nil, nil, err
	}
	bn, err := a.OpenBatchNorm(c, []*infer.Network{n}, p, true)
	if err != nil {
		return n, nil, nil, err
	}
	engine := &infer.Engine{}
	if n.Recomputes() || bn.Data != nil {
		if engine, err = a.Engine(c); err != nil {
			return n, nil, nil, err
		}
	}
	if err := a.CheckStudy(c, engine, bn, nil, nil, ""); err != nil {
		return n, nil, nil, err
	}
	if err := a.ChooseSampleSize(c, engine, bn, opts); err != nil {
		return n, nil, nil, err
	}
	result, err := batchnorm.Recompute(c.Context, engine, n, parameters, bn.Training)
	if err != nil {
		return n, nil, nil, flags.BadInput(err)
	}
	return n, parameters, weights.Slice(result.Statistics), nil
}

// posteriorFlag gives the new paths of posteriors that have moved since the ensemble was written.
var posteriorFlag = &cli.StringSliceFlag{Name: "posterior", Usage: "a posterior of the ensemble is now `FILE`; may be given several times, in any order"}

// openEnsemble opens an ensemble, and prints warnings about its statistics.
func (a *app) openEnsemble(c *cli.Context, path string) (*ensemble.Ensemble, error) {
	e, err := ensemble.Open(path)
	if err != nil {
		return nil, flags.WrongKind(c, err, path, flags.Ensemble)
	}
	for i, part := range e.Components {
		var members []string
		for _, ck := range part.Checkpoints {
			members = append(members, e.CheckpointPath(ck))
		}
		if err := flags.InputPosterior(e.PosteriorPath(i), members...); err != nil {
			return nil, err
		}
		if r := part.Intake; r != nil {
			for _, w := range r.Warnings {
				a.WarnLong(c, path+": "+r.Data+": "+w)
			}
		}
		if part.BatchNorm == nil {
			continue
		}
		for _, w := range part.BatchNorm.AllWarnings() {
			a.WarnLong(c, path+": batch norm: "+w)
		}
	}
	return e, nil
}

// openComponent opens the network of one of the ensemble's posteriors.
func (a *app) openComponent(c *cli.Context, e *ensemble.Ensemble, i int) (*infer.Network, error) {
	p, err := e.OpenPosterior(i, c.StringSlice("posterior"))
	if err != nil {
		return nil, flags.BadInput(fmt.Errorf("%s: posterior: %w", e.Path, err), "an ensemble needs each posterior it was drawn from: --posterior FILE names one that has moved")
	}
	n, err := a.Network(c, p)
	if err != nil {
		return nil, err
	}
	if err := e.SoundStatistics(i, n); err != nil {
		p.Close()
		return nil, flags.BadInput(err)
	}
	return n, nil
}
