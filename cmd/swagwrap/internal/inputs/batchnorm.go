package inputs

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/swag"
)

// BatchNorm is the data for recomputing statistics.
type BatchNorm struct {
	batchnorm.Training
	study.BatchNorm        // its records are set by ChooseSampleSize
	Path            string // of the data, or ""
	auto            bool
	augment         string // the augmentation of images
	preprocess      string // how the data is read: see flags.Data
}

// OpenBatchNorm opens --bn-data for the networks. Data for one of them suits all. recompute says that statistics are
// recomputed, if a network has batch norm. Otherwise the data is not required, and tells only what inputs training had.
func (a *Env) OpenBatchNorm(o flags.BatchNorm, d flags.Data, networks []*infer.Network, recompute bool) (*BatchNorm, error) {
	b := &BatchNorm{BatchNorm: study.BatchNorm{Networks: networks}, Path: o.Data, preprocess: d.Preprocess}
	path, samples := o.Data, o.Samples
	i := slices.IndexFunc(networks, (*infer.Network).Recomputes)
	switch {
	case (i < 0 || !recompute) && path == "":
		return b, nil
	case i < 0 || !recompute:
		if recompute {
			a.Logf("there are no batch-norm statistics to recompute: --bn-data tells only what inputs training had")
		}
		return b, a.openTrainingData(o, d, b, networks[0])
	case path == "":
		return b, console.Usagef("give what the network saw in training: --bn-data PATH. Averaged or sampled weights do not go with any checkpoint's statistics",
			"%s: the network has batch norm, and there is no --bn-data", networks[i].Posterior.Path)
	}
	if err := a.openTrainingData(o, d, b, networks[i]); err != nil {
		return b, err
	}
	b.Order = dataset.Order{Shuffle: samples != flags.Ordered, Seed: o.Seed, Limit: b.Data.Len()}
	if n, _ := flags.Samples(samples, b.Data.Len()); n > 0 { // the flag was checked
		b.Order.Limit = n
	}
	b.auto = samples == "" || samples == "auto"
	return b, nil
}

// ChooseSampleSize compares the data with the statistics in the checkpoints. With --bn-samples auto it also chooses
// how many examples SWA and the members see.
func (a *Env) ChooseSampleSize(ctx context.Context, run infer.Run, b *BatchNorm, members swag.SampleOptions) error {
	bar := &console.Bar{}
	if b.Data != nil {
		bar = a.Progress(ctx, "batch norm", int64(b.Images())) // at first the largest possible number
	}
	run.Progress = bar.Add
	data, records, err := batchnorm.ChooseSampleSize(ctx, run, b.Networks, b.Training, batchnorm.SampleSizing{Auto: b.auto, Members: members, Resize: bar.Resize})
	bar.Done()
	if err != nil {
		return console.BadInput(err)
	}
	b.Training, b.Records = data, records
	for i, r := range records {
		if r == nil {
			continue
		}
		r.Augment, r.AsSeen = b.augment, r.Examples > 0 && dataset.AsSeen(b.Data)
		a.describeBatchNorm(b, i)
	}
	for _, w := range b.Recomputed() {
		a.WarnLong(w)
	}
	return nil
}

// describeBatchNorm prints the origin of a network's statistics.
func (a *Env) describeBatchNorm(b *BatchNorm, i int) {
	r, what := b.Records[i], b.Whose(i)
	if n := len(r.Kept); n > 0 {
		a.Logf("%s: %s", what, study.Kept(r))
	}
	if r.Examples == 0 {
		return
	}
	all := report.Plural(b.Data.Len(), r.Unit)
	loss := "by an unknown amount"
	if r.Loss != nil {
		loss = fmt.Sprintf("by %s at most", report.Fixed(*r.Loss, 5))
	}
	switch {
	case r.MemberExamples > 0 && r.MemberExamples < r.Examples:
		a.Logf("%s: SWA sees %s of %s, and each member %s of them, corrected by what SWA's statistics from these lack (infinitely many would lower the NLL %s)", what,
			report.Thousands(r.Examples), all, report.Thousands(r.MemberExamples), loss)
	case r.Examples < b.Data.Len():
		a.Logf("%s: %s of %s (infinitely many would lower the NLL %s)", what, report.Thousands(r.Examples), all, loss)
	default:
		a.Debugf("%s: all %s (infinitely many would lower the NLL %s)", what, all, loss)
	}
	a.Debugf("%s: at most %s of a layer's variance lies between batches", what, report.Percent(r.Between, 1))
	switch {
	case r.Check == nil: // the record has a warning
	case len(r.Check.Layers) == 0:
		a.Logf("%s: all checkpoints store equal statistics, so this data cannot be checked", what)
	case len(r.Check.Off()) == 0:
		first := r.Check.Layers[0]
		a.Debugf("%s: this data gives the statistics that the last %d checkpoints store (first layer: means within %s standard deviations, variances within a factor of %s)", what, r.Check.Checkpoints,
			fmt.Sprintf("%.4g", first.Means), fmt.Sprintf("%.4g", math.Exp(first.Variances)))
	}
	if room, ok := dataset.Room(b.Data); ok && room < r.Examples {
		a.Debugf("%s: %s of them fit in %d MiB, the others are decoded anew each time", what, report.Thousands(room), cacheBytes>>20)
	}
}

// openUnasked opens data whose labels are not needed. It leaves out labels that cannot be read, and says so.
func (a *Env) openUnasked(path string, opts dataset.Options, networks []*infer.Network) (dataset.Dataset, error) {
	if opts.Text == nil { // the labels of a text are its tokens
		d, why := a.openCached(path, opts, networks)
		if why == nil {
			return d, nil
		}
		if d, err := a.openCached(path, unlabelled(opts), networks); err == nil {
			dataset.Note(d, fmt.Sprintf("labels are left out: %v", why))
			return d, nil
		}
	}
	return a.openCached(path, unlabelled(opts), networks)
}

func unlabelled(opts dataset.Options) dataset.Options {
	if opts.Unlabelled = true; opts.Text == nil { // whose names are the words
		opts.Known.Classes = nil
	}
	return opts
}

// openTrainingData opens --bn-data for a network. Arrays of floats that the network saw in training are used unchanged.
// Images are augmented.
func (a *Env) openTrainingData(o flags.BatchNorm, d flags.Data, b *BatchNorm, n *infer.Network) error {
	augmentation, told, err := flags.Augmentation(o.Augment, n.Posterior.Card)
	if err != nil {
		return err
	}
	opts, err := DataOptions(d, "", n)
	if err != nil {
		return err
	}
	opts.Augment = augmentation
	path := o.Data
	if b.Data, err = a.openUnasked(path, opts, b.Networks); err != nil {
		return err
	}
	switch {
	case dataset.AsSeen(b.Data):
		what := "floats"
		if dataset.Fields(b.Data) != nil {
			what = "arrays"
		}
		a.Logf("%s: %s, taken as what the network saw in training: they are neither normalised nor augmented", path, what)
	case told:
		b.augment = augmentation.String()
	default:
		a.Logf("%s: these images are used without augmentation, because nothing says how training augmented them. --augment SPEC says it, and --augment none that it did not; fit remembers it", path)
	}
	return nil
}
