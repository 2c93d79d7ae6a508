// Package sweep measures the effect of SWAG's settings on labelled data: the number of members, the scale, the rank,
// and whether batch-norm statistics are recomputed. It reproduces the paper's appendix on hyperparameters (figure
// "ensemble", a–d, and "Necessity of Batch Norm Updates").
package sweep

import (
	"context"
	"errors"
	"fmt"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// Sweep describes the settings and the data of a sweep.
//
// Random numbers are common: member m has the same z1 and z2 at every setting, and every recomputation sees the same
// images. So differences between settings are not caused by different draws.
type Sweep struct {
	Network   *infer.Network
	BatchNorm batchnorm.Training
	Test      dataset.Dataset
	// Validation is the data for choosing a setting. Without it halves of Test are used: see [Choice].
	Validation dataset.Dataset

	// Members is S. Zero means as many as make a difference: see [calibrate.MonteCarloError].
	Members   int
	Tolerance float64 // of the NLL in nats, for Members 0; 0 means a quarter of its standard error
	Seed      uint64
	// Scales and Ranks are the values to try. A rank of 0 is the diagonal alone. The paper's settings are always
	// included: see [Sweep.Default].
	Scales []float64
	Ranks  []int
	// Grid tries every scale with every rank. Without it the sweep changes one setting of the default at a time, and
	// also tries the scales with the diagonal alone.
	Grid bool
	ECE  calibrate.ECEOptions
	// AllTest shows the test scores of every setting. To look at them means to choose on test data, so by default
	// only those of the default and of the chosen setting are shown.
	AllTest bool

	// Resize, if not nil, is called with the total number of images once the number of members is known.
	Resize func(images int64)
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

// Point is a setting with its scores on the test data.
type Point struct {
	Setting
	Members int
	Default bool
	*task.Evaluation
	// Differences are the differences to the default by the key of the loss, with paired bootstrap intervals over the
	// test images. Negative is better. They are nil for the default itself.
	Differences map[string]calibrate.Interval
	// Validation holds the scores on the validation data, which decide the choice. ValidationDifferences are the
	// differences there. Both are nil without validation data.
	Validation            *task.Evaluation
	ValidationDifferences map[string]calibrate.Interval
}

// CurvePoint is the default setting with the first Members members.
type CurvePoint struct {
	Members int
	*task.Evaluation
	// AnyOrder is the mean NLL over random choices of this number of members from all members, with the range of 90 %
	// of them. At m = S there is one choice.
	AnyOrder calibrate.Interval
}

// Result is the outcome of a sweep.
type Result struct {
	*Sweep
	Points  []Point      // SWA first, then the default, then the others
	Curve   []CurvePoint // for 1 … S members
	Error   calibrate.MonteCarloError
	Choice  Choice
	Runtime string // the version of ONNX Runtime
	// Warnings are reasons not to take the scores at face value.
	Warnings   []error
	Statistics study.BatchNorm

	task task.Task
}

// shown reports whether the test scores of a point are shown.
func (r *Result) shown(p *Point) bool {
	return r.AllTest || p.Default || p.Setting == r.Choice.Setting
}

// Default returns the default point of the result.
func (r *Result) Default() *Point { return &r.Points[1] }

// Default returns the paper's setting with recomputed statistics. It is all columns at the scale ½, or the diagonal
// alone at 1 if the posterior has no deviations.
func (s *Sweep) Default() Setting {
	columns := s.Network.Posterior.Options.Columns
	if columns == 0 {
		return Setting{Covariance: swag.Diagonal, Scale: swag.Diagonal.DefaultScale()}
	}
	return Setting{Scale: swag.LowRankPlusDiagonal.DefaultScale(), Rank: columns}
}

// Sampling returns the sampling options of the default.
func (s *Sweep) Sampling() swag.SampleOptions { return s.Draws(s.Default()) }

// Settings returns the settings of the sweep, SWA and the default first.
func (s *Sweep) Settings() []Setting {
	d := s.Default()
	list := []Setting{{}, d}
	add := func(x Setting) {
		x = x.normal()
		for _, known := range list {
			if x == known {
				return
			}
		}
		list = append(list, x)
	}
	for _, stale := range []bool{false, true} {
		if stale && !s.Network.Recomputes() {
			break
		}
		if s.Grid {
			for _, rank := range append([]int{d.Rank}, s.Ranks...) {
				for _, scale := range append([]float64{d.Scale}, s.Scales...) {
					add(Setting{Scale: scale, Rank: rank, Stale: stale})
				}
			}
		} else if !stale {
			for _, rank := range []int{d.Rank, 0} {
				for _, scale := range append([]float64{d.Scale}, s.Scales...) {
					add(Setting{Scale: scale, Rank: rank})
				}
			}
			for _, rank := range s.Ranks {
				add(Setting{Scale: d.Scale, Rank: rank})
			}
		}
		if stale {
			add(Setting{Stale: true})
			add(Setting{Covariance: d.Covariance, Scale: d.Scale, Rank: d.Rank, Stale: true})
		}
	}
	return list
}

// Images returns the number of images that a sweep with the given number of members sends through networks.
func (s *Sweep) Images(members int) int64 { return s.images(s.Settings(), members) }

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
	opts := swag.SampleOptions{Seed: s.Seed, Scale: set.Scale, Covariance: set.Covariance, Rank: set.Rank}
	if opts.Rank == s.Network.Posterior.Options.Columns {
		opts.Rank = 0 // all columns, whatever the divisor
	}
	return opts
}

// Run tries all settings. Its memory is that of two averages and every setting's losses, for any number of members.
func (s *Sweep) Run(ctx context.Context, e *infer.Engine) (*Result, error) {
	r := &Result{Sweep: s, Runtime: e.About()}
	var judged [][]float64 // losses on the choosing data
	members := s.Members
	for i, set := range s.Settings() {
		a := &average{sweep: s, setting: set, members: members}
		if i == 1 {
			a.curve = &curve{sweep: s}
			if members == 0 {
				a.members = maxAutoMembers
			}
		}
		if err := a.run(ctx, e); err != nil {
			return nil, err
		}
		r.task = a.test.Task
		p := Point{Setting: set, Members: a.test.Members, Default: i == 1}
		var err error
		if p.Evaluation, err = s.evaluate(&a.test, s.Test); err != nil {
			return nil, fmt.Errorf("%v: %w", set, err)
		}
		if i == 1 {
			members = a.test.Members
			if s.Resize != nil {
				s.Resize(s.Images(members))
			}
			if err := a.curve.finish(ctx, r); err != nil {
				return nil, err
			}
			if r.Warnings, err = s.warnings(&a.test); err != nil {
				return nil, err
			}
		}
		losses := p.Losses[0].Values
		if s.Validation != nil {
			if p.Validation, err = s.evaluate(&a.validation, s.Validation); err != nil {
				return nil, fmt.Errorf("%v: %w", set, err)
			}
			losses = p.Validation.Losses[0].Values
		}
		judged = append(judged, losses)
		r.Points = append(r.Points, p)
	}
	r.differences()
	r.choose(judged, s.Validation != nil)
	return r, ctx.Err()
}

// Fill runs the engine's shard of all members and puts their outputs into its store. The number of members must be
// given.
func (s *Sweep) Fill(ctx context.Context, e *infer.Engine) error {
	for _, set := range s.Settings() {
		a := &average{sweep: s, setting: set, members: s.Members}
		if err := a.run(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// evaluate scores an average on its data.
func (s *Sweep) evaluate(sums *infer.Sums, data dataset.Dataset) (*task.Evaluation, error) {
	return sums.Evaluate(data.Labels(), s.options())
}

func (s *Sweep) options() task.EvaluateOptions {
	return task.EvaluateOptions{EvaluateOptions: calibrate.EvaluateOptions{ECE: s.ECE}, MainOnly: true}
}

// fewImages is the number of images below which bootstrap intervals are too narrow.
const fewImages = 30

// warnings returns the problems with the scores of the default, which apply to all settings.
func (s *Sweep) warnings(sums *infer.Sums) ([]error, error) {
	e, err := sums.Evaluate(s.Test.Labels(), task.EvaluateOptions{EvaluateOptions: calibrate.EvaluateOptions{ECE: s.ECE}})
	if err != nil {
		return nil, err
	}
	out := e.Warnings
	if n := s.Test.Len(); n < fewImages {
		out = append(out, fmt.Errorf("%d test images: with fewer than %d, intervals are too narrow", n, fewImages))
	}
	return out, nil
}

// differences compares every setting with the default.
func (r *Result) differences() {
	d := r.Default()
	between := func(a, b *task.Evaluation) map[string]calibrate.Interval {
		out := map[string]calibrate.Interval{}
		for _, l := range a.Losses {
			out[l.Key] = calibrate.PairedBootstrap(l.Values, b.Loss(l.Key), calibrate.BootstrapOptions{Seed: r.Seed})
		}
		return out
	}
	for i := range r.Points {
		p := &r.Points[i]
		if p.Default {
			continue
		}
		p.Differences = between(p.Evaluation, d.Evaluation)
		if p.Validation != nil {
			p.ValidationDifferences = between(p.Validation, d.Validation)
		}
	}
}

// average is the running average of a setting.
type average struct {
	sweep            *Sweep
	setting          Setting
	members          int
	test, validation infer.Sums
	curve            *curve // of the default only
}

// errEnough stops adding members to a setting.
var errEnough = errors.New("enough members")

// statistics returns what a member of the setting has besides its weights.
func (a *average) statistics(ctx context.Context, e *infer.Engine, parameters weights.Vector) (weights.Slice, error) {
	if a.setting.Stale {
		return a.sweep.Network.State(parameters)
	}
	fresh, err := batchnorm.Recompute(ctx, e, a.sweep.Network, parameters, a.sweep.BatchNorm)
	return fresh.Statistics, err
}

// run averages the members of a setting.
func (a *average) run(ctx context.Context, e *infer.Engine) error {
	s := a.sweep
	if a.setting.SWA() {
		a.members = 1
	}
	err := infer.EachMember(ctx, s.Network.Posterior, s.Draws(a.setting), 0, a.members, func(k int, parameters weights.Vector) error {
		if !e.Shard.Mine() {
			return nil
		}
		who := fmt.Sprintf("%v, member %d", a.setting, k)
		statistics, err := a.statistics(ctx, e, parameters)
		if err != nil {
			return fmt.Errorf("%s: %w", who, err)
		}
		model, err := s.Network.Model(who, parameters, statistics)
		if err != nil {
			return err
		}
		if s.Validation != nil {
			if err := e.Predict(ctx, model, s.Validation, &a.validation); err != nil {
				return err
			}
		}
		if a.curve == nil {
			return e.Predict(ctx, model, s.Test, &a.test)
		}
		member := &infer.Sums{}
		if err := e.Predict(ctx, model, s.Test, member); err != nil {
			return err
		}
		a.test.Merge(member)
		return a.curve.add(member, &a.test)
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
