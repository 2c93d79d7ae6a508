package onnxio

import (
	"encoding/binary"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
)

// FreeBatch leaves open the first dimension of what the model takes and gives,
// where the exporter fixed it, in the shapes that its Reshape nodes are given too,
// and drops the shapes that were inferred in between. Whether examples are then
// computed each by itself is for the caller to see: there are other ways to write
// the size of the batch into a graph.
func (e *Edit) FreeBatch() {
	g, batch := e.m.Graph, int64(-1)
	for _, v := range e.m.FeedInputs() {
		if v.fixesBatch() {
			batch = v.Shape[0]
			e.splice(v.msg.Span(), wire.AppendBytes(nil, graphInput, v.freed()), g.msg)
		}
	}
	if batch < 0 {
		return
	}
	for _, v := range g.Outputs {
		if v.fixesBatch() {
			e.splice(v.msg.Span(), wire.AppendBytes(nil, graphOutput, v.freed()), g.msg)
		}
	}
	for _, at := range g.inferred {
		e.splice(at, nil, g.msg)
	}
	taken := e.names()
	for _, p := range e.m.Places() {
		n := p.Node
		if p.Graph != g || n.OpType != "Reshape" || n.Domain != "" || len(n.Inputs) != 2 || len(n.Outputs) == 0 || p.Tensors[1] == nil {
			continue
		}
		if shape := slices.Clone(p.Tensors[1].ints); len(shape) > 0 && shape[0] == batch {
			if shape[0] = -1; slices.Contains(shape[1:], -1) {
				shape[0] = 0 // as it comes in
			}
			name := unused("swagwrap_shape_of_"+n.Outputs[0], taken)
			e.addInts(name, shape)
			e.splice(n.inputs[1], wire.AppendString(nil, nodeInput, name), n.msg)
		}
	}
}

func (v Value) fixesBatch() bool { return len(v.Shape) > 0 && v.Shape[0] >= 0 }

// freed encodes the value with its first dimension open.
func (v Value) freed() []byte {
	shape := slices.Clone(v.Shape)
	shape[0] = -1
	return encodeValue(v.Name, v.ElemType, shape)
}

// addInts adds an initializer, a list of int64.
func (e *Edit) addInts(name string, values []int64) {
	var raw []byte
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
	}
	e.addInitializer(name, Int64, raw, int64(len(values)))
}

// addInitializer adds an initializer with the elements as they lie in memory.
func (e *Edit) addInitializer(name string, elem ElemType, raw []byte, shape ...int64) {
	var b []byte
	for _, d := range shape {
		b = wire.AppendVarint(b, tensorDims, uint64(d))
	}
	b = wire.AppendVarint(b, tensorType, uint64(elem))
	b = wire.AppendString(b, tensorName, name)
	b = wire.AppendBytes(b, tensorRaw, raw)
	e.append(e.m.Graph.msg, wire.AppendBytes(nil, graphInitializer, b))
}
