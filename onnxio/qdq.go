package onnxio

import (
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"

	"github.com/swagwrap/swagwrap/weights"
)

// QDQ is how a network computes in 8 bits: Conv, Gemm and MatMul with weights in int8, and the values between them in uint8. The graph
// has pairs of QuantizeLinear and DequantizeLinear, as onnxruntime's static scheme writes them. A runtime joins them with the operators.
type QDQ struct {
	Layers      []QDQLayer
	Activations []QDQActivation
}

// QDQLayer is an operator whose weights are stored in int8, with a step for each output channel.
type QDQLayer struct {
	In           string // the value that the operator takes
	Weight       QDQSource
	Bias         *QDQSource
	Norm         []QDQSource // scale, bias, mean and variance of the batch norm that becomes a part of the weights; nil for none
	Epsilon      float64
	Axis         int     // of the channels
	Shape        []int64 // of the weights
	Transpose    bool    // the source is the transpose
	Int8, Step   string  // initializers that hold the weights and their steps
	Int32, Steps string  // those of the bias; "" for none

	node, bn     *Node  // bn becomes a part of node
	out          string // the value behind both
	weight, bias string // values that the node takes
}

// QDQSource is a tensor of a layer. Values are its elements if all members share them. Otherwise Entry is its name in the layout.
type QDQSource struct {
	Entry  string
	Values []float32
}

// QDQActivation is a value in uint8. Step and Zero are initializers.
type QDQActivation struct{ Value, Step, Zero string }

// leastQDQ is the first opset with a step for each channel.
const leastQDQ = 13

// QDQValues lists the values whose ranges a network in 8 bits needs.
func QDQValues(m *Model) (names []string) {
	p := &qdqPlanner{m: m}
	p.plan()
	return p.values
}

// QDQ returns a graph that computes in 8 bits. The elements that the result describes are zeros in it.
func (t *Template) QDQ(l *weights.Layout) (*Template, *QDQ, error) {
	m, err := t.Model(t.files[0].name, l)
	if err != nil {
		return nil, nil, err
	}
	if m.Opset < leastQDQ {
		return nil, nil, &Error{
			What: fmt.Sprintf("opset %d: int8 with a step for each channel needs opset %d", m.Opset, leastQDQ),
			Hint: fmt.Sprintf("export the checkpoints with opset %d or later", leastQDQ),
		}
	}
	p := &qdqPlanner{m: m}
	p.plan()
	if len(p.layers) == 0 {
		return nil, nil, &Error{What: "no Conv, Gemm or MatMul with float32 weights, which int8 is for, behind the first layer"}
	}
	e, out := m.Edit(), p.write()
	for _, at := range m.Graph.inferred {
		e.splice(at, nil, m.Graph.msg)
	}
	p.apply(e)
	q, err := e.Template(l)
	return q, out, err
}

// qdqPlanner finds what computes in 8 bits.
type qdqPlanner struct {
	m       *Model
	stored  map[string]*Tensor
	readers map[string][]*Node
	layers  []*QDQLayer
	values  []string        // in uint8
	all     map[string]bool // of these: read in uint8 by every operator, since a convolution gives nothing else
	of      map[string]QDQActivation
	first   []byte         // nodes before all others
	after   map[int][]byte // nodes behind each
	inits   []func(e *Edit)
}

func (p *qdqPlanner) plan() {
	g := p.m.Graph
	p.stored, p.readers, p.all = map[string]*Tensor{}, map[string][]*Node{}, map[string]bool{}
	for _, t := range g.Initializers {
		if t.ElemType == Float {
			p.stored[t.local] = t
		}
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.constant != nil && n.constant.ElemType == Float {
			p.stored[n.Outputs[0]] = n.constant
		}
		for _, in := range n.Reads() {
			p.readers[in] = append(p.readers[in], n)
		}
	}
	columns := p.columns()
	for i := range g.Nodes {
		if layer := p.layer(&g.Nodes[i]); layer != nil && !columns[layer.In] {
			p.layers = append(p.layers, layer)
		}
	}
	for _, layer := range p.layers {
		p.value(layer.In)
		if layer.node.OpType != "Conv" {
			continue
		}
		out := layer.out
		r := p.readers[out]
		if len(r) == 1 && slices.Contains([]string{"Relu", "Clip"}, r[0].OpType) && r[0].Inputs[0] == out && !p.given(out) {
			out = r[0].Outputs[0]
		}
		if !p.given(out) {
			p.value(out)
			p.all[out] = true
		}
	}
}

// columns finds the values with columns of a table or of a series, which have units and tails of their own. One step for all of them would
// be too large for some, so their layer stays in float32, as first layers often do.
func (p *qdqPlanner) columns() map[string]bool {
	is := map[string]bool{}
	for _, v := range p.m.FeedInputs() {
		is[v.Name] = len(v.Shape) < 4
	}
	for _, n := range p.m.Graph.Nodes {
		if slices.Contains([]string{"Add", "BatchNormalization", "Cast", "Concat", "Div", "Identity", "Mul", "Sub"}, n.OpType) &&
			slices.ContainsFunc(n.Inputs, func(in string) bool { return is[in] }) {
			is[n.Outputs[0]] = true
		}
	}
	return is
}

func (p *qdqPlanner) value(name string) {
	if !slices.Contains(p.values, name) {
		p.values = append(p.values, name)
	}
}

// given reports whether a value is an output of the model.
func (p *qdqPlanner) given(name string) bool {
	return slices.ContainsFunc(p.m.Graph.Outputs, func(v Value) bool { return v.Name == name })
}

// layer returns the layer of a node, or nil.
func (p *qdqPlanner) layer(n *Node) *QDQLayer {
	if n.Domain != "" && n.Domain != "ai.onnx" || len(n.Inputs) < 2 || p.stored[n.Inputs[0]] != nil {
		return nil
	}
	l := &QDQLayer{node: n, In: n.Inputs[0], out: n.Outputs[0]}
	name := n.Inputs[1]
	switch n.OpType {
	case "Conv":
	case "Gemm":
		biased := len(n.Inputs) > 2 && n.Inputs[2] != ""
		for _, a := range n.Attributes {
			if a.Name == "alpha" && a.Float != 1 || a.Name == "beta" && a.Float != 1 && biased || a.Name == "transA" && a.Int != 0 {
				return nil
			}
		}
		if b := n.attribute("transB"); b == nil || b.Int == 0 {
			l.Axis = 1
		}
	case "MatMul":
		l.Axis = 1
		if turn := p.m.Graph.Producer(name); turn != nil && turn.OpType == "Transpose" && p.stored[turn.Inputs[0]] != nil {
			l.Transpose, name = true, turn.Inputs[0]
		}
	default:
		return nil
	}
	w := p.stored[name]
	if w == nil || n.OpType == "Conv" && len(w.Shape) < 3 || n.OpType != "Conv" && len(w.Shape) != 2 || w.Len() == 0 {
		return nil
	}
	l.Weight, l.Shape = p.source(w), slices.Clone(w.Shape)
	if l.Transpose {
		slices.Reverse(l.Shape)
	}
	if len(n.Inputs) > 2 && n.Inputs[2] != "" {
		b := p.stored[n.Inputs[2]]
		if b == nil || b.Len() != l.Shape[l.Axis] {
			return nil
		}
		source := p.source(b)
		l.Bias = &source
	}
	if n.OpType == "Conv" {
		p.fold(l)
	}
	return l
}

// fold makes the batch norm behind a convolution a part of it.
func (p *qdqPlanner) fold(l *QDQLayer) {
	r := p.readers[l.out]
	if len(r) != 1 || r[0].OpType != "BatchNormalization" || p.given(l.out) || len(r[0].Outputs) != 1 || len(r[0].Inputs) != 5 {
		return
	}
	bn := r[0]
	for _, name := range bn.Inputs[1:] {
		t := p.stored[name]
		if t == nil || t.Len() != l.Shape[0] {
			l.Norm = nil
			return
		}
		l.Norm = append(l.Norm, p.source(t))
	}
	l.Epsilon, l.bn, l.out = 1e-5, bn, bn.Outputs[0]
	if a := bn.attribute("epsilon"); a != nil {
		l.Epsilon = float64(a.Float)
	}
}

func (p *qdqPlanner) source(t *Tensor) (s QDQSource) {
	if s.Entry = p.m.data.Hole(t.payload); s.Entry == "" {
		raw := p.m.Elements(t)
		s.Values = make([]float32, len(raw)/4)
		weights.F32.Float32s(s.Values, raw)
	}
	return s
}

// write names the initializers, and encodes the nodes.
func (p *qdqPlanner) write() *QDQ {
	e := p.m.Edit()
	taken := e.names()
	name := func(s string) string {
		s = unused(s, taken)
		taken[s] = true
		return s
	}
	add := func(name string, elem ElemType, shape ...int64) string {
		n := elemTypes[elem].size
		for _, d := range shape {
			n *= d
		}
		p.inits = append(p.inits, func(e *Edit) { e.addInitializer(name, elem, make([]byte, n), shape...) })
		return name
	}
	p.of, p.after = map[string]QDQActivation{}, map[int][]byte{}
	out := &QDQ{}
	at := p.producers()
	for _, v := range p.values {
		a := QDQActivation{v, add(name(v+"/step"), Float), add(name(v+"/zero"), Uint8)}
		q, dq := name(v+"/uint8"), name(v+"/float")
		nodes := wire.Node("QuantizeLinear", q, []string{v, a.Step, a.Zero}, []string{q})
		nodes = append(nodes, wire.Node("DequantizeLinear", dq, []string{q, a.Step, a.Zero}, []string{dq})...)
		if i, computed := at[v]; computed {
			p.after[i] = append(p.after[i], nodes...)
		} else {
			p.first = append(p.first, nodes...)
		}
		out.Activations, p.of[v] = append(out.Activations, a), QDQActivation{Value: dq}
	}
	for _, l := range p.layers {
		channels, base := l.Shape[l.Axis], l.node.Inputs[1]
		zero := add(name(base+"/zero"), Int8, channels)
		l.Int8, l.Step = add(name(base+"/int8"), Int8, l.Shape...), add(name(base+"/step"), Float, channels)
		l.weight = name(base + "/float")
		dequantize := func(output string, axis int, inputs ...string) string {
			p.first = append(p.first, wire.Node("DequantizeLinear", output, inputs, []string{output}, wire.Int("axis", int64(axis)))...)
			return output
		}
		dequantize(l.weight, l.Axis, l.Int8, l.Step, zero)
		if l.Bias != nil || l.Norm != nil {
			l.Int32, l.Steps = add(name(base+"/bias"), Int32, channels), add(name(base+"/bias/step"), Float, channels)
			l.bias = dequantize(name(base+"/bias/float"), 0, l.Int32, l.Steps)
		}
		out.Layers = append(out.Layers, *l)
	}
	return out
}

// producers returns the number of the node behind which each value is known. A batch norm that is part of a convolution is gone.
func (p *qdqPlanner) producers() map[string]int {
	at := map[string]int{}
	for i := range p.m.Graph.Nodes {
		for _, out := range p.m.Graph.Nodes[i].Outputs {
			at[out] = i
		}
	}
	for _, l := range p.layers {
		at[l.out] = at[l.node.Outputs[0]]
	}
	return at
}

// apply edits the graph.
func (p *qdqPlanner) apply(e *Edit) {
	for _, add := range p.inits {
		add(e)
	}
	layer, gone := map[*Node]*QDQLayer{}, map[*Node]bool{}
	for _, l := range p.layers {
		layer[l.node] = l
		if l.bn != nil {
			gone[l.bn] = true
		}
	}
	input := func(s string) []byte { return wire.AppendString(nil, wire.NodeInput, s) }
	for i := range p.m.Graph.Nodes {
		n := &p.m.Graph.Nodes[i]
		if i == 0 {
			e.splice(wire.Span{Start: n.msg.Tag, End: n.msg.Tag}, p.first, n.msg.Parent)
		}
		if gone[n] {
			e.splice(n.msg.Span(), nil, n.msg.Parent)
			continue
		}
		l := layer[n]
		for k, in := range n.Inputs {
			if to := p.of[in].Value; to != "" && (k == 0 && l != nil || p.all[in] || p.joins(n)) {
				e.splice(n.inputs[k], input(to), n.msg)
			}
		}
		if l != nil {
			e.splice(n.inputs[1], input(l.weight), n.msg)
			switch {
			case l.bias != "" && len(n.Inputs) > 2:
				e.splice(n.inputs[2], input(l.bias), n.msg)
			case l.bias != "":
				e.append(n.msg, input(l.bias))
			}
			if l.bn != nil {
				e.splice(n.outputs[0], wire.AppendString(nil, wire.NodeOutput, l.out), n.msg)
			}
		}
		if p.after[i] != nil {
			e.splice(wire.Span{Start: n.msg.Body.End, End: n.msg.Body.End}, p.after[i], n.msg.Parent)
		}
	}
}

// joins reports whether all that a node computes with is in uint8, so that it can compute there, too.
func (p *qdqPlanner) joins(n *Node) bool {
	if !slices.Contains([]string{"Add", "AveragePool", "Concat", "GlobalAveragePool", "MaxPool"}, n.OpType) || n.Domain != "" {
		return false
	}
	for _, in := range n.Inputs {
		if !slices.Contains(p.values, in) {
			return false
		}
	}
	return true
}

// Steps returns the step and the zero of a value in uint8 between these ends.
func (QDQActivation) Steps(low, high float32) (step float32, zero byte) {
	low, high = min(low, 0), max(high, 0)
	if step = (high - low) / 255; !(step > 0) {
		return 1, 0
	}
	return step, byte(min(max(math.RoundToEven(float64(-low/step)), 0), 255))
}
