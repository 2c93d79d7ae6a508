package bnupdate

import (
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// Plan is a network rewritten to output its batch-norm statistics.
type Plan struct {
	// Template is the rewritten network. The values of its statistics do not
	// matter, but must be finite: ONNX multiplies them by a momentum of 0.
	Template *onnxio.Template
	// Outputs names the outputs to request: mean, variance and input shape of each layer in turn.
	Outputs []string

	layers []layer
	// kept holds the buffers, and the statistics of the layers that keep them, in the layout's order.
	kept   []float32
	frozen []string
	// serial says that batches must not run at the same time. ONNX Runtime 1.30 computes 16-bit batch norm through
	// casts, so its statistics are no outputs of the graph. It keeps them in a buffer that all runs of a session
	// share. Two runs at once gave variances that were wrong by a few per cent.
	serial bool
}

type layer struct {
	name       string // name of the running mean, for messages
	mean, vari weights.Tensor
	epsilon    float64
	pace
}

// A pace is what decides how far the running statistics of a layer go from one checkpoint to the next.
type pace struct {
	momentum float64 // ONNX's: the share that the running statistics keep at each batch
	updates  int64   // between the last two checkpoints, or 0 if nobody counted them
}

// Keep selects the layers that keep their statistics. The zero value selects none.
type Keep struct {
	// Layer reports whether the layer with these running statistics keeps them.
	Layer func(mean, variance weights.Tensor) bool
	// Statistics holds the statistics of all layers, in the layout's order.
	Statistics []float32
}

// NewPlan rewrites m, whose statistics must be in l. A batch norm that the graph writes out in operators counts if
// its tensors are statistics in l. Every batch norm runs in training mode with momentum 0, so that its running
// outputs are the batch's own mean and population variance
// (https://onnx.ai/onnx/operators/onnx__BatchNormalization.html). All of them are declared as outputs of the graph,
// because otherwise ONNX Runtime up to 1.27 computes wrong values (microsoft/onnxruntime#29790). Dropout stays off,
// because the statistics are for the network that will predict.
//
// Layers that keep their statistics also normalise by them in the pass, as a frozen layer does in training.
//
// The plan has no outputs if the network has no batch norm or keeps all statistics. Then there is nothing to
// recompute.
func NewPlan(m *onnxio.Model, l *weights.Layout, keep Keep) (*Plan, error) {
	return newPlan(m, l, keep, func(edit *onnxio.Edit, bn onnxio.BatchNorm, mean, variance string) error {
		edit.TrainBatchNorm(bn, mean, variance)
		return nil
	})
}

// NewMixedPlan is [NewPlan] for [Plan.Mix]: each layer normalises by the mixture in which the batch has the share w, as it will
// after the statistics are mixed (Schneider et al. 2020, arXiv 2006.16971). So deeper layers see what they will see. Layers
// that are written out in operators, or do not compute in float32, normalise by the batch.
func NewMixedPlan(m *onnxio.Model, l *weights.Layout, keep Keep, w float64) (*Plan, error) {
	return newPlan(m, l, keep, func(edit *onnxio.Edit, bn onnxio.BatchNorm, mean, variance string) error {
		if !edit.MixBatchNorm(bn, w, mean, variance) {
			edit.TrainBatchNorm(bn, mean, variance)
		}
		return nil
	})
}

// NewExplicitPlan is [NewPlan] for providers that support batch norm in inference only. It replaces each batch norm
// by the operators that it consists of. The results are equal except for rounding. It fails if weights are not
// float32, or if the graph does not give the rank of a batch norm's input.
func NewExplicitPlan(m *onnxio.Model, l *weights.Layout, keep Keep) (*Plan, error) {
	ranks := m.Ranks()
	return newPlan(m, l, keep, func(edit *onnxio.Edit, bn onnxio.BatchNorm, mean, variance string) error {
		rank := ranks[bn.Input]
		if rank < 2 || bn.ElemType != onnxio.Float {
			return &onnxio.Error{
				Path:   m.Path,
				Tensor: bn.Mean,
				What:   fmt.Sprintf("batch norm of %v, rank %d (0: unknown), want float of rank 2 or more", bn.ElemType, rank),
			}
		}
		edit.ExplicitBatchNorm(bn, rank, mean, variance)
		return nil
	})
}

func newPlan(m *onnxio.Model, l *weights.Layout, keep Keep,
	train func(edit *onnxio.Edit, bn onnxio.BatchNorm, mean, variance string) error) (*Plan, error) {
	bns, err := m.BatchNorms()
	if err != nil {
		return nil, err
	}
	p := &Plan{kept: make([]float32, l.Len(weights.Statistic))}
	for _, t := range l.Role(weights.Buffer) {
		if t.Role == weights.Buffer && keep.Statistics != nil {
			copy(p.kept[t.Offset:][:t.Len()], keep.Statistics[t.Offset:])
		}
	}
	edit := m.Edit()
	edit.DisableDropout()
	edit.ForRuntime()
	statistics := func(bn onnxio.BatchNorm) (mean, vari weights.Tensor, ok bool) {
		mean, _ = l.Find(bn.Mean)
		vari, _ = l.Find(bn.Var)
		return mean, vari, mean.Role == weights.Statistic && vari.Role == weights.Statistic
	}
	for _, bn := range m.WrittenBatchNorms() {
		if _, _, ok := statistics(bn); ok {
			bns = append(bns, bn)
		}
	}
	for i, bn := range bns {
		mean, vari, ok := statistics(bn)
		if !ok {
			return nil, &onnxio.Error{Path: m.Path, Tensor: bn.Mean, What: "running statistics that the layout does not have as statistics"}
		}
		if keep.Layer != nil && keep.Layer(mean, vari) {
			for _, t := range []weights.Tensor{mean, vari} {
				copy(p.kept[t.Offset:][:t.Len()], keep.Statistics[t.Offset:])
			}
			p.frozen = append(p.frozen, bn.Mean)
			edit.InferBatchNorm(bn)
			continue
		}
		if bn.ElemType != onnxio.Float && bn.ElemType != onnxio.Double {
			p.serial = true
		}
		p.layers = append(p.layers, layer{name: bn.Mean, mean: mean, vari: vari,
			epsilon: bn.Epsilon, pace: pace{momentum: bn.Momentum}})
		out := func(what string) string { return fmt.Sprintf("swagwrap_bn%d_%s", i, what) }
		if err := train(edit, bn, out("mean"), out("var")); err != nil {
			return nil, err
		}
		edit.InsertAfter(bn.Node, "Shape", out("shape_node"), []string{bn.Counted(out("mean"))}, []string{out("shape")})
		edit.AddGraphOutput(out("mean"), bn.ElemType, bn.Channels)
		edit.AddGraphOutput(out("var"), bn.ElemType, bn.Channels)
		edit.AddGraphOutput(out("shape"), onnxio.Int64, -1)
		p.Outputs = append(p.Outputs, out("mean"), out("var"), out("shape"))
	}
	if p.Template, err = edit.Template(l); err != nil {
		return nil, err
	}
	return p, nil
}

// Counted returns the plan for layers whose statistics were updated so often between the last two checkpoints, by the names of their
// running means. [Plan.Check] then knows which of them move alike.
func (p *Plan) Counted(updates map[string]int64) *Plan {
	counted := *p
	counted.layers = slices.Clone(p.layers)
	for i, l := range counted.layers {
		counted.layers[i].updates = updates[l.name]
	}
	return &counted
}

// Layers returns the number of batch-norm layers whose statistics are recomputed.
func (p *Plan) Layers() int { return len(p.layers) }

// Kept returns the layers that keep their statistics, by the names of their running means.
func (p *Plan) Kept() []string { return p.frozen }
