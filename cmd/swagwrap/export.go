package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

func (a *app) exportCommand() *cli.Command {
	return &cli.Command{
		Name:      "export",
		Usage:     "write SWA or a member as an ONNX model",
		ArgsUsage: "POSTERIOR|ENSEMBLE",
		Description: `Writes an ONNX model that any runtime loads: the checkpoints' own graph, other weights.

   swagwrap export -o swa.onnx --bn-data train.npz posterior.safetensors
   swagwrap export -o member-007.onnx --member 7 ensemble.safetensors

From a posterior comes SWA, with batch-norm statistics recomputed from --bn-data (or, with --stale-bn, those of the
last checkpoint, which do not go with averaged weights). From an ensemble comes the member --member, with
the very weights and statistics that score uses. With --checkpoint FILE the checkpoint's own weights go the same way;
the result is the file itself, byte for byte, which shows that nothing but weights is ever changed.

External data goes into a file beside the model, as in the checkpoints.`,
		Flags: flags(outputFlags, []cli.Flag{
			&cli.IntFlag{Name: "member", Usage: "write member `K` of an ensemble, counted from 0", Value: -1, DefaultText: "none"},
			&cli.BoolFlag{Name: "stale-bn", Usage: "keep the last checkpoint's batch-norm statistics"},
			&cli.StringFlag{Name: "checkpoint", Usage: "write the weights of the checkpoint `FILE`"},
			&cli.StringFlag{Name: "posterior", Usage: "the ensemble's posterior is now `FILE`"},
			&cli.Uint64Flag{Name: "seed", Usage: "`SEED` of the order of the training images", Value: 1},
		}, bnFlags, preprocessFlags, runFlags),
		Action: a.export,
	}
}

func (a *app) export(c *cli.Context) error {
	if err := positionals(c); err != nil {
		return err
	}
	path := c.Args().First()
	out := &modelOutput{path: c.String("output"), force: c.Bool("force"),
		inputs: []string{path, c.String("checkpoint"), c.String("posterior"), c.String("bn-data")}}
	defer out.abort()
	if err := out.check(); err != nil { // before any work
		return err
	}

	var n *ensemble.Network
	var parameters, statistics weights.Vector
	var err error
	if c.IsSet("member") {
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
	if err := n.Graph().Write(filepath.Base(out.path), out.create, n.Posterior.Layout, parameters, statistics); err != nil {
		return badOutput(err)
	}
	return out.commit()
}

// modelOutput is a model with its data files, written to one folder.
type modelOutput struct {
	path   string
	force  bool
	inputs []string
	files  []*output
	buffer []*bufio.Writer
}

// check fails if the model itself cannot be written.
func (m *modelOutput) check() error {
	out, err := createOutput(m.path, m.force, m.inputs...)
	if err == nil {
		out.abort()
	}
	return err
}

// create opens one of the files.
func (m *modelOutput) create(name string) (io.Writer, error) {
	out, err := createOutput(filepath.Join(filepath.Dir(m.path), filepath.FromSlash(name)), m.force, m.inputs...)
	if err != nil {
		return nil, err
	}
	w := bufio.NewWriterSize(out, 1<<20)
	m.files, m.buffer = append(m.files, out), append(m.buffer, w)
	return w, nil
}

// commit puts the files in their places, the model last.
func (m *modelOutput) commit() error {
	for _, w := range m.buffer {
		if err := w.Flush(); err != nil {
			return badOutput(err)
		}
	}
	for _, out := range m.files {
		if err := out.commit(); err != nil {
			return err
		}
	}
	return nil
}

func (m *modelOutput) abort() {
	for _, out := range m.files {
		out.abort()
	}
}

// member returns what makes member --member of the ensemble at path.
func (a *app) member(c *cli.Context, path string) (*ensemble.Network, weights.Vector, weights.Vector, error) {
	e, n, err := a.openEnsemble(c, path)
	if err != nil {
		return nil, nil, nil, err
	}
	k := c.Int("member")
	if k < 0 || k >= e.Sampling.Members {
		return n, nil, nil, usagef("members are counted from 0", "--member %d: %s has %d members", k, path, e.Sampling.Members)
	}
	opts, err := e.Sampling.Options()
	if err != nil {
		return n, nil, nil, badInput(err)
	}
	parameters, err := draw(c.Context, n.Posterior, opts, k)
	return n, parameters, weights.Slice(e.Statistics[k]), badInput(err)
}

// draw returns one member's weights.
func draw(ctx context.Context, p *swag.Posterior, opts swag.SampleOptions, member int) (weights.Slice, error) {
	s, err := swag.NewSampler(p, opts)
	if err != nil {
		return nil, err
	}
	w := make(weights.Slice, p.Len())
	return w, s.Draw(ctx, [][]float32{w}, []int{member})
}

// fromPosterior returns SWA, or the weights of --checkpoint.
func (a *app) fromPosterior(c *cli.Context, path string) (*ensemble.Network, weights.Vector, weights.Vector, error) {
	n, err := a.openNetwork(c, path)
	if err != nil {
		return nil, nil, nil, err
	}
	if checkpoint := c.String("checkpoint"); checkpoint != "" {
		m, err := onnxio.Open(checkpoint)
		if err != nil {
			return n, nil, nil, badInput(err)
		}
		parameters, statistics, err := n.Checkpoint(m) // m stays open: they read from it
		return n, parameters, statistics, badInput(err)
	}
	parameters, err := draw(c.Context, n.Posterior, swag.SampleOptions{}, 0) // scale 0 is SWA
	if err != nil {
		return n, nil, nil, badInput(err)
	}
	if c.Bool("stale-bn") {
		return n, parameters, n.Posterior.Statistics, nil
	}
	p, err := preprocessing(c)
	if err != nil {
		return n, nil, nil, err
	}
	data, err := a.batchNormData(c, n, p)
	if err != nil {
		return n, nil, nil, err
	}
	engine := &ensemble.Engine{}
	if n.HasBatchNorm() {
		if engine, err = a.engine(c); err != nil {
			return n, nil, nil, err
		}
	}
	result, err := engine.Recompute(c.Context, n, parameters, data)
	a.warnBatches(c, result.BetweenShare)
	return n, parameters, weights.Slice(result.Statistics), badInput(err)
}

// openEnsemble opens an ensemble and its posterior's network.
func (a *app) openEnsemble(c *cli.Context, path string) (*ensemble.Ensemble, *ensemble.Network, error) {
	e, err := ensemble.Open(path)
	if err != nil {
		return nil, nil, badInput(err, kindHint(path)...)
	}
	p, err := e.OpenPosterior(c.String("posterior"))
	if err != nil {
		return nil, nil, badInput(fmt.Errorf("%s: posterior: %w", path, err), "an ensemble needs the posterior it was drawn from: --posterior FILE names it")
	}
	n, err := a.networkOf(c, p)
	return e, n, err
}
