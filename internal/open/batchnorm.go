package open

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/swag"
)

// BatchNorm is the data for recomputing statistics.
type BatchNorm struct {
	batchnorm.Training
	// Findings say where the statistics come from, and what the checks of data found. ChooseSampleSize sets the records.
	Findings   study.BatchNorm
	Path       string // of the data, or ""
	auto       bool
	augment    string // the augmentation of images
	preprocess string // how the data is read: see DataOptions
}

// OpenBatchNorm opens training data for the networks. Data for one of them suits all. recompute says that statistics are
// recomputed, if a network has batch norm. Otherwise the data is not required. It only serves to compare other data with that of training.
func (a *Opener) OpenBatchNorm(o BatchNormOptions, d DataOptions, networks []*infer.Network, recompute bool) (*BatchNorm, error) {
	b := &BatchNorm{Findings: study.BatchNorm{Networks: networks}, Path: o.Data, preprocess: d.Preprocess}
	path, samples := o.Data, o.Samples
	i := slices.IndexFunc(networks, (*infer.Network).Recomputes)
	switch {
	case (i < 0 || !recompute) && path == "":
		return b, nil
	case i < 0 || !recompute:
		if recompute {
			a.Logf("there are no batch-norm statistics to recompute: %s only serves to check that other data looks like that of training",
				setting.BNData)
		}
		return b, a.openTrainingData(o, d, b, networks[0])
	case path == "":
		return b, Usagef(giveTraining()+". Averaged or sampled weights do not go with any checkpoint's statistics",
			"%s: the network has batch norm, and there is no %s", networks[i].Posterior.Path, setting.BNData)
	}
	if err := a.openTrainingData(o, d, b, networks[i]); err != nil {
		return b, err
	}
	b.Order = dataset.Order{Shuffle: !samples.Ordered, Seed: o.Seed, Limit: samples.of(b.Data.Len())}
	b.auto = samples == Samples{} && !networks[i].Scoreless() // predictions choose the number
	return b, nil
}

// giveTraining is the hint for networks whose statistics are to be recomputed.
func giveTraining() string {
	return "give what the network saw in training: " + setting.BNData.With("PATH")
}

// Deciding returns the draws that decide how many examples the members of an ensemble see, and SWA. They are those of SWAG,
// whatever the members are, as in a comparison: so all commands give a network the same statistics. Members of another
// rank decide for themselves, and those of a scale that no comparison chooses.
func Deciding(members ensemble.Settings) swag.SampleOptions {
	if how, err := members.Options(); err == nil && members.Method() != ensemble.SWA && (!usualScale(how) || how.Rank != 0) {
		return how
	}
	return swag.SampleOptions{Seed: members.Seed, Scale: swag.LowRankPlusDiagonal.DefaultScale()}
}

// usualScale reports whether a comparison may use the scale.
func usualScale(how swag.SampleOptions) bool {
	return how.Scale == how.Covariance.DefaultScale() ||
		how.Covariance == swag.LowRankPlusDiagonal && slices.Contains(ensemble.Scales, how.Scale)
}

// ChooseSampleSize compares the data with the statistics in the checkpoints. If no number of examples is given, it also chooses
// how many examples SWA and the members see.
// The sizing says how members are drawn, and what follows. The run has the engine that the provider auto takes in the end.
func (a *Opener) ChooseSampleSize(ctx context.Context, o RuntimeOptions, run *infer.Run, b *BatchNorm,
	sizing batchnorm.SampleSizing) error {
	err := chooseSampleSize(ctx, a, *run, b, sizing)
	if cpu, ok := Instead(ctx, a, o, run.Engine, err); ok {
		run.Engine = cpu
		err = chooseSampleSize(ctx, a, *run, b, sizing)
	}
	return BadInput(err)
}

func chooseSampleSize(ctx context.Context, a *Opener, run infer.Run, b *BatchNorm, sizing batchnorm.SampleSizing) error {
	sizing.Auto, sizing.Resize = b.auto, func(int64) {}
	sizing.Seen = func(r *batchnorm.Record, warnings []string) {
		what := b.Findings.Whose(slices.Index(b.Findings.Records, r))
		a.describeBetween(what, r)
		for _, w := range warnings {
			a.WarnLong(what + ": " + w)
		}
	}
	if a.Findings != nil && b.Data != nil {
		sizing.Findings = a.Findings()
	}
	run.Progress = func(int) {}
	done := func() {}
	if b.Data != nil {
		bar := a.Progress(ctx, "batch norm", int64(b.Images())) // at first the largest possible number
		run.Progress, sizing.Resize, done = bar.Add, bar.Resize, bar.Done
	}
	data, records, err := batchnorm.ChooseSampleSize(ctx, run, b.Findings.Networks, b.Training, sizing)
	done()
	if err != nil {
		return err
	}
	b.Training, b.Findings.Records = data, records
	for i, r := range records {
		if r == nil {
			continue
		}
		r.Augment, r.AsSeen = b.augment, r.Examples > 0 && dataset.AsSeen(b.Data)
		a.describeBatchNorm(b, i)
	}
	for _, w := range b.Findings.Recomputed() {
		a.WarnLong(w)
	}
	return nil
}

// describeBatchNorm prints the origin of a network's statistics.
func (a *Opener) describeBatchNorm(b *BatchNorm, i int) {
	r, what := b.Findings.Records[i], b.Findings.Whose(i)
	if n := len(r.Kept); n > 0 {
		a.Logf("%s: %s", what, study.Kept(r))
	}
	if r.Examples == 0 {
		return
	}
	all := report.Plural(b.Data.Len(), r.Unit)
	loss := ""
	if r.Loss != nil {
		loss = fmt.Sprintf(" (infinitely many would lower the NLL by %s at most)", report.Fixed(*r.Loss, 5))
	}
	switch {
	case r.MemberExamples > 0 && r.MemberExamples < r.Examples:
		a.Logf("%s: SWA sees %s of %s, and each member %s of them, corrected by what SWA's statistics from these lack%s", what,
			report.Thousands(r.Examples), all, report.Thousands(r.MemberExamples), loss)
	case r.Examples < b.Data.Len():
		a.Logf("%s: %s of %s%s", what, report.Thousands(r.Examples), all, loss)
	default:
		a.Debugf("%s: all %s%s", what, all, loss)
	}
	if r.Loss != nil { // else the first pass will show it
		a.describeBetween(what, r)
	}
	switch {
	case r.Check == nil: // the record has a warning
	case len(r.Check.Layers) == 0:
		a.Logf("%s: all checkpoints store equal statistics, so this data cannot be checked", what)
	case len(r.Check.Off()) == 0:
		first := r.Check.Layers[0]
		a.Debugf("%s: this data gives the statistics that the last %s store (first layer: means within %s standard deviations, "+
			"variances within a factor of %s)", what, report.Plural(r.Check.Checkpoints, "checkpoint"),
			fmt.Sprintf("%.4g", first.Means), fmt.Sprintf("%.4g", math.Exp(first.Variances)))
	}
	if room, ok := dataset.Room(b.Data); ok && room < r.Examples {
		a.Debugf("%s: %s of them fit in memory, the others are decoded anew each time", what, report.Thousands(room))
	}
}

func (a *Opener) describeBetween(what string, r *batchnorm.Record) {
	a.Debugf("%s: at most %s of a layer's variance lies between batches", what, report.Percent(r.Between, 1))
}

// openUnasked opens data whose labels are not needed. It leaves out labels that cannot be read, and says so.
func (a *Opener) openUnasked(path string, d DataOptions, opts dataset.Options, networks []*infer.Network) (dataset.Dataset, error) {
	if opts.Text == nil { // the labels of a text are its tokens
		data, why := a.openCached(path, d, opts, networks)
		if why == nil {
			return data, nil
		}
		if data, err := a.openCached(path, d, unlabelled(opts), networks); err == nil {
			dataset.Note(data, fmt.Sprintf("labels are left out: %v", why))
			return data, nil
		}
	}
	return a.openCached(path, d, unlabelled(opts), networks)
}

func unlabelled(opts dataset.Options) dataset.Options {
	if opts.Unlabelled = true; opts.Text == nil { // whose names are the words
		opts.Known.Classes = nil
	}
	return opts
}

// openTrainingData opens training data for a network. Arrays of floats that the network saw in training are used unchanged.
// Images are augmented.
func (a *Opener) openTrainingData(o BatchNormOptions, d DataOptions, b *BatchNorm, n *infer.Network) error {
	augmentation, told, err := Augmentation(o.Augment, n.Posterior.Card)
	if err != nil {
		return err
	}
	opts, err := ReadAs(d, "", n)
	if err != nil {
		return err
	}
	opts.Augment = augmentation
	path := o.Data
	if b.Data, err = a.openUnasked(path, d, opts, b.Findings.Networks); err != nil {
		return err
	}
	switch {
	case dataset.AsSeen(b.Data):
		what := "floats"
		if dataset.Fields(b.Data) != nil {
			what = "arrays"
		}
		a.Logf("%s: %s, used unchanged, as what the network saw in training", path, what)
	case told:
		b.augment = augmentation.String()
	default:
		a.Logf("%s: these images are used without augmentation, because nothing says how training augmented them. %s says it, and %s "+
			"that it did not; %s remembers it", path, setting.Augment.With("SPEC"), setting.Augment.With("none"), setting.Fit)
	}
	return nil
}
