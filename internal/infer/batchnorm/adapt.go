package batchnorm

import (
	"context"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/weights"
)

// Adaptation mixes statistics of target data, which need no labels, into those of a network: see [bnupdate.Plan.Mix].
type Adaptation struct {
	Target dataset.Dataset
	Weight float64
	Seed   uint64 // of the choice of examples, and of their order
}

// Bounds of target data. LeastTarget is the fewest examples whose statistics help: fixtures/adapt has the figures.
// mostTarget is how many a network sees. More change the statistics by less than chance does.
const (
	LeastTarget = 64
	mostTarget  = 1024
)

// DefaultWeight is the share of the target in the statistics: fixtures/adapt/README.md says how it was chosen.
const DefaultWeight = 0.2

// Examples returns the number of examples that a network sees.
func (a Adaptation) Examples() int { return min(mostTarget, a.Target.Len()) }

// Statistics returns the statistics of a network with the given weights, adapted from those of the source, and how far the
// target moves the first layer: see [bnupdate.Plan.Moved]. adapting is the network's [infer.Network.Adapting].
func (a Adaptation) Statistics(ctx context.Context, run infer.Run, adapting *infer.Network, parameters weights.Vector,
	source []float32) (mixed []float32, moved float64, err error) {
	order := dataset.Order{Shuffle: true, Seed: a.Seed, Limit: a.Examples()}
	r, err := Recompute(ctx, run, adapting, parameters, Training{Data: a.Target, Order: order, source: source})
	if err != nil {
		return nil, 0, err
	}
	plan := adapting.Passes.Plan
	return plan.Mix(source, r.Statistics, a.Weight), plan.Moved(source, r.Statistics), nil
}
