package onnxio

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"

	"github.com/swagwrap/swagwrap/weights"
)

// readsFloat lists inputs of operators that must be float32 whatever the type of the data
// (https://onnx.ai/onnx/operators/).
var readsFloat = map[string][]int{"Resize": {1, 2}, "Upsample": {1}}

// Half returns a model that computes in float16: the same weights, inputs and outputs, with a Cast after each float32
// value that the graph does not compute, and before each output. Values that float16 cannot hold become ±65504. The
// runtime folds the Casts of weights when it loads the model.
func (f Filled) Half() (Filled, error) {
	t := f.Template
	t.halve.Do(func() { t.half, t.halfErr = t.toHalf(f.Layout) })
	f.Template = t.half
	return f, t.halfErr
}

func (t *Template) toHalf(l *weights.Layout) (*Template, error) {
	half, _, err := t.halved(l, false)
	return half, err
}

// StoredHalf returns a graph that computes in float16, and the float32 tensors in it that must be stored as float16. Its float32 inputs
// must be given in float16, too, and its outputs are float16. A Reshape that changes no shape stands behind each Transpose that moves the
// first axis. Without it the optimiser of ONNX Runtime for x86-64 processors dereferences a null pointer: it casts the input of a MatMul
// to float32, swaps this Cast with the Transpose before it, fuses only some of these, and forgets to resolve the others.
func (t *Template) StoredHalf(l *weights.Layout) (half *Template, stored map[string]bool, err error) {
	return t.halved(l, true)
}

func (t *Template) halved(l *weights.Layout, store bool) (*Template, map[string]bool, error) {
	m, err := t.Model(t.files[0].name, l)
	if err != nil {
		return nil, nil, err
	}
	g, e := m.Graph, m.Edit()
	for _, n := range g.Nodes {
		nested := slices.ContainsFunc(n.Attributes, func(a Attribute) bool { return len(a.Graphs) > 0 })
		if nested || n.Domain != "" && n.Domain != "ai.onnx" || m.Opset < 12 {
			return nil, nil, fmt.Errorf("node %q (%s), opset %d: float16 needs opset 12 or later, and no control flow or custom operators",
				n.Name, n.OpType, m.Opset)
		}
		if store && n.recurrent() {
			return nil, nil, fmt.Errorf("node %q (%s): ONNX Runtime has no such operator in float16 for the processor", n.Name, n.OpType)
		}
	}
	stored := make(map[string]bool)
	if store {
		stored = storable(g)
	}
	taken, as := e.names(), map[string]string{} // names in float16, by those in float32
	name := func(s string) string {
		s = unused(s, taken)
		taken[s] = true
		return s
	}
	low, high := name("swagwrap_lowest_half"), name("swagwrap_highest_half")
	for bound, v := range map[string]float32{low: -65504, high: 65504} {
		e.addInitializer(bound, Float, binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
	}
	halve := func(value string) []byte {
		clipped, half := name(value+"_clipped"), name(value+"_half")
		as[value] = half
		return append(wire.Node("Clip", clipped, []string{value, low, high}, []string{clipped}),
			wire.Node("Cast", half, []string{clipped}, []string{half}, wire.Int("to", int64(Float16)))...)
	}
	var first []byte
	for _, in := range m.FeedInputs() {
		if in.ElemType == Float && !store {
			first = append(first, halve(in.Name)...)
		}
	}
	for _, t := range g.Initializers {
		if t.ElemType == Float && !stored[t.local] {
			first = append(first, halve(t.local)...)
		}
	}
	after := make(map[int][]byte)
	for i := range g.Nodes {
		n := &g.Nodes[i]
		to := n.attribute("to")
		switch {
		case n.OpType == "Cast" && to != nil && ElemType(to.Int) == Float:
			e.setInt(n, "to", int64(Float16))
		case n.givesFloat() && !stored[n.Outputs[0]]:
			after[i] = halve(n.Outputs[0])
		}
	}
	same := make(map[int]string) // the shape of zeros, by its rank
	var last []byte
	for _, out := range g.Outputs {
		if out.ElemType != Float || store {
			continue
		}
		if as[out.Name] == "" { // computed: the node gives another value, and a Cast the output
			as[out.Name] = name(out.Name + "_half")
			last = append(last, wire.Node("Cast", out.Name+"_cast", []string{as[out.Name]}, []string{out.Name},
				wire.Int("to", int64(Float)))...)
		}
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		for k, in := range n.Inputs {
			if half := as[in]; half != "" && !slices.Contains(readsFloat[n.OpType], k) {
				e.splice(n.inputs[k], wire.AppendString(nil, wire.NodeInput, half), n.msg)
			}
		}
		for k, out := range n.Outputs {
			half := as[out]
			if rank := movesFirst(n); rank > 0 && store && !stored[n.Inputs[0]] {
				if same[rank] == "" {
					same[rank] = name(fmt.Sprintf("swagwrap_same_%d", rank))
					e.addInts(same[rank], make([]int64, rank)) // 0 keeps a size
				}
				half = name(out + "_moved")
				e.splice(n.outputs[k], wire.AppendString(nil, wire.NodeOutput, half), n.msg)
				after[i] = wire.Node("Reshape", half, []string{half, same[rank]}, []string{out})
			} else if half != "" && after[i] == nil {
				e.splice(n.outputs[k], wire.AppendString(nil, wire.NodeOutput, half), n.msg)
			}
		}
		at := wire.Span{Start: n.msg.Body.End, End: n.msg.Body.End}
		if i == len(g.Nodes)-1 {
			after[i] = append(after[i], last...)
		}
		if after[i] != nil {
			e.splice(at, after[i], n.msg.Parent)
		}
		if i == 0 {
			e.splice(wire.Span{Start: n.msg.Tag, End: n.msg.Tag}, first, n.msg.Parent)
		}
	}
	for _, at := range g.inferred {
		e.splice(at, nil, g.msg)
	}
	half, err := e.Template(l)
	return half, stored, err
}

// movesFirst returns the rank of what n transposes, if n moves its first axis, and this is no matrix.
func movesFirst(n *Node) int {
	if perm := n.list("perm"); n.OpType == "Transpose" && len(perm) > 2 && perm[0] != 0 {
		return len(perm)
	}
	return 0
}

// storable lists the float32 tensors of a graph that no operator needs in float32.
func storable(g *Graph) map[string]bool {
	stored := make(map[string]bool)
	for _, t := range g.Initializers {
		stored[t.local] = t.ElemType == Float
	}
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.constant != nil && n.constant.ElemType == Float {
			stored[n.Outputs[0]] = true
		}
	}
	for _, n := range g.Nodes {
		for _, k := range readsFloat[n.OpType] {
			if k < len(n.Inputs) {
				delete(stored, n.Inputs[k])
			}
		}
	}
	return stored
}

// givesFloat reports whether n gives float32 without reading any: a constant, or a value that it fills in.
func (n *Node) givesFloat() bool {
	switch n.OpType {
	case "Constant":
		return n.constant != nil && n.constant.ElemType == Float || n.attribute("value_float") != nil || n.attribute("value_floats") != nil
	case "ConstantOfShape": // its default is float zeros
		v := n.attribute("value")
		return v == nil || v.Tensor != nil && v.Tensor.ElemType == Float
	}
	return false
}
