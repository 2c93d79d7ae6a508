package open

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/infer/probe"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
)

// Study holds the common inputs of the studies, with their files open.
type Study struct {
	baseline.Inputs
	Validation dataset.Dataset // nil if there is none
	BatchNorm  *BatchNorm
	Measured   string // numbers of the user's own evaluation, with those of the last checkpoint, or ""

	options StudyOptions
	source  *Source // of External
}

// OpenStudy opens the posteriors and everything else except the data to predict. withMethods says that the methods of
// baselines run, not SWAG alone. The caller closes the inputs.
func (a *Opener) OpenStudy(ctx context.Context, o StudyOptions, posteriors []string, withMethods bool) (*Study, error) {
	l := &Study{BatchNorm: &BatchNorm{}, options: o, Inputs: baseline.Inputs{
		Seed:       o.BatchNorm.Seed,
		Scale:      o.Scale,
		Members:    o.Members,
		Antithetic: o.Antithetic,
		Orthogonal: o.Orthogonal,
	}}
	if err := a.open(ctx, l, posteriors, withMethods); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func (a *Opener) open(ctx context.Context, l *Study, posteriors []string, withMethods bool) (err error) {
	o := l.options
	for _, path := range posteriors {
		n, err := a.OpenNetwork(ctx, o.Network, path)
		if err != nil {
			return err
		}
		l.Runs = append(l.Runs, baseline.Run{Network: n})
		if err := RefuseScoreless(n, path); err != nil {
			return err
		}
	}
	networks := l.Networks()
	if err := infer.Align(networks); err != nil {
		return BadInput(err)
	}
	if o.NeedsOutcomes != "" && networks[0].Large() {
		return Usagef("leave it out", "%s: is not for networks that score pixels or tokens, whose outcomes do not fit into memory",
			o.NeedsOutcomes)
	}
	recompute := true
	if !withMethods || o.Tune != "" {
		if err := RefuseSingle(networks[0].Posterior); err != nil {
			return err
		}
	}
	if withMethods {
		if recompute, err = a.openMethods(ctx, l); err != nil {
			return err
		}
	}
	if l.BatchNorm, err = a.OpenBatchNorm(o.BatchNorm, o.Data, networks, recompute); err != nil {
		return err
	}
	l.Inputs.BatchNorm = l.BatchNorm.Training
	if o.Validation != "" {
		if l.Validation, err = a.OpenOf(l, o.Validation, o.Data.Labels.Validation, true); err != nil {
			return err
		}
	}
	for _, m := range l.Asked {
		later := m == baseline.SWAGTuned && (o.Tune != "" || l.ChoosesScale()) || baseline.Adapts(m) // known after all inputs are open
		if what := l.Missing(m); what != "" && !later && !o.All {
			a.Warnf("%s: left out, it needs %s", setting.Methods.With(m), what)
		}
	}
	return nil
}

// ChoosesScale reports whether validation data choose the scale of SWAG. They do unless the user gave it, or has all settings
// tuned, or named methods without the one that it is for. The outcomes must fit into memory.
func (l *Study) ChoosesScale() bool {
	o, n := l.options, l.Runs[0].Network
	wanted := o.Methods == nil || slices.Contains(o.Methods, baseline.SWAGTuned)
	return l.Validation != nil && wanted && !o.GivenScale && o.Tune == "" && !n.Large() && l.Missing(baseline.SWAG) == ""
}

// ChoosesWindow reports whether validation data choose which checkpoints are averaged. They do if the posterior averages all its
// checkpoints alike, these are at hand, and the user named no methods. The outcomes must fit into memory.
func (l *Study) ChoosesWindow() bool {
	o, r := l.options, l.Runs[0]
	p := r.Network.Posterior
	return l.Validation != nil && o.Methods == nil && len(l.Runs) == 1 && r.Checkpoints != nil &&
		!r.Network.Large() && p.GivenMean == nil && p.Theta0 == nil && p.Options.Power == 0
}

// openMethods opens the checkpoints of the posteriors, if they can be found, and the other iterates. It reports
// whether a chosen method recomputes batch-norm statistics.
func (a *Opener) openMethods(ctx context.Context, l *Study) (recompute bool, err error) {
	o := l.options
	if l.Asked = o.Methods; l.Asked != nil {
		if len(o.Iterates) > 0 && !slices.Contains(l.Asked, baseline.Iterates) {
			l.Asked = append(l.Asked, baseline.Iterates)
		}
	}
	folders := o.Checkpoints
	if len(folders) > 0 && len(folders) != len(l.Runs) {
		return false, Usagef("give "+setting.Checkpoints.String()+" once for each posterior, in their order",
			"%d folders of checkpoints for %s", len(folders), report.Plural(len(l.Runs), "posterior"))
	}
	for i := range l.Runs {
		n, folder := l.Runs[i].Network, ""
		if len(folders) > 0 {
			folder = folders[i]
		}
		if l.Runs[i].Checkpoints, err = a.findCheckpoints(ctx, n, folder); err != nil {
			return false, err
		}
	}
	if l.External, err = a.openExternal(l); err != nil {
		return false, err
	}
	methods, others := l.Recomputing()
	if l.Asked == nil || o.BatchNorm.Data != "" || o.Tune != "" || !slices.ContainsFunc(l.Networks(), (*infer.Network).Recomputes) {
		return true, nil
	}
	if len(methods) > 0 && others {
		return false, Usagef(giveTraining()+", or leave these methods out",
			"%s: the network has batch norm, and there is no %s. Of %s these recompute its statistics: %s",
			l.Runs[0].Network.Posterior.Path, setting.BNData, setting.Methods, strings.Join(methods, ", "))
	}
	return !others, nil
}

// Close closes posteriors and checkpoints.
func (l *Study) Close() {
	for _, r := range l.Runs {
		r.Network.Posterior.Close()
	}
	for _, s := range l.External {
		CloseModels(s.Models)
	}
	l.source.Close()
}

// findCheckpoints opens the files that the posterior was fitted to. They are in the given folder, or where they were.
// If some are missing, it prints a warning and returns none.
func (a *Opener) findCheckpoints(ctx context.Context, n *infer.Network, folder string) ([]*onnxio.Model, error) {
	p := n.Posterior
	if p.Single() {
		return nil, nil // it holds all of the checkpoint
	}
	path := func(ck swag.Checkpoint) string { return infer.CheckpointPath(p, ck, folder) }
	for _, ck := range p.Checkpoints {
		if _, err := os.Stat(path(ck)); err != nil {
			a.Warnf("%s: not found, so the SGD rows are left out (%s)", path(ck), setting.Checkpoints.With("FOLDER"))
			return nil, nil
		}
	}
	models, err := n.OpenAll(ctx, p.Checkpoints, path)
	return models, WrongCheckpoints(err)
}

// openExternal opens the checkpoints of other iterates.
func (a *Opener) openExternal(l *Study) (external []baseline.External, err error) {
	if l.source, err = a.OpenSource(l.options.Source, l.Runs[0].Network.Template()); err != nil {
		return nil, err
	}
	for _, spec := range l.options.Iterates {
		name, pattern, ok := strings.Cut(spec, "=")
		if !ok || name == "" || pattern == "" {
			return external, Usagef("give a name and the files: "+setting.Iterates.With("'SGLD=sgld/*.onnx'"), "%s %q: want NAME=FILES",
				setting.Iterates, spec)
		}
		if slices.ContainsFunc(external, func(s baseline.External) bool { return s.Name == name }) {
			return external, Usagef("", "%s: two are called %q", setting.Iterates, name)
		}
		paths, err := filepath.Glob(pattern)
		if err != nil {
			return external, Usagef("", "%s %q: %w", setting.Iterates, spec, err)
		}
		if len(paths) == 0 {
			return external, BadInput(fmt.Errorf("%s: no such file", pattern))
		}
		slices.Sort(paths)
		models, err := l.source.Open(paths)
		if err != nil {
			return external, err
		}
		external = append(external, baseline.External{
			Name:      fmt.Sprintf("%s, %s", name, report.Plural(len(models), "iterate")),
			Models:    models,
			Recompute: l.options.All,
		})
	}
	return external, nil
}

// Prepare checks the data of a study, and chooses the batch-norm data of its networks. Members are drawn as how says.
func (a *Opener) Prepare(ctx context.Context, l *Study, run *infer.Run, how swag.SampleOptions, data Probe) error {
	var held []func(*Looks)
	if l.options.Expect.Numbers != nil {
		data.Held = &held
	}
	if err := a.CheckStudy(ctx, run.Engine, l.BatchNorm, Probe{
		Data:     l.Validation,
		Path:     l.options.Validation,
		Labelled: true,
	}, data); err != nil {
		return err
	}
	l.BatchNorm.Findings.Twice = study.Twice(l.options.Validation, l.Validation, study.Other{Path: data.Path, Data: data.Data}, study.Other{
		Path:     l.BatchNorm.Path,
		Data:     l.BatchNorm.Data,
		Training: true,
	})
	for _, w := range l.BatchNorm.Findings.Twice {
		a.WarnLong(w)
	}
	err := l.expect(ctx, a, *run, data)
	if err != nil {
		return err
	}
	err = a.ChooseSampleSize(ctx, l.options.Runtime, run, l.BatchNorm, batchnorm.SampleSizing{Members: how})
	l.Inputs.BatchNorm = l.BatchNorm.Training
	if err != nil {
		return err
	}
	return l.refuseMixed()
}

// expect holds the last checkpoint against the numbers of the user's own evaluation. If they agree, they prove how the data is read and
// what the scores are, and checks of these warn of nothing.
func (l *Study) expect(ctx context.Context, a *Opener, run infer.Run, data Probe) (err error) {
	in := Measured{Network: l.Runs[0].Network, Data: data.Data, Path: data.Path, Train: l.BatchNorm.Training}
	if folders := l.options.Checkpoints; len(folders) > 0 {
		in.Folder = folders[0]
	}
	equal := false
	if l.Measured, equal, err = l.options.Expect.Expect(ctx, a, run, in); data.Held == nil {
		return err
	}
	to := &Looks{}
	for _, print := range *data.Held {
		if !equal {
			print(to)
		}
	}
	return err
}

// refuseMixed refuses statistics and temperatures of different data. The data for batch norm are not those of training, as the
// checkpoints show, and the validation data are not like them.
func (l *Study) refuseMixed() error {
	b := l.BatchNorm
	if l.Validation == nil || b.Data == nil {
		return nil
	}
	off := slices.ContainsFunc(b.Findings.Records, func(r *batchnorm.Record) bool { return r.Mismatch() != nil })
	wrong := func(f *probe.Fault) bool { return f.Severity == probe.Wrong }
	for _, r := range b.Findings.Probe {
		if off && r.Data == l.options.Validation && slices.ContainsFunc(r.Found, wrong) {
			return BadInput(fmt.Errorf("%s: is not what the network saw in training, and %s is not like it: temperatures would be "+
				"fitted to %s with batch-norm statistics of other data, and hold for neither", b.Path, r.Data, r.Data),
				setting.BNData.With("TRAINING")+" "+setting.Adapt.With(b.Path)+" adapts to data that differ, with the temperature of "+
					setting.Val.With(r.Data))
		}
	}
	return nil
}

// OpenOf opens examples of a study with a cache, so each is decoded once. If labelled is true, they must have labels.
func (a *Opener) OpenOf(l *Study, path, labels string, labelled bool) (dataset.Dataset, error) {
	if labelled {
		d, err := a.OpenLabelled(l.options.Data, path, labels, l.Runs[0].Network)
		if err == nil {
			infer.Learn(l.Networks(), d)
		}
		return d, err
	}
	n := l.Runs[0].Network
	opts, err := ReadAs(l.options.Data, labels, n)
	if err != nil {
		return nil, err
	}
	if n.Traits().Labels != target.Classes { // other images may have labels of another kind
		return a.openCached(path, l.options.Data, unlabelled(opts), l.Networks())
	}
	return a.openUnasked(path, l.options.Data, opts, l.Networks())
}

// Provenance lists the posteriors and the data that the numbers depend on.
func (l *Study) Provenance(runtime string, predicted ...study.Used) []report.Fact {
	used := []study.Used{{As: "validation", Data: l.Validation}, {As: "training", Data: l.BatchNorm.Data}}
	return study.Provenance(runtime, l.Networks(), append(used, predicted...)...)
}

// Draws says how the members of SWAG are drawn.
func (l *Study) Draws() swag.SampleOptions { return l.Inputs.Draws(swag.LowRankPlusDiagonal, l.Scale) }
