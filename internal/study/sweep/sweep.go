// Package sweep measures the effect of SWAG's settings on labelled data: the number of members, the scale, the rank,
// and whether batch-norm statistics are recomputed. It reproduces the paper's appendix on hyperparameters (figure
// "ensemble", a–d, and "Necessity of Batch Norm Updates").
package sweep

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// UsualScales are the scales of a sweep by default.
var UsualScales = []float64{0, 0.125, 0.25, 0.5, 1, 2}

// UsualRanks returns the ranks of a sweep by default, for a posterior with the given number of columns.
func UsualRanks(columns int) (ranks []int) {
	for _, k := range []int{0, 2, 5, 10, 20} {
		if k <= columns {
			ranks = append(ranks, k)
		}
	}
	return ranks
}

// UsualExtend is Extend of a sweep by default.
const UsualExtend = 4

// Sweep describes the settings and the data of a sweep.
//
// Random numbers are common: member m has the same z1 and z2 at every setting, and every recomputation sees the same
// images. So differences between settings are not caused by different draws.
type Sweep struct {
	Network   *infer.Network
	BatchNorm batchnorm.Training
	Test      dataset.Dataset
	// Validation is the data for choosing a setting and for fitting temperatures. Without it halves of Test are used:
	// see [Choice].
	Validation dataset.Dataset

	// Members is S. Zero means as many as the default setting needs: see [ensemble.Enough].
	Members    int
	Antithetic bool // members are drawn in pairs
	Orthogonal bool // at right angles: see [swag.SampleOptions]
	Seed       uint64
	// Scales and Ranks are the values to try. A rank of 0 is the diagonal alone. The paper's settings are always
	// included: see [Sweep.Default].
	Scales []float64
	Ranks  []int
	// Extend is the largest number of times that the sweep tries the neighbours of its choice, if it has not tried
	// them.
	Extend int
	// AllTest shows the test scores of every setting. To look at them means to choose on test data, so by default
	// only those of SWA, of the default and of the chosen setting are shown.
	AllTest bool
	// Spell shows what to do next in the program's words.
	Spell study.Spell

	// Epochs are numbers of checkpoints in ascending order. Earlier returns the network of the posterior of the first
	// checkpoints, whose posterior Run closes: see [Collected].
	Epochs  []int
	Earlier func(ctx context.Context, checkpoints int) (*infer.Network, error)

	// Resize, if not nil, is called with the total number of images whenever that changes. Announce, if not nil, is
	// called with the choice and its neighbours before these are tried, with the number of images that they add.
	Resize   func(images int64)
	Announce func(choice Setting, next []Setting, images int64)

	tunes bool // only chooses a setting, and so needs no stale statistics
}

// Setting is one way to make members.
type Setting struct {
	Covariance swag.Covariance // LowRankPlusDiagonal, or Diagonal
	Scale      float64         // α; 0 is SWA
	Rank       int             // columns of D̂; 0 with the diagonal alone, and for SWA
	Stale      bool            // uses the last checkpoint's batch-norm statistics
}

// SWA reports whether all members are θ_SWA, so that there is only one.
func (s Setting) SWA() bool { return s.Scale == 0 }

// String returns a description such as "SWAG, scale 0.5, rank 20" or "SWA, stale BN".
func (s Setting) String() string {
	text := fmt.Sprintf("SWAG, scale %g, rank %d", s.Scale, s.Rank)
	switch {
	case s.SWA():
		text = "SWA"
	case s.Covariance == swag.Diagonal:
		text = fmt.Sprintf("SWAG-Diag, scale %g", s.Scale)
	}
	if s.Stale {
		text += ", stale BN"
	}
	return text
}

// normal maps equivalent settings to equal values.
func (s Setting) normal() Setting {
	switch {
	case s.SWA():
		s.Covariance, s.Rank = swag.LowRankPlusDiagonal, 0
	case s.Rank == 0:
		s.Covariance = swag.Diagonal
	}
	return s
}

// Point is a setting with its scores at its own temperature.
type Point struct {
	Setting
	Members int
	Default bool
	// Temperature is fitted on all choosing data. It is NaN if none can be fitted, or if the data do not determine it. NLL is the
	// mean of the first loss there.
	Temperature, NLL float64
	// Evaluation holds the scores on the test data, Validation those on the validation data or nil. Without validation
	// data each half of the test data has the temperature of the other half. Plain holds the scores on the test data
	// without a temperature.
	*task.Evaluation
	Validation, Plain *task.Evaluation
	// Difference and ValidationDifference are the first loss minus that of the default. The 95 % intervals are for new
	// images and other draws. Negative is better.
	Difference, ValidationDifference chance.Interval

	loose     string    // the reason why the data do not determine a temperature, or ""
	choosing  losses    // losses at the temperature that is fitted to them
	judged    losses    // losses on test data, at temperatures that are not fitted to them
	within    []float64 // losses on halves of test data, each at its own temperature; nil with validation data
	influence []float64 // how much each member influences the choice
}

// CurvePoint is the default setting with the first Members members.
type CurvePoint struct {
	Members int
	*task.Evaluation
	// AnyOrder is the mean NLL over random choices of this number of members from all members, with the range of 90 %
	// of them. At m = S there is one choice.
	AnyOrder chance.Interval
}

// Result is the outcome of a sweep.
type Result struct {
	*Sweep
	Points []Point      // SWA first, then the default, then the others
	Curve  []CurvePoint // the default setting with 1 … S members
	Error  chance.MonteCarloError
	Choice Choice
	// Collected holds the earlier posteriors.
	Collected []Collected
	Runtime   string // the version of ONNX Runtime
	// Warnings are reasons not to take the scores at face value.
	Warnings   []error
	Statistics study.BatchNorm

	task    task.Task
	by      task.Calibrator // fits the temperatures
	weights []float64       // members of each group
	folds   [][]int         // halves of the test data; nil with validation data
	curve   *curve          // nil if it is not wanted
	total   int64           // images with those of extensions
}

// visible reports whether the test scores of a point may be shown.
func (r *Result) visible(p *Point) bool {
	return r.AllTest || p.Default || p.Setting == Setting{} || p.Setting == r.Choice.Setting
}

// Default returns the default point of the result.
func (r *Result) Default() *Point { return &r.Points[standard] }

// Default returns the paper's setting with recomputed statistics. It is all columns at the scale ½, or the diagonal
// alone at 1 if the posterior has no deviations.
func (s *Sweep) Default() Setting {
	columns := s.Network.Posterior.Options.Columns
	if columns == 0 {
		return Setting{Covariance: swag.Diagonal, Scale: swag.Diagonal.DefaultScale()}
	}
	return Setting{Scale: swag.LowRankPlusDiagonal.DefaultScale(), Rank: columns}
}

// Settings returns the settings of the sweep, SWA and the default first. It changes one setting of the default at a
// time, and also tries the scales with the diagonal alone.
func (s *Sweep) Settings() []Setting {
	fresh, stale := s.settings()
	return append(fresh, stale...)
}

// settings returns the settings with recomputed and with stale statistics.
func (s *Sweep) settings() (fresh, stale []Setting) {
	d := s.Default()
	fresh = []Setting{{}, d}
	add := func(scale float64, rank int) {
		if x := (Setting{Scale: scale, Rank: rank}).normal(); !slices.Contains(fresh, x) {
			fresh = append(fresh, x)
		}
	}
	for _, rank := range []int{d.Rank, 0} {
		for _, scale := range append([]float64{d.Scale}, s.Scales...) {
			add(scale, rank)
		}
	}
	for _, rank := range s.Ranks {
		add(d.Scale, rank)
	}
	if s.Network.Recomputes() && !s.tunes {
		stale = slices.Clone(fresh[:2])
		for i := range stale {
			stale[i].Stale = true
		}
	}
	return fresh, stale
}

// Images returns the number of images that a sweep with the given number of members sends through networks, without those
// of extensions.
func (s *Sweep) Images(members int) int64 {
	total := s.images(s.Settings(), members)
	for _, count := range s.Epochs {
		sub := s.early(count)
		total += s.images(sub.Settings(), members)
	}
	return total
}

func (s *Sweep) images(settings []Setting, members int) (total int64) {
	for _, set := range settings {
		each := int64(s.Test.Len())
		if s.Validation != nil {
			each += int64(s.Validation.Len())
		}
		if !set.Stale {
			each += int64(s.BatchNorm.Images())
		}
		if set.SWA() {
			total += each
		} else {
			total += int64(members) * each
		}
	}
	return total
}

// Check fails if a setting cannot be sampled from the posterior.
func (s *Sweep) Check() error {
	for _, set := range s.Settings() {
		if _, err := swag.NewSampler(s.Network.Posterior, s.Draws(set)); err != nil {
			return err
		}
	}
	return nil
}

// Draws returns the sampling options of a setting.
func (s *Sweep) Draws(set Setting) swag.SampleOptions {
	opts := swag.SampleOptions{
		Seed:       s.Seed,
		Scale:      set.Scale,
		Covariance: set.Covariance,
		Rank:       set.Rank,
		Antithetic: s.Antithetic,
		Orthogonal: s.Orthogonal,
	}
	if opts.Rank == s.Network.Posterior.Options.Columns {
		opts.Rank = 0 // all columns, whatever the divisor
	}
	return opts
}

// Run tries all settings, and extends the grid until the choice lies inside of it. Its memory is that of two averages, of
// each setting's losses by group of members, and of the outcomes of one setting's groups: see groupBytes.
func (s *Sweep) Run(ctx context.Context, run infer.Run) (*Result, error) {
	r := &Result{Sweep: s, Runtime: run.About(), curve: &curve{sweep: s}}
	if err := r.explore(ctx, run, s.Members); err != nil {
		return nil, err
	}
	if err := r.curve.finish(ctx, r); err != nil {
		return nil, err
	}
	for i := range r.Points {
		if p := &r.Points[i]; r.visible(p) && p.loose != "" {
			r.Warnings = append(r.Warnings, fmt.Errorf("%s: scored without %s, since the fit is not determined: %s. Give more labelled "+
				"examples (%s)", p.Setting, r.by.Symbol, p.loose, setting.Val.With("FILE")))
		}
	}
	_, stale := s.settings()
	for _, set := range stale {
		if _, err := r.try(ctx, run, set, r.Default().Members); err != nil {
			return nil, err
		}
	}
	if err := r.collect(ctx, run); err != nil {
		return nil, err
	}
	for i := range r.Points {
		p, d := &r.Points[i], r.Default()
		p.Difference = r.difference(p.judged, d.judged)
		if p.Validation != nil {
			p.ValidationDifference = r.difference(p.choosing, d.choosing)
		}
	}
	return r, ctx.Err()
}

// try runs a setting and appends its point.
func (r *Result) try(ctx context.Context, run infer.Run, set Setting, members int) (*Point, error) {
	a := &average{sweep: r.Sweep, setting: set, members: members}
	p := Point{Setting: set, Default: len(r.Points) == standard, Temperature: math.NaN()}
	if p.Default {
		a.curve = r.curve
	}
	if members == 0 {
		a.members = ensemble.DefaultMembers
		if judged := ensemble.Judged(r.Test, r.Network.Large()); judged != nil && p.Default && r.Antithetic {
			a.enough = &ensemble.Enough{Judged: judged}
		}
	}
	if err := a.run(ctx, run); err != nil {
		return nil, err
	}
	p.Members, r.task = a.test.all.Members, a.test.all.Task
	if p.Default {
		for _, g := range a.test.groups {
			r.weights = append(r.weights, float64(g.Members))
		}
		if r.total = r.Images(p.Members); r.Resize != nil {
			r.Resize(r.total)
		}
		var err error
		if r.Warnings, err = r.warnings(&a.test.all); err != nil {
			return nil, err
		}
	}
	if err := r.score(&p, a); err != nil {
		return nil, fmt.Errorf("%v: %w", set, err)
	}
	r.Points = append(r.Points, p)
	return &p, nil
}

// score fits the temperature of a point, and computes its losses and scores.
func (r *Result) score(p *Point, a *average) (err error) {
	r.by = r.task.Calibrators()[0]
	data, choosing := r.Test, &a.test
	if r.Validation != nil {
		data, choosing = r.Validation, &a.validation
	}
	// Without a fit a true class has probability 0, which no temperature corrects.
	fitted, noFit := choosing.all.Task.Calibrators()[0].On(choosing.all.Mean(), data.Labels())
	if p.loose = fitted.Undetermined(); noFit != nil || p.loose != "" {
		fitted = nil
	} else {
		fitted = fitted.Rounded()
		p.Temperature = fitted.Values()[0]
	}
	if p.choosing, err = r.losses(choosing, fitted, data); err != nil {
		return err
	}
	p.NLL, p.influence = stat.Mean(p.choosing.own, nil), p.choosing.influence(r.weights)
	judge := fitted
	if r.Validation != nil {
		if p.Validation, err = task.Evaluate(choosing.all.Task, apply(fitted, &choosing.all), data.Labels(), r.options()); err != nil {
			return err
		}
	} else {
		r.folds = calibrate.Folds(data.Len(), 2, r.Seed)
		judge, noFit = task.CrossFit(r.task, r.by, choosing.all.Mean(), data.Labels(), 2, r.Seed)
		if noFit != nil || fitted == nil || judge.Undetermined() != "" {
			judge = nil
		}
		own := judge
		if judge != nil {
			own = &task.Fitted{By: r.by, Each: []*task.Calibration{judge.Each[1], judge.Each[0]}, Folds: judge.Folds}
		}
		within, err := r.losses(&part{all: a.test.all}, own, data)
		if err != nil {
			return err
		}
		p.within = within.own
	}
	if p.judged, err = r.losses(&a.test, judge, r.Test); err != nil {
		return err
	}
	if p.Plain, err = a.test.all.Evaluate(r.Test.Labels(), r.options()); err != nil {
		return err
	}
	p.Evaluation, err = task.Evaluate(r.task, apply(judge, &a.test.all), r.Test.Labels(), r.options())
	return err
}

// apply returns an average after a calibration, which may be nil. Examples of validation and test data may differ in their number
// of positions, so the task is that of the average.
func apply(f *task.Fitted, sums *infer.Sums) []float64 {
	if f == nil {
		return sums.Mean()
	}
	return f.Apply(sums.Task, sums.Mean())
}

// losses returns the first loss of a part's average, and of the averages without each group, after a calibration.
func (r *Result) losses(p *part, by *task.Fitted, data dataset.Dataset) (out losses, err error) {
	of := func(sums *infer.Sums) ([]float64, error) {
		list, err := task.Losses(sums.Task, apply(by, sums), data.Labels(), r.options())
		if err != nil {
			return nil, err
		}
		return list[0].Values, nil
	}
	if out.own, err = of(&p.all); err != nil {
		return out, err
	}
	for g := range p.groups {
		others := &infer.Sums{}
		for h, group := range p.groups {
			if h != g || len(p.groups) == 1 { // a single group gives no information
				others.Merge(group)
			}
		}
		l, err := of(others)
		if err != nil {
			return out, err
		}
		out.without = append(out.without, l)
	}
	return out, nil
}

// Fill runs a shard of all members and puts their outputs into the run's store. The number of members must be given.
func (s *Sweep) Fill(ctx context.Context, run infer.Run, shard *infer.Shard) error {
	if t := s.Network.Known(); t != nil && task.Missing(t) != nil {
		return task.ErrNoNoise // of what all parts find no setting could be scored
	}
	for _, set := range s.Settings() {
		a := &average{sweep: s, setting: set, members: s.Members, shard: shard}
		if err := a.run(ctx, run); err != nil {
			return err
		}
	}
	return nil
}

func (s *Sweep) options() task.EvaluateOptions {
	return task.EvaluateOptions{MainOnly: true, NoIntervals: true}
}

// fewExamples is the number of examples below which bootstrap intervals are too narrow.
const fewExamples = 30

// warnings returns the problems with the scores of the default, which apply to all settings.
func (s *Sweep) warnings(sums *infer.Sums) ([]error, error) {
	e, err := sums.Evaluate(s.Test.Labels(), task.EvaluateOptions{})
	if err != nil {
		return nil, err
	}
	out := e.Warnings
	if n := s.Test.Len(); n < fewExamples {
		out = append(out, fmt.Errorf("%s: with fewer than %d, intervals are too narrow",
			report.Plural(n, "test "+dataset.Unit(s.Test)), fewExamples))
	}
	return out, nil
}

// groupBytes bounds the memory of the losses of all settings by group, and of the outcomes of one setting's groups. Above
// it members share groups, but there are at least fewestGroups. Groups decide the order of sums, so groupBytes must not
// depend on the machine or on a limit. someSettings is about the number of settings.
const (
	groupBytes   = 1 << 30
	fewestGroups = 5
	someSettings = 40
)

// part holds the sums of a setting on one data set, also by groups of members.
type part struct {
	all    infer.Sums
	groups []*infer.Sums // nil for a single network
}

// add adds a member, to a group of its unit if the memory suffices. A unit is a member or an antithetic pair; 0 is for no groups.
func (p *part) add(member *infer.Sums, unit int) {
	if unit > 0 {
		most := groupBytes / (8 * (len(member.Outcome) + someSettings*len(member.Entropy)))
		k := p.all.Members / unit % max(fewestGroups, most)
		if k == len(p.groups) {
			p.groups = append(p.groups, &infer.Sums{})
		}
		p.groups[k].Merge(member)
	}
	p.all.Merge(member)
}

// fits returns an error if the outcomes of all pixels or tokens of the data exceed a budget in bytes. A sweep holds those of
// groups of members, of their sum, and of what is computed from them.
func fits(member *infer.Sums, data dataset.Dataset, budget int64) error {
	if task.Positions(member.Task) == 1 {
		return nil
	}
	return holds(int64(len(member.Outcome)), member.Task.About().Size, data, budget)
}

// fitsText is fits for a text before the first run, which would take all memory for a large vocabulary.
func fitsText(n *infer.Network, data dataset.Dataset, budget int64) error {
	cut, ok := dataset.CutOf(data)
	if !ok {
		return nil
	}
	long, words := max(cut.BPTT, cut.Window), n.Layout().Count
	return holds(int64(cut.Windows)*int64(long)*int64(words+1), fmt.Sprintf("%d classes at %d positions", words, long), data, budget)
}

func holds(numbers int64, size string, data dataset.Dataset, budget int64) error {
	const copies = fewestGroups + 4
	if need := copies * 8 * numbers; need > budget {
		return &listing.MemoryError{
			What:  fmt.Sprintf("a sweep over %s of %s", report.Plural(data.Len(), dataset.Unit(data)), size),
			Bytes: need,
			Limit: budget,
		}
	}
	return nil
}

// average is the running average of a setting.
type average struct {
	sweep            *Sweep
	setting          Setting
	members          int
	shard            *infer.Shard // the members that run; nil for all
	test, validation part
	curve            *curve           // only the default setting has one
	enough           *ensemble.Enough // ends the members of the default setting; nil if their number is given
}

// unit is the number of members that are drawn together: see [part.add].
func (a *average) unit() int {
	switch {
	case a.setting.SWA():
		return 0
	case a.sweep.Antithetic:
		return 2
	}
	return 1
}

// errEnough stops adding members to a setting.
var errEnough = errors.New("enough members")

// statistics returns what a member of the setting has besides its weights.
func (a *average) statistics(ctx context.Context, run infer.Run, parameters weights.Vector) (weights.Slice, error) {
	if a.setting.Stale {
		return a.sweep.Network.State(parameters)
	}
	fresh, err := batchnorm.Recompute(ctx, run, a.sweep.Network, parameters, a.sweep.BatchNorm)
	return fresh.Statistics, err
}

// run averages the members of a setting.
func (a *average) run(ctx context.Context, run infer.Run) error {
	s := a.sweep
	if a.setting.SWA() {
		a.members = 1
	}
	err := infer.EachMember(ctx, run.Memory(), s.Network.Posterior, s.Draws(a.setting), a.test.all.Members, a.members-a.test.all.Members,
		func(k int, parameters weights.Vector) error {
			if !a.shard.Mine() {
				return nil
			}
			who := fmt.Sprintf("%v, member %d", a.setting, k)
			statistics, err := a.statistics(ctx, run, parameters)
			if err != nil {
				return fmt.Errorf("%s: %w", who, err)
			}
			model, err := s.Network.Model(who, parameters, statistics)
			if err != nil {
				return err
			}
			predict := func(data dataset.Dataset, p *part) (*infer.Sums, error) {
				member := &infer.Sums{}
				if err := fitsText(s.Network, data, run.Memory().Networks()); err != nil {
					return nil, err
				}
				if err := run.Predict(ctx, model, data, member); err != nil {
					return nil, err
				}
				p.add(member, a.unit())
				return member, fits(member, data, run.Memory().Networks())
			}
			if s.Validation != nil {
				if _, err := predict(s.Validation, &a.validation); err != nil {
					return err
				}
			}
			member, err := predict(s.Test, &a.test)
			if err == nil && a.curve != nil {
				err = a.curve.add(member, &a.test.all)
			}
			if err == nil && a.enough != nil {
				if a.enough.Add(member); a.enough.Reached() {
					return errEnough
				}
			}
			return err
		})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
