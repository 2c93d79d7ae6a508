package onnxio

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
	"github.com/swagwrap/swagwrap/weights"
)

// In a whole template all constants are tensors with the same elements, wherever they are: in the graph, in the graphs inside it and
// in functions. Weights among them are filled. What a function takes from its caller stays. Each node has a name of its own.
func TestTensorConstants(t *testing.T) {
	attribute := func(name string, num wire.Number, value []byte, kind uint64) []byte {
		return varintField(wire.AppendBytes(wire.AppendString(nil, wire.AttrName, name), num, value), wire.AttrType, kind)
	}
	packed := func(values ...uint64) (b []byte) {
		for _, v := range values {
			b = binary.AppendUvarint(b, v)
		}
		return b
	}
	minus := ^uint64(0)
	unpacked := varintField(varintField(wire.AppendString(nil, wire.AttrName, "value_ints"), wire.AttrInts, 7), wire.AttrInts, minus)
	pieces := wire.AppendFloat(wire.AppendFloat(wire.AppendString(nil, wire.AttrName, "value_floats"), wire.AttrFloats, 1), wire.AttrFloats, 2)
	constant := func(out string, attribute []byte) []byte { return node("Constant", "", nil, []string{out}, attribute) }
	reference := wire.AppendString(varintField(wire.AppendString(nil, wire.AttrName, "value_ints"), wire.AttrType, 7), wire.AttrReference, "axes")

	data := weightsAnywhere(1)
	constants := [][]byte{
		constant("one", intAttribute("value_int", minus)), // goes, since nothing reads it any more
		constant("zero", varintField(wire.AppendString(nil, wire.AttrName, "value_int"), wire.AttrType, 2)),
		constant("long list", attribute("value_ints", wire.AttrInts, packed(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, minus), 7)),
		constant("empty", attribute("value_ints", wire.AttrInts, nil, 7)),
		constant("unpacked", unpacked), constant("pieces", pieces),
		constant("flat", attribute("value_ints", wire.AttrInts, packed(minus), 7)),
		constant("pair", attribute("value_ints", wire.AttrInts, packed(2, 1), 7)),
		node("Reshape", "", []string{"unpacked", "flat"}, []string{"folded"}),
		node("Reshape", "", []string{"one", "flat"}, []string{"a number"}),
		node("Reshape", "", []string{"long list", "flat"}, []string{"stays long"}),
		node("Reshape", "if", []string{"unpacked", "pair"}, []string{"stays"}),
		wire.AppendString(constant("own", intAttribute("value_int", 1)), wire.NodeDomain, "own"),
		node("If", "if", []string{"c"}, []string{"y"},
			graphAttribute("then_branch", graph([][]byte{constant("within", intAttribute("value_int", 3))}, nil,
				[][]byte{output("within", Int64)}))),
	}
	function := wire.AppendString(nil, wire.FunctionName, "f")
	for _, n := range [][]byte{constant("taken", reference), constant("in function", unpacked)} {
		function = wire.AppendBytes(function, wire.FunctionNode, n)
	}
	ints := wire.AppendBytes(encodeModel(graph(constants, nil, [][]byte{output("y", Float)})), wire.ModelFunction, function)
	raw := func(list ...uint64) (b []byte) {
		for _, v := range list {
			b = binary.LittleEndian.AppendUint64(b, v)
		}
		return b
	}
	want := map[string]struct {
		shape []int64
		raw   []byte
	}{
		"zero": {nil, raw(0)}, "long list": {[]int64{11}, raw(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, minus)},
		"empty": {[]int64{0}, nil}, "unpacked": {[]int64{2}, raw(7, minus)}, "pieces": {[]int64{2}, render32([]float32{1, 2})},
		"folded": {[]int64{2}, raw(7, minus)}, "a number": {[]int64{1}, raw(minus)},
		"within": {nil, raw(3)}, "in function": {[]int64{2}, raw(7, minus)},
	}
	m := parse(t, ints)
	none := &weights.Layout{}
	template, err := NewWholeTemplate(m, none)
	if err != nil {
		t.Fatal(err)
	}
	ran := parse(t, render(t, template, none, weights.Slice{}, weights.Slice{}))
	forms := formsOfConstants(ran)
	for name, w := range want {
		i := slices.IndexFunc(ran.tensors, func(x *Tensor) bool { return x.local == name })
		if i < 0 || forms[name] != "value" {
			t.Errorf("%s: %q, want a tensor", name, forms[name])
			continue
		}
		x := ran.tensors[i]
		if payload, _ := ran.data.Bytes(x.payload); !slices.Equal(x.Shape, w.shape) || !slices.Equal(payload, w.raw) {
			t.Errorf("%s: %v %v, want %v %v", name, x.Shape, payload, w.shape, w.raw)
		}
	}
	for _, name := range []string{"stays long", "stays"} {
		if n := ran.Graph.Producer(name); n == nil || n.OpType != "Reshape" {
			t.Errorf("%s: %+v, want a Reshape", name, n)
		}
	}
	names := make(map[string]bool)
	for _, n := range ran.Graph.Nodes {
		if n.Name == "" || names[n.Name] {
			t.Errorf("%s node of %q has no name of its own: %q", n.OpType, n.Outputs, n.Name)
		}
		names[n.Name] = true
	}
	if n := ran.Graph.Producer("stays"); n.Name != "if" || ran.Graph.Producer("y").Name != "if_" || ran.Graph.Producer("flat").Name != "flat" {
		t.Errorf("names %v", names)
	}
	if forms["own"] != "value_int" || forms["taken"] != "value_ints" {
		t.Errorf("forms %q: those of another domain and of a caller stay", forms)
	}

	one, two := parse(t, data), parse(t, weightsAnywhere(2))
	l := layoutOf(t, one, two)
	if template, err = NewWholeTemplate(one, l); err != nil {
		t.Fatal(err)
	}
	parameters, statistics := vectors(t, two, l)
	ran = parse(t, render(t, template, l, read(t, parameters), read(t, statistics)))
	for name, form := range formsOfConstants(ran) {
		if form != "value" {
			t.Errorf("%s: %q, want a tensor", name, form)
		}
	}
	for i, x := range two.tensors {
		if y := ran.tensors[i]; !slices.Equal(x.Shape, y.Shape) || !slices.Equal(two.Elements(x), ran.Elements(y)) {
			t.Errorf("%s: %v %v, want %v %v", x.Name, y.Shape, ran.Elements(y), x.Shape, two.Elements(x))
		}
	}
}

// formsOfConstants lists the attributes of Constant nodes, by their outputs.
func formsOfConstants(m *Model) map[string]string {
	forms := make(map[string]string)
	var walk func(g *Graph)
	walk = func(g *Graph) {
		for _, n := range g.Nodes {
			for _, a := range n.Attributes {
				if n.OpType == "Constant" {
					forms[n.Outputs[0]] = a.Name
				}
				for _, inner := range a.Graphs {
					walk(inner)
				}
			}
		}
	}
	for _, g := range append([]*Graph{m.Graph}, m.Functions...) {
		walk(g)
	}
	return forms
}
