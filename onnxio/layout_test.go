package onnxio

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/weights"
)

func checkpoints(t *testing.T) []*Model {
	t.Helper()
	paths, err := filepath.Glob("../fixtures/mnist/checkpoints/epoch-*.onnx")
	if err != nil || len(paths) < 2 {
		t.Fatalf("checkpoints %q, %v", paths, err)
	}
	var models []*Model
	for _, path := range paths {
		models = append(models, open(t, path))
	}
	return models
}

func TestLayoutOfCheckpoints(t *testing.T) {
	models := checkpoints(t)
	l := layoutOf(t, models...)
	want := golden(t)[filepath.Join("testdata", "..", epoch30)]
	if p, s := tensorNames(l.Role(weights.Parameter)), tensorNames(l.Role(weights.Statistic)); !slices.Equal(p, want.Parameters) || !slices.Equal(s, want.Statistics) {
		t.Errorf("parameters %q, statistics %q, want %q and %q", p, s, want.Parameters, want.Statistics)
	}
	if p, s := l.Len(weights.Parameter), l.Len(weights.Statistic); p != 19714 || s != 368 {
		t.Errorf("%d parameters and %d statistics, want 19714 and 368", p, s)
	}
	if last := l.Tensors[len(l.Tensors)-1]; last.Offset+last.Len() != l.Len(last.Role) {
		t.Errorf("the last tensor ends at %d of %d", last.Offset+last.Len(), l.Len(last.Role))
	}
}

// Tensors that are equal in all checkpoints are constants, unless batch norm
// keeps them as its statistics; one that differs in a single checkpoint is a
// parameter.
func TestEqualTensorsAreConstants(t *testing.T) {
	m := open(t, epoch30)
	l := layoutOf(t, m)
	own, stats := vectors(t, m, l)
	changed := read(t, own)
	bias, _ := l.Find("fc2.bias")
	changed[bias.Offset]++
	variant := parse(t, render(t, templateOf(t, m, l), l, changed, stats))

	got := layoutOf(t, m, m, variant)
	if p := tensorNames(got.Role(weights.Parameter)); !slices.Equal(p, []string{"fc2.bias"}) {
		t.Errorf("parameters %q, want fc2.bias alone", p)
	}
	if s := got.Len(weights.Statistic); s != l.Len(weights.Statistic) {
		t.Errorf("%d statistics, want %d", s, l.Len(weights.Statistic))
	}
	if p := layoutOf(t, m, m).Role(weights.Parameter); len(p) != 0 {
		t.Errorf("two equal files have parameters %q", tensorNames(p))
	}
}

// A scalar of a lone file is no parameter: exporters lift constants such as
// epsilon. Between checkpoints it is one if it differs.
func TestScalars(t *testing.T) {
	one := parse(t, encodeModel(tinyGraph(tensor("s", Float, nil, []byte{0, 0, 0, 0}))))
	two := parse(t, encodeModel(tinyGraph(tensor("s", Float, nil, []byte{0, 0, 0, 1}))))
	for models, want := range map[*[]*Model]int64{{one}: 0, {one, two}: 1} {
		if got := layoutOf(t, *models...).Len(weights.Parameter); got != want {
			t.Errorf("%d files: %d parameters, want %d", len(*models), got, want)
		}
	}
}

// How elements are stored makes no difference.
func TestStorageDoesNotMatter(t *testing.T) {
	raw := fixture(t, "raw-f32")
	for _, name := range []string{"packed-float", "unpacked-float", "external"} {
		if p := layoutOf(t, raw, fixture(t, name)).Role(weights.Parameter); len(p) != 0 {
			t.Errorf("%s: equal elements in other fields differ: %q", name, tensorNames(p))
		}
	}
	if p := layoutOf(t, fixture(t, "raw-f16"), fixture(t, "int32-f16")).Role(weights.Parameter); len(p) != 0 {
		t.Errorf("equal elements as int32 differ: %q", tensorNames(p))
	}
	// Which of two fields a reader of protobuf would take is not for us to guess.
	w := slices.Clip(tensor("w", Float, []int64{1}, make([]byte, 4)))
	wrong := varintField(tensor("w", Float16, []int64{1}, nil), tensorInt64, 1)
	for want, w := range map[string][]byte{
		"float elements in field 9, want raw data":   appendBytes(w, tensorRaw, make([]byte, 4)),
		"elements in several kinds of field":         appendBytes(w, tensorFloat, make([]byte, 4)),
		"float16 elements in field 7, want raw data": wrong,
		"elements both in the file and outside":      varintField(w, tensorLocation, 1),
		"its location is said to be the file itself": appendBytes(w, tensorExternal, entry("location", "x")),
		"2 elements, want 1 for float16 [1]":         appendBytes(tensor("w", Float16, []int64{1}, nil), tensorInt32, []byte{1, 2}),
	} {
		_, err := Parse("m.onnx", encodeModel(tinyGraph(w)))
		wantError(t, want, err, `m.onnx: tensor "w": `, "")
		wantError(t, want, err, want, "")
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

func TestRefusedWeights(t *testing.T) {
	external, raw := parse(t, fixture(t, "external").Bytes()), fixture(t, "raw-f32")
	ints := parse(t, encodeModel(tinyGraph(varintField(tensor("i", Int64, []int64{2}, nil), tensorLocation, 1))))
	strings := parse(t, encodeModel(tinyGraph(appendString(tensor("s", String, []int64{1}, nil), tensorString, "cat"))))
	quantised := func(op string) *Model {
		return parse(t, encodeModel(graph([][]byte{node(op, "q", []string{"x"}, []string{"y"})}, nil, [][]byte{output("y", Float)})))
	}
	for name, c := range map[string]struct {
		models     []*Model
		text, hint string
	}{
		// Equal as encoded says nothing about elements that lie elsewhere.
		"external, equal":  {[]*Model{external, external}, `m.onnx: tensor "w": its elements are in another file, "weights.bin", which was not given`, ""},
		"external, second": {[]*Model{raw, external}, `m.onnx: tensor "w": its elements are in another file`, ""},
		"external int":     {[]*Model{ints}, `m.onnx: tensor "i": its elements are in another file`, ""},
		"shared":           {[]*Model{fixture(t, "batchnorm-shared")}, `batchnorm-shared.onnx: tensor "a.running_mean": running statistics shared by batch norm nodes "bn1" and "bn2"`, "its own BatchNorm"},
		"in a branch":      {[]*Model{fixture(t, "batchnorm-if")}, `batchnorm-if.onnx: node "deep": batch norm inside a control-flow body`, ""},
		"quantised":        {[]*Model{quantised("QLinearConv")}, `m.onnx: is quantised: node "q" is QLinearConv`, "export the float network"},
		"dequantised":      {[]*Model{quantised("DequantizeLinear")}, `m.onnx: is quantised: node "q" is DequantizeLinear`, "export the float network"},
		"strings":          {[]*Model{strings}, `m.onnx: tensor "s": holds strings`, "without the look-up of its class names"},
	} {
		_, err := NewLayout(c.models)
		wantError(t, name, err, c.text, c.hint)
	}
}

// network is a model of two tensors and two nodes, and what a test changes.
func network(t *testing.T, path string, ops []string, initializers ...[]byte) *Model {
	t.Helper()
	var nodes [][]byte
	for i, op := range ops {
		nodes = append(nodes, node(op, "n"+string(rune('0'+i)), []string{"x"}, []string{"y"}))
	}
	return withNodes(t, path, nodes, initializers...)
}

func TestDifferentNetworks(t *testing.T) {
	f := func(name string, shape ...int64) []byte {
		n, _ := weights.Elements(shape)
		return tensor(name, Float, shape, make([]byte, 4*n))
	}
	ops := []string{"Conv", "Relu"}
	first := network(t, "a.onnx", ops, f("w", 2, 3), f("b", 3))
	const compare = "all checkpoints must come from one network: compare them with swagwrap inspect a.onnx b.onnx"
	for name, c := range map[string]struct {
		ops          []string
		initializers [][]byte
		text, also   string
	}{
		"shape":      {ops, [][]byte{f("w", 3, 2), f("b", 3)}, `tensor "w": shape [3 2], want [2 3] as in a.onnx`, ""},
		"rank":       {ops, [][]byte{f("w", 6), f("b", 3)}, `tensor "w": shape [6], want [2 3] as in a.onnx`, ""},
		"type":       {ops, [][]byte{f("w", 2, 3), tensor("b", Float16, []int64{3}, make([]byte, 6))}, `tensor "b": type float16, want float as in a.onnx`, ""},
		"name":       {ops, [][]byte{f("w", 2, 3), f("c", 3)}, `tensor "b": missing, but present in a.onnx`, "\nalso tensor \"c\": not in a.onnx"},
		"missing":    {ops, [][]byte{f("b", 3)}, `tensor "w": missing, but present in a.onnx`, ""},
		"additional": {ops, [][]byte{f("w", 2, 3), f("b", 3), f("c", 1)}, `tensor "c": not in a.onnx`, ""},
		"operator":   {[]string{"Conv", "Tanh"}, [][]byte{f("w", 2, 3), f("b", 3)}, `node 1 is Tanh "n1", want Relu "n1" as in a.onnx`, ""},
		"nodes": {[]string{"Gemm", "Relu", "Relu"}, [][]byte{f("w", 2, 3), f("b", 3)}, `node 0 is Gemm "n0", want Conv "n0" as in a.onnx`,
			"\nalso 3 nodes, want 2 as in a.onnx"},
		"five": {ops, [][]byte{f("w", 1), f("c"), f("d"), f("e")}, `tensor "w": shape [1], want [2 3] as in a.onnx`,
			"\nalso tensor \"b\": missing, but present in a.onnx\nalso tensor \"c\": not in a.onnx" +
				"\nalso tensor \"d\": not in a.onnx\nalso tensor \"e\": not in a.onnx"},
		"all": {ops, [][]byte{f("w", 1), f("c"), f("d"), f("e"), f("f"), f("g")}, `tensor "w": shape [1], want [2 3] as in a.onnx`,
			"\nalso tensor \"b\": missing, but present in a.onnx\nalso tensor \"c\": not in a.onnx" +
				"\nalso tensor \"d\": not in a.onnx\nalso tensor \"e\": not in a.onnx\nand 2 more differences"},
	} {
		_, err := NewLayout([]*Model{first, first, network(t, "b.onnx", c.ops, c.initializers...)})
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: error %v, want an *Error", name, err)
		} else if e.Error() != "b.onnx: "+c.text || e.Hint != compare+c.also {
			t.Errorf("%s: error %q\nwant b.onnx: %s\nhint %q\nwant %q", name, err, c.text, e.Hint, compare+c.also)
		}
	}
}

func TestVectorErrors(t *testing.T) {
	l := layoutOf(t, fixture(t, "raw-f32"))
	for name, want := range map[string]string{
		"raw-f16": `raw-f16.onnx: tensor "w": F16 [4 3], want F32 [4 3]`,
		"folded":  `folded.onnx: tensor "w": missing`,
	} {
		m := fixture(t, name)
		_, err := m.Vector(l, weights.Parameter)
		wantError(t, name, err, want, "")
		_, err = NewTemplate(m, l)
		wantError(t, name+", template", err, want, "")
	}
}

// A layout's vector follows the layout's order and not the file's.
func TestVectorFollowsLayout(t *testing.T) {
	l, err := weights.NewLayout([]weights.Tensor{
		{Name: "b", Shape: []int64{3}, DType: weights.F32, Role: weights.Parameter},
		{Name: "w", Shape: []int64{4, 3}, DType: weights.F32, Role: weights.Parameter},
	})
	if err != nil {
		t.Fatal(err)
	}
	m := fixture(t, "raw-f32")
	v, _ := vectors(t, m, l)
	if got, want := read(t, v), slices.Concat(replacement(3, 9), replacement(12, 0)); !slices.Equal(got, want) {
		t.Errorf("vector %v, want %v", got, want)
	}
	if got := render(t, templateOf(t, m, l), l, v, weights.Slice{}); string(got) != string(m.Bytes()) {
		t.Error("a template of this layout does not give the file back")
	}
}
