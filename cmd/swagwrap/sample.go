package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/report"
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

The model card, with preprocessing and class names, is kept in the ensemble, and score goes by it.

From several posteriors, such as those of runs with different seeds, comes a mixture (MultiSWAG): each gives as many of
the members as the others, as far as that goes, and counts as much, or as --weights say. The networks may differ in all
but their input and their classes.

   swagwrap sample -o ensemble.safetensors --bn-data train.npz seed-1.safetensors seed-2.safetensors seed-3.safetensors`,
		Flags: flags.Join(flags.OutputFlags, flags.SamplingFlags, flags.CovarianceFlags, []cli.Flag{
			&cli.StringFlag{Name: "weights", Usage: "weigh the posteriors by `W`, one number for each, separated by commas", DefaultText: "equal"},
		}, flags.BatchNormFlags, []cli.Flag{flags.PreprocessFlag}, flags.RunFlags),
		Action: a.sample,
	}
}

func (a *app) sample(c *cli.Context) error {
	if err := flags.Positionals(c); err != nil {
		return err
	}
	e, err := plan(c)
	if err != nil {
		return err
	}
	paths := c.Args().Slice()
	out, err := a.CreateResult(e.Path, c.Bool("force"), false)
	if err != nil {
		return err
	}
	defer out.Abort()
	networks, err := a.openNetworks(c, e, paths)
	defer closeNetworks(networks)
	if err != nil {
		return err
	}
	e.Card = networks[0].Posterior.Card
	pre, err := flags.Preprocessing(c, e.Card)
	if err != nil {
		return err
	}
	bn, err := a.OpenBatchNorm(c, networks, pre)
	if err != nil {
		return err
	}
	if err := a.recomputeMembers(c, bn, e); err != nil {
		return err
	}
	if err := e.Write(out, flags.Producer()); err != nil {
		return flags.BadOutput(err)
	}
	if err := out.Commit(); err != nil {
		return err
	}
	for i, part := range e.Components {
		share := ""
		if len(e.Components) > 1 {
			share = fmt.Sprintf(" with weight %.3g", part.Weight)
		}
		a.Logf(c, "%s: %s of %s%s (%s, scale %g, seed %d)", e.Path, report.Plural(part.Members, "member"), paths[i], share, e.Sampling.Covariance, e.Sampling.Scale, e.Sampling.Seed)
	}
	return nil
}

// plan reads from the flags what the ensemble shall be.
func plan(c *cli.Context) (*ensemble.Ensemble, error) {
	count, err := flags.Members(c)
	if err != nil {
		return nil, err
	}
	ratio, err := flags.Numbers(c, "weights", "give one number for each posterior: --weights 0.5,0.3,0.2")
	if err != nil {
		return nil, err
	}
	opts, err := flags.Sampling(c)
	if err != nil {
		return nil, err
	}
	e := &ensemble.Ensemble{Path: c.String("output"), Sampling: ensemble.Sampling{Seed: opts.Seed, Scale: opts.Scale,
		Covariance: opts.Covariance.String(), Rank: opts.Rank, Antithetic: opts.Antithetic}}
	if e.Components, err = ensemble.Mix(c.NArg(), count, ratio, e.Sampling.Antithetic); err != nil {
		return nil, flags.Usagef("", "%w", err)
	}
	return e, nil
}

// openNetworks opens the posteriors that the ensemble's members are to be drawn
// from, and checks that they can be, and go together.
func (a *app) openNetworks(c *cli.Context, e *ensemble.Ensemble, paths []string) ([]*infer.Network, error) {
	opts, err := e.Sampling.Options()
	if err != nil {
		return nil, err
	}
	var networks []*infer.Network
	for i, path := range paths {
		n, err := a.OpenNetwork(c, path)
		if err != nil {
			return networks, err
		}
		networks = append(networks, n)
		if _, err := swag.NewSampler(n.Posterior, opts); err != nil {
			return networks, flags.Usagef("", "%w", err)
		}
		e.Components[i].Posterior = ensemble.Reference{Path: flags.RelativeTo(e.Path, path), ID: n.Posterior.ID}
	}
	return networks, flags.BadInput(infer.Align(networks))
}

func closeNetworks(networks []*infer.Network) {
	for _, n := range networks {
		n.Posterior.Close()
	}
}

// recomputeMembers fills in the members' statistics.
func (a *app) recomputeMembers(c *cli.Context, bn *flags.BatchNorm, e *ensemble.Ensemble) error {
	engine, err := a.Engine(c)
	if err != nil {
		return err
	}
	opts, err := e.Sampling.Options()
	if err != nil {
		return err
	}
	if err := a.Settle(c, engine, bn, opts); err != nil {
		return err
	}
	images := 0
	for i, n := range bn.Networks {
		e.Components[i].BatchNorm = bn.Records[i]
		if n.Recomputes() {
			images += e.Components[i].Members * bn.Images()
		}
	}
	bar := a.Progress(c, "members", int64(images))
	engine.Progress = bar.Add
	err = e.EachMember(c.Context, bn.Networks, c.Int("threads"), func(m ensemble.Member) error {
		fresh, err := engine.Recompute(c.Context, m.Network, m.Parameters, bn.BatchNormData)
		if err != nil {
			return fmt.Errorf("member %d: %w", m.Number, err)
		}
		part := &e.Components[m.Component]
		part.Statistics = append(part.Statistics, fresh.Statistics)
		return nil
	})
	bar.Done()
	return flags.BadInput(err)
}
