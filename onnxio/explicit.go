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
	count := e.count(bn, mean, variance)
	if bn.Written != nil {
		e.trainWritten(bn, mean, variance, func(b *nodes, x string, rank int) { count(b, x, rank) })
		return
	}
	n := bn.Node
	name := func(what string) string { return mean + "_" + what }
	e.addInitializer(name("epsilon"), Float, repeated(float32(bn.Epsilon), 1))
	var b nodes
	centred, spread := count(&b, bn.Input, rank)
	stable := b.add("Add", name("stable"), []string{spread, name("epsilon")})
	scale := b.add("Reshape", name("scale"), []string{n.Inputs[1], name("channels")})
	factor := b.add("Div", name("factor"), []string{scale, b.add("Sqrt", name("deviation"), []string{stable})})
	shift := b.add("Reshape", name("shift"), []string{n.Inputs[2], name("channels")})
	b.add("Add", n.Outputs[0], []string{b.add("Mul", name("scaled"), []string{centred, factor}), shift})
	e.splice(n.msg.Span(), b, n.msg.Parent)
}

// count returns a function that counts mean and variance of a value in operators. It returns the value less its mean, and the
// variance, which broadcast along the channels.
func (e *Edit) count(bn BatchNorm, mean, variance string) func(b *nodes, x string, rank int) (centred, spread string) {
	return func(b *nodes, x string, rank int) (centred, spread string) {
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
		reduce := func(x, output string, axes []int64) string {
			if e.m.Opset >= 18 { // the axes are an input then
				e.addInts(output+"_axes", axes)
				return b.add("ReduceMean", output, []string{x, output + "_axes"})
			}
			return b.add("ReduceMean", output, []string{x}, wire.Ints("axes", axes))
		}
		// Average over each example first, and then over the examples. OpenVINO puts channels last. If their number is no
		// multiple of 16, it adds all numbers of a channel to a single float32. Over a batch's 100,000 pixels this gave
		// variances that were wrong by 1e-4. The Reshape in between keeps it from joining the two sums.
		average := func(x, output string) string {
			if len(within) > 0 {
				x = b.add("Reshape", output+"_each", []string{reduce(x, output+"_within", within), name("examples")})
			}
			return b.add("Reshape", output, []string{reduce(x, output+"_over", []int64{0}), name("channels")})
		}
		broad := average(x, name("broad"))
		centred = b.add("Sub", name("centred"), []string{x, broad})
		spread = average(b.add("Mul", name("squares"), []string{centred, centred}), name("spread"))
		b.add("Reshape", mean, []string{broad, name("flat")})
		b.add("Reshape", variance, []string{spread, name("flat")})
		return centred, spread
	}
}

// repeated returns n float32 in the layout of memory.
func repeated(v float32, n int64) (raw []byte) {
	for range n {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	return raw
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
