package onnxio

import (
	"fmt"
	"slices"
)

// BatchNorm is a BatchNormalization node whose running statistics are
// initializers, resolved through Identity nodes (exporters merge equal tensors
// and leave Identity nodes behind).
type BatchNorm struct {
	Node       *Node
	Mean, Var  string // names of the initializers of inputs 3 and 4
	Channels   int64
	ElemType   ElemType // of the statistics
	OldOpset   bool     // before opset 14: no training_mode attribute, training means five outputs
	IsTraining bool     // exported in training mode
}

// BatchNorms returns the batch norm nodes of the main graph in node order.
// Nodes whose statistics are computed in the graph, as exported InstanceNorm
// layers have them, are left out: nothing of theirs is stored. It fails where
// the statistics cannot be recomputed: two nodes that share them, or nodes
// inside a function or the body of an If or Loop.
func (m *Model) BatchNorms() ([]BatchNorm, error) {
	owner := make(map[*Tensor]string)
	var out []BatchNorm
	for _, p := range m.Places() {
		n := p.Node
		if n.OpType != "BatchNormalization" || n.Domain != "" {
			continue
		}
		fail := func(tensor, hint, format string, args ...any) error {
			return &Error{Path: m.Path, Tensor: tensor, What: fmt.Sprintf(format, args...), Hint: hint}
		}
		if len(n.Inputs) != 5 || len(n.Outputs) == 0 {
			return nil, fail("", "", "node %q: batch norm with %d inputs, want 5", n.Name, len(n.Inputs))
		}
		mean, vari := p.Tensors[3], p.Tensors[4]
		if slices.Contains(m.Functions, p.Graph) {
			return nil, fail("", "write the model with its functions inlined: onnx.inliner.inline_local_functions(model)",
				"node %q: batch norm inside function %q", n.Name, p.Graph.Name)
		}
		if mean == nil || vari == nil {
			continue
		}
		if p.Graph != m.Graph {
			return nil, fail("", "", "node %q: batch norm inside a control-flow body: its statistics cannot be recomputed", n.Name)
		}
		if mean.Len() != vari.Len() {
			return nil, fail(vari.Name, "", "shape %v, want %v as its running mean has", vari.Shape, mean.Shape)
		}
		for _, t := range []*Tensor{mean, vari} {
			if first, taken := owner[t]; taken {
				return nil, fail(t.Name, "statistics of a shared layer cannot be recomputed node by node: give each use its own BatchNorm module",
					"running statistics shared by batch norm nodes %q and %q", first, n.Name)
			}
			owner[t] = n.Name
		}
		old := m.Opset < 14
		out = append(out, BatchNorm{Node: n, Mean: mean.Name, Var: vari.Name, Channels: mean.Len(), ElemType: mean.ElemType, OldOpset: old,
			IsTraining: n.Int("training_mode", 0) == 1 || old && len(n.Outputs) > 1})
	}
	return out, nil
}
