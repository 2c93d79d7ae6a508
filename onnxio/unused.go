package onnxio

import (
	"slices"
)

// shaping are operators that make constants of a shape.
var shaping = []string{"CastLike", "Cast", "Concat", "Constant", "Expand", "Identity", "Shape", "Squeeze", "Unsqueeze"}

// dropUse counts one use less of the named values. It removes the nodes of the main graph that only made values no
// longer used. Other providers take their share of the graph before ONNX Runtime cleans up, and ONNX Runtime warns of
// constants that nothing uses. A constant that will be filled with other elements stays.
func (e *Edit) dropUse(fills map[*Tensor]string, names ...string) {
	if e.uses == nil {
		e.uses, e.removed = e.m.uses(), make(map[*Node]bool)
	}
	for len(names) > 0 {
		name := names[len(names)-1]
		names = names[:len(names)-1]
		e.uses[name]--
		n := e.m.Graph.Producer(name)
		if n != nil && name != "" && !e.removed[n] && e.uses[name] == 0 && len(n.Outputs) == 1 && n.Domain == "" &&
			slices.Contains(shaping, n.OpType) &&
			!slices.Contains(n.Inputs, "") && fills[n.constant] == "" {
			e.splice(n.msg.Span(), nil, n.msg.Parent)
			e.removed[n] = true
			names = append(names, n.Inputs...)
		}
	}
}

// uses counts the uses of each value.
func (m *Model) uses() map[string]int {
	uses := make(map[string]int)
	for _, g := range m.Graphs() {
		for i := range g.Nodes {
			for _, in := range g.Nodes[i].Inputs {
				uses[in]++
			}
		}
		for _, out := range g.Outputs {
			uses[out.Name]++
		}
	}
	return uses
}

// dropEmptyInputs removes empty names at the end of nodes' inputs. An empty name stands for an optional input that is
// not given, and means nothing after the last given one. ONNX Runtime 1.30 crashed on such a name while it optimised
// a model: a LayerNormalization after an Add had an empty name for its bias.
func (e *Edit) dropEmptyInputs() {
	for _, g := range e.m.Graphs() {
		for i := range g.Nodes {
			n := &g.Nodes[i]
			given := len(n.Inputs)
			for given > 0 && n.Inputs[given-1] == "" {
				given--
			}
			if n.OpType != "Dropout" { // DisableDropout handles its inputs
				e.remove(n, n.inputs[given:])
			}
		}
	}
}

// dropZeroBiases removes the biases of convolutions that are zero by construction. PyTorch's exporter, told not to
// optimise, gives a convolution without a bias a bias all the same: Expand(CastLike(0, x), Shape(W)). It takes its
// type from data, so ONNX Runtime cannot fold it. Then ONNX Runtime neither fuses the following batch norm nor keeps
// its fast layout, and ResNet-20 takes about twice as long.
//
// A constant that will be filled with other elements is no zero, and stays.
func (e *Edit) dropZeroBiases(fills map[*Tensor]string) {
	zero := make(map[string]bool) // names of tensors that are all 0, of any shape and type
	for i := range e.m.Graph.Nodes {
		n := &e.m.Graph.Nodes[i]
		if n.Domain != "" || len(n.Outputs) == 0 {
			continue
		}
		switch n.OpType {
		case "Constant":
			t := n.constant
			zero[n.Outputs[0]] = t != nil && fills[t] == "" && isZero(e.m.Elements(t))
		case "Expand", "CastLike", "Cast", "Identity": // 0 stays 0, whatever the other inputs are
			zero[n.Outputs[0]] = len(n.Inputs) > 0 && zero[n.Inputs[0]]
		case "Conv", "ConvTranspose":
			if len(n.Inputs) == 3 && zero[n.Inputs[2]] {
				e.remove(n, n.inputs[2:])
				e.dropUse(fills, n.Inputs[2])
			}
		}
	}
}

// isZero reports whether elements, of whatever type, are all 0. It returns false if the elements are not available.
func isZero(elements []byte) bool {
	return len(elements) > 0 && !slices.ContainsFunc(elements, func(b byte) bool { return b != 0 })
}
