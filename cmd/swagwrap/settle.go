package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study/settling"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/word"
)

func settleCommand(a *app) *command {
	o := &settleOptions{scored: scored{app: a}, within: settling.Usual}
	return &command{
		name:  "settle",
		usage: "choose how soon an example needs no more members",
		args:  "ENSEMBLE DATA...",
		description: `Most examples need few members. This command runs all members over validation data and chooses a rule that says when an
example is settled. It writes a copy of the ensemble with that rule. Use data that training did not see.

   swagwrap settle -o settled.safetensors ensemble.safetensors val/
   swagwrap score -o predictions.csv settled.safetensors images/

The rule keeps a guarantee: with 95 % confidence, the NLL is expected to rise by at most 0.0005 nats. 99.9 % of the decisions are
expected to be those of all members. --within changes both. "Expected" means: if all members are right about their
probabilities. Labels are not needed, and choose nothing. If there are labels, the output also bounds the rise of their NLL.

   swagwrap settle --within 0.001,99.5% -o settled.safetensors ensemble.safetensors val/`,
		Table: o.rows(),
		run: func(ctx context.Context, args []string) error {
			o.ensemble, o.data = args[0], args[1:]
			return o.settle(ctx)
		},
	}
}

// settleOptions are the values of settle's command line.
type settleOptions struct {
	scored
	output flags.OutputOptions
	within ensemble.StoppingGuarantee
	seed   uint64
}

func (o *settleOptions) rows() flags.Table {
	return flags.Join(flags.Output(&o.output), flags.Table{
		flags.Parsed(flags.Row{
			Name: "within",
			Usage: "the guarantee: `NATS,SHARE` are the largest expected rise of the NLL and the least expected share of equal " +
				"decisions",
			Preset: guaranteeText(settling.Usual),
		}, &o.within, parseGuarantee),
		flags.Labels(&o.reading.Labels),
		flags.OutputName(&o.members.Network),
		flags.Seed(flags.Row{Usage: "`SEED` of the folds"}, &o.seed),
		flags.Posterior(&o.members),
		flags.BatchSize(&o.runtime.BatchSize, strconv.Itoa(infer.SettledBatchSize)+", fewer of large ones"),
		flags.Threads(&o.runtime.Threads),
		flags.Memory(&o.runtime.Memory, &o.reading.Memory),
	}, flags.Data(&o.reading, &o.members.Network), flags.Runtime(&o.runtime))
}

func guaranteeText(p ensemble.StoppingGuarantee) string {
	return fmt.Sprintf("%g,%s%%", p.NLL, strconv.FormatFloat(100*p.Decisions, 'g', 6, 64))
}

// leastNats is below what any rule costs.
const leastNats = 1e-9

// parseGuarantee parses the value of --within.
func parseGuarantee(s string) (ensemble.StoppingGuarantee, error) {
	nll, share, ok := strings.Cut(s, ",")
	share, percent := strings.CutSuffix(strings.TrimSpace(share), "%")
	if !ok || !percent {
		return ensemble.StoppingGuarantee{}, fmt.Errorf("%q: want an increase of the NLL and a share of decisions, such as %s", s,
			guaranteeText(settling.Usual))
	}
	p, err := word.Real(nll, leastNats, 1)
	if err != nil {
		return ensemble.StoppingGuarantee{}, fmt.Errorf("%w nats, such as %s", err, guaranteeText(settling.Usual))
	}
	of, err := word.Real(share, 1, 100)
	if err != nil {
		return ensemble.StoppingGuarantee{}, fmt.Errorf("%w %% of decisions, such as %s", err, guaranteeText(settling.Usual))
	}
	return ensemble.StoppingGuarantee{NLL: p, Decisions: of / 100}, nil
}

func (o *settleOptions) settle(ctx context.Context) error {
	if err := o.Stdout.Ready(); err != nil {
		return err
	}
	out, err := o.CreateResult(o.output.Path, o.output.Force, false)
	if err != nil {
		return err
	}
	defer out.Abort()
	job := &scoreJob{scoreOptions: &scoreOptions{scored: o.scored}}
	defer job.close()
	if job.Ensemble, err = o.ReadEnsemble(job.ensemble); err != nil {
		return err
	}
	if !job.Ensemble.Guarantee.Empty() {
		return console.BadInput(fmt.Errorf("%s: guarantees something of predictions by all its members", job.ensemble),
			"settle first, and choose the guarantee on predictions of the settled ensemble")
	}
	if task.Scoreless(job.Ensemble.Card.Task) {
		return console.Usagef(task.NoScoresHint(), "%w", task.NoScores(job.ensemble))
	}
	if err := job.openScoring(ctx); err != nil {
		return err
	}
	if job.Networks[0].Large() {
		return console.Usagef("score it as it is: all members run",
			"%s: its networks score pixels or tokens, and a rule for whole examples would not fit all of them", o.ensemble)
	}
	if job.engine, _, err = o.Precision(ctx, o.runtime, job.engine, job.runs(), job.Rounding); err != nil {
		return err
	}
	bar := o.Progress(ctx, "settle", int64(job.runs()))
	r, err := (&settling.Study{
		Scoring:   job.Scoring,
		Guarantee: o.within,
		Data:      open.Shortened(o.data),
		Seed:      o.seed,
	}).Run(ctx, infer.Run{Engine: job.engine, Progress: bar.Add})
	bar.Done()
	if r != nil && err != nil { // what could be guaranteed
		err = cmp.Or(o.showTables(r.Section().Table()), err)
	}
	if err != nil {
		return console.BadInput(settledHint(err))
	}
	job.Ensemble.Stopping = r.Chosen
	if err := writeEnsemble(job.Ensemble, out, o.ensemble); err != nil {
		return console.BadOutput(err)
	}
	if r.Used < r.Of {
		o.Logf("chosen on %s of %s examples, evenly spread, to bound the memory", report.Thousands(r.Used), report.Thousands(r.Of))
	}
	o.Logf("%s: %s", out.Path, settling.Describe(r.Chosen, job.Ensemble.Members()))
	if err := (console.Together{Print: func() error { return o.showTables(r.Section().Table()) }}).Commit(out); err != nil {
		return err
	}
	o.Next(console.Next(out.Path, kind.Ensemble)...)
	return nil
}

// settledHint adds what to do about an ensemble or a network whose examples cannot skip members.
func settledHint(err error) error {
	const all = "score the ensemble as sample wrote it: all members run"
	switch {
	case errors.Is(err, settling.ErrBroken):
		return console.BadInput(err, "guarantee less: --within 0.002,99.5%", all)
	case errors.Is(err, settling.ErrNone):
		return console.BadInput(err, all)
	case errors.Is(err, settling.ErrTooFew):
		return console.BadInput(err, "make more members: swagwrap sample --members 30 POSTERIOR")
	}
	if _, ok := errors.AsType[*infer.PlaceError](err); ok {
		return console.BadInput(err, "run one example at a time: --batch-size 1")
	}
	return err
}
