package onnxio

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/weights"
)

// twoLayers is x → Gemm(w1, b1) → Relu → Gemm(w2, b2) → y, by the given names,
// with values that depend on the seed.
type twoLayers struct {
	seed  int
	names string // of w1, b1, w2 and b2
	order []int  // of the initializers in the file; those left out are not written
	more  [][]byte
	last  string // the last node's operator, Gemm unless given
}

func (c twoLayers) model(t testing.TB, path string) *Model {
	t.Helper()
	if c.names == "" {
		c.names = "w1 b1 w2 b2"
	}
	if c.order == nil {
		c.order = []int{0, 1, 2, 3}
	}
	if c.last == "" {
		c.last = "Gemm"
	}
	n := strings.Fields(c.names)
	nodes := append(c.more,
		node("Gemm", "first", []string{"x", n[0], n[1]}, []string{"h"}),
		node("Relu", "relu", []string{"h"}, []string{"r"}),
		node(c.last, "last", []string{"r", n[2], n[3]}, []string{"y"}))
	var inits [][]byte
	for _, i := range c.order {
		inits = append(inits, floats(n[i], c.values(i), [][]int64{{2, 2}, {2}, {2, 2}, {2}}[i]...))
	}
	return withNodes(t, path, nodes, inits...)
}

// values are those of w1, b1, w2 or b2.
func (c twoLayers) values(i int) weights.Slice {
	return replacement([]int64{4, 2, 4, 2}[i], 7*i+31*c.seed)
}

func floats(name string, values weights.Slice, shape ...int64) []byte {
	return tensor(name, Float, shape, render32(values))
}

func TestMatching(t *testing.T) {
	identity := node("Identity", "alias", []string{"w1"}, []string{"w2"})
	constant := node("Constant", "constant", nil, []string{"w2"}, tensorAttribute("value", floats("", twoLayers{seed: 1}.values(2), 2, 2)))
	for name, c := range map[string]struct {
		other   twoLayers
		byPlace bool
		values  [4]int // which values of the other stand for w1, b1, w2 and b2
	}{
		"same":                       {twoLayers{seed: 1}, false, [4]int{0, 1, 2, 3}},
		"another order in the file":  {twoLayers{seed: 1, order: []int{3, 1, 0, 2}}, false, [4]int{0, 1, 2, 3}},
		"numbered anew":              {twoLayers{seed: 1, names: "MatMul/ReadVariableOp_7:0 Add_7:0 MatMul_9:0 Add_9:0"}, true, [4]int{0, 1, 2, 3}},
		"names of equal shape swap":  {twoLayers{seed: 1, names: "w2 b2 w1 b1"}, true, [4]int{0, 1, 2, 3}},
		"some names swap, new order": {twoLayers{seed: 1, names: "w2 b1 w1 b2", order: []int{2, 3, 0, 1}}, true, [4]int{0, 1, 2, 3}},
		"merged by Identity":         {twoLayers{seed: 1, order: []int{0, 1, 3}, more: [][]byte{identity}}, false, [4]int{0, 1, 0, 3}},
		"merged, renumbered":         {twoLayers{seed: 1, names: "a b a c", order: []int{0, 1, 3}}, true, [4]int{0, 1, 0, 3}},
		"in a Constant node":         {twoLayers{seed: 1, order: []int{0, 1, 3}, more: [][]byte{constant}}, false, [4]int{0, 1, 2, 3}},
	} {
		first, other := twoLayers{}.model(t, "a.onnx"), c.other.model(t, "b.onnx")
		s, err := NewSet([]*Model{other, first})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if s.ByPlace != c.byPlace || s.Reference != 1 {
			t.Errorf("%s: by place %v, reference %d", name, s.ByPlace, s.Reference)
		}
		if got := tensorNames(s.Layout.Tensors); !slices.Equal(got, []string{"w1", "b1", "w2", "b2"}) {
			t.Errorf("%s: tensors %q", name, got)
		}
		var want weights.Slice
		for _, i := range c.values {
			want = append(want, c.other.values(i)...)
		}
		p, none := vectors(t, s.Models[0], s.Layout)
		if !slices.Equal(read(t, p), want) {
			t.Errorf("%s: parameters %v, want %v", name, read(t, p), want)
		}
		// A template of either file gives it back, unless one tensor of it has to
		// be two.
		tpl, err := NewTemplate(s.Models[0], s.Layout)
		if c.values[2] == 0 {
			wantError(t, name, err, `b.onnx: tensor "`, "")
			wantError(t, name, err, `stands for both "w1" and "w2", which differ in other checkpoints`, "")
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := render(t, tpl, s.Layout, p, none); string(got) != string(other.Bytes()) {
			t.Errorf("%s: rewritten, the file changes", name)
		}
	}
}

// Where the nodes stand in another order, names are what is left.
func TestMatchingByName(t *testing.T) {
	branches := func(seed int, ops ...string) *Model {
		var nodes [][]byte
		for _, op := range ops {
			nodes = append(nodes, node(op, "", []string{"x", op}, []string{op + "_y"}))
		}
		return parse(t, encodeModel(graph(nodes, [][]byte{floats("Add", replacement(2, seed), 2), floats("Mul", replacement(2, seed+9), 2)}, [][]byte{output("Add_y", Float)})))
	}
	s, err := NewSet([]*Model{branches(1, "Add", "Mul"), branches(2, "Mul", "Add")})
	if err != nil {
		t.Fatal(err)
	}
	for i, seed := range []int{1, 2} {
		p, _ := vectors(t, s.Models[i], s.Layout)
		if want := slices.Concat(replacement(2, seed), replacement(2, seed+9)); s.ByPlace || !slices.Equal(read(t, p), want) {
			t.Errorf("checkpoint %d: parameters %v, want %v; by place %v", i, read(t, p), want, s.ByPlace)
		}
	}
}

// The names are those of the last file with the most tensors.
func TestReference(t *testing.T) {
	full, merged := twoLayers{}, twoLayers{order: []int{0, 1, 3}, more: [][]byte{node("Identity", "", []string{"w1"}, []string{"w2"})}}
	for want, kinds := range [][]twoLayers{{full, merged, merged}, {merged, full, merged}, {full, merged, full}, {full, full, merged, full, merged}} {
		var models []*Model
		for i, c := range kinds {
			c.seed = i
			models = append(models, c.model(t, fmt.Sprint(i)))
		}
		if s, err := NewSet(models); err != nil || s.Reference != want {
			t.Errorf("%d: reference %d, %v", want, s.Reference, err)
		}
	}
}

// Models that no pairing fits are refused in terms of the first file given,
// whichever the reference is.
func TestUnlikeModels(t *testing.T) {
	inputs := func(t *testing.T, path string) *Model {
		nodes := [][]byte{node("Gemm", "first", []string{"x", "w", "b"}, []string{"y"})}
		return withNodes(t, path, nodes, floats("w", replacement(4, 0), 2, 2))
	}
	stored := func(t *testing.T, path string) *Model {
		nodes := [][]byte{node("Gemm", "first", []string{"x", "w", "b"}, []string{"y"})}
		return withNodes(t, path, nodes, floats("w", replacement(4, 0), 2, 2), floats("b", replacement(2, 0), 2))
	}
	for name, c := range map[string]struct {
		models     []*Model
		text, also string
	}{
		"operator":        {[]*Model{twoLayers{}.model(t, "a"), twoLayers{last: "Conv"}.model(t, "b")}, `b: node 2 is Conv "last", want Gemm "last" as in a`, ""},
		"first has fewer": {[]*Model{inputs(t, "a"), stored(t, "b")}, `b: tensor "b": not in a`, ""},
		"first has more":  {[]*Model{stored(t, "a"), inputs(t, "b")}, `b: tensor "b": missing, but present in a`, ""},
		"the third":       {[]*Model{inputs(t, "a"), inputs(t, "b"), stored(t, "c")}, `c: tensor "b": not in a`, ""},
		"shapes, renumbered": {[]*Model{stored(t, "a"), withNodes(t, "b", [][]byte{node("Gemm", "first", []string{"x", "k", "l"}, []string{"y"})},
			floats("k", replacement(6, 0), 3, 2), floats("l", replacement(2, 0), 2))}, `b: tensor "w": missing, but present in a`, `tensor "k": not in a`},
	} {
		_, err := NewSet(c.models)
		wantError(t, name, err, c.text, "swagwrap inspect a "+c.text[:1])
		wantError(t, name, err, "", c.also)
	}
	// One place, two tensors, where the other file has one tensor for both.
	twice := func(path, first, second string, inits ...[]byte) *Model {
		return withNodes(t, path, [][]byte{node("Add", "", []string{"x", first}, []string{"h"}), node("Add", "", []string{"h", second}, []string{"y"})}, inits...)
	}
	a, b := twice("a", "w", "w", floats("w", replacement(2, 0), 2)), twice("b", "p", "q", floats("p", replacement(2, 0), 2), floats("q", replacement(2, 3), 2))
	pairs, why := pairByPlace(a, b)
	if pairs != nil || len(why) == 0 || !strings.Contains(why[0].What, `has the place that "p" has elsewhere, where a has one tensor, "w"`) {
		t.Errorf("pairs %v, %v", pairs, why)
	}
	var e *Error
	if _, err := b.As(a); !errors.As(err, &e) {
		t.Errorf("error %v", err)
	}
	if same, err := a.As(a); same != a || err != nil {
		t.Errorf("a as itself: %v", err)
	}
}

func withNodes(t testing.TB, path string, nodes [][]byte, inits ...[]byte) *Model {
	t.Helper()
	m, err := Parse(path, encodeModel(graph(nodes, inits, [][]byte{output("y", Float)})))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func transposed(v weights.Slice, rows, columns int) weights.Slice {
	out := make(weights.Slice, 0, len(v))
	for c := range columns {
		for r := range rows {
			out = append(out, v[r*columns+c])
		}
	}
	return out
}

// tied is a model with matrices, and what is none, that are each other's copies;
// one of them is not where it is broken.
func tied(t testing.TB, seed int, broken bool) *Model {
	t.Helper()
	a, sq, v := replacement(6, seed), replacement(4, seed+40), replacement(3, seed+70)
	differing := slices.Clone(a)
	if broken {
		differing[5]++
	}
	double := func(name string, v weights.Slice, shape ...int64) []byte {
		b := make([]byte, 8*len(v))
		weights.F64.PutFloat32s(b, v)
		for i := range v { // beyond float32
			b[8*i]++
		}
		return tensor(name, Double, shape, b)
	}
	return parse(t, encodeModel(tinyGraph(
		floats("a", a, 2, 3), floats("copy", a, 2, 3), floats("turned", transposed(a, 2, 3), 3, 2),
		floats("v1", v, 3), floats("v2", v, 3), floats("reshaped", a, 3, 2), floats("flat", a, 6),
		floats("square", sq, 2, 2), floats("square turned", transposed(sq, 2, 2), 2, 2),
		floats("differing", differing, 2, 3), double("wide", a, 2, 3), double("wide turned", transposed(a, 2, 3), 3, 2),
	)))
}

func TestTies(t *testing.T) {
	one, two := tied(t, 1, false), tied(t, 2, true)
	l := layoutOf(t, one, tied(t, 3, false), two)
	var got []string
	for _, e := range l.Tensors {
		got = append(got, strings.TrimRight(fmt.Sprintf("%s %d %s %v", e.Name, e.Offset, e.Tied, e.Transposed), " "))
	}
	want := []string{
		"a 0  false", "copy 0 a false", "turned 0 a true", "v1 6  false", "v2 9  false", "reshaped 12  false", "flat 18  false",
		"square 24  false", "square turned 24 square true", "differing 28  false", "wide 34  false", "wide turned 34 wide true",
	}
	if !slices.Equal(got, want) || l.Len(weights.Parameter) != 40 {
		t.Errorf("layout %q, want %q; %d parameters", got, want, l.Len(weights.Parameter))
	}
	for _, m := range []*Model{one, two} {
		tpl := templateOf(t, m, l)
		own, none := vectors(t, m, l)
		if got := render(t, tpl, l, own, none); string(got) != string(m.Bytes()) {
			t.Error("with its own weights the model changes")
		}
		p := replacement(40, 5)
		filled := parse(t, render(t, tpl, l, p, none))
		again := layoutOf(t, filled)
		for name, want := range map[string]weights.Slice{
			"a": p[:6], "copy": p[:6], "turned": transposed(p[:6], 2, 3), "square": p[24:28], "square turned": transposed(p[24:28], 2, 2),
			"differing": p[28:34], "wide": p[34:], "wide turned": transposed(p[34:], 2, 3),
		} {
			e, _ := again.Find(name)
			got := make(weights.Slice, len(want))
			e.DType.Float32s(got, filled.elements(filled.known[name]))
			if !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
	}
	if err := templateOf(t, one, l).WriteTo(&limited{}, 0, l, failingVector{errors.New("broken")}, nil); err == nil {
		t.Error("an unreadable vector goes unnoticed")
	}
}

func floatsAttribute(v ...float32) []byte {
	return varintField(appendBytes(appendString(nil, attrName, "value_floats"), attrFloats, render32(v)), attrType, 6)
}

// weightsAnywhere is a model with float tensors in every place there is.
func weightsAnywhere(seed int) []byte {
	v := replacement(20, seed)
	constant := func(out string, attribute []byte) []byte { return node("Constant", "", nil, []string{out}, attribute) }
	single := varintField(append(append(appendString(nil, attrName, "value_float"), attrFloat<<3|5), render32(v[:1])...), attrType, 1)
	body := graph([][]byte{constant("inner", floatsAttribute(v[8:10]...)), node("Add", "", []string{"x", "w"}, []string{"z"})},
		[][]byte{floats("w", v[10:12], 2)}, [][]byte{output("z", Float)})
	nodes := [][]byte{
		constant("matrix", tensorAttribute("value", floats("unused", v[1:5], 2, 2))), constant("scalar", single), constant("list", floatsAttribute(v[5:8]...)),
		constant("ints", tensorAttribute("value", tensor("", Int64, []int64{1}, make([]byte, 8)))), constant("eps", floatsAttribute(1e-5)),
		node("If", "if", []string{"c"}, []string{"z"}, graphAttribute("then_branch", body)),
		node("Add", "", []string{"z", "w"}, []string{"y"}),
	}
	function := func(v []float32) []byte {
		return appendBytes(appendString(nil, functionName, "f"), functionNode, constant("w", floatsAttribute(v...)))
	}
	data := encodeModel(graph(nodes, [][]byte{floats("w", v[12:14], 2)}, [][]byte{output("y", Float)}))
	data = appendBytes(appendBytes(data, modelFunction, function(v[14:16])), modelFunction, function(v[16:20]))
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
				b = appendString(b, tensorName, "w")
			}
			b = append(b, v...)
		}
		return slices.Concat(varintField(varintField(nil, tensorDims, 3), tensorType, uint64(elem)), b)
	}
	fixed := func(num, wire byte, v []byte) []byte { return append([]byte{num<<3 | wire}, v...) }
	varint := func(v uint64) []byte { return varintField(nil, tensorInt32, v) }
	le32, le64 := render32(weights.Slice{1, -2, 3}), make([]byte, 24)
	weights.F64.PutFloat32s(le64, weights.Slice{1, -2, 3})
	for name, c := range map[string]struct {
		tensor []byte
		want   []byte
	}{
		"f16":           {fields(Float16, varint(0x3c00), varint(0xc000), varint(0xfc00)), half},
		"bf16":          {fields(BFloat16, varint(0x3c00), varint(0xc000), varint(0xfc00)), half},
		"f16, negative": {fields(Float16, varint(0x3c00), varint(1<<64-0x4000), varint(0xfc00)), half},
		"f16, packed":   {fields(Float16, appendBytes(nil, tensorInt32, []byte{0x80, 0x78, 0x80, 0x80, 3, 0x80, 0xf8, 3}), nil), half},
		"f16, mixed":    {fields(Float16, appendBytes(nil, tensorInt32, []byte{0x80, 0x78}), varint(0xc000), varint(0xfc00)), half},
		"f32":           {fields(Float, fixed(tensorFloat, 5, le32[:4]), fixed(tensorFloat, 5, le32[4:8]), fixed(tensorFloat, 5, le32[8:])), le32},
		"f32, pieces":   {fields(Float, appendBytes(nil, tensorFloat, le32[:4]), appendBytes(nil, tensorFloat, le32[4:])), le32},
		"f64":           {fields(Double, fixed(tensorDouble, 1, le64[:8]), fixed(tensorDouble, 1, le64[8:16]), fixed(tensorDouble, 1, le64[16:])), le64},
	} {
		m := parse(t, encodeModel(tinyGraph(c.tensor, floats("after", weights.Slice{7}, 1))))
		w := m.known["w"]
		if w == nil || !decodes(m) || string(m.elements(w)) != string(c.want) {
			t.Errorf("%s: elements % x, want % x", name, m.elements(w), c.want)
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
