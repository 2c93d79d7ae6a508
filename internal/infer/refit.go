package infer

import (
	"context"
	"io"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
)

// Refit writes to w the posterior of the first checkpoints, fitted with the options of n's posterior. models are these
// checkpoints, with the network that training started from in front if n's posterior counts it.
func (n *Network) Refit(ctx context.Context, w io.WriterAt, models []*onnxio.Model) error {
	p := n.Posterior
	in := swag.Input{Layout: p.Layout, Card: p.Card, Template: p.Template, Graph: p.Graph}
	list := p.Checkpoints
	if p.Theta0 != nil {
		list = append([]swag.Checkpoint{*p.Theta0}, list...)
	}
	for i, m := range models {
		ck, err := list[i], error(nil)
		if ck.Theta, ck.Statistics, err = n.Vectors(m); err != nil {
			return err
		}
		if i == 0 && p.Theta0 != nil {
			in.Theta0 = &ck
		} else {
			in.Checkpoints = append(in.Checkpoints, ck)
		}
	}
	o := p.Options
	return swag.Fit(ctx, w, in, swag.FitOptions{
		Rank:       o.Rank,
		DiagOnly:   o.Rank == 0,
		Deviations: o.Deviations,
		Power:      o.Power,
		Reference:  o.Compat != "",
		Roles:      o.Roles,
	})
}
