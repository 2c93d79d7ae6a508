package onnxio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
	"github.com/swagwrap/swagwrap/weights"
)

// Parameterized is a model in two parts, for devices on which one session serves many members. The part Run takes weights as
// inputs, so it is made ready once. The part Prepare computes these inputs from the weights of a member, once for each
// member: batch norm is folded into convolutions there, and float32 rounded to float16.
type Parameterized struct {
	Prepare, Run []byte // serialized models
	Carry        []byte // takes the examples of a batch, and gives them back on the device

	Tensors []weights.Tensor // the inputs of Prepare, in order, as the layout names them
	Inputs  []Value          // the same, as Prepare names them
	Outputs []string         // the outputs of Prepare, in order
	Names   []string         // the inputs of Run that take them
}

// feeds holds the results of [Filled.Parameterized], without and with float16.
type feeds [2]struct {
	once          sync.Once
	parameterized *Parameterized
	err           error
}

// ErrNotParameterized reports that a network cannot take its weights as inputs. It still runs with its weights as constants.
var ErrNotParameterized = errors.New("the network cannot take its weights as inputs")

// Parameterized returns the model in two parts, which compute in float16 if half is set. It is the same for all members. The
// error is [ErrNotParameterized] for a network whose weights are not all initializers of its main graph.
func (f Filled) Parameterized(half bool) (*Parameterized, error) {
	i := 0
	if half {
		i = 1
	}
	k := &f.Template.feeds[i]
	k.once.Do(func() { k.parameterized, k.err = f.Template.feed(f.Layout, half) })
	return k.parameterized, k.err
}

func (t *Template) feed(l *weights.Layout, half bool) (*Parameterized, error) {
	folded, err := t.fold(l)
	if err == nil && half {
		folded, err = folded.toHalf(l)
	}
	if err != nil {
		return nil, err
	}
	m, err := folded.Model(t.files[0].name, l)
	if err != nil {
		return nil, err
	}
	s := &splitter{m: m, weight: map[string]ElemType{}, constant: map[string]bool{}, before: map[*Node]bool{}, drop: map[*Tensor]bool{}}
	if err := s.sort(l); err != nil {
		return nil, err
	}
	return s.split()
}

// fold folds each batch norm into the convolution before it, with operators that read weights alone. ONNX Runtime folds
// constants only. W' = s·W and b' = β + s·(b − μ), where s = γ/√(σ² + ε). fold also makes constants of [Edit.castLikes].
func (t *Template) fold(l *weights.Layout) (*Template, error) {
	m, err := t.Model(t.files[0].name, l)
	if err != nil {
		return nil, err
	}
	bns, err := m.batchNorms(true)
	if err != nil {
		return nil, err
	}
	stored := make(map[string]*Tensor)
	for _, t := range m.Graph.Initializers {
		if t.ElemType == Float {
			stored[t.local] = t
		}
	}
	e, uses := m.Edit(), m.uses()
	for i, bn := range bns {
		conv := m.Graph.Producer(bn.Input)
		if conv == nil || conv.OpType != "Conv" || conv.Domain != "" || uses[bn.Input] != 1 || len(conv.Inputs) < 2 ||
			len(bn.Node.Outputs) != 1 || bn.Written != nil || bn.IsTraining {
			continue
		}
		all := append(slices.Clone(bn.Node.Inputs[1:]), conv.Inputs[1:]...)
		if slices.ContainsFunc(all, func(name string) bool { return name != "" && stored[name] == nil }) {
			continue
		}
		e.foldBatchNorm(conv, bn, len(stored[conv.Inputs[1]].Shape), fmt.Sprintf("swagwrap_fold_%d_", i))
	}
	e.castLikes()
	return e.Template(l)
}

// foldBatchNorm replaces a convolution and its batch norm by one convolution. rank is that of its weight, and prefix
// begins the names of new values.
func (e *Edit) foldBatchNorm(conv *Node, bn BatchNorm, rank int, prefix string) {
	var nodes []byte
	add := func(op, output string, inputs ...string) string {
		output = prefix + output
		nodes = append(nodes, wire.Node(op, output+"_node", inputs, []string{output})...)
		return output
	}
	in := bn.Node.Inputs
	epsilon, shape := prefix+"epsilon", prefix+"shape"
	e.addInitializer(epsilon, Float, binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(bn.Epsilon))))
	shape64 := slices.Repeat([]int64{1}, rank)
	shape64[0] = -1
	e.addInts(shape, shape64)
	scale := add("Div", "scale", in[1], add("Sqrt", "deviation", add("Add", "stable", in[4], epsilon)))
	weight := add("Mul", "weight", conv.Inputs[1], add("Reshape", "factor", scale, shape))
	mean := in[3]
	if len(conv.Inputs) > 2 && conv.Inputs[2] != "" {
		mean = add("Sub", "centre", mean, conv.Inputs[2])
	}
	bias := add("Sub", "bias", in[2], add("Mul", "shift", mean, scale))

	e.splice(wire.Span{Start: conv.msg.Tag, End: conv.msg.Tag}, nodes, conv.msg.Parent)
	e.splice(conv.inputs[1], wire.AppendString(nil, wire.NodeInput, weight), conv.msg)
	if len(conv.Inputs) > 2 {
		e.splice(conv.inputs[2], wire.AppendString(nil, wire.NodeInput, bias), conv.msg)
	} else {
		e.append(conv.msg, wire.AppendString(nil, wire.NodeInput, bias))
	}
	e.splice(conv.outputs[0], wire.AppendString(nil, wire.NodeOutput, bn.Node.Outputs[0]), conv.msg)
	e.splice(bn.Node.msg.Span(), nil, bn.Node.msg.Parent)
}

// beforehand are operators that a member's weights may go through before any data. Their output has the type of their
// first input, unless it is Cast's.
var beforehand = []string{"Abs", "Add", "Cast", "Clip", "Concat", "Div", "Exp", "Flatten", "Identity", "MatMul", "Mul", "Neg",
	"Pow", "Reciprocal",
	"ReduceL2", "ReduceMax", "ReduceMean", "ReduceSum", "ReduceSumSquare", "Reshape", "Sigmoid", "Slice", "Softplus", "Sqrt", "Squeeze",
	"Sub", "Tanh", "Transpose", "Unsqueeze"}

// A splitter divides a model without weights into the parts of a [Parameterized].
type splitter struct {
	m        *Model
	tensors  []weights.Tensor    // of the layout
	inputs   []Value             // the same as values
	weight   map[string]ElemType // values that depend on weights alone, with their types
	constant map[string]bool     // values that depend on nothing
	before   map[*Node]bool      // nodes that give weight
	drop     map[*Tensor]bool    // the initializers of weights
}

// sort finds the values that depend on weights alone.
func (s *splitter) sort(l *weights.Layout) error {
	g := s.m.Graph
	for _, entry := range l.Tensors {
		if entry.Role == weights.Constant {
			continue
		}
		t, err := s.m.matching(entry)
		if err != nil {
			return err
		}
		if !slices.Contains(g.Initializers, t) {
			return ErrNotParameterized
		}
		s.tensors, s.drop[t] = append(s.tensors, entry), true
		s.inputs = append(s.inputs, Value{Name: t.local, ElemType: t.ElemType, Shape: t.Shape})
		s.weight[t.local] = t.ElemType
	}
	if s.tensors == nil {
		return ErrNotParameterized
	}
	for _, t := range g.Initializers {
		if !s.drop[t] {
			s.constant[t.local] = true
		}
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.OpType == "Constant" && len(n.Outputs) == 1 {
			s.constant[n.Outputs[0]] = true
			continue
		}
		if n.Domain != "" || len(n.Outputs) != 1 || !slices.Contains(beforehand, n.OpType) || len(n.Inputs) == 0 {
			continue
		}
		elem, reads, other := ElemType(0), false, false
		for _, in := range n.Inputs {
			of, isWeight := s.weight[in]
			if reads = reads || isWeight; elem == 0 {
				elem = of
			}
			other = other || in != "" && !isWeight && !s.constant[in]
		}
		if !reads || other {
			continue
		}
		if n.OpType == "Cast" {
			elem = ElemType(n.Int("to", 0))
		}
		s.before[n], s.weight[n.Outputs[0]] = true, elem
	}
	return nil
}

// passed returns the weight values that Run reads.
func (s *splitter) passed() (names []string) {
	seen := map[string]bool{}
	add := func(name string) {
		if _, ok := s.weight[name]; ok && !seen[name] {
			seen[name], names = true, append(names, name)
		}
	}
	for _, g := range s.m.Graphs() {
		for i := range g.Nodes {
			if n := &g.Nodes[i]; !s.before[n] {
				for _, in := range n.Inputs {
					add(in)
				}
			}
		}
		if g != s.m.Graph {
			for _, out := range g.Outputs {
				add(out.Name)
			}
		}
	}
	return names
}

// split makes the two parts.
func (s *splitter) split() (*Parameterized, error) {
	m, g := s.m, s.m.Graph
	f := &Parameterized{Tensors: s.tensors, Inputs: s.inputs, Names: s.passed()}
	for _, out := range g.Outputs {
		if _, ok := s.weight[out.Name]; ok {
			return nil, ErrNotParameterized // an output that no data changes
		}
	}
	prepare, err := s.prepare(f)
	if err != nil {
		return nil, err
	}
	f.Prepare = prepare

	e := m.Edit()
	e.move, e.dropped = moveIn, s.drop
	for t := range s.drop {
		e.splice(t.msg.Span(), nil, t.msg.Parent)
	}
	for n := range s.before {
		e.splice(n.msg.Span(), nil, n.msg.Parent)
	}
	for _, name := range f.Names {
		v := Value{Name: name, ElemType: s.weight[name]}
		if i := slices.IndexFunc(s.inputs, func(in Value) bool { return in.Name == name }); i >= 0 {
			v = s.inputs[i]
		}
		e.append(g.msg, wire.AppendBytes(nil, wire.GraphInput, wire.Value(v.Name, v.ElemType, v.Shape, nil)))
	}
	run, err := e.Template(&weights.Layout{})
	if err != nil {
		return nil, err
	}
	f.Run, err = run.Render(&weights.Layout{}, weights.Slice{}, weights.Slice{})
	f.Carry = carry(m.FeedInputs())
	return f, err
}

// carry returns a model whose outputs are its inputs, under other names.
func carry(inputs []Value) []byte {
	var nodes, values []byte
	for _, v := range inputs {
		out := v.Name + "_carried"
		nodes = append(nodes, wire.Node("Identity", out+"_node", []string{v.Name}, []string{out})...)
		values = append(values, wire.AppendBytes(nil, wire.GraphInput, wire.Value(v.Name, v.ElemType, v.Shape, v.Dims))...)
		values = append(values, wire.AppendBytes(nil, wire.GraphOutput, wire.Value(out, v.ElemType, v.Shape, v.Dims))...)
	}
	graph := append(append(nodes, wire.AppendString(nil, wire.GraphName, "carry")...), values...)
	return small(graph, 17)
}

// small returns a model of operators of the default domain.
func small(graph []byte, opset uint64) []byte {
	const ir = 8
	model := wire.AppendBytes(wire.AppendVarint(nil, wire.ModelIR, ir), wire.ModelGraph, graph)
	return wire.AppendBytes(model, wire.ModelOpset,
		wire.AppendVarint(wire.AppendString(nil, wire.OpsetDomain, ""), wire.OpsetVersion, opset))
}

// prepare returns the first part. Its outputs are those of f.Names.
func (s *splitter) prepare(f *Parameterized) ([]byte, error) {
	var graph, outputs []byte
	uses := map[string]bool{}
	for i := range s.m.Graph.Nodes {
		if n := &s.m.Graph.Nodes[i]; s.before[n] {
			for _, in := range n.Inputs {
				uses[in] = true
			}
		}
	}
	for i := range s.m.Graph.Nodes {
		n := &s.m.Graph.Nodes[i]
		if !s.before[n] && !(n.OpType == "Constant" && uses[n.Outputs[0]]) {
			continue
		}
		node, ok := s.m.data.Bytes(n.msg.Span())
		if !ok {
			return nil, ErrNotParameterized
		}
		graph = append(graph, node...)
	}
	for _, name := range f.Names {
		out := unused(name+"_fed", uses)
		graph = append(graph, wire.Node("Identity", out+"_node", []string{name}, []string{out})...)
		outputs = append(outputs, wire.AppendBytes(nil, wire.GraphOutput, wire.Value(out, s.weight[name], nil, nil))...)
		f.Outputs = append(f.Outputs, out)
	}
	graph = append(graph, wire.AppendString(nil, wire.GraphName, "prepare")...)
	for _, t := range s.m.Graph.Initializers {
		if s.drop[t] || !uses[t.local] {
			continue
		}
		if verbatim, ok := s.m.data.Bytes(t.msg.Span()); ok && t.external == nil {
			graph = append(graph, verbatim...)
			continue
		}
		if err := s.m.Readable(t); err != nil {
			return nil, err
		}
		graph = append(graph, wire.Initializer(t.local, t.ElemType, t.Shape, s.m.Elements(t))...)
	}
	for _, v := range s.inputs {
		graph = append(graph, wire.AppendBytes(nil, wire.GraphInput, wire.Value(v.Name, v.ElemType, v.Shape, nil))...)
	}
	graph = append(graph, outputs...)
	model := wire.AppendVarint(nil, wire.ModelIR, uint64(max(4, s.m.IRVersion)))
	model = wire.AppendBytes(model, wire.ModelGraph, graph)
	for _, o := range s.m.Opsets {
		opset := wire.AppendVarint(wire.AppendString(nil, wire.OpsetDomain, o.Domain), wire.OpsetVersion, uint64(o.Version))
		model = wire.AppendBytes(model, wire.ModelOpset, opset)
	}
	return model, nil
}

// RunOf returns the part Run for batches of one size. A runtime then computes shapes while it loads the model, and not in
// each run. RunOf returns Run itself if no input leaves its batch free. The graph may accept no batch of that size.
func (f *Parameterized) RunOf(batch int64) ([]byte, error) {
	m, err := Parse("run", f.Run)
	if err != nil {
		return nil, err
	}
	e, inputs := m.Edit(), m.FeedInputs()
	for _, v := range inputs[:len(inputs)-len(f.Names)] {
		if len(v.Shape) > 0 && !v.fixesBatch() {
			shape := slices.Clone(v.Shape)
			shape[0] = batch
			e.splice(v.msg.Span(), wire.AppendBytes(nil, wire.GraphInput, wire.Value(v.Name, v.ElemType, shape, v.Dims)), m.Graph.msg)
		}
	}
	if e.splices == nil {
		return f.Run, nil
	}
	t, err := e.Template(&weights.Layout{})
	if err != nil {
		return nil, err
	}
	return t.Render(&weights.Layout{}, weights.Slice{}, weights.Slice{})
}

// Unread lists the inputs whose values no node reads; nodes may read their shapes. Such inputs have no effect on the
// outputs. Exporters leave them behind if a network was given one tensor for two of its arguments.
func (m *Model) Unread() (names []string) {
	read := map[string]bool{}
	for _, o := range m.Graph.Outputs {
		read[o.Name] = true
	}
	for _, g := range m.Graphs() {
		for _, n := range g.Nodes {
			for _, name := range n.Inputs {
				if n.Domain != "" || n.OpType != "Shape" && n.OpType != "Size" {
					read[name] = true
				}
			}
		}
	}
	for _, v := range m.FeedInputs() {
		if !read[v.Name] {
			names = append(names, v.Name)
		}
	}
	return names
}
