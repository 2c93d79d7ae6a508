package onnxio

import "slices"

// dropZeroBiases removes the biases of convolutions that are zero by construction. PyTorch's exporter, told not to
// optimise, gives a convolution without a bias a bias all the same: Expand(CastLike(0, x), Shape(W)). It takes its
// type from data, so ONNX Runtime cannot fold it. Then ONNX Runtime neither fuses the following batch norm nor keeps
// its fast layout, and ResNet-20 takes 2.6 times as long.
//
// Nodes that nothing uses any more are removed too, because other providers take their share of the graph before ONNX
// Runtime cleans up. A constant that will be filled with other elements is no zero, and stays. dropZeroBiases returns
// the removed nodes.
func (e *Edit) dropZeroBiases(fills map[*Tensor]string) (removed map[*Node]bool) {
	var free []string             // used by a convolution
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
				free = append(free, n.Inputs[2])
			}
		}
	}
	return e.dropUnused(free)
}

// shaping are operators that make constants of a shape.
var shaping = []string{"Expand", "CastLike", "Cast", "Concat", "Identity", "Shape", "Squeeze", "Unsqueeze"}

// dropUnused removes the nodes of the main graph that only made values no longer used, and returns them. Each of the
// names is one use less.
func (e *Edit) dropUnused(names []string) map[*Node]bool {
	removed := make(map[*Node]bool)
	uses := make(map[string]int)
	for _, g := range e.m.Graphs() {
		for i := range g.Nodes {
			for _, in := range g.Nodes[i].Inputs {
				uses[in]++
			}
		}
		for _, out := range g.Outputs {
			uses[out.Name]++
		}
	}
	for len(names) > 0 {
		name := names[len(names)-1]
		names = names[:len(names)-1]
		uses[name]--
		n := e.m.Graph.Producer(name)
		if n != nil && uses[name] == 0 && len(n.Outputs) == 1 && n.Domain == "" && slices.Contains(shaping, n.OpType) && !slices.Contains(n.Inputs, "") {
			e.splice(n.msg.Span(), nil, n.msg.Parent)
			removed[n] = true
			names = append(names, n.Inputs...)
		}
	}
	return removed
}

// isZero reports whether elements, of whatever type, are all 0. It returns false if the elements are not available.
func isZero(elements []byte) bool {
	return len(elements) > 0 && !slices.ContainsFunc(elements, func(b byte) bool { return b != 0 })
}
