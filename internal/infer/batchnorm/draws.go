package batchnorm

import (
	"context"
	"fmt"

	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// Draws are members that are drawn for a measurement, and get their batch-norm statistics
// for it.
type Draws struct {
	Engine    *infer.Engine
	Network   *infer.Network
	BatchNorm Training // settled
	How       swag.SampleOptions
	Count     int
}

func (d Draws) Parts() []infer.Part { return []infer.Part{{Count: d.Count, Graph: d.Network.Graph}} }

// Each makes members first … first+count−1. Of a posterior without columns they are
// SWAG-Diag's.
func (d Draws) Each(ctx context.Context, first, count int, f func(infer.Model) error) error {
	p := d.Network.Posterior
	if p.Options.Columns == 0 {
		d.How = swag.SampleOptions{Seed: d.How.Seed, Covariance: swag.Diagonal, Scale: swag.Diagonal.DefaultScale()}
	}
	quiet := *d.Engine
	quiet.Progress = nil
	return infer.EachMember(ctx, p, d.How, first, count, func(k int, parameters weights.Vector) error {
		r, err := Recompute(ctx, &quiet, d.Network, parameters, d.BatchNorm)
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
