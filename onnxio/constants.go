package onnxio

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
)

// numberTypes are the types of the constants that are numbers or lists of numbers instead of tensors.
var numberTypes = map[string]ElemType{"value_float": Float, "value_floats": Float, "value_int": Int64, "value_ints": Int64}

// tensorConstants turns the constants in a graph that are numbers, or lists of numbers, into tensors. Several compilers read no
// others, and neither does ONNX Runtime's quant_pre_process.
func (e *Edit) tensorConstants(g *Graph) error {
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if e.removed[n] {
			continue
		}
		for k := range n.Attributes {
			a := &n.Attributes[k]
			for _, inner := range a.Graphs {
				if err := e.tensorConstants(inner); err != nil {
					return err
				}
			}
			if elem := numberTypes[a.Name]; elem != 0 && n.OpType == "Constant" && n.Domain == "" {
				if err := e.tensorConstant(a, n.constant, elem); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// nameNodes gives each node of the main graph a name of its own. Converters tell nodes by their names, and some exporters write none.
func nameNodes(e *Edit) {
	nodes := e.m.Graph.Nodes
	taken, own := make(map[string]bool), make(map[string]bool)
	for i := range nodes {
		taken[nodes[i].Name] = true
	}
	for i := range nodes {
		n := &nodes[i]
		name := n.Name
		if name == "" || own[name] {
			name = unused(cmp.Or(name, cmp.Or(n.Outputs...), n.OpType), taken)
			at := n.name
			if at == (wire.Span{}) {
				at = wire.Span{Start: n.msg.Body.End, End: n.msg.Body.End}
			}
			e.splice(at, wire.AppendString(nil, wire.NodeName, name), n.msg)
		}
		taken[name], own[name] = true, true
	}
}

// foldLists turns the nodes of the main graph that compute short lists of int64 from nothing else than constants into constants. Exporters
// without optimisation write axes and shapes so. The shape inference of ONNX does not see through all of them, and IREE needs it.
func (e *Edit) foldLists(fills map[*Tensor]string) {
	lists := constantLists(e.m)
	sized, taken := sizes(e.m, firstPrime, nil, nil), e.names()
	e.dropUse(fills)
	for i := range e.m.Graph.Nodes {
		n := &e.m.Graph.Nodes[i]
		if e.removed[n] || n.OpType == "Constant" || len(n.Inputs) == 0 || len(n.Outputs) != 1 || slices.Contains(n.Inputs, "") ||
			lists[n.Outputs[0]].ints == nil {
			if e.removed[n] || !n.isFlat(lists) {
				continue
			}
			if of, ok := sized.values[n.Inputs[0]]; ok && len(of.dims) == 0 {
				e.unsqueeze(n, unused("swagwrap_axis_of_"+n.Outputs[0], taken))
				e.dropUse(fills, n.Inputs[1])
			}
			continue
		}
		var raw []byte
		for _, v := range lists[n.Outputs[0]].ints {
			raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
		}
		tensor := wire.AppendBytes(wire.TensorHeader("", Int64, lists[n.Outputs[0]].dims), wire.TensorRaw, raw)
		e.splice(n.msg.Span(), wire.Node("Constant", n.Name, nil, n.Outputs, wire.Tensor("value", tensor)), n.msg.Parent)
		e.removed[n] = true
		e.dropUse(fills, n.Inputs...)
	}
}

// isFlat reports whether a node reshapes a value to one axis.
func (n *Node) isFlat(lists map[string]traced) bool {
	return n.OpType == "Reshape" && n.Domain == "" && len(n.Inputs) == 2 && len(n.Outputs) == 1 &&
		slices.Equal(lists[n.Inputs[1]].ints, []int64{-1})
}

// unsqueeze gives a single number an axis. It replaces a Reshape. TVM takes no Reshape of a size.
func (e *Edit) unsqueeze(n *Node, axis string) {
	const axesAreInput = 13
	inputs, attributes := n.Inputs[:1], [][]byte{wire.Ints("axes", []int64{0})}
	if e.m.Opset >= axesAreInput {
		e.addInts(axis, []int64{0})
		inputs, attributes = append(slices.Clone(inputs), axis), nil
	}
	e.splice(n.msg.Span(), wire.Node("Unsqueeze", n.Name, inputs, n.Outputs, attributes...), n.msg.Parent)
	e.removed[n] = true
}

// joinOutputs lets nodes give the outputs that an Identity or a Dropout at rest passes on. OpenVINO calls the values that such a node
// joins by the first name in the alphabet. joinOutputs reports whether it changed something.
func joinOutputs(e *Edit) bool {
	g, uses := e.m.Graph, e.m.uses()
	outputs := make(map[string]bool)
	for _, o := range g.Outputs {
		outputs[o.Name] = true
	}
	for _, o := range g.Outputs {
		n := g.Producer(o.Name)
		if n == nil || !n.passes() {
			continue
		}
		x := n.Inputs[0]
		from := g.Producer(x)
		if from == nil || outputs[x] || uses[x] != reads(e.m, x) {
			continue
		}
		outputs[x] = true // has its new name
		e.splice(n.msg.Span(), nil, n.msg.Parent)
		e.dropUse(nil, n.Inputs[1:]...)
		e.splice(from.outputs[slices.Index(from.Outputs, x)], wire.AppendString(nil, wire.NodeOutput, o.Name), from.msg)
		for i := range g.Nodes {
			for k, in := range g.Nodes[i].Inputs {
				if in == x && &g.Nodes[i] != n {
					e.splice(g.Nodes[i].inputs[k], wire.AppendString(nil, wire.NodeInput, o.Name), g.Nodes[i].msg)
				}
			}
		}
	}
	return len(e.splices) > 0
}

// passes reports whether a node is an Identity or a Dropout at rest, which may have a ratio.
func (n *Node) passes() bool {
	most := map[string]int{"Identity": 1, "Dropout": 2}[n.OpType]
	return n.Domain == "" && len(n.Outputs) == 1 && 0 < len(n.Inputs) && len(n.Inputs) <= most
}

// reads counts the uses of a value by nodes of the main graph.
func reads(m *Model, value string) (n int) {
	for i := range m.Graph.Nodes {
		for _, in := range m.Graph.Nodes[i].Inputs {
			if in == value {
				n++
			}
		}
	}
	return n
}

// tensorConstant turns an attribute of a Constant into a tensor. The elements of known, the tensor that it is, keep their place,
// since members may fill it.
func (e *Edit) tensorConstant(a *Attribute, known *Tensor, elem ElemType) error {
	body := a.msg.Body
	if known != nil {
		e.splice(wire.Span{Start: body.Start, End: known.payload.Start}, beforeElements(elem, known.Shape, known.payload.Len()), a.msg)
		e.splice(wire.Span{Start: known.payload.End, End: body.End}, afterElements, a.msg)
		return nil
	}
	raw, given, err := numbers(e.m.data, a)
	if err != nil || !given {
		return err
	}
	size := 4
	if elem == Int64 {
		size = 8
	}
	var shape []int64
	switch a.Name {
	case "value_floats", "value_ints":
		shape = []int64{int64(len(raw) / size)}
	default:
		if len(raw) == 0 { // the default of a number
			raw = make([]byte, size)
		}
	}
	e.splice(body, append(append(beforeElements(elem, shape, len(raw)), raw...), afterElements...), a.msg)
	return nil
}

// beforeElements and afterElements are the fields of an attribute that is a tensor around its elements.
func beforeElements(elem ElemType, shape []int64, bytes int) []byte {
	tensor := wire.AppendPrefix(wire.TensorHeader("", elem, shape), wire.TensorRaw, bytes)
	b := wire.AppendPrefix(wire.AppendString(nil, wire.AttrName, "value"), wire.AttrTensor, len(tensor)+bytes)
	return append(b, tensor...)
}

var afterElements = wire.AppendVarint(nil, wire.AttrType, wire.AttrIsTensor)

// numbers returns the numbers of an attribute, in a model's content, in the layout of memory. They are not given if the attribute
// stands for one of the function's caller.
func numbers(of wire.Content, a *Attribute) (raw []byte, given bool, err error) {
	s := wire.NewScanner(of)
	given = true
	err = s.Fields(a.msg.Body, func(f wire.Field) error {
		switch f.Num {
		case wire.AttrReference:
			given = false
		case wire.AttrInt, wire.AttrInts:
			return s.Varints(f, func(v uint64) error {
				raw = binary.LittleEndian.AppendUint64(raw, v)
				return nil
			})
		case wire.AttrFloat, wire.AttrFloats:
			b, err := s.Bytes(f)
			raw = append(raw, b...)
			return err
		}
		return nil
	})
	return raw, given, err
}
