package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/report"
)

func (a *app) scoreCommand() *cli.Command {
	return &cli.Command{
		Name:      "score",
		Usage:     "predict with an ensemble",
		ArgsUsage: "ENSEMBLE DATA",
		Description: `Runs every member over the data (.npz .npy IDX), averages their probabilities, and writes one row per example: the
prediction, its confidence, and how uncertain it is (entropies in nats; mutual information is the part that
comes from members disagreeing).

   swagwrap score -o predictions.csv ensemble.safetensors test.npz

The output's extension chooses the format: .csv .jsonl .npz; - is CSV on standard output.`,
		Flags: flags(outputFlags, []cli.Flag{
			&cli.BoolFlag{Name: "probs", Usage: "write all probabilities too (.npz always has them)"},
			&cli.StringFlag{Name: "labels", Usage: "read labels from `FILE`"},
			posteriorFlag,
		}, runFlags),
		Action: a.score,
	}
}

func (a *app) score(c *cli.Context) error {
	if err := positionals(c); err != nil {
		return err
	}
	path, dataPath := c.Args().Get(0), c.Args().Get(1)
	format, err := ensemble.Format(c.String("output"))
	if err != nil {
		return usagef("say where the predictions go: -o predictions.csv, or -o - for standard output", "%w", err)
	}
	var w io.Writer = a.stdout
	commit := func() error { return nil }
	if c.String("output") != "-" {
		out, err := createOutput(c.String("output"), c.Bool("force"), append(c.StringSlice("posterior"), path, dataPath, c.String("labels"))...)
		if err != nil {
			return err
		}
		defer out.abort()
		w, commit = out, out.commit
	}
	e, err := openEnsemble(path)
	if err != nil {
		return err
	}
	networks, err := a.components(c, e)
	defer closeNetworks(networks)
	if err != nil {
		return err
	}
	data, err := openData([]string{dataPath}, c.String("labels"), networks[0], e.Preprocess)
	if err != nil {
		return err
	}
	sums, err := a.predictMembers(c, e, networks, data)
	if err != nil {
		return err
	}
	if err := ensemble.NewPredictions(data, sums).Write(w, format, c.Bool("probs")); err != nil {
		return badOutput(err)
	}
	if err := commit(); err != nil {
		return err
	}
	return a.describeScore(c, data, sums)
}

// components opens the posteriors of the ensemble.
func (a *app) components(c *cli.Context, e *ensemble.Ensemble) ([]*ensemble.Network, error) {
	var networks []*ensemble.Network
	for i := range e.Components {
		n, err := a.openComponent(c, e, i)
		if err != nil {
			return networks, err
		}
		networks = append(networks, n)
	}
	return networks, badInput(ensemble.Align(networks))
}

func (a *app) predictMembers(c *cli.Context, e *ensemble.Ensemble, networks []*ensemble.Network, data dataset.Dataset) (*ensemble.Sums, error) {
	engine, err := a.engine(c)
	if err != nil {
		return nil, err
	}
	bar := a.progress(c, "score", int64(e.Members())*int64(data.Len()))
	defer bar.done()
	engine.Progress = bar.add
	sums := &ensemble.Sums{}
	err = e.EachMember(c.Context, networks, c.Int("threads"), func(m ensemble.Member) error {
		model, err := m.Network.Model(m.Parameters, m.Statistics)
		if err != nil {
			return err
		}
		return engine.Predict(c.Context, fmt.Sprintf("%s: member %d of %s", e.Path, m.Number, m.Network.Posterior.Path), model, data, m.Weight, sums)
	})
	return sums, badInput(err)
}

// describeScore says how good the predictions are, where labels tell.
func (a *app) describeScore(c *cli.Context, data dataset.Dataset, sums *ensemble.Sums) error {
	a.logf(c, "%s: %s examples, %d members", c.String("output"), report.Thousands(data.Len()), sums.Members)
	if data.Labels() == nil {
		return nil
	}
	p, err := calibrate.NewPredictions(sums.Mean(), sums.Classes, data.Labels())
	if err != nil {
		return badInput(fmt.Errorf("%s: %w", c.Args().Get(1), err))
	}
	m := calibrate.Evaluate(p, calibrate.EvaluateOptions{})
	a.logf(c, "accuracy %s, NLL %s nats, ECE %s, Brier %s", report.Percent(m.Accuracy, 1), report.Fixed(m.NLL, 4), report.Fixed(m.ECE, 4), report.Fixed(m.Brier, 4))
	for _, w := range m.Warnings {
		a.warnf(c, "%v", w)
	}
	return nil
}
