package onnxio

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
	"github.com/swagwrap/swagwrap/weights"
)

// Types and shapes of values never contradict what onnx infers, and each value has a rank where onnx finds one. testdata/shapes.py
// writes what it finds.
func TestShapes(t *testing.T) {
	text, err := os.ReadFile("testdata/shapes.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string][]string
	if err := json.Unmarshal(text, &want); err != nil || len(want) < 10 {
		t.Fatal(len(want), err)
	}
	for name, shapes := range want {
		m := open(t, "../fixtures/"+name)
		values, _ := Shapes(m, nil)
		got := make(map[string]Value)
		for _, v := range values {
			got[v.Name] = v
		}
		k, sizes := 0, 0
		for _, n := range m.Graph.Nodes {
			for _, out := range n.Outputs {
				if out == "" {
					continue
				}
				elem, dims, known := strings.Cut(shapes[k], ":")
				k++
				v, ok := got[out]
				if known && (!ok || fmt.Sprint(int32(v.ElemType)) != elem) {
					t.Errorf("%s: %s: %v, want type %s", name, out, v.ElemType, elem)
					continue
				}
				if !known {
					continue
				}
				var list []string
				if dims != "" {
					list = strings.Split(dims, ",")
				}
				if len(list) != len(v.Shape) {
					t.Errorf("%s: %s: %d, want %s", name, out, v.Shape, dims)
					continue
				}
				for i, d := range list {
					if d != "?" && v.Shape[i] >= 0 && fmt.Sprint(v.Shape[i]) != d {
						t.Errorf("%s: %s: %d, want %s", name, out, v.Shape, dims)
					}
					if v.Shape[i] >= 0 {
						sizes++
					}
				}
			}
		}
		if sizes < 10 && !strings.Contains(name, "control-flow") {
			t.Errorf("%s: %d sizes are known", name, sizes)
		}
	}
}

// A size is not known if it only seems so for large sizes, such as the first five of an axis that may be shorter.
func TestShapesOfShortAxes(t *testing.T) {
	for name, n := range map[string][]byte{
		"the first five":    node("Slice", "", []string{"x", "zero", "five"}, []string{"y"}),
		"as many as others": node("Slice", "", []string{"five hundred", "zero", "many"}, []string{"y"}),
		"a remainder":       node("Expand", "", []string{"one", "remainder"}, []string{"y"}),
	} {
		constant := func(out string, value uint64) []byte {
			return node("Constant", "", nil, []string{out}, intAttribute("value_int", value))
		}
		list := func(out, of string) []byte { return node("Reshape", "", []string{of, "flat"}, []string{out}) }
		minus := ^uint64(0)
		nodes := [][]byte{
			constant("1", 1), constant("0", 0), constant("5", 5), constant("500", 500), constant("-1", minus),
			node("Shape", "", []string{"-1"}, []string{"none"}),
			node("Constant", "", nil, []string{"flat"}, intAttribute("value_ints", minus)),
			list("zero", "0"), list("five", "5"), list("size", "500"),
			node("Expand", "", []string{"5", "size"}, []string{"five hundred"}),
			node("Expand", "", []string{"1", "zero"}, []string{"one"}),
			node("Shape", "", []string{"x"}, []string{"many"}),
			node("Div", "", []string{"many", "many of z"}, []string{"remainder"}),
			n,
		}
		nodes = append([][]byte{node("Shape", "", []string{"z"}, []string{"many of z"})}, nodes...)
		m := parse(t, encodeModel(graph(nodes, nil, [][]byte{output("y", Float)})))
		free := Value{ElemType: Float, Shape: []int64{-1}}
		m.Graph.Inputs = []Value{{Name: "x", ElemType: Float, Shape: free.Shape}, {Name: "z", ElemType: Float, Shape: free.Shape}}
		values, _ := Shapes(m, nil)
		for _, v := range values {
			if v.Name == "y" && (len(v.Shape) != 1 || v.Shape[0] != -1) {
				t.Errorf("%s: %d, want an open size", name, v.Shape)
			}
		}
	}
}

// What only looks like a list of whole numbers is not folded: halves, flags, tables, and sizes of the batch.
func TestFoldedLists(t *testing.T) {
	cast := func(in, out string, to ElemType) []byte {
		return node("Cast", "", []string{in}, []string{out}, intAttribute("to", uint64(to)))
	}
	ints := func(out string, values ...int64) []byte {
		list := varintField(wire.AppendString(nil, wire.AttrName, "value_ints"), wire.AttrType, 7)
		for _, v := range values {
			list = varintField(list, wire.AttrInts, uint64(v))
		}
		return node("Constant", "", nil, []string{out}, list)
	}
	for name, c := range map[string]struct {
		nodes [][]byte
		want  string
	}{
		"a half": {[][]byte{cast("seven", "a", Float), cast("two", "b", Float), node("Div", "", []string{"a", "b"}, []string{"half"}),
			node("Mul", "", []string{"half", "b"}, []string{"c"}), cast("c", "y", Int64)}, "[]"},
		"whole numbers": {[][]byte{cast("seven", "a", Int32), cast("two", "b", Int32), node("Div", "", []string{"a", "b"}, []string{"c"}),
			cast("c", "y", Int64)}, "[3]"},
		"a flag": {[][]byte{cast("seven", "a", Bool), cast("a", "y", Int64)}, "[]"},
		"a row": {[][]byte{node("Reshape", "", []string{"four", "square"}, []string{"table"}),
			node("Gather", "", []string{"table", "zero"}, []string{"y"})}, "[]"},
		"columns": {[][]byte{node("Reshape", "", []string{"four", "square"}, []string{"table"}),
			node("Concat", "", []string{"table", "table"}, []string{"wide"}, intAttribute("axis", 1)),
			node("Reshape", "", []string{"wide", "flat"}, []string{"y"})}, "[]"},
		"the batch": {[][]byte{node("Shape", "", []string{"x"}, []string{"s"}), node("Gather", "", []string{"s", "zero"}, []string{"y"})}, "[]"},
		"an axis":   {[][]byte{node("Shape", "", []string{"x"}, []string{"s"}), node("Gather", "", []string{"s", "one"}, []string{"y"})}, "[6]"},
		"no axes": {[][]byte{node("Pad", "", []string{"scalar", "unknown"}, []string{"p"}),
			node("Resize", "", []string{"scalar", "", "", "unknown"}, []string{"y"})}, "[]"},
		"a long list": {[][]byte{ints("long", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11), node("Shape", "", []string{"long"}, []string{"y"})}, "[]"},
	} {
		nodes := append([][]byte{ints("seven", 7), ints("two", 2), ints("zero", 0), ints("one", 1), ints("four", 1, 2, 3, 4),
			ints("square", 2, 2), ints("flat", -1), node("Constant", "", nil, []string{"scalar"}, intAttribute("value_int", 1)),
			cast("four", "unknown", Double)}, c.nodes...)
		m := parse(t, encodeModel(graph(nodes, nil, [][]byte{output("y", Int64)})))
		m.Graph.Inputs = []Value{{Name: "x", ElemType: Float, Shape: []int64{1, 6}, Dims: []string{"", ""}}}
		if got := fmt.Sprint(constantLists(m)["y"].ints); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// The type of an output is the operator's also where only an exporter noted its rank.
func TestTypesOfNotedValues(t *testing.T) {
	for op, want := range map[string]ElemType{"NonZero": Int64, "MaxPool": Int64, "Unique": Int64, "ConvInteger": Int32,
		"DynamicQuantizeLinear": Uint8, "Relu": Float} {
		outputs := []string{"", "y"}
		if want != Int64 || op == "NonZero" {
			outputs = []string{"y"}
		}
		note := wire.AppendBytes(nil, wire.GraphValueInfo, wire.Value("y", want, []int64{-1, -1}, nil))
		g := append(graph([][]byte{node(op, "", []string{"x"}, outputs)}, nil, [][]byte{output("z", Float)}), note...)
		m := parse(t, encodeModel(g))
		m.Graph.Inputs = []Value{{Name: "x", ElemType: Float, Shape: []int64{-1, 6}, Dims: []string{"", ""}}}
		values, _ := Shapes(m, nil)
		if len(values) != 1 || values[0].ElemType != want || len(values[0].Shape) != 2 {
			t.Errorf("%s: %v, want type %v", op, values, want)
		}
	}
}

// A portable model has shapes of all values, keeps its weights, and no Identity gives its output.
func TestPortable(t *testing.T) {
	for _, name := range []string{"torchvision-mobile/torchscript", "keras-tf2onnx/fused-bn", "bn-1d-3d/torchscript-opset7", "lstm/torchscript"} {
		one, two := open(t, "../fixtures/exporters/"+name+"/ckpt-1.onnx"), open(t, "../fixtures/exporters/"+name+"/ckpt-2.onnx")
		l := layoutOf(t, one, two)
		template, unknown, err := NewPortableTemplate(one, l)
		if err != nil || len(unknown) > 0 {
			t.Fatal(name, unknown, err)
		}
		parameters, statistics := vectors(t, two, l)
		ran := parse(t, render(t, template, l, read(t, parameters), read(t, statistics)))
		notes := noted(ran)
		for _, n := range ran.Graph.Nodes {
			for _, out := range n.Outputs {
				if v := notes[out]; v.Shape == nil && out != ran.Graph.Outputs[0].Name {
					t.Errorf("%s: %s has no shape", name, out)
				}
			}
		}
		if n := ran.Graph.Producer(ran.Graph.Outputs[0].Name); n == nil || n.OpType == "Identity" {
			t.Errorf("%s: %+v gives the output", name, n)
		}
		for out, form := range formsOfConstants(ran) {
			if form != "value" {
				t.Errorf("%s: %s: %q, want a tensor", name, out, form)
			}
		}
	}
	none := &weights.Layout{}
	ratio := node("Constant", "", nil, []string{"ratio"}, tensorAttribute("value", tensor("", Float, nil, []byte{0, 0, 0, 63})))
	for _, passes := range [][][]byte{
		{node("Identity", "", []string{"a"}, []string{"y"})},
		{node("Identity", "", []string{"a"}, []string{"again"}), node("Identity", "", []string{"again"}, []string{"y"})},
		{node("Dropout", "", []string{"a", "ratio"}, []string{"y"})},
	} {
		nodes := append([][]byte{ratio, node("Relu", "", []string{"x"}, []string{"a"}), node("Neg", "", []string{"a"}, []string{"b"})}, passes...)
		m := parse(t, encodeModel(graph(nodes, nil, [][]byte{output("y", Float), output("b", Float)})))
		template, _, err := NewPortableTemplate(m, none)
		if err != nil {
			t.Fatal(err)
		}
		ran := parse(t, render(t, template, none, weights.Slice{}, weights.Slice{}))
		g := ran.Graph.Nodes[max(0, len(ran.Graph.Nodes)-2):]
		if g[0].OpType != "Relu" || g[0].Outputs[0] != "y" || g[1].OpType != "Neg" || g[1].Inputs[0] != "y" {
			t.Errorf("%+v, want two nodes that use y", g)
		}
	}
}

// Types of what skl2onnx makes of classes, of sizes and of omitted outputs.
func TestTypes(t *testing.T) {
	labels := wire.AppendString(node("ArrayFeatureExtractor", "", []string{"classes", "most"}, []string{"labels"}), wire.NodeDomain, "ai.onnx.ml")
	m := parse(t, encodeModel(graph([][]byte{
		node("ArgMax", "", []string{"x"}, []string{"most"}),
		labels,
		node("LSTM", "", []string{"x", "w", "r"}, []string{"", "state", ""}),
		node("SplitToSequence", "", []string{"x"}, []string{"parts"}),
		node("SequenceLength", "", []string{"parts"}, []string{"count"}),
		node("HannWindow", "", []string{"most"}, []string{"window"}),
	}, [][]byte{tensor("classes", Int64, []int64{1}, make([]byte, 8)), tensor("x", Float, []int64{1}, make([]byte, 4))},
		[][]byte{output("state", Float)})))
	got := types(m, nil, nil)
	for name, want := range map[string]ElemType{"labels": Int64, "": 0, "count": Int64, "window": Float, "state": Float} {
		if got[name] != want {
			t.Errorf("%q is %v, want %v", name, got[name], want)
		}
	}
}
