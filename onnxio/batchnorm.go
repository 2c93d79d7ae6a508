package onnxio

import "fmt"

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
// the statistics cannot be recomputed: two nodes that share them, or
// nodes inside the body of an If or Loop.
func (m *Model) BatchNorms() ([]BatchNorm, error) {
	resolve := m.Graph.resolver()
	owner := make(map[string]string)
	var out []BatchNorm
	for i := range m.Graph.Nodes {
		n := &m.Graph.Nodes[i]
		if !n.isBatchNorm() {
			continue
		}
		if len(n.Inputs) != 5 || len(n.Outputs) == 0 {
			return nil, &Error{Path: m.Path, What: fmt.Sprintf("node %q: batch norm with %d inputs, want 5", n.Name, len(n.Inputs))}
		}
		mean, vari := resolve(n.Inputs[3]), resolve(n.Inputs[4])
		if mean == nil || vari == nil {
			continue
		}
		if mean.Len() != vari.Len() {
			return nil, &Error{Path: m.Path, Tensor: vari.Name, What: fmt.Sprintf("shape %v, want %v as its running mean has", vari.Shape, mean.Shape)}
		}
		for _, t := range []*Tensor{mean, vari} {
			if first, taken := owner[t.Name]; taken {
				return nil, &Error{Path: m.Path, Tensor: t.Name,
					What: fmt.Sprintf("running statistics shared by batch norm nodes %q and %q", first, n.Name),
					Hint: "statistics of a shared layer cannot be recomputed node by node: give each use its own BatchNorm module"}
			}
			owner[t.Name] = n.Name
		}
		bn := BatchNorm{Node: n, Mean: mean.Name, Var: vari.Name, Channels: mean.Len(), ElemType: mean.ElemType, OldOpset: m.Opset < 14}
		if a := n.attribute("training_mode"); a != nil && a.Int == 1 || bn.OldOpset && len(n.Outputs) > 1 {
			bn.IsTraining = true
		}
		out = append(out, bn)
	}
	for _, g := range m.Graphs()[1:] {
		for i := range g.Nodes {
			if g.Nodes[i].isBatchNorm() {
				return nil, &Error{Path: m.Path, What: fmt.Sprintf("node %q: batch norm inside a control-flow body: its statistics cannot be recomputed", g.Nodes[i].Name)}
			}
		}
	}
	return out, nil
}

func (n *Node) isBatchNorm() bool { return n.OpType == "BatchNormalization" && n.Domain == "" }

// maxAlias bounds the Identity nodes between an initializer and its use;
// exporters leave one.
const maxAlias = 32

// resolver returns a function that finds the initializer a name stands for,
// through any chain of Identity nodes, or nil.
func (g *Graph) resolver() func(string) *Tensor {
	inits := make(map[string]*Tensor, len(g.Initializers))
	for i := range g.Initializers {
		inits[g.Initializers[i].Name] = &g.Initializers[i]
	}
	alias := make(map[string]string)
	for _, n := range g.Nodes {
		if n.OpType == "Identity" && len(n.Inputs) == 1 && len(n.Outputs) == 1 {
			alias[n.Outputs[0]] = n.Inputs[0]
		}
	}
	return func(name string) *Tensor {
		for range maxAlias { // a cycle ends here
			if t := inits[name]; t != nil {
				return t
			}
			name = alias[name]
		}
		return nil
	}
}
