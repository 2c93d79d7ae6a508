package batchnorm

import (
	"context"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/weights"
)

const (
	LossExamples = lossExamples
	LossBatches  = lossBatches
)

// Uncontrolled is settled data whose statistics are not corrected.
func (t Training) Uncontrolled() Training {
	t.controls = nil
	return t
}

// Blend is the data that losses are estimated on; whole makes its values integers.
func Blend(data Training, n *infer.Network, whole bool) dataset.Dataset {
	b := blend(data, n).(*blended)
	if whole {
		b.whole[0] = true
	}
	return b
}

// Loss estimates what statistics from one image would cost.
func Loss(ctx context.Context, run infer.Run, n *infer.Network, data Training, parameters weights.Vector, r bnupdate.Result) (float64, error) {
	s := &sizing{run: run, n: n, data: data, size: run.Options().BatchSize}
	return s.loss(ctx, parameters, r, nil)
}

// Extend runs the batches behind those of an earlier pass.
var Extend = extend

// WarnInitial warns of statistics that nothing ever changed.
func (r *Record) WarnInitial(statistics []float32) { r.warnInitial(statistics) }

// Warn fills in the warnings of a pass over the images.
func (r *Record) Warn(of bnupdate.Result) { r.warn(of) }

// Explicit makes the network's passes run the graph that is written out, on whatever
// provider.
func Explicit(n *infer.Network) error {
	plan, err := n.Passes.Explicit()
	if err == nil {
		n.Passes.Plan = plan
	}
	return err
}

// RecomputeBatches is Recompute over the given batches.
func RecomputeBatches(ctx context.Context, run infer.Run, n *infer.Network, parameters weights.Vector, data Training, batches [][]int) (bnupdate.Result, error) {
	return recompute(ctx, run, n, parameters, data, bnupdate.Result{}, func(*infer.Session) ([][]int, error) { return batches, nil })
}
