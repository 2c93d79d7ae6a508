package onnxio

import (
	"testing"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"

	"google.golang.org/protobuf/encoding/protowire"
)

// A small encoder of ONNX, for models that no exporter would write.

func varintField(b []byte, num protowire.Number, v uint64) []byte {
	return wire.AppendVarint(b, num, v)
}

func tensor(name string, elem ElemType, shape []int64, raw []byte) []byte {
	var b []byte
	for _, d := range shape {
		b = varintField(b, wire.TensorDims, uint64(d))
	}
	b = wire.AppendString(varintField(b, wire.TensorType, uint64(elem)), wire.TensorName, name)
	if raw != nil {
		b = wire.AppendBytes(b, wire.TensorRaw, raw)
	}
	return b
}

// entry is a key and value of external_data.
func entry(key, value string) []byte {
	return wire.AppendString(wire.AppendString(nil, 1, key), 2, value)
}

// outside puts the elements of a tensor into another file; the pairs are keys
// and values.
func outside(t []byte, pairs ...string) []byte {
	for i := 0; i+1 < len(pairs); i += 2 {
		t = wire.AppendBytes(t, wire.TensorExternal, entry(pairs[i], pairs[i+1]))
	}
	return varintField(t, wire.TensorLocation, 1)
}

// node takes attributes encoded.
func node(op, name string, inputs, outputs []string, attributes ...[]byte) []byte {
	var b []byte
	for _, s := range inputs {
		b = wire.AppendString(b, wire.NodeInput, s)
	}
	for _, s := range outputs {
		b = wire.AppendString(b, wire.NodeOutput, s)
	}
	b = wire.AppendString(wire.AppendString(b, wire.NodeName, name), wire.NodeOpType, op)
	for _, a := range attributes {
		b = wire.AppendBytes(b, wire.NodeAttribute, a)
	}
	return b
}

func intAttribute(name string, v uint64) []byte {
	return varintField(varintField(wire.AppendString(nil, wire.AttrName, name), wire.AttrInt, v), wire.AttrType, 2)
}

func tensorAttribute(name string, tensor []byte) []byte {
	return varintField(wire.AppendBytes(wire.AppendString(nil, wire.AttrName, name), wire.AttrTensor, tensor), wire.AttrType, 4)
}

func graphAttribute(name string, graph []byte) []byte {
	return varintField(wire.AppendBytes(wire.AppendString(nil, wire.AttrName, name), wire.AttrGraph, graph), wire.AttrType, 5)
}

// output is a graph output without a shape.
func output(name string, elem ElemType) []byte {
	elemType := varintField(nil, wire.TensorTypeElem, uint64(elem))
	return wire.AppendBytes(wire.AppendString(nil, wire.ValueName, name), wire.ValueType, wire.AppendBytes(nil, wire.TypeTensor, elemType))
}

func graph(nodes, initializers, outputs [][]byte) []byte {
	var b []byte
	for _, n := range nodes {
		b = wire.AppendBytes(b, wire.GraphNode, n)
	}
	for _, t := range initializers {
		b = wire.AppendBytes(b, wire.GraphInitializer, t)
	}
	for _, o := range outputs {
		b = wire.AppendBytes(b, wire.GraphOutput, o)
	}
	return b
}

// tinyGraph is the least graph that is accepted.
func tinyGraph(initializers ...[]byte) []byte {
	return graph([][]byte{node("Relu", "n", []string{"x"}, []string{"y"})}, initializers, [][]byte{output("y", Float)})
}

func encodeModel(graph []byte) []byte {
	b := varintField(nil, wire.ModelIR, 8)
	b = wire.AppendBytes(b, wire.ModelGraph, graph)
	return wire.AppendBytes(b, wire.ModelOpset, varintField(nil, wire.OpsetVersion, 18))
}

func parse(t testing.TB, data []byte) *Model {
	t.Helper()
	m, err := Parse("m.onnx", data)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
