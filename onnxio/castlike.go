package onnxio

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
)

// keepType are operators whose output has the type of their first input, in addition to those of keepRank.
var keepType = []string{"Add", "Conv", "ConvTranspose", "Div", "Expand", "Flatten", "Gemm", "LayerNormalization", "MatMul", "Mul", "Pow",
	"ReduceMax", "ReduceMean",
	"ReduceSum", "Reshape", "Softmax", "Split", "Squeeze", "Sub", "Unsqueeze"}

// more are operators of the same kind, for the graphs of devices. With keepType they would change models that are exported.
var more = []string{"Abs", "Cast", "Einsum", "Gather", "GroupNormalization", "InstanceNormalization", "Log", "Max", "Min", "Reciprocal",
	"ReduceL2", "Tile"}

// typesOf returns the types of values in the main graph, as far as inputs, weights and operators show them: those of keepRank,
// keepType and also.
func typesOf(m *Model, also ...string) map[string]ElemType {
	types := make(map[string]ElemType)
	for _, in := range m.Graph.Inputs {
		types[in.Name] = in.ElemType
	}
	for _, t := range m.Graph.Initializers {
		types[t.local] = t.ElemType
	}
	for i := range m.Graph.Nodes {
		n, of := &m.Graph.Nodes[i], ElemType(0)
		switch {
		case n.Domain != "" || len(n.Inputs) == 0:
		case n.OpType == "Cast":
			if slices.Contains(also, n.OpType) {
				of = ElemType(n.Int("to", 0))
			}
		case n.OpType == "CastLike" && len(n.Inputs) == 2:
			of = types[n.Inputs[1]]
		case slices.Contains(keepRank, n.OpType) || slices.Contains(keepType, n.OpType) || slices.Contains(also, n.OpType):
			of = types[n.Inputs[0]]
		}
		for k, out := range n.Outputs {
			if k == 0 || n.OpType == "Split" {
				types[out] = of
			}
		}
	}
	return types
}

// castLikes replaces CastLike nodes by Cast nodes, where the type is known. ONNX Runtime takes CastLike for a function: it
// writes it out after it has folded constants, and so folds nothing that reads one.
func (e *Edit) castLikes() {
	types := typesOf(e.m, more...)
	for i := range e.m.Graph.Nodes {
		n := &e.m.Graph.Nodes[i]
		if n.OpType == "CastLike" && n.Domain == "" && len(n.Outputs) == 1 && types[n.Outputs[0]] != 0 {
			to := wire.Int("to", int64(types[n.Outputs[0]]))
			e.splice(n.msg.Span(), wire.Node("Cast", n.Name, n.Inputs[:1], n.Outputs, to), n.msg.Parent)
		}
	}
}

// foldCastLikes replaces CastLike nodes that give a single number the type of data, if that is float32, by constants.
// PyTorch's exporter, told not to optimise, writes the bounds of a Clip in this way. ONNX Runtime does not fold
// values that take their type from data, so it fuses no Clip into the convolution before it. OpenVINO needs constant
// bounds, and took no node of a MobileNetV2.
func (e *Edit) foldCastLikes(fills map[*Tensor]string) {
	types, number := typesOf(e.m), make(map[string]float32) // numbers in Constant nodes
	for i := range e.m.Graph.Nodes {
		n := &e.m.Graph.Nodes[i]
		if n.Domain != "" || len(n.Outputs) == 0 {
			continue
		}
		out := n.Outputs[0]
		switch {
		case n.OpType == "Constant":
			if v, ok := e.m.single(n, fills); ok {
				number[out] = v
			}
		case n.OpType == "CastLike" && len(n.Inputs) == 2:
			if v, ok := number[n.Inputs[0]]; ok && types[out] == Float && !e.removed[n] {
				e.splice(n.msg.Span(), scalar(out, v), n.msg.Parent)
				e.dropUse(fills, n.Inputs...)
				e.removed[n] = true
			}
		}
	}
}

// single returns the number that a Constant node holds, if it has no shape and float32 holds it exactly.
func (m *Model) single(n *Node, fills map[*Tensor]string) (v float32, ok bool) {
	if t := n.constant; t != nil {
		elements := m.Elements(t)
		switch {
		case len(t.Shape) > 0 || fills[t] != "":
		case t.ElemType == Float && len(elements) == 4:
			return math.Float32frombits(binary.LittleEndian.Uint32(elements)), true
		case t.ElemType == Int64 && len(elements) == 8:
			return exactFloat32(int64(binary.LittleEndian.Uint64(elements)))
		}
		return 0, false
	}
	for _, a := range n.Attributes {
		if a.Name == "value_int" {
			return exactFloat32(a.Int)
		}
	}
	return 0, false
}

func exactFloat32(i int64) (float32, bool) {
	const most = 1 << 24 // up to here float32 holds all whole numbers
	return float32(i), -most <= i && i <= most
}

// scalar encodes a Constant node with the given output.
func scalar(output string, v float32) []byte {
	t := wire.AppendBytes(wire.TensorHeader("", Float, nil), wire.TensorRaw, binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
	return wire.Node("Constant", "", nil, []string{output}, wire.Tensor("value", t))
}
