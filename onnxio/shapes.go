package onnxio

import (
	"cmp"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
)

// Shapes returns types and shapes of the values that nodes of the main graph compute, in their order. unknown names the values whose
// type or rank the graph does not show. known has the inputs and tensors that differ from the graph, by name.
//
// A size is known if it is the same for two choices of the sizes that the graph leaves open: see tracer. Other sizes have no name,
// because tract refuses a model with named sizes once it has the size of a batch.
func Shapes(m *Model, known map[string]Value) (values []Value, unknown []string) {
	notes := noted(m)
	elems := types(m, known, notes)
	one, two := sizes(m, firstPrime, known, notes), sizes(m, secondPrime, known, notes)
	for i := range m.Graph.Nodes {
		for _, name := range m.Graph.Nodes[i].Outputs {
			a, ok := one.values[name]
			b, same := two.values[name]
			switch {
			case name == "":
			case !ok || !same || len(a.dims) != len(b.dims) || elems[name] == 0:
				unknown = append(unknown, name)
			default:
				v := Value{Name: name, ElemType: elems[name], Shape: []int64{}}
				for k, size := range a.dims {
					if size != b.dims[k] {
						size = -1
					}
					v.Shape = append(v.Shape, max(size, -1))
				}
				values = append(values, v)
			}
		}
	}
	return values, unknown
}

// firstPrime and secondPrime are below the choices of the sizes that a graph leaves open.
const firstPrime, secondPrime = 10007, 15013

// constantLists returns the short lists of int64, and single ones, that nodes of the main graph compute from constants and from sizes
// that are always the same.
func constantLists(m *Model) map[string]traced {
	elems, free := types(m, nil, nil), make(map[string]Value)
	for _, v := range m.FeedInputs() {
		if len(v.Shape) > 0 { // the model of an ensemble takes any number of examples
			v.Shape = slices.Concat([]int64{-1}, v.Shape[1:])
		}
		free[v.Name] = v
	}
	one, two := sizes(m, firstPrime, free, nil), sizes(m, secondPrime, free, nil)
	lists := make(map[string]traced)
	for name, v := range one.values {
		if 0 < len(v.ints) && len(v.ints) <= shortList && len(v.dims) < 2 && elems[name] == Int64 &&
			slices.Equal(v.ints, two.values[name].ints) {
			lists[name] = v
		}
	}
	return lists
}

// noted returns types and ranks of values of the main graph that the exporter noted. jax2onnx notes wrong sizes.
func noted(m *Model) map[string]Value {
	notes, s := make(map[string]Value), &scanner{Scanner: wire.NewScanner(m.data)}
	for _, at := range m.Graph.inferred {
		_ = s.Fields(at, func(f wire.Field) error {
			v, err := s.value(f, m.Graph.msg)
			if err == nil && v.Shape != nil && v.ElemType != 0 {
				notes[v.Name] = v.ranked()
			}
			return err
		})
	}
	for _, n := range m.Graph.Nodes {
		for k, name := range n.Outputs {
			if v, ok := n.ofBranches(k); ok && notes[name].Shape == nil {
				v.Name = name
				notes[name] = v.ranked()
			}
		}
	}
	return notes
}

// ofBranches returns what the branches of an If say of its output k, if they agree about its rank.
func (n *Node) ofBranches(k int) (v Value, agree bool) {
	for _, a := range n.Attributes {
		for _, g := range a.Graphs {
			if n.OpType != "If" || k >= len(g.Outputs) || g.Outputs[k].Shape == nil || agree && (len(v.Shape) != len(g.Outputs[k].Shape) ||
				v.ElemType != g.Outputs[k].ElemType) {
				return v, false
			}
			v, agree = g.Outputs[k], true
		}
	}
	return v, agree && v.ElemType != 0
}

// ranked returns the value without its sizes.
func (v Value) ranked() Value {
	v.Dims, v.Shape = nil, slices.Repeat([]int64{-1}, len(v.Shape))
	return v
}

// sizes follows sizes alone through the main graph. Those that it leaves open are primes from the given one on.
func sizes(m *Model, prime int64, known, noted map[string]Value) *tracer {
	t := &tracer{opset: m.Opset, prime: prime, least: prime, values: map[string]traced{"": {axis: -1}}}
	byName := map[string]int64{}
	give := func(v Value) {
		to := traced{axis: -1}
		for k, d := range v.Shape {
			if d < 0 && k < len(v.Dims) && v.Dims[k] != "" {
				d = cmp.Or(byName[v.Dims[k]], t.open())
				byName[v.Dims[k]] = d
			} else if d < 0 {
				d = t.open()
			}
			to.dims = append(to.dims, d)
		}
		t.values[v.Name] = to
	}
	for _, v := range m.Graph.Inputs {
		if k, ok := known[v.Name]; ok {
			v = k
		}
		if v.Shape != nil {
			give(v)
		}
	}
	for _, x := range m.Graph.Initializers {
		t.values[x.local] = traced{dims: x.Shape, axis: -1, ints: x.ints}
	}
	for i := range m.Graph.Nodes {
		n := &m.Graph.Nodes[i]
		switch {
		case n.Domain != "":
		case n.OpType == "Constant":
			t.constant(n)
		case len(n.Inputs) > 0:
			t.node(Place{Node: n, Tensors: make([]*Tensor, len(n.Inputs))})
		}
		for _, name := range n.Outputs {
			if _, ok := t.values[name]; !ok && noted[name].Shape != nil {
				give(noted[name])
			}
		}
	}
	return t
}

// types returns the types of values of the main graph, as far as operators show them.
func types(m *Model, known, noted map[string]Value) map[string]ElemType {
	types := make(map[string]ElemType)
	give := func(name string, t ElemType) { types[name] = cmp.Or(known[name].ElemType, t, noted[name].ElemType) }
	for _, v := range m.Graph.Inputs {
		give(v.Name, v.ElemType)
	}
	for _, t := range m.Graph.Initializers {
		give(t.local, t.ElemType)
	}
	for i := range m.Graph.Nodes {
		for k, name := range m.Graph.Nodes[i].Outputs {
			if name != "" { // an omitted input has no type
				give(name, m.Graph.Nodes[i].gives(k, types))
			}
		}
	}
	return types
}

// gives returns the type of output k. It is that of the first input unless a case here says otherwise. Operators without sizes in a
// tracer count, too: exporters note theirs.
func (n *Node) gives(k int, types map[string]ElemType) ElemType {
	in := 0
	switch n.OpType {
	case "Constant", "ConstantOfShape":
		for _, a := range n.Attributes {
			if a.Tensor != nil {
				return a.Tensor.ElemType
			} else if t := numberTypes[a.Name]; t != 0 {
				return t
			}
		}
		if n.OpType == "ConstantOfShape" {
			return Float
		}
		return 0
	case "And", "Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual", "Not", "OptionalHasElement", "Or", "Xor":
		return Bool
	case "ArgMax", "ArgMin", "NonMaxSuppression", "NonZero", "SequenceLength", "Shape", "Size":
		return Int64
	case "ConvInteger", "MatMulInteger":
		return Int32
	case "Dropout":
		if k == 1 {
			return Bool
		}
	case "MaxPool", "TopK", "Unique":
		if k > 0 {
			return Int64
		}
	case "LayerNormalization": // mean and inverse deviation
		if k > 0 {
			return ElemType(n.Int("stash_type", int64(Float)))
		}
	case "Cast":
		return ElemType(n.Int("to", 0))
	case "BlackmanWindow", "HammingWindow", "HannWindow", "MelWeightMatrix":
		return ElemType(n.Int("output_datatype", int64(Float)))
	case "Bernoulli", "EyeLike", "RandomNormalLike", "RandomUniformLike":
		if to := n.Int("dtype", 0); to != 0 {
			return ElemType(to)
		}
	case "TfIdfVectorizer":
		return Float
	case "CastLike", "DequantizeLinear", "Where":
		in = 1
	case "OneHot", "QuantizeLinear":
		in = 2
	case "DynamicQuantizeLinear", "Multinomial", "QLinearConv", "QLinearMatMul":
		return 0
	case "If", "Loop", "Scan":
		return 0
	}
	if n.Domain != "" && n.OpType != "ArrayFeatureExtractor" || in >= len(n.Inputs) { // skl2onnx names classes by it
		return 0
	}
	return types[n.Inputs[in]]
}

// addShapes replaces the exporter's types and shapes of values, which may be wrong, by those of [Shapes]. It returns the names of the
// values that stay without a shape.
func (e *Edit) addShapes() (unknown []string) {
	g := e.m.Graph
	values, unknown := Shapes(e.m, nil)
	stays := make(map[string]bool)
	for _, name := range unknown {
		stays[name] = true
	}
	for _, t := range g.Initializers {
		stays[t.local] = true
	}
	s := &scanner{Scanner: wire.NewScanner(e.m.data)}
	for _, at := range g.inferred {
		_ = s.Fields(at, func(f wire.Field) error {
			if v, err := s.value(f, g.msg); err != nil || !stays[v.Name] {
				e.splice(at, nil, g.msg)
			}
			return nil
		})
	}
	for _, v := range values {
		if !slices.ContainsFunc(g.Outputs, func(o Value) bool { return o.Name == v.Name }) {
			e.append(g.msg, v.Info())
		}
	}
	return unknown
}

// Info encodes type and shape of a value that a node computes, as a field of a graph.
func (v Value) Info() []byte {
	return wire.AppendBytes(nil, wire.GraphValueInfo, wire.Value(v.Name, v.ElemType, v.Shape, v.Dims))
}
