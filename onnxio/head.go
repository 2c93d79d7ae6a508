package onnxio

import (
	"errors"
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/weights"
)

// A Head is the last linear layer of a network: α·W·features + β·b.
type Head struct {
	Features string // name of the layer's input
	// Weight and Bias are the names of W and b in layouts. Bias is empty for a layer without one.
	Weight, Bias string
	// ScoresFirst says that W is stored as [scores, features], like PyTorch's Linear. Otherwise it is [features,
	// scores].
	ScoresFirst   bool
	Scores, Width int64    // the dimensions of W; Width is the number of features
	Alpha, Beta   float32  // factors of a Gemm; 1 elsewhere
	ElemType      ElemType // of W and the features
}

// behindHead are operators without weights that may follow the last linear layer.
var behindHead = []string{"Cast", "Flatten", "Identity", "LogSoftmax", "Reshape", "Sigmoid", "Softmax", "Squeeze"}

// Head returns the linear layer that computes the output of the given name. It is a Gemm or MatMul with a stored
// matrix, and an optional Add after it. It fails if anything else computes the output.
func (m *Model) Head(output string) (*Head, error) {
	v := m.viewer()
	nodes := v.nodes
	p, ok := nodes[output]
	for range m.Graph.Nodes { // an untrusted graph may have cycles
		if !ok || !slices.Contains(behindHead, p.Node.OpType) || len(p.Node.Inputs) == 0 {
			break
		}
		p, ok = nodes[p.Node.Inputs[0]]
	}
	fail := func(err error) (*Head, error) { return nil, fmt.Errorf("output %q: %w", output, err) }
	if !ok {
		return fail(errors.New("comes from no node that is known"))
	}
	var bias *Tensor
	if n := p.Node; n.OpType == "Add" && len(n.Inputs) == 2 {
		for k := range 2 {
			if product, ok := nodes[n.Inputs[k]]; ok && p.Tensors[1-k] != nil {
				p, bias = product, p.Tensors[1-k]
				break
			}
		}
	}
	h, err := v.linear(p, bias)
	if err != nil {
		return fail(err)
	}
	return h, nil
}

// linear reads the layer of a Gemm or MatMul.
func (v *viewer) linear(p Place, bias *Tensor) (*Head, error) {
	n := p.Node
	isGemm := n.OpType == "Gemm"
	if !isGemm && n.OpType != "MatMul" || len(n.Inputs) < 2 {
		return nil, fmt.Errorf("node %q is %s, want a linear layer", n.Name, n.OpType)
	}
	if isGemm && bias != nil {
		return nil, fmt.Errorf("node %q: an Add behind a Gemm", n.Name)
	}
	h := &Head{Features: n.Inputs[0], Alpha: 1, Beta: 1}
	weight := p.Tensors[1]
	if t, ok := v.nodes[n.Inputs[1]]; weight == nil && ok && t.Node.OpType == "Transpose" {
		weight, h.ScoresFirst = t.Tensors[0], true
	}
	if weight == nil || len(weight.Shape) != 2 {
		return nil, fmt.Errorf("node %q: its weight is no stored matrix", n.Name)
	}
	if isGemm {
		if n.Int("transA", 0) != 0 {
			return nil, fmt.Errorf("node %q: takes its features transposed", n.Name)
		}
		h.ScoresFirst = h.ScoresFirst != (n.Int("transB", 0) != 0)
		h.Alpha, h.Beta = float32(n.Float("alpha", 1)), float32(n.Float("beta", 1))
		if len(n.Inputs) > 2 && n.Inputs[2] != "" {
			if bias = p.Tensors[2]; bias == nil {
				return nil, fmt.Errorf("node %q: its bias is not stored", n.Name)
			}
		}
	}
	h.Weight, h.ElemType = weight.Name, weight.ElemType
	h.Width, h.Scores = weight.Shape[0], weight.Shape[1]
	if h.ScoresFirst {
		h.Width, h.Scores = h.Scores, h.Width
	}
	if bias != nil {
		if bias.Len() != h.Scores {
			return nil, fmt.Errorf("tensor %q: a bias of shape %v for %d scores", bias.Name, bias.Shape, h.Scores)
		}
		h.Bias = bias.Name
	}
	return h, nil
}

// HeadTemplate is [NewRuntimeTemplate] of a model with an additional output: the features of its head, under their
// own name.
func HeadTemplate(m *Model, h *Head, l *weights.Layout) (*Template, error) {
	return TapTemplate(m, h.Features, h.ElemType, l, -1, h.Width)
}

// TapTemplate is [NewRuntimeTemplate] of a model with a tensor of the main graph as an additional output. Without
// dimensions, the runtime infers the shape. The tensor must exist: see [Model.Makes].
func TapTemplate(m *Model, tensor string, elem ElemType, l *weights.Layout, shape ...int64) (*Template, error) {
	return m.template(l, func(e *Edit) {
		if !slices.ContainsFunc(m.Graph.Outputs, func(v Value) bool { return v.Name == tensor }) {
			e.AddGraphOutput(tensor, elem, shape...)
		}
		e.ForRuntime()
	})
}

// Makes reports whether a node of the main graph computes the tensor.
func (m *Model) Makes(tensor string) bool {
	_, ok := m.viewer().nodes[tensor]
	return ok
}

// FeatureTensors returns tensors that summarise an example, in the order of the nodes: sums of residual blocks, pooled and
// flattened values, and last the input of the linear layer that computes the output, if one does. There are at most five
// others, the last ones.
func (m *Model) FeatureTensors(output string) (names []string) {
	const most = 5
	v, features := m.viewer(), ""
	if h, err := m.Head(output); err == nil {
		features = h.Features
	}
	for _, p := range v.places {
		_, left := v.producer(p, 0)
		_, right := v.producer(p, 1)
		switch p.Node.OpType {
		case "Add":
			if !left || !right {
				continue
			}
		case "GlobalAveragePool", "AveragePool", "MaxPool", "ReduceMean", "Flatten":
		default:
			continue
		}
		if name := p.Node.Outputs[0]; name != features && name != output {
			names = append(names, name)
		}
	}
	names = names[max(0, len(names)-most):]
	if features != "" {
		names = append(names, features)
	}
	return names
}
