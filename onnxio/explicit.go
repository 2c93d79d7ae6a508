package onnxio

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
)

// ExplicitBatchNorm writes out a batch norm in training mode in operators, for providers that support it in inference
// only. It computes mean and variance over all axes of the input except the channels', and normalises the input by
// them. rank is the rank of the input, see [Model.Ranks]. The batch's mean and population variance get the given
// names.
func (e *Edit) ExplicitBatchNorm(bn BatchNorm, rank int, mean, variance string) {
	n := bn.Node
	name := func(what string) string { return mean + "_" + what }
	channels := slices.Repeat([]int64{1}, rank) // shape that broadcasts along the channels
	channels[1] = bn.Channels
	var within []int64 // the axes of one example
	for axis := 2; axis < rank; axis++ {
		within = append(within, int64(axis))
	}
	e.addInts(name("channels"), channels)
	e.addInts(name("examples"), []int64{-1, bn.Channels})
	e.addInts(name("flat"), []int64{bn.Channels})
	e.addInitializer(name("epsilon"), Float, binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(bn.Epsilon))))

	weight, bias := e.affine(bn, mean)
	var nodes []byte
	add := func(op, output string, inputs ...string) string {
		nodes = append(nodes, wire.Node(op, output+"_node", inputs, []string{output})...)
		return output
	}
	reduce := func(x, output string, axes []int64) string {
		if e.m.Opset >= 18 { // the axes are an input then
			e.addInts(output+"_axes", axes)
			return add("ReduceMean", output, x, output+"_axes")
		}
		nodes = append(nodes, wire.Node("ReduceMean", output+"_node", []string{x}, []string{output}, wire.Ints("axes", axes))...)
		return output
	}
	// Average over each example first, and then over the examples. OpenVINO puts channels last. If their number is no
	// multiple of 16, it adds all numbers of a channel to a single float32. Over a batch's 100,000 pixels this gave
	// variances that were wrong by 1e-4. The Reshape in between keeps it from joining the two sums.
	average := func(x, output string) string {
		if len(within) > 0 {
			x = add("Reshape", output+"_each", reduce(x, output+"_within", within), name("examples"))
		}
		return add("Reshape", output, reduce(x, output+"_over", []int64{0}), name("channels"))
	}
	x := bn.Input
	broad := average(x, name("broad"))
	centred := add("Sub", name("centred"), x, broad)
	spread := average(add("Mul", name("squares"), centred, centred), name("spread"))
	deviation := add("Sqrt", name("deviation"), add("Add", name("stable"), spread, name("epsilon")))
	factor := add("Div", name("factor"), add("Reshape", name("scale"), weight, name("channels")), deviation)
	shift := add("Reshape", name("shift"), bias, name("channels"))
	add("Add", n.Outputs[0], add("Mul", name("scaled"), centred, factor), shift)
	add("Reshape", mean, broad, name("flat"))
	add("Reshape", variance, spread, name("flat"))
	e.splice(n.msg.Span(), nodes, n.msg.Parent)
}

// keepRank are operators whose output has the rank of their first input.
var keepRank = []string{"AveragePool", "BatchNormalization", "Cast", "CastLike", "Ceil", "Celu", "Clip", "Concat", "Dropout", "Elu",
	"Erf", "Exp", "Gelu",
	"GlobalAveragePool", "GlobalMaxPool", "HardSigmoid", "HardSwish", "Identity", "LRN", "LeakyRelu", "MaxPool", "Mish", "Neg", "PRelu",
	"Pad", "Relu", "Resize",
	"Selu", "Sigmoid", "Slice", "Softplus", "Sqrt", "Tanh", "ThresholdedRelu", "Transpose"}

// Ranks returns the ranks of values in the main graph, as far as inputs, weights and operators show them.
func (m *Model) Ranks() map[string]int {
	ranks := make(map[string]int)
	for _, in := range m.Graph.Inputs {
		if in.Shape != nil {
			ranks[in.Name] = len(in.Shape)
		}
	}
	for _, p := range m.viewer().places {
		n := p.Node
		if len(n.Inputs) == 0 {
			continue
		}
		for i, t := range p.Tensors {
			if t != nil {
				ranks[n.Inputs[i]] = len(t.Shape)
			}
		}
		rank := 0
		switch {
		case slices.Contains(keepRank, n.OpType):
			rank = ranks[n.Inputs[0]]
		case n.OpType == "Flatten" || n.OpType == "Gemm":
			rank = 2
		case (n.OpType == "Conv" || n.OpType == "ConvTranspose") && len(n.Inputs) > 1:
			rank = ranks[n.Inputs[1]]
		case slices.Contains([]string{"Add", "Sub", "Mul", "Div", "MatMul"}, n.OpType) && len(n.Inputs) == 2:
			rank = max(ranks[n.Inputs[0]], ranks[n.Inputs[1]])
		case n.OpType == "Reshape" && len(p.Tensors) > 1 && p.Tensors[1] != nil && len(p.Tensors[1].Shape) == 1:
			rank = int(p.Tensors[1].Shape[0])
		}
		if rank > 0 {
			ranks[n.Outputs[0]] = rank
		}
	}
	return ranks
}
