package infer

import (
	"context"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

const (
	LossExamples = lossExamples
	CheckBatches = checkBatches
)

// Stale reports whether the network keeps statistics that training updated.
func (n *Network) Stale() bool { return n.stale }

// NewNamed is a network of which nothing is known but its input and its scores.
func NewNamed(path string, scores int64, inputs ...onnxio.Value) *Network {
	g := &Graph{width: scores}
	if err := g.readInputs(&onnxio.Model{Graph: &onnxio.Graph{Inputs: inputs}}); err != nil {
		panic(err)
	}
	return &Network{Posterior: &swag.Posterior{Path: path, ID: path}, Graph: g}
}

// ScoresOf reads what the output of a graph is taken for.
func ScoresOf(m *onnxio.Model, output string) (task.Scores, error) {
	g, err := ReadGraph(m, output, swag.Card{})
	if err != nil {
		return task.Scores{}, err
	}
	return g.scores, nil
}

// GraphOf is a graph of which nothing is known but its output.
func GraphOf(s task.Scores) *Graph { return &Graph{scores: s} }

// Uncontrolled is settled data whose statistics are not corrected.
func (b BatchNormData) Uncontrolled() BatchNormData {
	b.controls = nil
	return b
}

// RecomputeBatches is Recompute over the given batches.
func (e *Engine) RecomputeBatches(ctx context.Context, n *Network, parameters weights.Vector, data BatchNormData, batches [][]int) (bnupdate.Result, error) {
	return e.recompute(ctx, n, parameters, data, func(*Session) ([][]int, error) { return batches, nil })
}

// Blend is the data that losses are estimated on; whole makes its values integers.
func Blend(data BatchNormData, n *Network, whole bool) dataset.Dataset {
	b := blend(data, n).(*blended)
	b.whole[0] = b.whole[0] || whole
	return b
}

// Loss estimates what statistics from one image would cost.
func (e *Engine) Loss(ctx context.Context, n *Network, data BatchNormData, parameters weights.Vector, r bnupdate.Result) (float64, error) {
	s := &settling{e: e, n: n, data: data, size: e.BatchSize}
	return s.loss(ctx, parameters, r, nil)
}

// WarnInitial warns of statistics that nothing ever changed.
func (b *BatchNorm) WarnInitial(statistics []float32) { b.warnInitial(statistics) }

// Warn fills in the warnings of a pass over the images.
func (b *BatchNorm) Warn(r bnupdate.Result) { b.warn(r) }

// Tune returns how many runs at the same time do most: n or half of it.
func (s *Scorer) Tune(ctx context.Context, n int) (int, error) {
	t, err := s.try(ctx, s.models.Parts()[0], 0)
	if err != nil {
		return 0, err
	}
	defer t.group.close()
	return t.tune(ctx, n)
}

// Input makes an input of the type that a session takes.
func Input(dtype string, values []float32) (ort.Tensor, error) {
	return tensor(ort.ValueInfo{Name: "x", DType: dtype}, []int64{int64(len(values))}, values)
}

// Explicit makes the network's passes run the graph that is written out, on whatever
// provider.
func (n *Network) Explicit() error {
	plan, err := bnupdate.NewExplicitPlan(n.passes, n.Posterior.Layout, n.keep)
	if err == nil {
		n.plan = plan
	}
	return err
}
