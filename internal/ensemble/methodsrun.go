package ensemble

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// Each runs the methods over the data and calls f with what each says, in the
// order of the work. The sums of one method at a time are in memory, and two
// more for each deep ensemble.
func (l *Lineup) Each(ctx context.Context, e *Engine, t Targets, f func(*Predicted) error) error {
	w := &work{Lineup: l, ctx: ctx, engine: e, targets: t, yield: f}
	l.Notes = nil
	for _, step := range []func() error{w.iterates, w.average, w.sequences, w.sampled, w.otherRuns, w.mixture} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// work is a Lineup at work.
type work struct {
	*Lineup
	ctx     context.Context
	engine  *Engine
	targets Targets
	yield   func(*Predicted) error

	deepSGD, deepSWA *Predicted
}

// note says that a method was left out.
func (w *work) note(method string, why error) {
	w.Notes = append(w.Notes, fmt.Sprintf("%s is left out: %v", w.name(method), why))
}

// predicted returns an empty result of a method.
func (w *work) predicted(method string) *Predicted {
	p := &Predicted{Method: method, Name: w.name(method)}
	for range w.targets.Data {
		p.Data = append(p.Data, &Sums{})
	}
	if w.targets.Validation != nil {
		p.Validation = &Sums{}
	}
	return p
}

// sums lists those of all data sets, the validation data last.
func (p *Predicted) sums() []*Sums {
	if p.Validation == nil {
		return p.Data
	}
	return append(slices.Clone(p.Data), p.Validation)
}

// merge adds the members of o.
func (p *Predicted) merge(o *Predicted) {
	for i, s := range o.sums() {
		p.sums()[i].merge(s)
	}
	p.Members += o.Members
}

// run adds what a network with weights says of all data to p.
func (w *work) run(p *Predicted, name string, filled onnxio.Filled, weight float64) error {
	for i, d := range w.targets.all() {
		if err := w.engine.Predict(w.ctx, name, filled, d, weight, p.sums()[i]); err != nil {
			return err
		}
	}
	p.Members++
	return nil
}

// checkpoint runs a checkpoint as it is, with the statistics in it.
func (w *work) checkpoint(p *Predicted, m *onnxio.Model) error {
	filled, err := m.Runtime()
	if err != nil {
		return err
	}
	return w.run(p, m.Path, filled, 1)
}

// iterates runs SGD's.
func (w *work) iterates() error {
	models := w.Runs[0].Iterates
	if !w.wants(SGD) && !w.wants(SGDs) && !w.wants(DeepSGD) {
		return nil
	}
	all, last := w.predicted(SGDs), w.predicted(SGD)
	if err := w.checkpoint(last, models[len(models)-1]); err != nil {
		return err
	}
	if w.wants(DeepSGD) {
		w.deepSGD = w.predicted(DeepSGD)
		w.deepSGD.merge(last)
	}
	if w.wants(SGD) {
		if err := w.yield(last); err != nil {
			return err
		}
	}
	if !w.wants(SGDs) {
		return nil
	}
	for _, m := range models[:len(models)-1] {
		if err := w.checkpoint(all, m); err != nil {
			return err
		}
	}
	all.merge(last)
	return w.yield(all)
}

// average runs SWA of the first run, and what is made of it.
func (w *work) average() error {
	return w.withSWA(0, func(swa swaWeights) error {
		n := w.Runs[0].Network
		if w.wants(StaleSWA) {
			p := w.predicted(StaleSWA)
			p.StaleBN = true
			if err := w.member(p, n, swa.parameters, n.Posterior.Statistics, "SWA", 1); err != nil {
				return err
			}
			if err := w.yield(p); err != nil {
				return err
			}
		}
		if w.wants(SWA) || w.wants(SWATemp) || w.wants(SWAVector) || w.wants(DeepSWA) {
			p := w.predicted(SWA)
			if err := w.member(p, n, swa.parameters, swa.statistics, "SWA", 1); err != nil {
				return err
			}
			if w.wants(DeepSWA) {
				w.deepSWA = w.predicted(DeepSWA)
				w.deepSWA.merge(p)
			}
			if err := w.yield(p); err != nil {
				return err
			}
		}
		for _, baseline := range []struct {
			method string
			run    func(swaWeights) (*Predicted, error)
		}{{Dropout, w.dropout}, {Laplace, w.laplace}} {
			if !w.wants(baseline.method) {
				continue
			}
			p, err := baseline.run(swa)
			var u *unfit
			switch {
			case errors.As(err, &u):
				if !u.plain || slices.Contains(w.Methods, baseline.method) {
					w.note(baseline.method, u.err)
				}
			case err != nil:
				return err
			default:
				if err := w.yield(p); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// unfit is the error of a method that a network does not suit.
type unfit struct {
	err   error
	plain bool // nothing to tell those who did not ask for the method
}

func (u *unfit) Error() string { return u.err.Error() }

// swaWeights is the mean of a posterior with its recomputed statistics.
type swaWeights struct {
	parameters, statistics weights.Vector
}

// withSWA calls f with the SWA weights of a run.
func (w *work) withSWA(run int, f func(swaWeights) error) error {
	n := w.Runs[run].Network
	return EachMember(w.ctx, n.Posterior, swag.SampleOptions{}, 0, 1, func(_ int, parameters weights.Vector) error {
		fresh, err := w.engine.Recompute(w.ctx, n, parameters, w.BatchNorm)
		if err != nil {
			return fmt.Errorf("SWA: %w", err)
		}
		return f(swaWeights{parameters, weights.Slice(fresh.Statistics)})
	})
}

// member runs a network of ours with weights and statistics.
func (w *work) member(p *Predicted, n *Network, parameters, statistics weights.Vector, name string, weight float64) error {
	filled, err := n.Model(parameters, statistics)
	if err != nil {
		return err
	}
	return w.run(p, n.Posterior.Path+": "+name, filled, weight)
}

// draw runs a member after a pass over the batch-norm images.
func (w *work) draw(p *Predicted, run int, parameters weights.Vector, name string, weight float64) error {
	n := w.Runs[run].Network
	fresh, err := w.engine.Recompute(w.ctx, n, parameters, w.BatchNorm)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return w.member(p, n, parameters, weights.Slice(fresh.Statistics), name, weight)
}

// sampled runs members of the first run's posterior.
func (w *work) sampled() error {
	for _, drawn := range []struct {
		method     string
		covariance swag.Covariance
		scale      float64
	}{
		{SWAGDiag, swag.Diagonal, swag.Diagonal.DefaultScale()},
		{SWAG, swag.LowRankPlusDiagonal, w.Scale},
		{Isotropic, swag.Isotropic, w.Scale},
	} {
		if !w.wants(drawn.method) {
			continue
		}
		p := w.predicted(drawn.method)
		opts := swag.SampleOptions{Seed: w.Seed, Scale: drawn.scale, Covariance: drawn.covariance}
		err := EachMember(w.ctx, w.Runs[0].Network.Posterior, opts, 0, w.Members, func(k int, parameters weights.Vector) error {
			return w.draw(p, 0, parameters, fmt.Sprintf("%s member %d", p.Name, k), 1)
		})
		if err == nil {
			err = w.yield(p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sequences runs checkpoints from elsewhere.
func (w *work) sequences() error {
	if !w.wants(Iterates) {
		return nil
	}
	for _, s := range w.Sequences {
		own, fresh := w.predicted(Iterates), w.predicted(Iterates)
		own.Name, fresh.Name = s.Name, s.Name+", BN recomputed"
		for _, m := range s.Models {
			if err := w.checkpoint(own, m); err != nil {
				return err
			}
			if !s.Recompute {
				continue
			}
			parameters, _, err := w.Runs[0].Network.Checkpoint(m)
			if err == nil {
				err = w.draw(fresh, 0, parameters, m.Path, 1)
			}
			if err != nil {
				return err
			}
		}
		if err := w.yield(own); err != nil {
			return err
		}
		if s.Recompute {
			if err := w.yield(fresh); err != nil {
				return err
			}
		}
	}
	return nil
}

// otherRuns adds what the other runs have to the deep ensembles.
func (w *work) otherRuns() error {
	for i := 1; i < len(w.Runs); i++ {
		if w.deepSGD != nil {
			models := w.Runs[i].Iterates
			if err := w.checkpoint(w.deepSGD, models[len(models)-1]); err != nil {
				return err
			}
		}
		if !w.wants(DeepSWA) && !w.wants(MultiSWAG) {
			continue
		}
		err := w.withSWA(i, func(swa swaWeights) error {
			if w.deepSWA == nil {
				return nil
			}
			return w.member(w.deepSWA, w.Runs[i].Network, swa.parameters, swa.statistics, "SWA", 1)
		})
		if err != nil {
			return err
		}
	}
	for _, p := range []*Predicted{w.deepSGD, w.deepSWA} {
		if p != nil {
			if err := w.yield(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// mixture runs MultiSWAG: as many members in all as SWAG has, spread over the
// runs, so that both cost the same.
func (w *work) mixture() error {
	if !w.wants(MultiSWAG) {
		return nil
	}
	components, err := Mix(len(w.Runs), w.Members, nil, false)
	if err != nil {
		return err
	}
	e := &Ensemble{Components: components, Sampling: Sampling{Seed: w.Seed, Scale: w.Scale, Covariance: swag.LowRankPlusDiagonal.String()}}
	var networks []*Network
	for _, r := range w.Runs {
		networks = append(networks, r.Network)
	}
	p := w.predicted(MultiSWAG)
	err = e.EachMember(w.ctx, networks, 0, func(m Member) error {
		return w.draw(p, m.Component, m.Parameters, fmt.Sprintf("MultiSWAG member %d", m.Number), m.Weight)
	})
	if err != nil {
		return err
	}
	return w.yield(p)
}
