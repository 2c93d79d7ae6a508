package open

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/probe"
	"github.com/swagwrap/swagwrap/internal/infer/store"
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/task"
)

// A Probe is a data set on which networks are about to run.
type Probe struct {
	Networks []*infer.Network
	Data     dataset.Dataset
	// Path is the name that the user gave. Warnings and files show it.
	Path string
	// Training says that the data is training data.
	Training bool
	// Target says that statistics are adapted to the data. They may differ from training.
	Target bool
	// Adapted is the data to which the networks were adapted, or nil. Data may also look like these.
	Adapted *ensemble.Adapted
	// Noise says that the examples are artificial, so only their scores are informative.
	Noise bool
	// Trained is the report of a check of the training data, or nil.
	Trained *probe.Report
	// Earlier has a report for each network about data that was checked before. Whether examples depend on each other is
	// taken from it.
	Earlier []*probe.Report
	// Labelled says that the labels are used, so each must be one that the network can have.
	Labelled bool
	// Scored says that labels are not needed, and left out where they do not fit.
	Scored bool
	// Holds are the properties of the data. A proof that silences rows of the tables of faults goes here.
	Holds probe.Property
	// SkipErrors says that examples may be unreadable.
	SkipErrors bool
	// Preprocess has changes of the model card's preprocessing, or "".
	Preprocess string
	// Held, if not nil, gets the warnings about inputs and scores, which other evidence may refute. Each of its functions prints some.
	Held *[]func(*Looks)
	// Looks, if not nil, gets the checks of scores, which are not done at once. Each waits for the first batch of its network's run.
	Looks *Looks
}

// Looks are checks of scores that wait for the first batch of a run.
type Looks struct {
	of     map[*infer.Graph]func(*infer.FirstScores) error
	warned []string // warnings
}

// Look does the check of a graph: see [infer.Options].
func (l *Looks) Look(g *infer.Graph, first *infer.FirstScores) error {
	look := l.of[g]
	if look == nil {
		return nil
	}
	delete(l.of, g)
	return look(first)
}

// warn prints warnings about data, each once for all networks.
func (l *Looks) warn(a *Opener, path string, warnings []string) {
	for _, w := range warnings {
		if !slices.Contains(l.warned, w) {
			l.warned = append(l.warned, w)
			a.WarnLong(path + ": " + w)
		}
	}
}

// CheckInputs checks a data set, and the scores of each network on it, before the main work of a command. Each command
// calls it once for each data set. It stores decisions about the scores in the networks. It returns a report for each
// network, which the command's files must keep. It prints warnings before all other output.
func (a *Opener) CheckInputs(ctx context.Context, e *infer.Engine, in Probe) ([]*probe.Report, error) {
	var runners probe.Runners
	defer runners.Close()
	return a.checkInputs(ctx, e, &runners, in)
}

func (a *Opener) checkInputs(ctx context.Context, e *infer.Engine, runners *probe.Runners, in Probe) ([]*probe.Report, error) {
	if cut, ok := dataset.CutOf(in.Data); ok {
		a.Logf("%s: %v", in.Path, cut)
	}
	named := &probe.Report{}
	named.Name(in.Data)
	for _, note := range named.Notes {
		a.Logf("%s: %s", in.Path, note)
	}
	sample, err := in.hold(e)
	if err != nil {
		return nil, err
	}
	var reports []*probe.Report
	warned := cmp.Or(in.Looks, &Looks{})
	for i, n := range in.Networks {
		var earlier *probe.Report
		if len(in.Earlier) == len(in.Networks) {
			earlier = in.Earlier[i]
		}
		r, err := a.checkNetwork(ctx, e, runners, n, in, sample, earlier)
		if err != nil {
			return nil, err
		}
		warned.warn(a, in.Path, r.Warnings)
		reports = append(reports, r)
	}
	return reports, nil
}

func (in Probe) hold(e *infer.Engine) (*probe.Sample, error) {
	sample, err := probe.Hold(in.Data, e.Memory().Checked(), e.Threads())
	if err != nil && (sample == nil || !in.SkipErrors) {
		return nil, BadInput(err)
	}
	return sample, nil
}

// checkNetwork runs the checks of one network on a sample of the data.
func (a *Opener) checkNetwork(ctx context.Context, e *infer.Engine, runners *probe.Runners, n *infer.Network, in Probe,
	sample *probe.Sample, earlier *probe.Report) (*probe.Report, error) {
	report := &probe.Report{Data: in.Path, Examples: sample.Len()}
	report.Name(in.Data)
	if sample.Len() == 0 {
		return report, nil
	}
	run, err := runners.Runner(e, n)
	if err != nil {
		return nil, BadInput(err)
	}
	// The checks have this order:
	// 1. inputs (probe/inputs.go): does the data look like training data?
	if !in.Noise {
		if err := checkInputs(ctx, run, in, sample, report); err != nil {
			return nil, err
		}
	}
	// 2. scores (probe/scores.go): logits, probabilities or log-probabilities?
	if in.Looks != nil {
		in.Looks.of[n.Graph] = in.later(ctx, a, e, n, report)
		return report, in.warned(a, run, report, true, run.CheckBatches(ctx, report, earlier, sample, e.Options().BatchSize))
	}
	err = a.checkScores(ctx, run, in, sample, report)
	if in.Training && errors.Is(err, infer.ErrRows) {
		return report, nil // weights are averaged all the same, and score tells
	}
	if err != nil {
		return nil, err
	}
	if t := n.Known(); in.Labelled && t != nil {
		if err := task.CheckLabels(t, in.Data.Labels(), in.Data.Name); err != nil {
			return nil, BadInput(err)
		}
	}
	if t := n.Known(); t != nil && !in.Training && in.Holds&probe.Foreign == 0 && !in.Scored && in.Data.Labels().Classes != nil {
		if err := names.CheckCount(in.Data.ClassNames(), in.Path, t.About().Classes); err != nil {
			return nil, BadInput(&DataError{err})
		}
	}
	if in.Held != nil {
		warnings, found := report.Warnings, report.Found
		report.Warnings, report.Found = nil, nil
		*in.Held = append(*in.Held, func(to *Looks) {
			report.Warnings, report.Found = append(warnings, report.Warnings...), append(found, report.Found...)
			to.warn(a, in.Path, warnings)
		})
	}
	// 3. batches (probe/batch.go): does an example depend on the others in its batch?
	if in.Noise {
		return report, nil
	}
	return report, in.warned(a, run, report, true, run.CheckBatches(ctx, report, earlier, sample, e.Options().BatchSize))
}

// badSize marks the error of a run. Networks for pixels often take only sizes that they can halve.
func badSize(err error) error {
	if err != nil && strings.Contains(err.Error(), "mismatched dimensions") {
		return BadInput(err, "a network that halves pictures several times takes sizes that are multiples of 8, 16 or 32: "+
			setting.Tile.With("512")+", or "+setting.Fit.With(setting.Preprocess.With("input-size=HxW")))
	}
	return BadInput(err)
}

// later returns the check of a network's scores on the first batch of a run. The checkpoint that other checks run is opened
// only if that batch leaves a doubt. Only then a sample is held again: 200 pictures of 224×224 take 115 MiB.
func (in Probe) later(ctx context.Context, a *Opener, e *infer.Engine, n *infer.Network,
	report *probe.Report) func(*infer.FirstScores) error {
	return func(first *infer.FirstScores) error {
		run, err := probe.NewRunner(e, n)
		if err != nil {
			return BadInput(err)
		}
		defer run.Close()
		known, before := n.Form() != "", len(report.Warnings)
		defer func() { in.Looks.warn(a, in.Path, report.Warnings[before:]) }()
		if settled, err := run.CheckFirst(report, first, in.Data); settled {
			return in.warned(a, run, report, known, err)
		}
		sample, err := in.hold(e)
		if err != nil {
			return err
		}
		return a.checkScores(ctx, run, in, sample, report)
	}
}

// checkScores finds the form of the network's scores. An earlier command may have found it on the same data.
func (a *Opener) checkScores(ctx context.Context, run *probe.Runner, in Probe, sample *probe.Sample, report *probe.Report) error {
	var kept *store.Store
	if a.Findings != nil && !in.Noise {
		kept = a.Findings()
	}
	found, keep := run.Known(kept, report, sample)
	if found {
		return nil
	}
	known := run.Form() != ""
	err := run.CheckScores(ctx, report, sample, in.Holds)
	if err == nil {
		keep()
	}
	return in.warned(a, run, report, known, err)
}

// warned prints the form of scores if neither the graph nor the model card has it. It returns the refusal of err with its hints.
func (in Probe) warned(a *Opener, run *probe.Runner, report *probe.Report, known bool, err error) error {
	fault := new(probe.Fault)
	switch {
	case errors.As(err, &fault) && fault.Severity == probe.Question && in.Training:
		return nil // the data to score may have labels
	case errors.As(err, &fault):
		return BadInput(fmt.Errorf("%s: %w", run.Posterior.Path, err), fault.Hints()...)
	case err != nil:
		return badSize(err)
	case report.Scores != nil && !known && report.Scores.By != "default" && in.Held == nil:
		a.Logf("%s: %v (%s)", run.Posterior.Path, report.Scores, setting.Scores)
	}
	return nil
}

// DecideScores finds the form of networks' scores on noise, if nothing is recorded about it and there is no data. Rows of
// probabilities add up to 1 for any input.
func (a *Opener) DecideScores(ctx context.Context, e *infer.Engine, networks []*infer.Network) error {
	for _, n := range networks {
		if !n.Undecided() {
			continue
		}
		fault := new(probe.Fault)
		err := n.MadeUp(ctx, probe.Examples, func(x *infer.Noise) error {
			_, err := a.CheckInputs(ctx, e, Probe{Networks: []*infer.Network{n}, Data: x, Path: "noise", Noise: true})
			if errors.As(err, &fault) { // it is not about the size
				return nil
			}
			return err
		})
		if fault.Cause != "" {
			err = &infer.MadeUpError{Err: fault}
		}
		if errors.As(err, new(*infer.MadeUpError)) {
			return BadInput(fmt.Errorf("%s: %w", n.Posterior.Path, err),
				"give examples: "+setting.Check.With("DATA")+", or say what the scores are: "+
					setting.Scores.With("logits|probabilities|log-probabilities"))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkInputs compares the network's inputs with training. With batch norm, the batch-norm check judges the training
// data.
func checkInputs(ctx context.Context, run *probe.Runner, in Probe, sample *probe.Sample, report *probe.Report) error {
	p, err := Preprocessing(in.Preprocess, run.Posterior.Card)
	if err != nil {
		return err
	}
	how := probe.Inputs{
		Preprocess: p,
		Holds:      in.Holds,
		Training:   in.Training,
		Noted:      in.Target || in.Training && run.Recomputes(),
		Run:        run,
	}
	if in.Preprocess == "" && run.Posterior.Card.Parity.ProvesInputs() {
		how.Holds |= probe.Loaded
	}
	if t := in.Trained; t != nil {
		how.Trained, how.From = t.Inputs, "the training data ("+t.Data+")"
	}
	if in.Adapted != nil {
		how.Adapted = in.Adapted.Probe
	}
	return badSize(report.CheckInputs(ctx, sample, run.Fields(), how))
}

// CheckForeign is like [Opener.CheckInputs], for data from another domain than that of the study. It is called after
// [Opener.CheckStudy]. Such data may differ from training.
func (a *Opener) CheckForeign(ctx context.Context, e *infer.Engine, b *BatchNorm, data dataset.Dataset, path string) error {
	return a.checkAll(ctx, e, b, Probe{Data: data, Path: path, Holds: probe.Foreign})
}

// CheckStudy calls [Opener.CheckInputs] for a study: for training and validation data, if given, and for the data of the study's
// verdict. It stores the reports in b. It is called before [Opener.ChooseSampleSize].
func (a *Opener) CheckStudy(ctx context.Context, e *infer.Engine, b *BatchNorm, validation, data Probe) error {
	return a.checkAll(ctx, e, b, Probe{Data: b.Data, Path: b.Path, Training: true}, data, validation)
}

// checkAll checks data of a study, and adds the reports to those of b. The first reports are about the training data,
// if there is any.
func (a *Opener) checkAll(ctx context.Context, e *infer.Engine, b *BatchNorm, all ...Probe) error {
	var runners probe.Runners
	defer runners.Close()
	for _, in := range all {
		if in.Data == nil {
			continue
		}
		in.Networks, in.Preprocess = b.Findings.Networks, b.preprocess
		if found := b.Findings.Probe; len(found) >= len(in.Networks) {
			in.Earlier = found[:len(in.Networks)]
		}
		if len(b.Findings.Probe) > 0 && b.Data != nil {
			in.Trained = b.Findings.Probe[0]
		}
		reports, err := a.checkInputs(ctx, e, &runners, in)
		if err != nil {
			return err
		}
		b.Findings.Probe = append(b.Findings.Probe, reports...)
	}
	return nil
}
