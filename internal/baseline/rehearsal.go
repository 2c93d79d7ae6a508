package baseline

import (
	"context"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/weights"
)

// networks is what methods ask of networks: [computing] runs them, and a [rehearsal] only counts.
type networks interface {
	// predict adds the outcomes of a model for the data to sums.
	predict(ctx context.Context, m infer.Model, data dataset.Dataset, sums *infer.Sums) error
	// recompute returns the batch-norm statistics and buffers for some weights.
	recompute(ctx context.Context, n *infer.Network, parameters weights.Vector, data batchnorm.Training) (bnupdate.Result, error)
}

// computing runs networks.
type computing struct{ infer.Run }

func (c computing) predict(ctx context.Context, m infer.Model, data dataset.Dataset, sums *infer.Sums) error {
	return c.Predict(ctx, m, data, sums)
}

func (c computing) recompute(ctx context.Context, n *infer.Network, parameters weights.Vector,
	data batchnorm.Training) (bnupdate.Result, error) {
	return batchnorm.Recompute(ctx, c.Run, n, parameters, data)
}

// rehearsal runs no network to predict or to recompute statistics. It calls missing with the data and the number of
// images that a network would see, unless the store has the outputs. Sums stay empty.
type rehearsal struct {
	run     infer.Run
	missing func(data dataset.Dataset, images int)
}

func (r rehearsal) predict(_ context.Context, m infer.Model, data dataset.Dataset, _ *infer.Sums) error {
	has, err := r.run.Has(m, data)
	if !has && err == nil {
		r.missing(data, data.Len())
	}
	return err
}

// recompute returns zeros for statistics that the store does not have. It does not have the outcomes of a network with
// these either.
func (r rehearsal) recompute(ctx context.Context, n *infer.Network, parameters weights.Vector,
	data batchnorm.Training) (bnupdate.Result, error) {
	found, ok, err := batchnorm.Stored(ctx, r.run, n, parameters, data)
	if !ok && err == nil {
		r.missing(data.Data, data.Images())
		found.Statistics = make([]float32, len(n.Posterior.Statistics))
	}
	return found, err
}

// Left rehearses the shard of the methods' networks. It calls missing, from several goroutines, with data and the number
// of its images that networks would see in [Predict] or [Fill]. The run's store has the outputs for the rest.
func Left(ctx context.Context, run infer.Run, shard *infer.Shard, in *Inputs, t Targets,
	missing func(data dataset.Dataset, images int)) error {
	w := newWork(run, in, t)
	w.networks, w.shard = rehearsal{run, missing}, shard
	for _, m := range w.wanted() {
		if m.Features && !(m.Outcomes && w.large()) {
			for _, d := range t.all() {
				missing(d, d.Len())
			}
		}
	}
	_, err := w.each(ctx, discard)
	return err
}
