package onnxio

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"

	"github.com/swagwrap/swagwrap/weights"
)

// readsFloat lists inputs of operators that must be float32 whatever the type of the data
// (https://onnx.ai/onnx/operators/).
var readsFloat = map[string][]int{"Resize": {1, 2}, "Upsample": {1}}

// takesHalf has the first opsets in which operators take float16, of those that took float32 first.
var takesHalf = map[string]int64{
	"Celu":              28,
	"CumSum":            14,
	"IsInf":             20,
	"NonMaxSuppression": math.MaxInt64,
	"Range":             27,
	"TfIdfVectorizer":   math.MaxInt64,
}

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
// must be given in float16, too, and its outputs are float16. Recurrent layers, nodes with graphs or functions inside, and operators whose
// opset has no float16 stay in float32 between Casts. ONNX Runtime has no recurrent layers in float16 for the processor.
//
// A Reshape that changes no shape stands behind each Transpose that moves the first axis. Without it ONNX Runtime 1.32 ends the process on
// x86-64 processors. Its optimiser casts the inputs of a MatMul to float32 and swaps this Cast with a Transpose before it. If it then does
// not fuse the two, the new nodes have no operator that is resolved.
func (t *Template) StoredHalf(l *weights.Layout) (half *Template, stored map[string]bool, err error) {
	return t.halved(l, true)
}

func (t *Template) halved(l *weights.Layout, store bool) (*Template, map[string]bool, error) {
	m, err := t.Model(t.files[0].name, l)
	if err != nil {
		return nil, nil, err
	}
	if m.Opset < leastHalf {
		return nil, nil, fmt.Errorf("opset %d: float16 needs opset %d or later", m.Opset, leastHalf)
	}
	h := &halver{
		m:          m,
		e:          m.Edit(),
		store:      store,
		kept:       map[*Node]bool{},
		full:       map[string]string{},
		as:         map[string]string{},
		given:      map[string]string{},
		after:      map[int][]byte{},
		reshapings: map[int]string{},
	}
	h.taken = h.e.names()
	for i := range m.Graph.Nodes {
		h.taken[m.Graph.Nodes[i].Name] = true // ONNX Runtime refuses two nodes of one name
	}
	if store {
		h.stored = storable(m)
	}
	if err := h.keep(); err != nil {
		return nil, nil, err
	}
	h.convert()
	h.apply()
	half, err := h.e.Template(l)
	return half, h.stored, err
}

// leastHalf is the first opset whose Clip, which bounds what becomes float16, has its present meaning.
const leastHalf = 6

// halver makes a graph compute in float16.
type halver struct {
	m          *Model
	e          *Edit
	store      bool            // the graph takes, stores and gives float16
	stored     map[string]bool // float32 tensors that are stored as float16
	kept       map[*Node]bool  // nodes that compute in float32
	types      map[string]ElemType
	full       map[string]string // names in float32 of what kept nodes read in float16
	taken      map[string]bool   // names of values and nodes
	as         map[string]string // names in float16, of what has its own name in float32
	given      map[string]string // those of outputs
	low, high  string            // the largest numbers of float16
	first      []byte            // nodes before all others
	after      map[int][]byte    // nodes behind each
	last       []byte
	reshapings map[int]string // shapes of zeros, by rank
}

func (h *halver) name(s string) string {
	s = unused(s, h.taken)
	h.taken[s] = true
	return s
}

// keeps reports whether ONNX, or ONNX Runtime on the processor, has no such node in float16.
func (h *halver) keeps(n *Node) bool {
	return n.Nested() || n.Domain != "" || h.m.Opset < takesHalf[n.OpType] || h.store && n.recurrent()
}

// keep finds the nodes that stay in float32, and what they read.
func (h *halver) keep() error {
	bodies := map[string]Value{}
	for i := range h.m.Graph.Nodes {
		n := &h.m.Graph.Nodes[i]
		if !h.keeps(n) {
			continue
		}
		h.kept[n] = true
		for k, name := range n.Outputs {
			bodies[name] = Value{ElemType: n.bodyType(k)}
		}
	}
	if len(h.kept) == 0 {
		return nil
	}
	for _, out := range h.m.Graph.Outputs {
		if v, ok := bodies[out.Name]; ok && v.ElemType == 0 {
			bodies[out.Name] = out
		}
	}
	h.types = types(h.m, bodies, noted(h.m))
	for i := range h.m.Graph.Nodes {
		n := &h.m.Graph.Nodes[i]
		if !h.kept[n] {
			continue
		}
		for _, name := range n.Outputs {
			if name != "" && h.types[name] == 0 {
				return fmt.Errorf("node %q (%s): the graph does not show what type of tensor %q is, which float16 needs",
					n.Name, n.OpType, name)
			}
		}
		for _, name := range n.Reads() {
			if from := h.m.Graph.Producer(name); from != nil && slices.Contains(sequences, from.OpType) {
				return fmt.Errorf("node %q (%s) reads the sequence %q, which is not converted to float32", n.Name, n.OpType, name)
			}
			delete(h.stored, name)
			if h.types[name] == Float {
				h.full[name] = ""
			}
		}
	}
	return nil
}

// sequences are operators that give no tensor.
var sequences = []string{"Optional", "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SplitToSequence"}

// bodyType returns the type of output k of a node with graphs inside it, or 0.
func (n *Node) bodyType(k int) ElemType {
	if n.OpType == "Loop" {
		k++ // the first output of its body says whether it goes on
	}
	for _, a := range n.Attributes {
		for _, g := range a.Graphs {
			if k < len(g.Outputs) && g.Outputs[k].ElemType != 0 {
				return g.Outputs[k].ElemType
			}
		}
	}
	return 0
}

// halve encodes the conversion of a value to float16, within its range.
func (h *halver) halve(value, to string) []byte {
	clipped := h.name(value + "_clipped")
	cast := wire.Node("Cast", h.name(to+"_cast"), []string{clipped}, []string{to}, wire.Int("to", int64(Float16)))
	const boundsAreInputs = 11
	if h.m.Opset < boundsAreInputs {
		return append(wire.Node("Clip", clipped, []string{value}, []string{clipped}, wire.Float("min", -LargestHalf),
			wire.Float("max", LargestHalf)), cast...)
	}
	if h.low == "" {
		h.low, h.high = h.name("swagwrap_lowest_half"), h.name("swagwrap_highest_half")
		h.e.addInitializer(h.low, Float, binary.LittleEndian.AppendUint32(nil, math.Float32bits(-LargestHalf)))
		h.e.addInitializer(h.high, Float, binary.LittleEndian.AppendUint32(nil, math.Float32bits(LargestHalf)))
	}
	return append(wire.Node("Clip", clipped, []string{value, h.low, h.high}, []string{clipped}), cast...)
}

// LargestHalf is the largest number of float16.
const LargestHalf = 65504

// convert writes the conversions.
func (h *halver) convert() {
	g := h.m.Graph
	halved := func(value string) []byte {
		h.as[value] = h.name(value + "_half")
		return h.halve(value, h.as[value])
	}
	for _, in := range h.m.FeedInputs() {
		if in.ElemType == Float && !h.store {
			h.first = append(h.first, halved(in.Name)...)
		}
	}
	for _, t := range g.Initializers {
		if t.ElemType == Float && !h.stored[t.local] {
			h.first = append(h.first, halved(t.local)...)
		}
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		to := n.attribute("to")
		switch {
		case n.OpType == "Cast" && to != nil && ElemType(to.Int) == Float:
			h.e.setInt(n, "to", int64(Float16))
		case n.OpType == "SequenceEmpty" && ElemType(n.Int("dtype", int64(Float))) == Float:
			h.e.setInt(n, "dtype", int64(Float16))
		case n.givesFloat() && !h.stored[n.Outputs[0]]:
			h.after[i] = halved(n.Outputs[0])
		}
	}
	for _, out := range g.Outputs {
		if out.ElemType == Float && !h.store && h.as[out.Name] == "" { // computed: the node gives another value, and a Cast the output
			h.given[out.Name] = h.name(out.Name + "_half")
			h.last = append(h.last, h.whole(h.given[out.Name], out.Name)...)
		}
	}
	producer := map[string]int{}
	for i := range g.Nodes {
		for _, out := range g.Nodes[i].Outputs {
			producer[out] = i
		}
	}
	for _, value := range slices.Sorted(maps.Keys(h.full)) {
		if h.as[value] != "" {
			h.full[value] = value
			continue
		}
		h.full[value] = h.name(value + "_full")
		cast := h.whole(cmp.Or(h.given[value], value), h.full[value])
		if i, computed := producer[value]; computed {
			h.after[i] = append(h.after[i], cast...)
		} else {
			h.first = append(h.first, cast...)
		}
	}
}

// whole encodes the conversion of a value to float32.
func (h *halver) whole(value, to string) []byte {
	return wire.Node("Cast", h.name(to+"_cast"), []string{value}, []string{to}, wire.Int("to", int64(Float)))
}

// apply edits the graph.
func (h *halver) apply() {
	g := h.m.Graph
	for i := range g.Nodes {
		n := &g.Nodes[i]
		behind := h.after[i]
		if h.kept[n] {
			behind = append(h.wrap(n), behind...)
		} else {
			behind = append(h.node(n), behind...)
		}
		if i == 0 {
			h.e.splice(wire.Span{Start: n.msg.Tag, End: n.msg.Tag}, h.first, n.msg.Parent)
		}
		if i == len(g.Nodes)-1 {
			behind = append(behind, h.last...)
		}
		if behind != nil {
			h.e.splice(wire.Span{Start: n.msg.Body.End, End: n.msg.Body.End}, behind, n.msg.Parent)
		}
	}
	for _, at := range g.inferred {
		h.e.splice(at, nil, g.msg)
	}
}

// node makes a node compute in float16. It returns what stands behind it.
func (h *halver) node(n *Node) (behind []byte) {
	for k, in := range n.Inputs {
		if half := cmp.Or(h.as[in], h.given[in]); half != "" && !slices.Contains(readsFloat[n.OpType], k) {
			h.e.splice(n.inputs[k], wire.AppendString(nil, wire.NodeInput, half), n.msg)
		}
	}
	for k, out := range n.Outputs {
		half := h.given[out]
		if rank := movesFirst(n); rank > 0 && h.store && !h.stored[n.Inputs[0]] {
			if h.reshapings[rank] == "" {
				h.reshapings[rank] = h.name(fmt.Sprintf("swagwrap_same_%d", rank))
				h.e.addInts(h.reshapings[rank], make([]int64, rank)) // 0 keeps a size
			}
			half = h.name(out + "_moved")
			behind = wire.Node("Reshape", half, []string{half, h.reshapings[rank]}, []string{out})
		}
		if half != "" {
			h.e.splice(n.outputs[k], wire.AppendString(nil, wire.NodeOutput, half), n.msg)
		}
	}
	return behind
}

// wrap makes a node compute in float32 between nodes that compute in float16. Graphs inside it read values around them.
func (h *halver) wrap(n *Node) (behind []byte) {
	h.reads(n)
	for k, out := range n.Outputs {
		if h.types[out] == Float {
			full := h.name(out + "_whole")
			h.e.splice(n.outputs[k], wire.AppendString(nil, wire.NodeOutput, full), n.msg)
			behind = append(behind, h.halve(full, cmp.Or(h.given[out], out))...)
		}
	}
	return behind
}

// reads makes a node, and those inside it, read values in float32.
func (h *halver) reads(n *Node) {
	for k, in := range n.Inputs {
		if full := h.full[in]; full != "" && full != in {
			h.e.splice(n.inputs[k], wire.AppendString(nil, wire.NodeInput, full), n.msg)
		}
	}
	for _, a := range n.Attributes {
		for _, g := range a.Graphs {
			for i := range g.Nodes {
				h.reads(&g.Nodes[i])
			}
		}
	}
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
		if least < -LargestHalf && most <= LargestHalf { // false for NaN
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

// makers are operators that give values without reading any of their type: constants, and what they fill in.
var makers = []string{"BlackmanWindow", "Constant", "ConstantOfShape", "EyeLike", "HammingWindow", "HannWindow", "MelWeightMatrix"}

// givesFloat reports whether n gives float32 without reading any.
func (n *Node) givesFloat() bool {
	return slices.Contains(makers, n.OpType) && n.gives(0, nil) == Float
}
