package onnxio

import "slices"

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
