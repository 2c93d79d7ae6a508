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
// first axis. Without it ONNX Runtime 1.32 ends the process on x86-64 processors. Its optimiser casts the inputs of a MatMul to float32 and
// swaps this Cast with a Transpose before it. If it then does not fuse the two, the new nodes have no operator that is resolved.
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
		stored = storable(m)
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

// storable lists the float32 tensors of a model that float16 holds and no operator needs in float32.
func storable(m *Model) map[string]bool {
	stored, g := make(map[string]bool), m.Graph
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
	for name := range masks(m) {
		delete(stored, name)
	}
	return stored
}

// passes are operators that a mask of attention goes through on its way to a softmax.
var passes = []string{"Add", "Cast", "CastLike", "Concat", "Expand", "Gather", "Identity", "Reshape", "Slice", "Squeeze", "Tile",
	"Transpose", "Unsqueeze", "Where"}

// masks returns the constants below the range of float16, such as -Inf, that are only added to what a softmax reads, and the sums. There
// the lowest number of float16 does the same.
func masks(m *Model) map[string]bool {
	elsewhere, softmax := map[string]bool{}, map[string]bool{}
	for _, o := range m.Graph.Outputs {
		elsewhere[o.Name] = true
	}
	for i := len(m.Graph.Nodes) - 1; i >= 0; i-- {
		n := &m.Graph.Nodes[i]
		only := n.OpType == "Softmax" || n.OpType == "LogSoftmax" ||
			slices.Contains(passes, n.OpType) && softmax[n.Outputs[0]] && !elsewhere[n.Outputs[0]]
		for _, in := range n.Inputs {
			softmax[in], elsewhere[in] = softmax[in] || only, elsewhere[in] || !only
		}
	}
	found := make(map[string]bool)
	add := func(name string, t *Tensor) {
		if t == nil || t.ElemType != Float || !softmax[name] || elsewhere[name] {
			return
		}
		least, most := math.Inf(1), math.Inf(-1)
		for b := range slices.Chunk(m.Elements(t), 4) {
			v := float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
			least, most = min(least, v), max(most, v)
		}
		if least < -65504 && most <= 65504 { // false for NaN
			found[name] = true
		}
	}
	for _, t := range m.Graph.Initializers {
		add(t.local, t)
	}
	for i := range m.Graph.Nodes {
		n := &m.Graph.Nodes[i]
		if n.constant != nil {
			add(n.Outputs[0], n.constant)
		}
		if slices.Contains(passes, n.OpType) && slices.ContainsFunc(n.Inputs, func(in string) bool { return found[in] }) {
			found[n.Outputs[0]] = true
		}
	}
	return found
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
