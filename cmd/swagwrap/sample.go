package main

import (
	"fmt"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

func (a *app) sampleCommand() *cli.Command {
	return &cli.Command{
		Name:      "sample",
		Usage:     "draw members and recompute their batch-norm statistics",
		ArgsUsage: "POSTERIOR",
		Description: `Draws members from the posterior, recomputes each one's batch-norm statistics on training images, and writes the
ensemble: a small file that, with the posterior, is all that scoring needs.

   swagwrap sample -o ensemble.safetensors --bn-data train.npz posterior.safetensors

Preprocessing (--mean, --std) is kept in the ensemble, and score applies the same.`,
		Flags: flags(outputFlags, samplingFlags, []cli.Flag{
			&cli.Float64Flag{Name: "scale", Usage: "multiply the covariance by `ALPHA`; 0 gives SWA itself", DefaultText: "0.5, or 1 with --diagonal"},
			&cli.BoolFlag{Name: "diagonal", Usage: "leave the low-rank part out (SWAG-Diagonal)"},
		}, bnFlags, preprocessFlags, runFlags),
		Action: a.sample,
	}
}

func (a *app) sample(c *cli.Context) error {
	if err := positionals(c); err != nil {
		return err
	}
	count, err := members(c)
	if err != nil {
		return err
	}
	path := c.Args().First()
	out, err := createOutput(c.String("output"), c.Bool("force"), path, c.String("bn-data"))
	if err != nil {
		return err
	}
	defer out.abort()
	n, err := a.openNetwork(c, path)
	if err != nil {
		return err
	}
	defer n.Posterior.Close()

	opts := swag.SampleOptions{Seed: c.Uint64("seed"), Workers: c.Int("threads")}
	if c.Bool("diagonal") {
		opts.Covariance = swag.Diagonal
	}
	opts.Scale = opts.Covariance.DefaultScale()
	if c.IsSet("scale") {
		opts.Scale = c.Float64("scale")
	}
	if _, err := swag.NewSampler(n.Posterior, opts); err != nil {
		return usagef("", "%w", err)
	}
	e := &ensemble.Ensemble{
		Path:      c.String("output"),
		Posterior: ensemble.Reference{Path: relativeTo(c.String("output"), path), ID: n.Posterior.ID},
		Sampling:  ensemble.Sampling{Members: count, Seed: opts.Seed, Scale: opts.Scale, Covariance: opts.Covariance.String()},
	}
	if e.Preprocess, err = preprocessing(c); err != nil {
		return err
	}
	data, err := a.batchNormData(c, n, e.Preprocess)
	if err != nil {
		return err
	}
	if err := a.recomputeMembers(c, n, opts, data, e); err != nil {
		return err
	}
	if err := e.Write(out, producer()); err != nil {
		return badOutput(err)
	}
	if err := out.commit(); err != nil {
		return err
	}
	a.logf(c, "%s: %d members of %s (%s, scale %g, seed %d)", e.Path, count, path, e.Sampling.Covariance, opts.Scale, opts.Seed)
	return nil
}

// recomputeMembers fills in the members' statistics.
func (a *app) recomputeMembers(c *cli.Context, n *ensemble.Network, opts swag.SampleOptions, data ensemble.BatchNormData, e *ensemble.Ensemble) error {
	engine, err := a.engine(c)
	if err != nil {
		return err
	}
	bar := a.progress(c, "batch norm", int64(e.Sampling.Members)*int64(data.Images()))
	defer bar.done()
	engine.Progress = bar.add
	var last bnupdate.Result
	err = ensemble.EachMember(c.Context, n.Posterior, opts, e.Sampling.Members, func(k int, parameters weights.Slice) error {
		last, err = engine.Recompute(c.Context, n, parameters, data)
		if err != nil {
			return fmt.Errorf("member %d: %w", k, err)
		}
		e.Statistics = append(e.Statistics, last.Statistics)
		return nil
	})
	if err != nil {
		return badInput(err)
	}
	a.warnBatches(c, last.BetweenShare)
	if n.HasBatchNorm() {
		e.BatchNorm = &ensemble.BatchNorm{Sources: data.Data.Sources(), Images: last.Images, BatchSize: last.BatchSize,
			Rule: data.Rule.String(), Shuffle: data.Order.Shuffle, Seed: data.Order.Seed}
	}
	return nil
}

// relativeTo returns path as seen from the folder of file, so that both can
// move together.
func relativeTo(file, path string) string {
	dir, err1 := filepath.Abs(filepath.Dir(file))
	abs, err2 := filepath.Abs(path)
	rel, err3 := filepath.Rel(dir, abs)
	if err1 != nil || err2 != nil || err3 != nil {
		return path
	}
	return filepath.ToSlash(rel)
}
