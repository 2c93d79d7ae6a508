package baseline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/tally"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// Predicted holds the predictions of one method.
type Predicted struct {
	Key, Name string
	Members   int
	StaleBN   bool // the batch-norm statistics do not belong to the weights
	Notes     []error
	Data      []*infer.Sums // the sums for each data set
	// Models are the networks of a method whose outcomes are not kept: see [Predicted.Kept]. Data and Validation are then
	// empty.
	Models []infer.Model
	// Validation is nil if nothing is fitted to the method's predictions.
	Validation *infer.Sums
	// Groups holds the predictions of single members, or of groups of members, if Grouped is set. Reordered holds, for
	// a method without draws, one group for each other order of the batch-norm images. It is nil unless Targets.Noise
	// is set.
	Groups, Reordered []*Group
	// Features reads the network of the result. It is nil unless that is SWA of the first run, or its only checkpoint.
	Features Features
	// Head reads the last linear layer of that network. It is nil where Features is.
	Head Head
	// By is the calibration that the method applies to these predictions, or "".
	By task.Method
	// Fitted is the calibration of single members in these predictions, and With changes it. Both are nil without one.
	Fitted *task.Fitted
	With   With
	// Drawn reports that the members are random draws, and that Targets.Noise is set. Grouped reports that Take also
	// adds members to groups.
	Drawn, Grouped bool
	// Antithetic reports that members 2j and 2j+1 are a pair.
	Antithetic bool

	enough *ensemble.Enough  // says whether there are enough members; nil if their number is given
	sets   []dataset.Dataset // those of [Targets], with the validation data last
}

// With returns the outcomes of the first data set and of the validation data with another calibration.
type With func(c *task.Calibration) (data, validation []float64, err error)

// sums returns the sums of all data sets, with the validation data last.
func (p *Predicted) sums() []*infer.Sums {
	if p.Validation == nil {
		return p.Data
	}
	return append(slices.Clone(p.Data), p.Validation)
}

// Predict runs the methods on the data, in the order of tables, and calls f with each result. It returns notes about
// the methods that were left out. It holds the sums of one method in memory, and the results that several methods
// start from.
func Predict(ctx context.Context, run infer.Run, in *Inputs, t Targets, f func(*Predicted) error) (notes []string, err error) {
	return newWork(run, in, t).each(ctx, f)
}

// Fill runs a shard of the methods' networks and puts their outputs into the run's store. Methods that need only
// one pass over a network's features, such as Laplace, are left to Predict. Fill fails like [InOrder] if no method is left.
func Fill(ctx context.Context, run infer.Run, shard *infer.Shard, in *Inputs, t Targets) error {
	w := newWork(run, in, t)
	w.shard = shard
	notes, err := w.each(ctx, discard)
	if err == nil && w.left == 0 {
		return noneLeft(notes)
	}
	return err
}

func discard(*Predicted) error { return nil }

// unfit reports that a method cannot be used on this network.
type unfit struct {
	err   error
	plain bool // reported only if the user asked for the method
}

func (u *unfit) Error() string { return u.err.Error() }

// work is the state of Predict.
type work struct {
	*Inputs
	run      infer.Run
	networks networks
	// shard is the part of the networks that run, or nil for all. With a shard, results are incomplete and unused.
	shard   *infer.Shard
	targets Targets
	yield   func(*Predicted) error
	method  *Method
	left    int // methods that were not left out
	// validates reports whether something is fitted to the method's result, or to the result of Method.From.
	validates bool

	average  *infer.Model          // SWA of the first run
	likeSWAG int                   // members that SWAG got; 0 if it did not run
	shared   map[string]*Predicted // results that several methods start from
}

func newWork(run infer.Run, in *Inputs, t Targets) *work {
	return &work{Inputs: in, run: run, networks: computing{run}, targets: t, shared: map[string]*Predicted{}}
}

// wanted returns the methods to run.
func (w *work) wanted() (wanted []*Method) {
	for _, m := range methods {
		if w.Wants(m.Key) {
			wanted = append(wanted, m)
		}
	}
	return wanted
}

// each runs the methods, and calls f with each result. It returns notes about the methods that were left out.
func (w *work) each(ctx context.Context, f func(*Predicted) error) (notes []string, err error) {
	in, wanted := w.Inputs, w.wanted()
	leaves := false // the last method
	w.yield = func(p *Predicted) error {
		var why string
		if leaves, why = w.targets.leaves(p, w.Runs[0].Network); leaves {
			if why != "" && !slices.Contains(notes, why) {
				notes = append(notes, why)
			}
			return nil
		}
		if p.Key == SWA || p.Key == SGD && in.Single() {
			p.Features, p.Head = w.tap, w.lastLinear
		}
		return f(p)
	}
	for i, m := range wanted {
		if m.Outcomes && w.large() {
			if slices.Contains(in.Asked, m.Key) {
				notes = append(notes, fmt.Sprintf("%s is left out: it needs the outcomes of all pixels or tokens in memory", m.Name(in)))
			}
			continue
		}
		w.method, w.validates, leaves = m, w.targets.validates(in.fits(m)), false
		err := m.Run(ctx, w)
		if !slices.ContainsFunc(wanted[i+1:], func(o *Method) bool { return o.From == m.From }) {
			delete(w.shared, m.From)
		}
		if u := (*unfit)(nil); errors.As(err, &u) {
			if !u.plain || slices.Contains(in.Asked, m.Key) {
				notes = append(notes, fmt.Sprintf("%s is left out: %v", m.Name(in), u.err))
			}
			continue
		}
		if err != nil {
			return notes, err
		}
		if !leaves {
			w.left++
		}
	}
	return notes, nil
}

// predicted returns an empty result for the method, and for those that start from it.
func (w *work) predicted() *Predicted { return w.result(w.validates) }

// own returns an empty result that no method fits anything to.
func (w *work) own() *Predicted { return w.result(w.targets.validates(false)) }

// result returns an empty result for the method, with the validation data or without.
func (w *work) result(validates bool) *Predicted {
	p := &Predicted{Key: w.method.Key, Name: w.method.Name(w.Inputs), Grouped: w.targets.Members, sets: w.targets.all()}
	for range w.targets.Data {
		p.Data = append(p.Data, &infer.Sums{})
	}
	if validates {
		p.Validation = &infer.Sums{}
	}
	return p
}

// mine reports whether this process must run the next network.
func (w *work) mine() bool { return w.shard.Mine() }

// predict adds the predictions of a model for all data to p.
func (w *work) predict(ctx context.Context, p *Predicted, m infer.Model) error {
	one := p
	if p.Grouped || p.enough != nil {
		one = w.result(p.Validation != nil)
		one.Data = one.Data[:len(p.Data)]
	}
	for i, sums := range one.sums() {
		if err := w.networks.predict(ctx, m, w.targets.all()[i], sums); err != nil {
			return err
		}
	}
	if one.Members++; one != p {
		if p.enough != nil {
			p.enough.Add(one.Data[0])
		}
		p.Take(one, p.group(one))
	}
	return nil
}

// large reports whether outcomes are not kept: see [Predicted.Kept].
func (w *work) large() bool { return w.Runs[0].Network.Large() }

// add runs the model that make returns, unless another job has it.
func (w *work) add(ctx context.Context, p *Predicted, build func() (infer.Model, error)) error {
	if !w.mine() {
		return nil
	}
	m, err := build()
	if err != nil {
		return err
	}
	if w.large() {
		p.Models = append(p.Models, m)
		p.Members++
		return p.look(ctx, w, m)
	}
	m, closeSession := m.Keep()
	defer closeSession()
	return w.predict(ctx, p, m)
}

// checkpoint runs a checkpoint with its own statistics.
func (w *work) checkpoint(ctx context.Context, p *Predicted, m *onnxio.Model) error {
	return w.add(ctx, p, func() (infer.Model, error) { return w.Runs[0].Network.AsIs(m) })
}

// draw runs a member after it has recomputed the batch-norm statistics.
func (w *work) draw(ctx context.Context, p *Predicted, n *infer.Network, who string, weight float64, parameters weights.Vector) error {
	if w.large() { // the model outlives the drawn weights
		kept := make([]float32, parameters.Len())
		if err := parameters.ReadAt(kept, 0); err != nil {
			return err
		}
		parameters = weights.Slice(kept)
	}
	return w.add(ctx, p, func() (infer.Model, error) {
		m, err := w.recomputed(ctx, n, who, parameters, w.BatchNorm)
		m.Weight = weight
		return m, err
	})
}

// recomputed returns a network with the given weights and the batch-norm statistics of data.
func (w *work) recomputed(ctx context.Context, n *infer.Network, who string, parameters weights.Vector,
	data batchnorm.Training) (infer.Model, error) {
	fresh, err := w.networks.recompute(ctx, n, parameters, data)
	if err != nil {
		return infer.Model{}, fmt.Errorf("%s: %w", who, err)
	}
	return n.Model(who, parameters, weights.Slice(fresh.Statistics))
}

// random marks an empty result as one of random draws.
func (w *work) random(p *Predicted) *Predicted {
	p.Drawn, p.Grouped = w.targets.Noise, w.targets.Noise || w.targets.Members
	return p
}

// look lets a member whose outcomes are not kept predict a few examples, if they say whether there are enough members.
func (p *Predicted) look(ctx context.Context, w *work, m infer.Model) error {
	if p.enough == nil {
		return nil
	}
	var sums infer.Sums
	few := dataset.Picked(w.targets.Data[0], ensemble.Judged(w.targets.Data[0], true))
	err := w.run.Predict(tally.For(ctx, tally.Check("number of members")), m, few, &sums)
	if err == nil {
		p.enough.Add(&sums)
	}
	return err
}

// drawn prepares a result of members that are drawn as how says: until there are enough of them, if their number is not
// given. A job of several, and a rehearsal, do not see all outcomes: they take the largest number.
func (p *Predicted) drawn(w *work, how swag.SampleOptions) {
	p.Antithetic = how.Antithetic
	_, computes := w.networks.(computing)
	judged := ensemble.Judged(w.targets.Data[0], w.large())
	if w.Members > 0 || !how.Antithetic || !computes || w.shard != nil || judged == nil {
		return
	}
	if p.enough = (&ensemble.Enough{}); !w.large() { // else look predicts no others
		p.enough.Judged = judged
	}
}

// want returns the number of members that a result should have.
func (p *Predicted) want(w *work) (int, error) {
	if p.enough == nil && p.Members == 0 {
		return w.most(), nil
	}
	if p.enough != nil {
		if !p.enough.Reached() {
			return p.Members + 2, nil
		}
		p.enough = nil
	}
	if w.targets.More != nil && w.shard == nil {
		return w.targets.More(p)
	}
	return p.Members, nil
}

// sampled returns a function that predicts with members of the first run's posterior. It draws as many more as
// [Targets.More] asks for.
func (w *work) sampled(how swag.SampleOptions) func(context.Context) (*Predicted, error) {
	how.Seed = w.Seed
	return func(ctx context.Context) (*Predicted, error) {
		p, n := w.random(w.predicted()), w.Runs[0].Network
		p.drawn(w, how)
		for drawn := 0; ; {
			want, err := p.want(w)
			if err != nil || want <= drawn {
				return p, err
			}
			err = infer.EachMember(ctx, w.run.Memory(), n.Posterior, how, drawn, want-drawn, func(k int, parameters weights.Vector) error {
				return w.draw(ctx, p, n, fmt.Sprintf("%s member %d", p.Name, k), 1, parameters)
			})
			if err != nil {
				return nil, err
			}
			drawn = want
		}
	}
}

// swa returns the SWA network of a run. It makes that of the first run once.
func (w *work) swa(ctx context.Context, run int) (infer.Model, error) {
	if run == 0 && w.average != nil {
		return *w.average, nil
	}
	n := w.Runs[run].Network
	s, err := swag.NewSampler(n.Posterior, swag.SampleOptions{}) // scale 0 is SWA
	if err != nil {
		return infer.Model{}, err
	}
	m, err := w.recomputed(ctx, n, "SWA", s.Vector(ctx, 0), w.BatchNorm.ForMember(n, swag.SampleOptions{}, 0))
	if err == nil && run == 0 {
		w.average = &m
	}
	return m, err
}

// Results that several methods start from.
const (
	fromLast = "the last iterate"
	fromSWA  = "SWA"
	fromSWAG = "SWAG"
)

// share calls make once for all methods that start from its result, and returns that result.
func (w *work) share(build func() (*Predicted, error)) (p *Predicted, err error) {
	if p = w.shared[w.method.From]; p == nil {
		if p, err = build(); err == nil {
			w.shared[w.method.From] = p
		}
	}
	return p, err
}

// lastIterate returns the predictions of the first run's last checkpoint.
func (w *work) lastIterate(ctx context.Context) (*Predicted, error) {
	return w.share(func() (*Predicted, error) {
		p := w.predicted()
		return p, w.last(ctx, p, w.Runs[0])
	})
}

// last runs the last checkpoint of a run, with its own statistics.
func (w *work) last(ctx context.Context, p *Predicted, r Run) error {
	if r.Network.Posterior.Single() {
		return w.add(ctx, p, r.Network.LastCheckpoint)
	}
	return w.checkpoint(ctx, p, r.Checkpoints[len(r.Checkpoints)-1])
}

// swaOf returns the predictions of the first run's SWA.
func (w *work) swaOf(ctx context.Context) (*Predicted, error) {
	return w.share(func() (*Predicted, error) {
		p := w.predicted()
		m, err := w.swa(ctx, 0)
		if err == nil {
			err = w.add(ctx, p, func() (infer.Model, error) { return m, nil })
		}
		if err == nil {
			err = w.reorder(ctx, p, m)
		}
		return p, err
	})
}

// swagOf returns the predictions of the first run's SWAG.
func (w *work) swagOf(ctx context.Context) (*Predicted, error) {
	return w.share(func() (*Predicted, error) {
		p, err := w.sampled(w.swag())(ctx)
		if err == nil && w.shard == nil {
			w.likeSWAG = p.Members
		}
		return p, err
	})
}

// scaled yields the result of begin under the name of the method, to be calibrated by the given method or "" for none.
func (w *work) scaled(ctx context.Context, begin func(context.Context) (*Predicted, error), by task.Method) error {
	p, err := begin(ctx)
	if err != nil {
		return err
	}
	own := *p
	own.Key, own.Name, own.By = w.method.Key, w.method.Name(w.Inputs), by
	return w.yield(&own)
}
