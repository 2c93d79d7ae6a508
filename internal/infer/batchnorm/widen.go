package batchnorm

import (
	"cmp"
	"context"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/onnxio"
)

// widen makes the batch-norm pass ready if a network was exported for batches of one small size, because statistics
// need larger batches. The pass runs the graph with a free batch if that computes each example like the fixed batch.
// Otherwise a batch of 1 is an error, since the variance of a single example is no estimate.
func widen(ctx context.Context, e *infer.Engine, n *infer.Network, data dataset.Dataset) error {
	p := n.Passes
	err := p.Ready(func() error {
		p.Batch = int(max(n.Input.Shape[0], 0))
		if p.Batch == 0 || p.Batch >= leastBatch {
			return nil
		}
		err := tryWider(ctx, e, n, data)
		if err != nil && p.Batch == 1 {
			return &onnxio.Error{Path: n.Posterior.Path, Tensor: n.Input.Name, What: "takes single examples only, whose batch-norm statistics are wrong", Err: err,
				Hint: "export the checkpoints with a dynamic batch dimension: torch.onnx.export(..., dynamic_axes={\"input\": {0: \"batch\"}}) or dynamic_shapes"}
		}
		return nil
	})
	return cmp.Or(ctx.Err(), err)
}

// tryWider replaces the plan by one with a free batch.
func tryWider(ctx context.Context, e *infer.Engine, n *infer.Network, data dataset.Dataset) error {
	p := n.Passes
	free, err := e.DynamicBatch(ctx, n, data)
	if err != nil {
		return err
	}
	plan, err := bnupdate.NewPlan(free, n.Posterior.Layout, p.Keep)
	if err == nil {
		p.Plan, p.Model, p.Batch = plan, free, 0
	}
	return err
}
