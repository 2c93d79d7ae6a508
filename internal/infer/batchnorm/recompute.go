package batchnorm

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// Training is the data that statistics are recomputed from. [ChooseSampleSize] makes it ready.
type Training struct {
	Data  dataset.Dataset
	Order dataset.Order
	Rule  bnupdate.Rule

	// members and controls are set by [ChooseSampleSize]: how many images of the order members see, if fewer than all,
	// and what corrects their statistics.
	members  int
	controls map[*infer.Network]bnupdate.Control
}

// Images returns the number of images in one recomputation.
func (b Training) Images() int {
	if b.members > 0 {
		return b.members
	}
	return b.Visited()
}

// Visited returns the number of images that the order visits. So many training images are available for other uses.
func (b Training) Visited() int {
	switch {
	case b.Data == nil:
		return 0
	case b.Order.Limit > 0:
		return min(b.Order.Limit, b.Data.Len())
	}
	return b.Data.Len()
}

// Reordered returns the data in another order, k ≥ 1, with as many images as SWA sees.
func (b Training) Reordered(k uint64) Training {
	b.Order.Seed += k << 32 // a user is unlikely to give such a seed
	b.members, b.controls = 0, nil
	return b
}

// Recompute returns the batch-norm statistics and buffers for the given weights. If the network has no statistics to
// recompute, the result has no images, and data may be zero.
func Recompute(ctx context.Context, e *infer.Engine, n *infer.Network, parameters weights.Vector, data Training) (bnupdate.Result, error) {
	if !n.Recomputes() {
		state, err := n.State(parameters)
		if err != nil {
			return bnupdate.Result{}, fmt.Errorf("%s: %w", n.Posterior.Path, err)
		}
		return bnupdate.Recompute(ctx, n.Passes.Plan, nil, bnupdate.Options{State: state})
	}
	return extend(ctx, e, n, parameters, data, bnupdate.Result{})
}

// extend is Recompute after a pass over the first batches, whose result is some. It runs only the others.
func extend(ctx context.Context, e *infer.Engine, n *infer.Network, parameters weights.Vector, data Training, some bnupdate.Result) (bnupdate.Result, error) {
	if err := widen(ctx, e, n, data.Data); err != nil {
		return bnupdate.Result{}, err
	}
	return recompute(ctx, e, n, parameters, data, some, func(s *infer.Session) ([][]int, error) {
		size, err := e.TrainingBatch(s)
		if err != nil {
			return nil, err
		}
		order := data.Order
		order.Limit = data.Images()
		batches := slices.Collect(order.Batches(data.Data.Len(), size))
		if last := len(batches) - 1; last >= 0 && s.FixedBatch() > 0 && len(batches[last]) < size {
			batches = batches[:last] // a network with a fixed batch takes no shorter batch
		}
		return batches, nil
	})
}

// recompute is extend over the caller's batches.
func recompute(ctx context.Context, e *infer.Engine, n *infer.Network, parameters weights.Vector, data Training, some bnupdate.Result, batches func(*infer.Session) ([][]int, error)) (bnupdate.Result, error) {
	fail := func(err error) (bnupdate.Result, error) {
		return bnupdate.Result{}, fmt.Errorf("%s: %w", n.Posterior.Path, err)
	}
	plan, e := planned(e, n)
	state, err := n.State(parameters)
	if err != nil {
		return fail(err)
	}
	// The statistics in the graph are not used here, but must be finite.
	model, err := plan.Template.Fill(n.Posterior.Layout, parameters, state)
	if err != nil {
		return fail(err)
	}
	run := func(from bnupdate.Runner) (bnupdate.Result, error) {
		r, err := bnupdate.Recompute(ctx, n.Passes.Plan, from, bnupdate.Options{Rule: data.Rule, Workers: e.Threads(), State: state})
		if control, ok := data.controls[n]; ok && err == nil {
			n.Passes.Plan.Correct(r.Statistics, control)
		}
		return r, err
	}
	key, was, err := storedPass(e, n, model, data)
	if err != nil {
		return fail(err)
	}
	if was != nil {
		return run(was)
	}
	if e.Missing != nil { // a network with these statistics is not in the store
		e.Missing(data.Data, data.Images())
		return bnupdate.Result{Statistics: make([]float32, len(state))}, nil
	}
	s, err := e.Open(ctx, n.Graph, model, plan.Outputs...)
	if err != nil {
		return fail(err)
	}
	defer s.Close()
	if err := e.Place(ctx, &n.Passes.Placed, n.Posterior.Path+": batch norm", n.Graph, s, model, data.Data, plan.Outputs...); err != nil {
		return fail(err)
	}
	idx, err := batches(s)
	if err != nil {
		return fail(err)
	}
	fresh := &recorder{&batchRunner{e: e, s: s, data: data.Data, batches: idx, done: some}, make(pass, len(idx))}
	r, err := run(fresh)
	if err == nil && key != nil {
		err = e.Store.Put(key, infer.Note{Of: n.Posterior.Path}, len(idx), fresh.seen.row)
	}
	return r, err
}

// planned returns the plan of the network's batch-norm passes, and the engine that runs it.
func planned(e *infer.Engine, n *infer.Network) (*bnupdate.Plan, *infer.Engine) {
	own, plan := *e, n.Passes.Plan
	own.Provider = provider(e, n)
	if own.Provider.Explicit() {
		plan, _ = n.Passes.Explicit()
	}
	return plan, &own
}

// provider returns the provider of the network's passes. It is the CPU's if batch norm cannot be written out for
// it in operators.
func provider(e *infer.Engine, n *infer.Network) ort.Provider {
	if e.Passes.Explicit() {
		if _, err := n.Passes.Explicit(); err != nil {
			return ort.Provider{}
		}
	}
	return e.Passes
}

// batchRunner feeds training batches to the rewritten network.
type batchRunner struct {
	e       *infer.Engine
	s       *infer.Session
	data    dataset.Dataset
	batches [][]int
	done    bnupdate.Result // the result of the first batches
}

func (r *batchRunner) Batches() int { return len(r.batches) }

func (r *batchRunner) Run(ctx context.Context, k int) (bnupdate.Batch, error) {
	if k < r.done.Batches() && r.done.Batch(k).Images == len(r.batches[k]) {
		return r.done.Batch(k), nil
	}
	out, err := r.s.Feed(ctx, r.data, r.batches[k])
	if err != nil {
		return bnupdate.Batch{}, err
	}
	b := bnupdate.Batch{Images: len(r.batches[k])}
	for i := 0; i < len(out); i += 3 { // mean, variance and shape of each layer: Plan.Outputs
		mean, err := infer.Float32s(out[i])
		if err != nil {
			return b, err
		}
		variance, err := infer.Float32s(out[i+1])
		if err != nil {
			return b, err
		}
		b.Mean, b.Var = append(b.Mean, mean), append(b.Var, variance)
		b.Shapes = append(b.Shapes, out[i+2].I64)
	}
	r.e.Report(b.Images)
	return b, nil
}

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
