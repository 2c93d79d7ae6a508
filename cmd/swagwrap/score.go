package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/weights"
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
			&cli.StringFlag{Name: "posterior", Usage: "the ensemble's posterior is now `FILE`"},
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
		out, err := createOutput(c.String("output"), c.Bool("force"), path, dataPath, c.String("labels"), c.String("posterior"))
		if err != nil {
			return err
		}
		defer out.abort()
		w, commit = out, out.commit
	}
	e, n, err := a.openEnsemble(c, path)
	if err != nil {
		return err
	}
	defer n.Posterior.Close()
	data, err := openData(dataPath, c.String("labels"), n, e.Preprocess)
	if err != nil {
		return err
	}
	sums, err := a.predictMembers(c, e, n, data)
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

func (a *app) predictMembers(c *cli.Context, e *ensemble.Ensemble, n *ensemble.Network, data dataset.Dataset) (*ensemble.Sums, error) {
	engine, err := a.engine(c)
	if err != nil {
		return nil, err
	}
	opts, err := e.Sampling.Options()
	if err != nil {
		return nil, badInput(err)
	}
	bar := a.progress(c, "score", int64(e.Sampling.Members)*int64(data.Len()))
	defer bar.done()
	engine.Progress = bar.add
	sums := &ensemble.Sums{}
	err = ensemble.EachMember(c.Context, n.Posterior, opts, e.Sampling.Members, func(k int, parameters weights.Slice) error {
		model, err := n.Model(parameters, weights.Slice(e.Statistics[k]))
		if err != nil {
			return err
		}
		return engine.Predict(c.Context, fmt.Sprintf("%s: member %d", e.Path, k), model, data, sums)
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
