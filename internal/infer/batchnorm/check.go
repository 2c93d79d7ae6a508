package batchnorm

import (
	"context"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
)

// [bnupdate.Plan.Check] needs at least checkBatches batches, which are smaller if there are few images. With fewer
// images than leastChecked, noise and a mistake look the same.
const (
	checkBatches = 8
	leastChecked = 64
)

// checkImages returns the number of images that the check takes at each checkpoint, if there are as many.
func checkImages(size int) int { return checkBatches * max(size, leastChecked) }

// check compares the images with the statistics that the network's checkpoints store. It takes the images in random
// order, even if --bn-order says file order. The record's warnings say whether file order is random. If there are too
// few images, check returns how many more it needs, and a nil Check.
func check(ctx context.Context, e *infer.Engine, n *infer.Network, data Training, size int) (c *bnupdate.Check, more int, err error) {
	own, images := *e, data.Images()
	if n.Passes.Batch == 0 {
		own.BatchSize = max(leastBatch, min(size, images/4))
	} else if more = 2*size - images; more > 0 {
		return nil, more, nil
	}
	if more = leastChecked - images; more > 0 {
		return nil, more, nil
	}
	size = max(own.BatchSize, n.Passes.Batch)
	limit := min(checkImages(size), images) / size * size
	if !data.Order.Shuffle {
		data.Data = dataset.Subset(data.Data, data.Order)
		data.Order = dataset.Order{Shuffle: true, Seed: data.Order.Seed}
	}
	data.Order.Limit = limit
	var fresh []bnupdate.Result
	for _, theta := range n.Posterior.Recent(bnupdate.Compared) {
		r, err := Recompute(ctx, &own, n, theta, data)
		if err != nil {
			return nil, 0, err
		}
		fresh = append(fresh, r)
	}
	return n.Passes.Plan.Check(n.Posterior.StoredStatistics, fresh), 0, nil
}
