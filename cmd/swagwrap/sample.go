package main

import (
	"fmt"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/swag"
)

func (a *app) sampleCommand() *cli.Command {
	return &cli.Command{
		Name:      "sample",
		Usage:     "draw members and recompute their batch-norm statistics",
		ArgsUsage: "POSTERIOR...",
		Description: `Draws members from the posterior, recomputes each one's batch-norm statistics on training images, and writes the
ensemble: a small file that, with the posterior, is all that scoring needs.

   swagwrap sample -o ensemble.safetensors --bn-data train.npz posterior.safetensors

Preprocessing (--mean, --std) is kept in the ensemble, and score applies the same.

From several posteriors, such as those of runs with different seeds, comes a mixture (MultiSWAG): each gives as many of
the members as the others, as far as that goes, and counts as much, or as --weights say. The networks may differ in all
but their input and their classes.

   swagwrap sample -o ensemble.safetensors --bn-data train.npz seed-1.safetensors seed-2.safetensors seed-3.safetensors`,
		Flags: flags(outputFlags, samplingFlags, covarianceFlags, []cli.Flag{
			&cli.StringFlag{Name: "weights", Usage: "weigh the posteriors by `W`, one number for each, separated by commas", DefaultText: "equal"},
		}, bnFlags, preprocessFlags, runFlags),
		Action: a.sample,
	}
}

func (a *app) sample(c *cli.Context) error {
	if err := positionals(c); err != nil {
		return err
	}
	e, err := plan(c)
	if err != nil {
		return err
	}
	paths := c.Args().Slice()
	out, err := createOutput(e.Path, c.Bool("force"), append(paths, c.String("bn-data"))...)
	if err != nil {
		return err
	}
	defer out.abort()
	networks, err := a.openNetworks(c, e, paths)
	defer closeNetworks(networks)
	if err != nil {
		return err
	}
	bn, err := a.batchNormData(c, networks, e.Preprocess)
	if err != nil {
		return err
	}
	if err := a.recomputeMembers(c, bn, e); err != nil {
		return err
	}
	if err := e.Write(out, producer()); err != nil {
		return badOutput(err)
	}
	if err := out.commit(); err != nil {
		return err
	}
	for i, part := range e.Components {
		share := ""
		if len(e.Components) > 1 {
			share = fmt.Sprintf(" with weight %.3g", part.Weight)
		}
		a.logf(c, "%s: %s of %s%s (%s, scale %g, seed %d)", e.Path, plural(part.Members, "member"), paths[i], share, e.Sampling.Covariance, e.Sampling.Scale, e.Sampling.Seed)
	}
	return nil
}

// plan reads from the flags what the ensemble shall be.
func plan(c *cli.Context) (*ensemble.Ensemble, error) {
	count, err := members(c)
	if err != nil {
		return nil, err
	}
	ratio, err := numbers(c, "weights", "give one number for each posterior: --weights 0.5,0.3,0.2")
	if err != nil {
		return nil, err
	}
	opts, err := sampling(c)
	if err != nil {
		return nil, err
	}
	e := &ensemble.Ensemble{Path: c.String("output"), Sampling: ensemble.Sampling{Seed: opts.Seed, Scale: opts.Scale,
		Covariance: opts.Covariance.String(), Rank: opts.Rank, Antithetic: opts.Antithetic}}
	if e.Components, err = ensemble.Mix(c.NArg(), count, ratio, e.Sampling.Antithetic); err != nil {
		return nil, usagef("", "%w", err)
	}
	e.Preprocess, err = preprocessing(c)
	return e, err
}

// openNetworks opens the posteriors that the ensemble's members are to be drawn
// from, and checks that they can be, and go together.
func (a *app) openNetworks(c *cli.Context, e *ensemble.Ensemble, paths []string) ([]*ensemble.Network, error) {
	opts, err := e.Sampling.Options()
	if err != nil {
		return nil, err
	}
	var networks []*ensemble.Network
	for i, path := range paths {
		n, err := a.openNetwork(c, path)
		if err != nil {
			return networks, err
		}
		networks = append(networks, n)
		if _, err := swag.NewSampler(n.Posterior, opts); err != nil {
			return networks, usagef("", "%w", err)
		}
		e.Components[i].Posterior = ensemble.Reference{Path: relativeTo(e.Path, path), ID: n.Posterior.ID}
	}
	return networks, badInput(ensemble.Align(networks))
}

func closeNetworks(networks []*ensemble.Network) {
	for _, n := range networks {
		n.Posterior.Close()
	}
}

// recomputeMembers fills in the members' statistics.
func (a *app) recomputeMembers(c *cli.Context, bn *batchNorm, e *ensemble.Ensemble) error {
	engine, err := a.engine(c)
	if err != nil {
		return err
	}
	opts, err := e.Sampling.Options()
	if err != nil {
		return err
	}
	if err := a.settle(c, engine, bn, opts); err != nil {
		return err
	}
	images := 0
	for i, n := range bn.networks {
		e.Components[i].BatchNorm = bn.records[i]
		if n.Recomputes() {
			images += e.Components[i].Members * bn.Images()
		}
	}
	bar := a.progress(c, "members", int64(images))
	engine.Progress = bar.add
	err = e.EachMember(c.Context, bn.networks, c.Int("threads"), func(m ensemble.Member) error {
		fresh, err := engine.Recompute(c.Context, m.Network, m.Parameters, bn.BatchNormData)
		if err != nil {
			return fmt.Errorf("member %d: %w", m.Number, err)
		}
		part := &e.Components[m.Component]
		part.Statistics = append(part.Statistics, fresh.Statistics)
		return nil
	})
	bar.done()
	return badInput(err)
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
