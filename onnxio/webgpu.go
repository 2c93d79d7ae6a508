package onnxio

import "slices"

// MisreadByWebGPU returns the name of a convolution whose input channels ONNX Runtime's WebGPU reads three at a time, or "". Its
// results are wrong for more than three channels, in 1.30.0 (microsoft/onnxruntime#29651 may be the same fault). These are
// convolutions without groups, of one or two dimensions, from channels that three divides and four does not, to channels
// that four divides. A kernel of one element that moves by one is a product of matrices, and right.
func MisreadByWebGPU(m *Model) (node string) {
	for _, g := range m.Graphs() {
		for i := range g.Nodes {
			n := &g.Nodes[i]
			if n.OpType != "Conv" || n.Domain != "" || len(n.Inputs) < 2 || n.Int("group", 1) != 1 {
				continue
			}
			t := m.Tensor(n.Inputs[1])
			if t == nil || len(t.Shape) != 3 && len(t.Shape) != 4 {
				continue
			}
			out, in := t.Shape[0], t.Shape[1]
			if in > 3 && in%3 == 0 && in%4 != 0 && out%4 == 0 && !n.isProduct(t.Shape[2:]) {
				return n.Outputs[0]
			}
		}
	}
	return ""
}

// isProduct reports whether a convolution with such a kernel is a product of matrices.
func (n *Node) isProduct(kernel []int64) bool {
	other := func(than int64) func(int64) bool { return func(v int64) bool { return v != than } }
	return !slices.ContainsFunc(kernel, other(1)) && !slices.ContainsFunc(n.list("strides"), other(1)) &&
		!slices.ContainsFunc(n.list("pads"), other(0))
}
