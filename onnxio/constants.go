package onnxio

import (
	"encoding/binary"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
)

// numberTypes are the types of the constants that are numbers or lists of numbers instead of tensors.
var numberTypes = map[string]ElemType{"value_float": Float, "value_floats": Float, "value_int": Int64, "value_ints": Int64}

// tensorConstants turns the constants in a graph that are numbers, or lists of numbers, into tensors. Several compilers read no
// others, and neither does ONNX Runtime's quant_pre_process. lists are the short lists that the graph knows.
func (e *Edit) tensorConstants(g *Graph, lists map[string][]int64) error {
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if e.removed[n] || e.foldList(n, lists) {
			continue
		}
		for k := range n.Attributes {
			a := &n.Attributes[k]
			for _, inner := range a.Graphs {
				if err := e.tensorConstants(inner, nil); err != nil {
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

// foldList turns a Reshape of a known list into [-1] into a constant. PyTorch's exporter, told not to optimise, writes axes so, and the
// shape inference of ONNX, which IREE needs, does not see through it.
func (e *Edit) foldList(n *Node, lists map[string][]int64) bool {
	if n.OpType != "Reshape" || n.Domain != "" || len(n.Inputs) != 2 || len(n.Outputs) != 1 ||
		!slices.Equal(lists[n.Inputs[1]], []int64{-1}) {
		return false
	}
	list := lists[n.Inputs[0]]
	if len(list) == 0 || len(list) > shortList {
		return false
	}
	var raw []byte
	for _, v := range list {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
	}
	tensor := wire.AppendBytes(wire.TensorHeader("", Int64, []int64{int64(len(list))}), wire.TensorRaw, raw)
	e.splice(n.msg.Span(), wire.Node("Constant", n.Name, nil, n.Outputs, wire.Tensor("value", tensor)), n.msg.Parent)
	return true
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
