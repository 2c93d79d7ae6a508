package main

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/inputs"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study/settling"
	"github.com/swagwrap/swagwrap/internal/word"
)

func (a *app) settleCommand() *cli.Command {
	return &cli.Command{
		Name:      "settle",
		Usage:     "choose how soon an example needs no more members",
		ArgsUsage: "ENSEMBLE DATA...",
		Description: `Most examples need few members. This command runs all members over validation data and chooses a rule that says when an
example is settled. It writes a copy of the ensemble with that rule. Use data that training did not see.

   swagwrap settle -o settled.safetensors ensemble.safetensors val/
   swagwrap score -o predictions.csv settled.safetensors images/

The rule keeps a promise: the mean NLL rises by at most 0.0005 nats, and 99.9 % of the decisions are those of all members.
--within changes it. Without labels, the divergence from the prediction of all members replaces the NLL. The table shows what
other rules save and cost.

   swagwrap settle --within 0.001,99.5% -o settled.safetensors ensemble.safetensors val/`,
		Flags: flags.Join(flags.OutputFlags, []cli.Flag{
			flags.Checked(&cli.StringFlag{Name: "within", Usage: "the promise: `NATS,SHARE` are the largest increase of the NLL and the least share of equal decisions",
				DefaultText: promiseText(settling.Usual)}, parsePromise),
			flags.LabelsFlag,
			&cli.StringFlag{Name: "output-name", Usage: "take the scores from the networks' output `NAME`", DefaultText: "as at fit"},
			flags.SeedFlag("`SEED` of the folds"),
			posteriorFlag,
			flags.BatchSizeFlag(strconv.Itoa(infer.SettledBatchSize) + ", fewer of large ones"),
			flags.ThreadsFlag, flags.MemoryFlag,
		}, flags.DataFlags, flags.RuntimeFlags),
		Action: a.settle,
	}
}

func promiseText(p ensemble.StoppingPromise) string {
	return fmt.Sprintf("%g,%s%%", p.NLL, strconv.FormatFloat(100*p.Decisions, 'g', 6, 64))
}

// leastNats is below what any rule costs.
const leastNats = 1e-9

// parsePromise parses the value of --within.
func parsePromise(s string) (ensemble.StoppingPromise, error) {
	nll, share, ok := strings.Cut(s, ",")
	share, percent := strings.CutSuffix(strings.TrimSpace(share), "%")
	if !ok || !percent {
		return ensemble.StoppingPromise{}, fmt.Errorf("%q: want an increase of the NLL and a share of decisions, such as %s", s, promiseText(settling.Usual))
	}
	p, err := word.Real(nll, leastNats, 1)
	if err != nil {
		return ensemble.StoppingPromise{}, fmt.Errorf("%w nats, such as %s", err, promiseText(settling.Usual))
	}
	of, err := word.Real(share, 1, 100)
	if err != nil {
		return ensemble.StoppingPromise{}, fmt.Errorf("%w %% of decisions, such as %s", err, promiseText(settling.Usual))
	}
	return ensemble.StoppingPromise{NLL: p, Decisions: of / 100}, nil
}

func (a *app) settle(c *cli.Context) error {
	within := settling.Usual
	if s := c.String("within"); s != "" {
		within, _ = parsePromise(s) // checked already
	}
	if err := a.Stdout.Ready(); err != nil {
		return err
	}
	out, err := a.CreateResult(c.String("output"), c.Bool("force"), false)
	if err != nil {
		return err
	}
	defer out.Abort()
	job, data := &scoreJob{}, c.Args().Tail()
	defer job.close()
	if err := a.openScoring(c, job); err != nil {
		return err
	}
	if job.Networks[0].Axis() != 0 {
		return flags.Usagef("score it as it is: all members run", "%s: its networks score pixels or tokens, and a rule for whole examples would not fit all of them", c.Args().First())
	}
	if err := a.Precision(c, job.engine, job.runs(), job.Rounding); err != nil {
		return err
	}
	bar := a.Progress(c, "settle", int64(job.runs()))
	job.engine.Progress = bar.Add
	r, err := (&settling.Study{Scoring: job.Scoring, Promise: within, Data: inputs.Shortened(data), Seed: c.Uint64("seed")}).Run(c.Context, job.engine)
	bar.Done()
	if r != nil && err != nil { // what could be promised
		err = cmp.Or(a.showTables(c, r.Table()), err)
	}
	if err != nil {
		return flags.BadInput(settledHint(err))
	}
	job.Ensemble.Stopping = r.Chosen
	if err := writeEnsemble(job.Ensemble, out, c.Args().First()); err != nil {
		return flags.BadOutput(err)
	}
	if r.Used < r.Of {
		a.Logf(c, "chosen on %s of %s examples, evenly spread, to bound the memory", report.Thousands(r.Used), report.Thousands(r.Of))
	}
	a.Logf(c, "%s: %s", out.Path, settling.Describe(r.Chosen, job.Ensemble.Members()))
	if err := (flags.Together{Print: func() error { return a.showTables(c, r.Table()) }}).Commit(out); err != nil {
		return err
	}
	a.Next(c, inputs.Next(out.Path, kind.Ensemble)...)
	return nil
}

// settledHint adds what to do about an ensemble or a network whose examples cannot skip members.
func settledHint(err error) error {
	const all = "score the ensemble as sample wrote it: all members run"
	switch {
	case errors.Is(err, settling.ErrBroken):
		return flags.BadInput(err, "promise less: --within 0.002,99.5%", all)
	case errors.Is(err, settling.ErrNone):
		return flags.BadInput(err, all)
	case errors.Is(err, settling.ErrTooFew):
		return flags.BadInput(err, "make more members: swagwrap sample --members 30")
	}
	if _, ok := errors.AsType[*infer.PlaceError](err); ok {
		return flags.BadInput(err, "run one example at a time: --batch-size 1")
	}
	return err
}
