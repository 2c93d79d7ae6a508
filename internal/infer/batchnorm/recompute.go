package batchnorm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/store"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/setting"
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
	batch    int       // size of the batches, 0 for that of the engine
	source   []float32 // the statistics in the graph, which [Adaptation] needs; nil for those of the network

	known []knownPass
	some  bnupdate.Result // set by [Training.ForMember]
	first *firstPasses    // nil before [ChooseSampleSize]
}

// batchSize returns the requested size of batches, or 0.
func (b Training) batchSize(e *infer.Engine) int { return cmp.Or(b.batch, e.Options().BatchSize) }

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
	b.members, b.controls, b.known, b.some = 0, nil, nil, bnupdate.Result{}
	return b
}

// Recompute returns the batch-norm statistics and buffers for the given weights. If the network has no statistics to
// recompute, the result has no images, and data may be zero.
func Recompute(ctx context.Context, run infer.Run, n *infer.Network, parameters weights.Vector, data Training) (bnupdate.Result, error) {
	if !n.Recomputes() {
		return buffers(ctx, n, parameters)
	}
	r, err := extend(ctx, run, n, parameters, data, data.some)
	if err == nil {
		data.first.look(n, r)
	}
	return r, err
}

// Stored returns the result of [Recompute] if that needs no pass, because the store has it. Otherwise ok is false.
func Stored(ctx context.Context, run infer.Run, n *infer.Network, parameters weights.Vector, data Training) (r bnupdate.Result,
	ok bool, err error) {
	if !n.Recomputes() {
		r, err = buffers(ctx, n, parameters)
		return r, err == nil, err
	}
	if err := widen(ctx, run.Engine, n, data.Data); err != nil {
		return r, false, err
	}
	p, err := newPass(run, n, parameters, data)
	found := batchList(nil)
	if err == nil {
		if whole, done := complete(data.some, data.Images()); done {
			found = whole
		} else {
			found = p.found
		}
	}
	if found != nil {
		r, err = p.result(ctx, found)
	}
	if err != nil {
		return r, false, fmt.Errorf("%s: %w", n.Posterior.Path, err)
	}
	return r, found != nil, nil
}

// buffers returns the state of a network without statistics to recompute.
func buffers(ctx context.Context, n *infer.Network, parameters weights.Vector) (bnupdate.Result, error) {
	state, err := n.State(parameters)
	if err != nil {
		return bnupdate.Result{}, fmt.Errorf("%s: %w", n.Posterior.Path, err)
	}
	return bnupdate.Recompute(ctx, n.Passes.Plan, nil, bnupdate.Options{State: state})
}

// extend is Recompute after a pass over the first batches, whose result is some. It runs only the others.
func extend(ctx context.Context, run infer.Run, n *infer.Network, parameters weights.Vector, data Training,
	some bnupdate.Result) (bnupdate.Result, error) {
	if err := widen(ctx, run.Engine, n, data.Data); err != nil {
		return bnupdate.Result{}, err
	}
	return recompute(ctx, run, n, parameters, data, some, func(s *infer.Session) ([][]int, error) {
		size, err := s.TrainingBatch(data.batchSize(run.Engine))
		if err != nil {
			return nil, err
		}
		order := data.Order
		order.Limit = data.Images()
		batches := slices.Collect(order.Batches(data.Data.Len(), size))
		if last := len(batches) - 1; last >= 0 && s.FixedBatch() > 0 && len(batches[last]) < size {
			batches = batches[:last] // a network with a fixed batch takes no shorter batch
		}
		if data.joins(run.Engine, n) {
			batches = join(batches)
		}
		return batches, nil
	})
}

// joins reports whether a last batch of one example joins the batch before. A batch of one may have no variance. A size
// that the user gave or that the graph fixes is kept.
func (b Training) joins(e *infer.Engine, n *infer.Network) bool {
	return b.batchSize(e) == 0 && n.Passes.Batch == 0
}

// join appends a last batch of one example to the batch before.
func join(batches [][]int) [][]int {
	last := len(batches) - 1
	if last < 1 || len(batches[last]) != 1 {
		return batches
	}
	joined := slices.Concat(batches[last-1], batches[last]) // batches share memory
	return append(batches[:last-1], joined)
}

// recompute is extend over the caller's batches.
func recompute(ctx context.Context, run infer.Run, n *infer.Network, parameters weights.Vector, data Training, some bnupdate.Result,
	batches func(*infer.Session) ([][]int, error)) (bnupdate.Result, error) {
	fail := func(err error) (bnupdate.Result, error) {
		return bnupdate.Result{}, fmt.Errorf("%s: %w", n.Posterior.Path, err)
	}
	p, err := newPass(run, n, parameters, data)
	if err != nil {
		return fail(err)
	}
	if p.found != nil {
		return p.result(ctx, p.found)
	}
	if whole, ok := complete(some, data.Images()); ok {
		return p.result(ctx, whole)
	}
	if err := p.run.Place(ctx, &n.Passes.Placed, n.Posterior.Path+": batch norm", n.Graph, 0, p.model, data.Data,
		p.plan.Outputs...); err != nil {
		return fail(err)
	}
	s, err := p.run.Open(ctx, n.Graph, p.model, p.plan.Outputs...)
	if err != nil {
		return fail(err)
	}
	defer s.Close()
	idx, err := batches(s)
	if err != nil {
		return fail(err)
	}
	if p.width, err = p.run.Width(data.Data, idx); err != nil {
		return fail(err)
	}
	fresh := &recorder{&batchRunner{run: p.run, s: s, data: data.Data, batches: idx, done: some}, make(batchList, len(idx))}
	r, err := p.result(ctx, fresh)
	if single := (*bnupdate.SingleError)(nil); errors.As(err, &single) {
		err = singleError(single, n, data.Data, idx)
	}
	if err == nil && p.key != nil {
		err = run.Store.Put(p.key, infer.Note{Of: n.Posterior.Path}, len(idx), fresh.seen.row)
	}
	return r, err
}

// complete returns the first batches of an earlier pass. ok reports whether they have the given number of images.
func complete(some bnupdate.Result, images int) (whole batchList, ok bool) {
	for k := 0; k < some.Batches() && images > 0; k++ {
		whole = append(whole, some.Batch(k))
		images -= some.Batch(k).Images
	}
	return whole, images == 0 && whole != nil
}

// singleError says which file and batch size leave a batch of one example, and which size does not.
func singleError(err *bnupdate.SingleError, n *infer.Network, data dataset.Dataset, batches [][]int) error {
	if n.Passes.Batch == 1 {
		return &onnxio.Error{
			Path:   n.Posterior.Path,
			Tensor: err.Tensor,
			What: "the graph takes single examples only, and one example has one value for each channel of this batch norm, which has " +
				"no variance",
			Hint: exportBatches,
		}
	}
	examples := 0
	for _, b := range batches {
		examples += len(b)
	}
	size := len(batches[0])
	e := &onnxio.Error{
		Tensor: err.Tensor,
		What:   fmt.Sprintf("%d examples in batches of %d leave a batch of one, which has no variance for batch norm", examples, size),
	}
	if sources := data.Sources(); len(sources) > 0 {
		e.Path = sources[0].Path
	}
	for other := size - 1; other > 1; other-- {
		if examples%other != 1 {
			e.Hint = setting.BatchSize.With(strconv.Itoa(other)) + " leaves none over; the batch size of training is best"
			break
		}
	}
	return e
}

// pass is a batch-norm pass of a network with some weights, before it runs.
type pass struct {
	run   infer.Run // of the engine that computes passes
	n     *infer.Network
	data  Training
	plan  *bnupdate.Plan
	state weights.Slice
	model onnxio.Filled
	key   store.Key // nil without a store
	found batchList // the pass, if the store has it
	width int       // batches at the same time; 0 for a pass that the store has
}

func newPass(run infer.Run, n *infer.Network, parameters weights.Vector, data Training) (p *pass, err error) {
	p = &pass{n: n, data: data, plan: n.Passes.Plan}
	of := provider(run.Engine, n)
	if p.run = run.On(run.With(of, run.Options().Passes)); of.Explicit() {
		p.plan, _ = n.Passes.Explicit()
	}
	if p.state, err = n.State(parameters); err != nil {
		return nil, err
	}
	if data.source != nil {
		p.state = data.source
	}
	// Only an adaptation uses the statistics in the graph. They must be finite.
	if p.model, err = p.plan.Template.Fill(n.Posterior.Layout, parameters, p.state); err != nil {
		return nil, err
	}
	return p, p.find()
}

// result computes the statistics from the batches of the pass.
func (p *pass) result(ctx context.Context, from bnupdate.Runner) (bnupdate.Result, error) {
	plan := p.n.Passes.Plan
	r, err := bnupdate.Recompute(ctx, plan, from, bnupdate.Options{Rule: p.data.Rule, Workers: p.width, State: p.state})
	if control, ok := p.data.controls[p.n]; ok && err == nil {
		plan.Correct(r.Statistics, control)
	}
	return r, err
}

// provider returns the provider of the network's passes. It is the CPU's if batch norm cannot be written out for
// it in operators.
func provider(e *infer.Engine, n *infer.Network) ort.Provider {
	if e.Options().Passes.Explicit() {
		if _, err := n.Passes.Explicit(); err != nil {
			return ort.Provider{}
		}
	}
	return e.Options().Passes
}

// batchRunner feeds training batches to the rewritten network.
type batchRunner struct {
	run     infer.Run
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
	r.run.Report(b.Images)
	return b, nil
}

// exportBatches is the hint for graphs of single examples.
const exportBatches = "export the checkpoints with a dynamic batch dimension: torch.onnx.export(..., dynamic_axes={\"input\": {0: " +
	"\"batch\"}}) or dynamic_shapes"

// widen makes the batch-norm pass ready if a network was exported for batches of one small size, because statistics
// need larger batches. The pass runs the graph with a free batch if that computes each example like the fixed batch.
// Otherwise a batch of 1 is an error, since the variance of a single example is no estimate. A network without a task may have no
// larger batch: the whole graph of a detector takes one picture, whose many positions have a variance.
func widen(ctx context.Context, e *infer.Engine, n *infer.Network, data dataset.Dataset) error {
	p := n.Passes
	err := p.Ready(func() error {
		p.Batch = int(max(n.Input.Shape[0], 0))
		if p.Batch == 0 || p.Batch >= leastBatch {
			return nil
		}
		err := tryWider(ctx, e, n, data)
		if err != nil && p.Batch == 1 && !n.Scoreless() { // the whole graph of a detector takes no more
			return &onnxio.Error{
				Path:   n.Posterior.Path,
				Tensor: n.Input.Name,
				What:   "takes single examples only, whose batch-norm statistics are wrong",
				Err:    err,
				Hint:   exportBatches,
			}
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
	plan, err := p.New(free)
	if err == nil {
		p.Plan, p.Model, p.Batch = plan, free, 0
	}
	return err
}
