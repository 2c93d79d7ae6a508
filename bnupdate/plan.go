package bnupdate

import (
	"fmt"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// Plan is a network rewritten to give its batch-norm statistics out.
type Plan struct {
	// Template is the rewritten network. The values of its statistics do not
	// matter, but must be finite: ONNX multiplies them by a momentum of 0.
	Template *onnxio.Template
	// Outputs names the outputs to ask for: mean, variance and input shape of
	// each layer in turn.
	Outputs []string

	layers []layer
	length int64
	// serial says that batches must not run at the same time. ONNX Runtime 1.30
	// computes 16-bit batch norm through casts, so that its statistics are no
	// outputs of the graph, and then keeps them in a buffer that all runs of a
	// session share: two runs at once gave variances off by some per cent.
	serial bool
}

type layer struct {
	name       string // of the running mean, for messages
	mean, vari weights.Tensor
	epsilon    float64
}

// NewPlan rewrites m, whose statistics must have a place in l. Every batch
// norm runs in training mode with momentum 0, so that its running outputs are
// the batch's own mean and population variance
// (https://onnx.ai/onnx/operators/onnx__BatchNormalization.html). All of them
// are declared as outputs of the graph: ONNX Runtime up to 1.27 computes wrong
// values where they are not (microsoft/onnxruntime#29790). Dropout stays off:
// statistics are for the network that will predict.
//
// A network without batch norm gives a plan without outputs; there is nothing
// to recompute.
func NewPlan(m *onnxio.Model, l *weights.Layout) (*Plan, error) {
	bns, err := m.BatchNorms()
	if err != nil {
		return nil, err
	}
	p := &Plan{length: l.Len(weights.Statistic)}
	edit := m.Edit()
	edit.DisableDropout()
	edit.ForRuntime()
	for i, bn := range bns {
		mean, ok1 := l.Find(bn.Mean)
		vari, ok2 := l.Find(bn.Var)
		if !ok1 || !ok2 || mean.Role != weights.Statistic || vari.Role != weights.Statistic {
			return nil, &onnxio.Error{Path: m.Path, Tensor: bn.Mean, What: "running statistics that the layout does not have as statistics"}
		}
		if bn.ElemType != onnxio.Float && bn.ElemType != onnxio.Double {
			p.serial = true
		}
		p.layers = append(p.layers, layer{name: bn.Mean, mean: mean, vari: vari, epsilon: epsilon(bn.Node)})
		out := func(what string) string { return fmt.Sprintf("swagwrap_bn%d_%s", i, what) }
		edit.TrainBatchNorm(bn, out("mean"), out("var"))
		edit.InsertAfter(bn.Node, "Shape", out("shape_node"), bn.Node.Inputs[:1], []string{out("shape")})
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

// Layers returns the number of batch-norm layers.
func (p *Plan) Layers() int { return len(p.layers) }

// epsilon returns what the node adds to the variance; ONNX's default is 1e-5.
func epsilon(n *onnxio.Node) float64 {
	for _, a := range n.Attributes {
		if a.Name == "epsilon" {
			return float64(a.Float)
		}
	}
	return 1e-5
}
