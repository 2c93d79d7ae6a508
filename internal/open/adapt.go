package open

import (
	"context"
	"fmt"
	"math"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// AdaptOptions say to which data batch-norm statistics are adapted. The data need no labels.
type AdaptOptions struct {
	Data   string  // the path of the target data, or "" for none
	Blocks int     // instead of a path: the data that are scored, in blocks of so many examples
	Weight float64 // the share of the target in the statistics
}

// WholeBlocks begins a request for blocks, instead of a path: see [ensemble.Blocks].
const WholeBlocks = "blocks="

// NoTarget, in place of a path, asks for the statistics from before an ensemble was adapted.
const NoTarget = "none"

// Adaptation is an open target.
type Adaptation struct {
	batchnorm.Adaptation
	Path string

	opener   *Opener
	networks []*infer.Network // with passes that mix
	alone    *infer.Network   // the first, with passes that take the target's statistics alone
}

// NothingToAdapt is the hint for networks without batch norm.
func NothingToAdapt() string {
	return "what helps without batch norm: fit the temperature on labelled examples that are like the target (" +
		setting.Val.String() + "), or train again with the damage among the augmentations"
}

// OpenAdaptation opens target data for the networks, and refuses what cannot help.
func OpenAdaptation(a *Opener, o AdaptOptions, d DataOptions, networks []*infer.Network, seed uint64) (*Adaptation, error) {
	ad := &Adaptation{Path: o.Data, opener: a}
	ad.Weight, ad.Seed = o.Weight, seed
	var err error
	if ad.networks, err = adapting(networks, o.Weight); err != nil {
		return nil, err
	}
	one, err := adapting(networks[:1], 1)
	if err != nil {
		return nil, err
	}
	ad.alone = one[0]
	if ad.Target, err = OpenUnlabelled(a, d, o.Data, networks); err != nil {
		return nil, err
	}
	return ad, RefuseFew(o.Data, ad.Target.Len(), dataset.Unit(ad.Target))
}

// adapting returns the networks with passes that mix statistics, and refuses those without batch norm.
func adapting(networks []*infer.Network, weight float64) (all []*infer.Network, err error) {
	for _, n := range networks {
		own, err := n.Adapting(weight)
		if err != nil {
			return nil, BadInput(err)
		}
		if own.Layers() == 0 {
			return nil, BadInput(fmt.Errorf("%s: has no batch norm, and %s changes batch-norm statistics alone", n.Posterior.Path,
				setting.Adapt), NothingToAdapt())
		}
		all = append(all, own)
	}
	return all, nil
}

// RefuseFew refuses target data with too few examples.
func RefuseFew(path string, n int, unit string) error {
	if n >= batchnorm.LeastTarget {
		return nil
	}
	return BadInput(fmt.Errorf("%s: %s, and %s needs at least %d: statistics of fewer do more harm than good", path,
		report.Plural(n, unit), setting.Adapt, batchnorm.LeastTarget),
		"give more examples of the same source; they need no labels")
}

// Adapt adapts the statistics of an ensemble's members, and keeps those from before. usual has examples of training, or is nil.
func (ad *Adaptation) Adapt(ctx context.Context, run infer.Run, e *ensemble.Ensemble, networks []*infer.Network, usual dataset.Dataset,
	preprocess string) error {
	a, common := ad.opener, batchnorm.Usual{Data: usual}
	e.GoBack()
	if v := e.Validation; usual == nil && v != nil {
		common.Shares = v.Shares()
	}
	found, err := a.CheckInputs(ctx, run.Engine, Probe{
		Networks:   networks[:1],
		Data:       ad.Target,
		Path:       ad.Path,
		Training:   true,
		Target:     true,
		Preprocess: preprocess,
		Earlier:    e.Checked()[:1],
	})
	if err != nil {
		return err
	}
	var mixed [][]float32
	var look *batchnorm.Target
	bar := a.Progress(ctx, "adapt", int64(e.Members()*ad.Examples()))
	run.Progress = bar.Add
	err = e.EachMember(ctx, run.Memory(), networks, run.Threads(), func(m ensemble.Member) error {
		statistics, moved, err := ad.Statistics(ctx, run, ad.networks[m.Component], m.Parameters, m.Statistics)
		if err != nil {
			return fmt.Errorf("member %d: %w", m.Number, err)
		}
		mixed = append(mixed, statistics)
		if look != nil {
			return nil
		}
		if look, err = ad.look(ctx, run, m, statistics, common); err != nil {
			return err
		}
		look.Moved = moved
		return ad.refuse(look, e.Card.ClassNames)
	})
	bar.Done()
	if err != nil {
		return BadInput(err)
	}
	warnings := ad.warnings(look, e.Card.ClassNames)
	for i := range e.Components {
		c := &e.Components[i]
		c.Source, c.Statistics, mixed = c.Statistics, mixed[:c.Members:c.Members], mixed[c.Members:]
		c.Adapted = &ensemble.Adapted{
			Data:     ad.Path,
			Sources:  ad.Target.Sources(),
			Weight:   ad.Weight,
			Examples: ad.Examples(),
			Target:   look,
			Probe:    found[0],
			Warnings: warnings,
		}
	}
	ad.tell(look, warnings)
	return nil
}

// CheckAverage checks the target of a study, as [Adaptation.Adapt] checks that of an ensemble. The average of the first posterior
// stands for its methods.
func (ad *Adaptation) CheckAverage(ctx context.Context, run infer.Run, l *Study) error {
	n, bn := l.Networks()[0], l.BatchNorm
	in := Probe{
		Networks:   l.Networks()[:1],
		Data:       ad.Target,
		Path:       ad.Path,
		Training:   true,
		Target:     true,
		Preprocess: l.options.Data.Preprocess,
	}
	if _, err := ad.opener.CheckInputs(ctx, run.Engine, in); err != nil {
		return err
	}
	s, err := swag.NewSampler(n.Posterior, swag.SampleOptions{}) // scale 0 is SWA
	if err != nil {
		return BadInput(err)
	}
	parameters := s.Vector(ctx, 0)
	source, err := batchnorm.Recompute(ctx, run, n, parameters, bn.ForMember(n, swag.SampleOptions{}, 0))
	if err != nil {
		return BadInput(err)
	}
	mixed, moved, err := ad.Statistics(ctx, run, ad.networks[0], parameters, source.Statistics)
	if err != nil {
		return BadInput(err)
	}
	look, err := ad.look(ctx, run, ensemble.Member{
		Network:    n,
		Parameters: parameters,
		Statistics: source.Statistics,
	}, mixed, batchnorm.Usual{Data: bn.Data})
	if err != nil {
		return BadInput(err)
	}
	if err := ad.refuse(look, n.Posterior.Card.ClassNames); err != nil {
		return err
	}
	look.Moved = moved
	ad.tell(look, ad.warnings(look, n.Posterior.Card.ClassNames))
	return nil
}

// tell prints the warnings about the target, and what adapting changed.
func (ad *Adaptation) tell(look *batchnorm.Target, warnings []string) {
	for _, w := range warnings {
		ad.opener.WarnLong(ad.Path + ": " + w)
	}
	ad.opener.Logf("%s", ad.describe(look))
}

// look compares a member before adapting with the same member adapted to the mixture, and to the target alone.
func (ad *Adaptation) look(ctx context.Context, run infer.Run, m ensemble.Member, mixed []float32,
	usual batchnorm.Usual) (*batchnorm.Target, error) {
	own := ad.Adaptation
	own.Weight = 1
	alone, _, err := own.Statistics(ctx, run.Quiet(), ad.alone, m.Parameters, m.Statistics)
	if err != nil {
		return nil, err
	}
	var c batchnorm.Compared
	for _, of := range []struct {
		name       string
		statistics []float32
		to         *infer.Model
	}{{"before adapting", m.Statistics, &c.Plain}, {"adapted", mixed, &c.Adapted}, {"adapted to the target alone", alone, &c.Alone}} {
		if *of.to, err = m.Network.Model(of.name, m.Parameters, weights.Slice(of.statistics)); err != nil {
			return nil, err
		}
	}
	return batchnorm.Look(ctx, run, c, ad.Target, usual)
}

// refuse refuses a target that is nearly all of one class.
func (ad *Adaptation) refuse(t *batchnorm.Target, classes []string) error {
	if t.Single == 0 {
		return nil
	}
	return BadInput(fmt.Errorf("%s: %s of the predictions are %s, and usual are %s: statistics of one class do harm", ad.Path,
		report.Percent(t.Single, 0), names.Class(classes, t.Class), report.Percent(t.Usual, 0)),
		"give data with the classes in their usual shares, or leave out "+setting.Adapt.String())
}

// warnings returns the faults of the target that make adapting harmful.
func (ad *Adaptation) warnings(t *batchnorm.Target, classes []string) (out []string) {
	if t.Sorted {
		out = append(out, "neighbouring examples are more alike than in a shuffle: the data are sorted, or change with time. Statistics "+
			"of all together are a compromise then. Adapt to each part separately")
	}
	class := names.Class(classes, t.Class)
	const harm = "If the data have other shares of the classes than training, adapting does harm. Take a smaller weight (%s), or data " +
		"with all classes"
	switch {
	case t.OneClass > 0:
		out = append(out, fmt.Sprintf("%s of the predictions are %s. "+harm, report.Percent(t.OneClass, 0), class, setting.AdaptWeight))
	case t.Skewed > 0:
		out = append(out, fmt.Sprintf("with statistics of the target alone, %s of the predictions are %s. Usual are %s. "+harm,
			report.Percent(t.Skewed, 0), class, report.Percent(t.Usual, 0), setting.AdaptWeight))
	}
	return out
}

// describe says what adapting changed.
func (ad *Adaptation) describe(t *batchnorm.Target) string {
	s := fmt.Sprintf("adapted to %s (%s, weight %g): means at the first layer move by %.2g standard deviations", ad.Path,
		report.Plural(ad.Examples(), dataset.Unit(ad.Target)), ad.Weight, ad.Weight*t.Moved)
	if t.Confidence[0] > 0 {
		s += fmt.Sprintf(", %s of the predicted classes change, and the mean confidence goes from %.3f to %.3f",
			report.Percent(t.Changed, 1), t.Confidence[0], t.Confidence[1])
	}
	return s
}

// BlockAdaptation is the adaptation of an ensemble to blocks of the data that it scores.
type BlockAdaptation struct {
	ensemble.Blocks
	opener      *Opener
	path        string
	unit        string
	run         int     // blocks
	least, most float64 // how far blocks move the first layer
}

// AdaptBlocks makes a job adapt to blocks of its data, from the statistics of training. path is the data's name.
func AdaptBlocks(a *Opener, job *ensemble.Scoring, o AdaptOptions, path string) (*BlockAdaptation, error) {
	networks, err := adapting(job.Networks, o.Weight)
	if err != nil {
		return nil, err
	}
	rows, _ := dataset.RowsOf(job.Data)
	if _, tiles := job.Data.(*dataset.Tiles); tiles || rows > 0 {
		return nil, Usagef(setting.Adapt.With("TARGET")+" adapts to all of a target",
			"%s: blocks would separate tiles of a picture, or windows of a text", setting.Adapt)
	}
	if err := RefuseFew(path, job.Data.Len(), dataset.Unit(job.Data)); err != nil {
		return nil, err
	}
	for _, c := range job.Ensemble.Components {
		if c.Probe != nil && c.Probe.BatchSize > 1 && o.Blocks%c.Probe.BatchSize > 0 {
			return nil, Usagef("", "%s: blocks of %d examples, want a multiple of the batches of %d, whose examples depend on each other",
				setting.Adapt, o.Blocks, c.Probe.BatchSize)
		}
	}
	job.Ensemble.GoBack()
	b := &BlockAdaptation{opener: a, path: path, unit: dataset.Unit(job.Data), least: math.Inf(1)}
	b.Blocks = ensemble.Blocks{Examples: o.Blocks, Weight: o.Weight, Networks: networks, Told: func(moved float64) {
		b.run++
		b.least, b.most = min(b.least, moved), max(b.most, moved)
	}}
	job.Blocks = &b.Blocks
	return b, nil
}

// Tell says what adapting changed.
func (b *BlockAdaptation) Tell() {
	if b == nil || b.run == 0 {
		return
	}
	b.opener.Logf("adapted to each %d %ss of %s (weight %g): means at the first layer move by %.2g to %.2g standard deviations",
		b.Examples, b.unit, b.path, b.Weight, b.Weight*b.least, b.Weight*b.most)
}
