package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/file"

	"github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/infer/rounding"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/tally"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

func sampleCommand(a *app) *command {
	o := &sampleOptions{app: a}
	return &command{
		name:  "sample",
		usage: "draw members and recompute their batch-norm statistics",
		args:  "POSTERIOR...",
		description: `Draws members from the posterior, and recomputes the batch-norm statistics of each on training data. Writes the ensemble, a
small file. Scoring needs only this file and the posterior.

   swagwrap sample -o ensemble.safetensors --bn-data train.npz posterior.safetensors

--method says what the members are: draws of SWAG or of SWAG-Diag, SWA alone, which is one network, your network as its last
checkpoint has it (last), or all checkpoints (iterates). Checkpoints have their own batch-norm statistics, and must then stay
where they are. compare shows which method is worth its cost. --settings FILE takes what compare --tune has chosen.

Members come in antithetic pairs, mirror images of each other at the mean. So fewer have the same error. --members auto finds their
number on examples without labels: that whose average is as near to that of very many members as 30 independent ones.

   swagwrap sample -o ensemble.safetensors --members auto --data test.npz --bn-data train.npz posterior.safetensors

   swagwrap sample -o swa.safetensors --method swa --bn-data train.npz posterior.safetensors
   swagwrap sample -o last.safetensors --method last --temperature 1.3 posterior.safetensors
   swagwrap sample -o iterates.safetensors --method iterates posterior.safetensors

The ensemble keeps the model card with preprocessing and class names, and score uses it.

--adapt TARGET adapts the batch-norm statistics to data that differ from training, without labels. score --adapt none goes back.

   swagwrap sample -o adapted.safetensors --bn-data train.npz --adapt new-pictures posterior.safetensors

Several posteriors, such as those of runs with different seeds, make a mixture (MultiSWAG). Each gives about as many members as
the others, and has the same weight, or that of --weights. The networks must have the same input and classes.

   swagwrap sample -o ensemble.safetensors --bn-data train.npz seed-1.safetensors seed-2.safetensors seed-3.safetensors

Several jobs can share the work in a folder. The same command without --part then writes the ensemble.

   swagwrap sample --store kept --part 3/10 -o ensemble.safetensors --bn-data train.npz posterior.safetensors`,
		Table: o.rows(),
		run: func(ctx context.Context, args []string) error {
			if o.posteriors = args; len(o.folders) > 0 && len(o.folders) != len(args) {
				return console.Usagef("give --checkpoints once for each posterior, in their order",
					"%d folders of checkpoints for %d posteriors", len(o.folders), len(args))
			}
			return o.sample(ctx)
		},
	}
}

// sampleOptions are the values of sample's command line.
type sampleOptions struct {
	*app
	flags.Table
	posteriors []string
	output     flags.OutputOptions
	making     memberOptions
	settings   chosenSettings
	examples   string   // on which the number of members is found, or ""
	folders    []string // where the posteriors' checkpoints are now, or nil
	ratio      []float64
	kept       kept
	network    open.NetworkOptions
	data       open.DataOptions
	batchNorm  open.BatchNormOptions
	adapt      open.AdaptOptions
	runtime    open.RuntimeOptions
}

func (o *sampleOptions) rows() flags.Table {
	m := &o.making
	o.Table = flags.Join(flags.Output(&o.output), flags.Table{
		flags.Text(flags.Row{
			Name:    "method",
			Usage:   "make the members by `M`: " + strings.Join(ensemble.Methods, "|"),
			Default: ensemble.SWAG,
			Not:     "settings",
			Then:    o.complete,
		}, &m.method),
		flags.Text(flags.Row{
			Name:  "settings",
			Usage: "take the method, the scale and so on from `FILE`, which compare --tune wrote",
		}, &o.settings.file),
		flags.Real(flags.Row{
			Name:   "temperature",
			Usage:  "divide the logarithms of the averaged probabilities by `T`, as calibrate would",
			Preset: "1",
			Not:    "settings",
		}, &m.temperature, regression.MinFactor, regression.MaxFactor),
		flags.Noise(flags.Row{
			Usage: "of a regression, if fit did not say it: the standard deviation `STD` of targets about their means; once for each " +
				"target, or once for all",
			Not: "settings",
		}, &m.noise),
		threshold(&m.threshold, "0.5"),
	}, flags.OutputNameAndTask(&o.network), flags.Table{
		flags.Texts(flags.Row{
			Name: "checkpoints",
			Usage: "with --method last or iterates: the posterior's checkpoints are now in `FOLDER`; with several posteriors, once " +
				"for each",
			Not: "settings",
		}, &o.folders),
	}, o.kept.rows("copies"), flags.Sampling(flags.Row{
		Default: flags.Usual,
		Not:     "settings swa last",
	}, &m.members, "on the examples of --data", &m.seed), flags.Covariance(&m.draws), flags.Table{
		flags.Text(flags.Row{
			Name:  "data",
			Usage: "with --members auto: find their number on the examples in `FILE`, which need no labels",
			Not:   "settings swa last iterates",
		}, &o.examples),
		flags.Parsed(flags.Row{
			Name:   "weights",
			Usage:  "weigh the posteriors by `W`, one number for each, separated by commas",
			Preset: "equal",
			Hint:   "give one number for each posterior: --weights 0.5,0.3,0.2",
		}, &o.ratio, flags.Numbers(leastWeight, mostWeight)),
	}, flags.BatchNorm(&o.batchNorm, &o.network), flags.Adapt(&o.adapt, "", nil), flags.Data(&o.data, &o.network),
		flags.Run(&o.runtime, &o.data))
	return o.Table
}

// complete completes the options, and refuses those that contradict each other.
func (o *sampleOptions) complete() (err error) {
	if o.settings, err = o.chosen(); err == nil {
		err = cmp.Or(o.kept.check(o.Table), flags.RefuseNoTarget(o.adapt))
	}
	switch auto := o.making.members == 0; {
	case err != nil:
	case auto && o.settings.Checkpoints():
		err = console.Usagef("say how many, or leave it out for all", "--members auto is not for --method %s", o.making.method)
	case auto && o.kept.part.Of > 0:
		err = console.Usagef("say how many: --members 30", "--members auto is not for a part: it needs the results of all parts")
	case auto != (o.examples != ""):
		err = console.Usagef("--members auto --data FILE, with examples that need no labels",
			"--members auto and --data: one does nothing without the other")
	}
	return err
}

func (o *sampleOptions) sample(ctx context.Context) error {
	settings := &o.settings
	if err := settings.read(); err != nil {
		return err
	}
	o.batchNorm.Seed = settings.Seed // it also sets the order of batch-norm images
	e, err := o.plan()
	if err != nil {
		return err
	}
	paths, part := o.posteriors, o.kept.part.Of > 0
	if settings.Checkpoints() {
		if err := o.Refuse("copies", "nothing is computed for checkpoints", "--* is not for --method "+settings.Method()); err != nil {
			return err
		}
	}
	out, err := o.CreateResult(e.Path, o.output.Force || part, false)
	if err != nil {
		return err
	}
	defer out.Abort()
	networks, err := o.openNetworks(ctx, e)
	defer open.CloseNetworks(networks)
	if err != nil {
		return err
	}
	if err := settings.fits(networks); err != nil {
		return err
	}
	e.Card = networks[0].Posterior.Card
	var target *open.Adaptation
	if o.adapt.Data != "" { // before anything is computed
		if target, err = open.OpenAdaptation(o.Opener, o.adapt, o.data, networks, settings.Seed); err != nil {
			return err
		}
	}
	if o.network.Output != "" {
		e.Card.Output = o.network.Output
	}
	if settings.Temperature > 0 {
		if err := open.RefuseScoreless(networks[0], o.posteriors[0]); err != nil {
			return err
		}
	}
	if err := settings.setTemperature(e); err != nil {
		return err
	}
	if err := setNoise(e, networks[0], settings.NoiseStd); err != nil {
		return err
	}
	if err := open.ThresholdFits(settings.Threshold > 0, e.Card.Task); err != nil {
		return err
	}
	if o.holdLast(networks) {
		e.Sampling = ensemble.FromSampling(swag.SampleOptions{Seed: settings.Seed}, 0).Draw
	}
	if e.Sampling.Covariance == ensemble.Iterates {
		err = o.addCheckpoints(ctx, networks, e)
	} else {
		err = o.draw(ctx, networks, e)
	}
	if err != nil || part {
		return err
	}
	if err := o.adaptMembers(ctx, target, networks, e); err != nil {
		return err
	}
	noteScores(e, networks)
	if err := e.Write(out, console.Producer()); err != nil {
		return console.BadOutput(err)
	}
	if err := out.Commit(); err != nil {
		return err
	}
	for i, part := range e.Components {
		share := ""
		if len(e.Components) > 1 {
			share = fmt.Sprintf(" with weight %.3g", part.Weight)
		}
		o.Logf("%s: %s of %s%s (%s)", e.Path, report.Plural(part.Members, "member"), paths[i], share, settings.describe(e))
	}
	next := console.NextOfEnsemble(e)
	if !networks[0].Scoreless() && !networks[0].Large() { // for pixels and tokens there is no warning
		next = append(next, console.Shell("swagwrap", "calibrate", "-o", "calibrated.safetensors", "--ensemble", e.Path, "val.csv")+
			"  # val.csv: score --probs of validation data. After that score warns if other data differ")
	}
	o.Next(next...)
	return nil
}

// Weights of posteriors are relative to each other.
const leastWeight, mostWeight = 1e-6, 1e6

// plan returns the ensemble to make, without its members.
func (o sampleOptions) plan() (e *ensemble.Ensemble, err error) {
	s, count := o.settings.Settings, cmp.Or(o.settings.Members, len(o.posteriors))
	e = &ensemble.Ensemble{Path: o.output.Path, Sampling: s.Stored(), Threshold: s.Threshold}
	if err := e.Mix(len(o.posteriors), count, o.ratio); err != nil {
		return nil, console.Usagef("", "%w", err)
	}
	if s.Method() == ensemble.Iterates && s.Members == 0 {
		for i := range e.Components {
			e.Components[i].Members = 0 // all; their number is not known yet
		}
	}
	return e, nil
}

// holdLast reports whether the members are the last checkpoints, and the posteriors hold them: the mean of one checkpoint is that
// checkpoint. Then its file is not needed, and the ensemble is the same as with SWA.
func (o sampleOptions) holdLast(networks []*infer.Network) bool {
	several := func(n *infer.Network) bool { return !n.Posterior.Single() }
	return o.settings.Method() == ensemble.Last && !slices.ContainsFunc(networks, several)
}

// openNetworks opens the posteriors of the ensemble's members. It checks that members can be drawn from them, and that
// the networks match.
func (o *sampleOptions) openNetworks(ctx context.Context, e *ensemble.Ensemble) ([]*infer.Network, error) {
	var networks []*infer.Network
	for i, path := range o.posteriors {
		n, err := o.OpenNetwork(ctx, o.network, path)
		if err != nil {
			return networks, err
		}
		networks = append(networks, n)
		if e.Sampling.Covariance != ensemble.Iterates {
			how, err := e.Sampling.Options()
			if err == nil {
				_, err = open.Sampler(n.Posterior, how)
			}
			if err != nil {
				return networks, err
			}
		}
		e.Components[i].Posterior = ensemble.Reference{Path: file.RelativeTo(e.Path, path), ID: n.Posterior.ID}
	}
	return networks, console.BadInput(infer.Align(networks))
}

// setTemperature stores the temperature in the ensemble, if there is one. It refuses one at the bounds of a fit, which only shows
// a direction.
func (s chosenSettings) setTemperature(e *ensemble.Ensemble) error {
	if s.Temperature == 0 {
		return nil
	}
	e.Calibration = task.WithNumber(e.Card.Task, s.Temperature)
	why := e.Calibration.Outside()
	switch {
	case why == "":
		return nil
	case s.file != "":
		return console.BadInput(fmt.Errorf("%s: temperature: %s", s.file, why),
			"choose anew, on more labelled examples: swagwrap compare --tune FILE.json --val VAL POSTERIOR TEST")
	}
	return console.Usagef("fit it on more labelled examples: swagwrap compare --val VAL POSTERIOR TEST", "--temperature: %s", why)
}

// setNoise stores the noise in the ensemble, if it was given.
func setNoise(e *ensemble.Ensemble, n *infer.Network, std []float64) error {
	if std == nil {
		return nil
	}
	err := e.SetNoise(std)
	if err == nil {
		err = n.Accepts(e.Card)
	}
	if err != nil {
		return console.Usagef("", "--noise-std: %w", err)
	}
	return nil
}

// addCheckpoints makes the checkpoints the members.
func (o *sampleOptions) addCheckpoints(ctx context.Context, networks []*infer.Network, e *ensemble.Ensemble) error {
	folders := o.folders
	if len(folders) == 0 {
		folders = make([]string, len(networks))
	}
	if o.batchNorm.Data != "" {
		o.Logf("checkpoints have batch-norm statistics of their own: --bn-data only serves to check that other data looks like that of " +
			"training")
		if _, _, err := o.openTraining(ctx, networks, e, false); err != nil {
			return err
		}
	}
	record := func(path string) string { return file.RelativeTo(e.Path, path) }
	for i, n := range networks {
		at := func(ck swag.Checkpoint) string { return infer.CheckpointPath(n.Posterior, ck, folders[i]) }
		if err := e.AddCheckpoints(ctx, i, n, at, record); err != nil {
			return open.WrongCheckpoints(err)
		}
	}
	return nil
}

// openTraining opens the training data, and checks it. The ensemble keeps the findings, and score compares other data with
// them. recompute is as for [open.Opener.OpenBatchNorm].
func (o *sampleOptions) openTraining(ctx context.Context, networks []*infer.Network, e *ensemble.Ensemble,
	recompute bool) (bn *open.BatchNorm, run sharedRun, err error) {
	if bn, err = o.OpenBatchNorm(o.batchNorm, o.data, networks, recompute); err != nil {
		return nil, run, err
	}
	engine, err := o.Engine(o.runtime)
	if err != nil {
		return nil, run, err
	}
	if run, err = o.openStore(o.kept, engine); err != nil {
		return nil, run, err
	}
	e.Name(networks[0].Names)
	err = o.CheckStudy(ctx, engine, bn, open.Probe{}, open.Probe{})
	for i, r := range bn.Findings.Probe {
		e.Components[i].Probe = r
	}
	return bn, run, err
}

// adaptMembers adapts the statistics of the members to the target, if there is one.
func (o *sampleOptions) adaptMembers(ctx context.Context, target *open.Adaptation, networks []*infer.Network,
	e *ensemble.Ensemble) error {
	if target == nil {
		return nil
	}
	engine, err := o.Engine(o.runtime)
	if err != nil {
		return err
	}
	run, err := o.openStore(o.kept, engine)
	if err != nil {
		return err
	}
	var usual dataset.Dataset
	if o.batchNorm.Data != "" {
		bn, err := o.OpenBatchNorm(o.batchNorm, o.data, networks, false)
		if err != nil {
			return err
		}
		usual = bn.Data
	}
	return target.Adapt(ctx, run.Run, e, networks, usual, o.data.Preprocess)
}

// noteScores stores the known meaning of the networks' scores in the ensemble.
func noteScores(e *ensemble.Ensemble, networks []*infer.Network) {
	for i, n := range networks {
		e.Components[i].Scores = string(n.Form())
		if r := e.Components[i].Probe; r != nil && r.Scores != nil {
			e.Components[i].Scores = string(r.Scores.Form)
		}
	}
}

// draw computes the batch-norm statistics of all members. With --part it computes those of some members, for the store.
func (o *sampleOptions) draw(ctx context.Context, networks []*infer.Network, e *ensemble.Ensemble) error {
	bn, run, err := o.openTraining(ctx, networks, e, true)
	if err != nil {
		return err
	}
	how, err := e.Sampling.Options()
	if err != nil {
		return err
	}
	members := o.settings.Settings
	if o.settings.file != "" { // a comparison chose the settings, with the images that all its methods use
		members = ensemble.Settings{Draw: ensemble.Draw{Seed: members.Seed, Covariance: ensemble.SWAG}}
	}
	if err := o.ChooseSampleSize(ctx, o.runtime, &run.Run, bn,
		batchnorm.SampleSizing{Members: open.Deciding(members), Drawn: &how}); err != nil {
		return err
	}
	images := 0
	for i, n := range bn.Findings.Networks {
		of := &e.Components[i]
		of.BatchNorm = bn.Findings.Records[i]
		var change *rounding.Change
		run.Engine, change, err = o.checkPasses(ctx, o.runtime, batchnorm.Draws{
			Run:       run.Run,
			Network:   n,
			BatchNorm: bn.Training,
			How:       how,
			Count:     of.Members,
		})
		if err != nil {
			return err
		}
		if change != nil {
			of.BatchNorm.Rounding = change
		}
		for range of.Members {
			of.Statistics = append(of.Statistics, make([]float32, n.Posterior.Layout.Len(weights.Statistic)))
		}
		if n.Recomputes() {
			images += of.Members * bn.Images()
		}
	}
	number, err := o.openNumber(bn.Findings.Networks, e)
	if err != nil {
		return err
	}
	bar := o.studyBar(ctx, "sample", run.shard, int64(images))
	run.Progress = bar.Add
	err = e.EachMember(ctx, run.Memory(), bn.Findings.Networks, o.runtime.Threads, func(m ensemble.Member) error {
		if !run.shard.Mine() {
			return nil
		}
		i, place := e.Find(m.Number)
		fresh, err := batchnorm.Recompute(ctx, run.Run, m.Network, m.Parameters, bn.Training.ForMember(m.Network, how, m.Number))
		if err != nil {
			return fmt.Errorf("member %d: %w", m.Number, err)
		}
		e.Components[i].Statistics[place] = fresh.Statistics
		return number.add(ctx, run.Run, m, fresh.Statistics)
	})
	bar.Done()
	if err != nil {
		return console.BadInput(err)
	}
	o.tellStore(o.kept.folder, run.Store)
	return nil
}

// checkPasses measures and prints the effect of a GPU on batch-norm passes, and if asked that of a precision below float32. It returns
// the engine to use, and nil if there is no effect. All jobs measure the same. A GPU that disagrees with the CPU is
// an error, also with --provider auto: it chose how many examples the passes see.
func (a *app) checkPasses(ctx context.Context, o open.RuntimeOptions, d batchnorm.Draws) (*infer.Engine, *rounding.Change, error) {
	if !o.Measure && !d.Run.Options().Passes.GPU() {
		return d.Run.Engine, nil, nil
	}
	r, err := d.MeasurePasses(ctx)
	if cpu, ok := open.Instead(ctx, a.Opener, o, d.Run.Engine, err); ok {
		return cpu, nil, nil
	}
	if err != nil || r == nil {
		return d.Run.Engine, nil, console.BadInput(err)
	}
	if r.Objection() == "" {
		if cpu, ok := a.OnCPU(o, d.Run.Engine, r); ok {
			return cpu, nil, nil
		}
	}
	return d.Run.Engine, r, a.Rounding(r)
}

// openNumber is the number of members of each component that --members auto finds. nil stands for one that is given.
type openNumber struct {
	data   dataset.Dataset
	enough []ensemble.Enough
}

// openNumber opens the examples of --data. Only antithetic members are counted, and none where nothing decides.
func (o *sampleOptions) openNumber(networks []*infer.Network, e *ensemble.Ensemble) (*openNumber, error) {
	if o.examples == "" || !e.Sampling.Antithetic {
		return nil, nil
	}
	data, err := open.OpenUnlabelled(o.Opener, o.data, o.examples, networks)
	if err != nil {
		return nil, err
	}
	judged := ensemble.Judged(data, networks[0].Large())
	if judged == nil {
		o.Logf("--members auto: a text does not tell how many are needed, so %d are made", e.Members())
		return nil, nil
	}
	number := &openNumber{data: dataset.Picked(data, judged)}
	for range e.Components {
		number.enough = append(number.enough, ensemble.Enough{Of: ensemble.DefaultMembers / len(e.Components)})
	}
	return number, nil
}

// add adds a member, and ends its component if there are enough.
func (n *openNumber) add(ctx context.Context, run infer.Run, m ensemble.Member, statistics weights.Slice) error {
	if n == nil {
		return nil
	}
	model, err := m.Network.Model(fmt.Sprintf("member %d", m.Number), m.Parameters, statistics)
	if err != nil {
		return err
	}
	var sums infer.Sums
	if err := run.Quiet().Predict(tally.For(ctx, tally.Check("number of members")), model, n.data, &sums); err != nil {
		return err
	}
	of := &n.enough[m.Component]
	if of.Add(&sums); of.Reached() {
		return ensemble.ErrEnough
	}
	return nil
}
