package onnxio

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
	"github.com/swagwrap/swagwrap/weights"
)

func floats(name string, values weights.Slice, shape ...int64) []byte {
	return tensor(name, Float, shape, render32(values))
}

func floatsAttribute(v ...float32) []byte {
	return varintField(wire.AppendBytes(wire.AppendString(nil, wire.AttrName, "value_floats"), wire.AttrFloats, render32(v)), wire.AttrType, 6)
}

// weightsAnywhere is a model with float tensors in every place there is.
func weightsAnywhere(seed int) []byte {
	v := replacement(20, seed)
	constant := func(out string, attribute []byte) []byte { return node("Constant", "", nil, []string{out}, attribute) }
	single := varintField(append(append(wire.AppendString(nil, wire.AttrName, "value_float"), wire.AttrFloat<<3|5), render32(v[:1])...), wire.AttrType, 1)
	body := graph([][]byte{constant("inner", floatsAttribute(v[8:10]...)), node("Add", "", []string{"x", "w"}, []string{"z"})},
		[][]byte{floats("w", v[10:12], 2)}, [][]byte{output("z", Float)})
	nodes := [][]byte{
		constant("matrix", tensorAttribute("value", floats("unused", v[1:5], 2, 2))), constant("scalar", single), constant("list", floatsAttribute(v[5:8]...)),
		constant("ints", tensorAttribute("value", tensor("", Int64, []int64{1}, make([]byte, 8)))), constant("eps", floatsAttribute(1e-5)),
		node("If", "if", []string{"c"}, []string{"z"}, graphAttribute("then_branch", body)),
		node("Add", "", []string{"z", "w"}, []string{"y"}),
	}
	function := func(v []float32) []byte {
		return wire.AppendBytes(wire.AppendString(nil, wire.FunctionName, "f"), wire.FunctionNode, constant("w", floatsAttribute(v...)))
	}
	data := encodeModel(graph(nodes, [][]byte{floats("w", v[12:14], 2)}, [][]byte{output("y", Float)}))
	data = wire.AppendBytes(wire.AppendBytes(data, wire.ModelFunction, function(v[14:16])), wire.ModelFunction, function(v[16:20]))
	return data
}

// Weights live in Constant nodes, in the bodies of If nodes and in functions
// too. Names that come twice get a number.
func TestWeightsAnywhere(t *testing.T) {
	one, two := parse(t, weightsAnywhere(1)), parse(t, weightsAnywhere(2))
	l := layoutOf(t, one, two)
	var got []string
	for _, e := range l.Tensors {
		got = append(got, fmt.Sprint(e.Name, e.Shape, e.Role))
	}
	want := []string{"matrix[2 2] parameter", "scalar[] parameter", "list[3] parameter", "eps[1] constant", "inner[2] parameter",
		"w#2[2] parameter", "w[2] parameter", "w#3[2] parameter", "w#4[4] parameter"}
	if !slices.Equal(got, want) {
		t.Errorf("tensors %q, want %q", got, want)
	}
	p, none := vectors(t, two, l)
	v := replacement(20, 2)
	if want := slices.Concat(v[1:5], v[:1], v[5:8], v[8:12], v[12:20]); !slices.Equal(read(t, p), want) {
		t.Errorf("parameters %v, want %v", read(t, p), want)
	}
	// The first checkpoint with the weights of the second is the second.
	if got := render(t, templateOf(t, one, l), l, p, none); string(got) != string(two.Bytes()) {
		t.Error("weights are not written where they are")
	}
}

// Elements that do not lie in one piece are read, and written as raw data.
func TestDecodedElements(t *testing.T) {
	half := binary16(0x3c00, 0xc000, 0xfc00)
	fields := func(elem ElemType, values ...[]byte) []byte {
		var b []byte
		for i, v := range values { // the name stands in their midst
			if i == 1 {
				b = wire.AppendString(b, wire.TensorName, "w")
			}
			b = append(b, v...)
		}
		return slices.Concat(varintField(varintField(nil, wire.TensorDims, 3), wire.TensorType, uint64(elem)), b)
	}
	fixed := func(num, wire byte, v []byte) []byte { return append([]byte{num<<3 | wire}, v...) }
	varint := func(v uint64) []byte { return varintField(nil, wire.TensorInt32, v) }
	le32, le64 := render32(weights.Slice{1, -2, 3}), make([]byte, 24)
	weights.F64.PutFloat32s(le64, weights.Slice{1, -2, 3})
	for name, c := range map[string]struct {
		tensor []byte
		want   []byte
	}{
		"f16":           {fields(Float16, varint(0x3c00), varint(0xc000), varint(0xfc00)), half},
		"bf16":          {fields(BFloat16, varint(0x3c00), varint(0xc000), varint(0xfc00)), half},
		"f16, negative": {fields(Float16, varint(0x3c00), varint(1<<64-0x4000), varint(0xfc00)), half},
		"f16, packed":   {fields(Float16, wire.AppendBytes(nil, wire.TensorInt32, []byte{0x80, 0x78, 0x80, 0x80, 3, 0x80, 0xf8, 3}), nil), half},
		"f16, mixed":    {fields(Float16, wire.AppendBytes(nil, wire.TensorInt32, []byte{0x80, 0x78}), varint(0xc000), varint(0xfc00)), half},
		"f32":           {fields(Float, fixed(wire.TensorFloat, 5, le32[:4]), fixed(wire.TensorFloat, 5, le32[4:8]), fixed(wire.TensorFloat, 5, le32[8:])), le32},
		"f32, pieces":   {fields(Float, wire.AppendBytes(nil, wire.TensorFloat, le32[:4]), wire.AppendBytes(nil, wire.TensorFloat, le32[4:])), le32},
		"f64":           {fields(Double, fixed(wire.TensorDouble, 1, le64[:8]), fixed(wire.TensorDouble, 1, le64[8:16]), fixed(wire.TensorDouble, 1, le64[16:])), le64},
	} {
		m := parse(t, encodeModel(tinyGraph(c.tensor, floats("after", weights.Slice{7}, 1))))
		w := m.known["w"]
		if w == nil || !decodes(m) || string(m.Elements(w)) != string(c.want) {
			t.Errorf("%s: elements % x, want % x", name, m.Elements(w), c.want)
			continue
		}
		l := layoutOf(t, m)
		p, none := vectors(t, m, l)
		again := parse(t, render(t, templateOf(t, m, l), l, p, none))
		sameElements(t, m, again)
		if decodes(again) {
			t.Errorf("%s: not written as raw data", name)
		}
	}
}

func binary16(bits ...uint16) (b []byte) {
	for _, v := range bits {
		b = append(b, byte(v), byte(v>>8))
	}
	return b
}

// Readied for ONNX Runtime, a model of IR 3 has no initializer among its inputs,
// and is otherwise as it was.
func TestForRuntime(t *testing.T) {
	old := fixture(t, "ir3")
	l := layoutOf(t, old)
	tpl, err := NewRuntimeTemplate(old, l)
	if err != nil {
		t.Fatal(err)
	}
	p, s := vectors(t, old, l)
	m := parse(t, render(t, tpl, l, p, s))
	sameElements(t, old, m)
	if m.IRVersion != 4 || len(m.Graph.Inputs) != 1 || m.Graph.Inputs[0].Name != "x" || len(old.Graph.Inputs) != 3 {
		t.Errorf("IR %d, inputs %+v", m.IRVersion, m.Graph.Inputs)
	}
	if len(m.Graph.Nodes) != len(old.Graph.Nodes) || len(m.Graph.Outputs) != len(old.Graph.Outputs) {
		t.Error("nodes or outputs changed")
	}
	// There is nothing to ready in a newer model.
	newer := fixture(t, "int32-f16")
	if f, err := newer.Runtime(); err != nil || string(rendered(t, f)) != string(newer.Bytes()) {
		t.Errorf("a model of IR %d changes, %v", newer.IRVersion, err)
	}
}
func wantError(t *testing.T, name string, err error, text, hint string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Errorf("%s: error %v, want an *Error", name, err)
	} else if !strings.Contains(e.Error(), text) || !strings.Contains(e.Hint, hint) {
		t.Errorf("%s: error %q, want %q\nhint %q, want %q", name, e, text, e.Hint, hint)
	}
}

// What cannot be elements is refused.
func TestRefusedElements(t *testing.T) {
	// Which of two fields a reader of protobuf would take is not for us to guess.
	w := slices.Clip(tensor("w", Float, []int64{1}, make([]byte, 4)))
	wrong := varintField(tensor("w", Float16, []int64{1}, nil), wire.TensorInt64, 1)
	for want, w := range map[string][]byte{
		"float elements in field 9, want raw data":   wire.AppendBytes(w, wire.TensorRaw, make([]byte, 4)),
		"elements in several kinds of field":         wire.AppendBytes(w, wire.TensorFloat, make([]byte, 4)),
		"float16 elements in field 7, want raw data": wrong,
		"elements both in the file and outside":      varintField(w, wire.TensorLocation, 1),
		"its location is said to be the file itself": wire.AppendBytes(w, wire.TensorExternal, entry("location", "x")),
		"2 elements, want 1 for float16 [1]":         wire.AppendBytes(tensor("w", Float16, []int64{1}, nil), wire.TensorInt32, []byte{1, 2}),
	} {
		_, err := Parse("m.onnx", encodeModel(tinyGraph(w)))
		wantError(t, want, err, `m.onnx: tensor "w": `, "")
		wantError(t, want, err, want, "")
	}
}
