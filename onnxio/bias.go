package onnxio

import "slices"

// dropZeroBiases removes the biases of convolutions that are zero by
// construction. PyTorch's exporter, told not to optimise, gives a convolution
// without a bias one all the same: Expand(CastLike(0, x), Shape(W)). It takes its
// type from data, so ONNX Runtime cannot fold it, and then neither fuses the
// batch norm behind nor keeps its fast layout: ResNet-20 takes 2.6 times as long.
// The nodes that nothing uses any more are left to ONNX Runtime. A constant that
// will be filled with other elements is none, and stays.
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
		case "Expand", "CastLike", "Cast", "Identity": // 0 stays 0, whatever else they are given
			zero[n.Outputs[0]] = len(n.Inputs) > 0 && zero[n.Inputs[0]]
		case "Conv", "ConvTranspose":
			if len(n.Inputs) == 3 && zero[n.Inputs[2]] {
				e.remove(n, n.inputs[2:])
			}
		}
	}
}

// isZero reports whether elements, of whatever type, are all 0. Elements that are
// not at hand are not.
func isZero(elements []byte) bool {
	return len(elements) > 0 && !slices.ContainsFunc(elements, func(b byte) bool { return b != 0 })
}
