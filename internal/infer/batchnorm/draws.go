package batchnorm

import (
	"context"
	"fmt"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/rounding"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// Draws are members that are drawn for a measurement. Their batch-norm statistics are computed for it.
type Draws struct {
	Run       infer.Run
	Network   *infer.Network
	BatchNorm Training // settled
	How       swag.SampleOptions
	Count     int
}

func (d Draws) Parts() []infer.Part { return []infer.Part{{Count: d.Count, Graph: d.Network.Graph}} }

// Each makes members first … first+count−1. If the posterior has no columns, they are SWAG-Diag members.
func (d Draws) Each(ctx context.Context, first, count int, f func(infer.Model) error) error {
	return infer.EachMember(ctx, d.Run.Memory(), d.Network.Posterior, possible(d.How, d.Network), first, count,
		func(k int, parameters weights.Vector) error {
			r, err := Recompute(ctx, d.Run.Quiet(), d.Network, parameters, d.BatchNorm)
			if err != nil {
				return err
			}
			m, err := d.Network.Model(fmt.Sprintf("member %d", k), parameters, weights.Slice(r.Statistics))
			if err != nil {
				return err
			}
			return f(m)
		})
}

// possible returns how to draw members of a network. A posterior without columns has SWAG-Diag members only, whatever
// the user asked for.
func possible(how swag.SampleOptions, n *infer.Network) swag.SampleOptions {
	if n.Posterior.Options.Columns > 0 || n.Posterior.Single() {
		return how
	}
	return swag.SampleOptions{
		Seed:       how.Seed,
		Covariance: swag.Diagonal,
		Scale:      swag.Diagonal.DefaultScale(),
		Antithetic: how.Antithetic,
		Orthogonal: how.Orthogonal,
	}
}

// MeasureRounding is [rounding.Measure] of the members. It measures the changes by precision in
// batch-norm passes and in predictions together.
func (d Draws) MeasureRounding(ctx context.Context, opts rounding.Options, data dataset.Dataset) (*rounding.Change, error) {
	opts.Antithetic = d.How.Antithetic
	if d.Network.Recomputes() {
		opts.Making = d.BatchNorm.Images()
	}
	e := d.Run.Engine
	if !d.lower() {
		return rounding.Measure(ctx, e, d, opts, data)
	}
	r := &rounding.Change{
		Provider:  e.Provider().String(),
		BatchNorm: provider(e, d.Network).String(),
		Used:      e.Provider().Precision,
		CPUNodes:  e.Options().Left,
	}
	return r, r.Measure(ctx, []rounding.Side{{MemberSource: d.exactly(), Exact: d.predicting()}, {MemberSource: d, Asked: e}}, opts, data)
}

// MeasurePasses measures how the engine's precision in batch-norm passes changes the average of members. All members
// predict in float32, on averages of two training examples each: see [blend]. The result is nil if passes are in
// float32.
func (d Draws) MeasurePasses(ctx context.Context) (*rounding.Change, error) {
	if !d.lower() {
		return nil, nil
	}
	p, predicts := provider(d.Run.Engine, d.Network), d.predicting()
	r := &rounding.Change{BatchNorm: p.String(), Used: p.Precision, CPUNodes: d.Run.Options().Left}
	sides := []rounding.Side{{MemberSource: d.exactly(), Exact: predicts}, {MemberSource: d, Asked: predicts}}
	return r, r.Measure(ctx, sides, rounding.Options{Antithetic: d.How.Antithetic, SkipErrors: true}, blend(d.BatchNorm, d.Network))
}

// predicting returns the engine that predicts in float32.
func (d Draws) predicting() *infer.Engine {
	return d.Run.With(d.Run.Provider().Exact(), d.Run.Options().Passes)
}

// lower reports whether passes are in a precision below float32, or on a GPU.
func (d Draws) lower() bool {
	p := provider(d.Run.Engine, d.Network)
	return d.Network.Recomputes() && !d.Network.Scoreless() && (p.Precision == ort.BF16 || p.GPU())
}

// exactly returns d with passes in float32. The correction by a control does not change. Precision affects both
// passes of its difference in nearly the same way.
func (d Draws) exactly() Draws {
	d.Run = d.Run.On(d.Run.With(d.Run.Provider(), ort.Provider{}))
	return d
}
