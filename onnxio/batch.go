package onnxio

import (
	"encoding/binary"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
)

// DynamicBatch frees the first dimension of the model's inputs and outputs, if the exporter fixed it. It also frees that
// dimension in the shapes of Reshape nodes, and drops the inferred shapes in between. The caller must check that
// examples are then computed independently, because a graph may contain the batch size in other ways, too.
func (e *Edit) DynamicBatch() {
	g, batch := e.m.Graph, int64(-1)
	for _, v := range e.m.FeedInputs() {
		if v.fixesBatch() {
			batch = v.Shape[0]
			e.splice(v.msg.Span(), wire.AppendBytes(nil, wire.GraphInput, v.freed()), g.msg)
		}
	}
	if batch < 0 {
		return
	}
	for _, v := range g.Outputs {
		if v.fixesBatch() {
			e.splice(v.msg.Span(), wire.AppendBytes(nil, wire.GraphOutput, v.freed()), g.msg)
		}
	}
	for _, at := range g.inferred {
		e.splice(at, nil, g.msg)
	}
	e.freeShapes(batch)
}

// freeShapes frees the first dimension of the shapes that Reshape nodes take, if it is that of the batch. Such a
// shape is a list, or joined by a Concat, as in PyTorch's exporter.
func (e *Edit) freeShapes(batch int64) {
	lists, taken, freed := e.m.lists(), e.names(), make(map[*Node]bool)
	for i := range e.m.Graph.Nodes {
		n := &e.m.Graph.Nodes[i]
		if n.OpType != "Reshape" || n.Domain != "" || len(n.Outputs) == 0 || len(n.Inputs) != 2 {
			continue
		}
		at, k, whole := n, 1, lists[n.Inputs[1]] // the input that becomes another list, and the known numbers of the shape
		first := whole
		if c := e.m.Graph.Producer(n.Inputs[1]); c != nil && c.OpType == "Concat" && c.Domain == "" && len(c.Inputs) > 0 {
			at, k, first = c, 0, lists[c.Inputs[0]]
			for _, part := range c.Inputs {
				whole = append(whole, lists[part]...)
			}
		}
		if len(first) == 0 || first[0] != batch {
			continue
		}
		shape := slices.Clone(first)
		shape[0] = -1
		if slices.Contains(whole, -1) {
			shape[0] = 0 // copied from the input
			if a := n.attribute("allowzero"); a != nil && a.Int != 0 {
				if slices.Contains(whole, 0) {
					continue
				}
				e.splice(a.msg.Span(), nil, n.msg) // it would make 0 the size
			}
		}
		if freed[at] {
			continue
		}
		freed[at] = true
		name := unused("swagwrap_shape_of_"+n.Outputs[0], taken)
		e.addInts(name, shape)
		e.splice(at.inputs[k], wire.AppendString(nil, wire.NodeInput, name), at.msg)
	}
}

// lists returns the short lists of int64 in the main graph, by name.
func (m *Model) lists() map[string][]int64 {
	lists := make(map[string][]int64)
	for _, t := range m.Graph.Initializers {
		lists[t.local] = t.ints
	}
	for _, n := range m.Graph.Nodes {
		if n.OpType != "Constant" || n.Domain != "" || len(n.Outputs) == 0 {
			continue
		}
		for _, a := range n.Attributes {
			switch {
			case a.Tensor != nil:
				lists[n.Outputs[0]] = a.Tensor.ints
			case a.ints != nil:
				lists[n.Outputs[0]] = *a.ints
			}
		}
	}
	return lists
}

func (v Value) fixesBatch() bool { return len(v.Shape) > 0 && v.Shape[0] >= 0 }

// freed encodes the value with its first dimension open.
func (v Value) freed() []byte {
	shape := slices.Clone(v.Shape)
	shape[0] = -1
	return wire.Value(v.Name, v.ElemType, shape, nil)
}

func (e *Edit) addInts(name string, values []int64) {
	var raw []byte
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
	}
	e.addInitializer(name, Int64, raw, int64(len(values)))
}

// addInitializer adds an initializer with elements in the layout of memory.
func (e *Edit) addInitializer(name string, elem ElemType, raw []byte, shape ...int64) {
	e.append(e.m.Graph.msg, wire.Initializer(name, elem, shape, raw))
}
