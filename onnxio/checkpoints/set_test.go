package checkpoints

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/testfile"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/internal/wire"

	"github.com/swagwrap/swagwrap/weights"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

func checkpoints(t *testing.T) []*onnxio.Model {
	t.Helper()
	paths, err := filepath.Glob("../../fixtures/mnist/checkpoints/epoch-*.onnx")
	if err != nil || len(paths) < 2 {
		t.Fatalf("checkpoints %q, %v", paths, err)
	}
	var models []*onnxio.Model
	for _, path := range paths {
		models = append(models, open(t, path))
	}
	return models
}

func TestLayoutOfCheckpoints(t *testing.T) {
	models := checkpoints(t)
	l := layoutOf(t, models...)
	var golden map[string]struct{ Parameters, Statistics []string }
	testfile.JSON(t, "../testdata/golden.json", &golden)
	want := golden["../../fixtures/mnist/checkpoints/epoch-30.onnx"]
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
	m := open(t, "../../fixtures/mnist/checkpoints/epoch-30.onnx")
	l := layoutOf(t, m)
	own, stats := vectors(t, m, l)
	changed := read(t, own)
	bias, _ := l.Find("fc2.bias")
	changed[bias.Offset]++
	variant := refill(t, m, l, changed, stats)
	changed[bias.Offset]++

	got := layoutOf(t, m, variant, refill(t, m, l, changed, stats))
	if p := tensorNames(got.Role(weights.Parameter)); !slices.Equal(p, []string{"fc2.bias"}) {
		t.Errorf("parameters %q, want fc2.bias alone", p)
	}
	if s := got.Len(weights.Statistic); s != l.Len(weights.Statistic) {
		t.Errorf("%d statistics, want %d", s, l.Len(weights.Statistic))
	}
	if p := layoutOf(t, m, m).Role(weights.Parameter); len(p) != 0 {
		t.Errorf("two equal files have parameters %q", tensorNames(p))
	}
	_, err := New([]*onnxio.Model{m, variant, m})
	wantError(t, "weights given twice", err, "epoch-30.onnx: has the same weights as", "give every checkpoint once")
}

// A scalar of a lone file is no parameter: exporters lift constants such as
// epsilon. Between checkpoints it is one if it differs.
func TestScalars(t *testing.T) {
	one := tiny(t, tensor("s", onnxio.Float, nil, []byte{0, 0, 0, 0}))
	two := tiny(t, tensor("s", onnxio.Float, nil, []byte{0, 0, 0, 1}))
	for models, want := range map[*[]*onnxio.Model]int64{{one}: 0, {one, two}: 1} {
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
}

func TestRefusedWeights(t *testing.T) {
	raw := fixture(t, "raw-f32")
	external, err := onnxio.Parse("m.onnx", fixture(t, "external").Bytes())
	if err != nil {
		t.Fatal(err)
	}
	ints := tiny(t, outside(tensor("i", onnxio.Int64, []int64{2}, nil)))
	strings := tiny(t, wire.AppendString(tensor("s", onnxio.String, []int64{1}, nil), 6, "cat"))
	quantised := func(op string) *onnxio.Model {
		return withNodes(t, "m.onnx", [][]byte{node(op, "q", []string{"x"}, []string{"y"})})
	}
	for name, c := range map[string]struct {
		models     []*onnxio.Model
		text, hint string
	}{
		// Equal as encoded says nothing about elements that lie elsewhere.
		"external, equal":  {[]*onnxio.Model{external, external}, `m.onnx: tensor "w": its elements are in another file, "weights.bin", which was not given`, ""},
		"external, second": {[]*onnxio.Model{raw, external}, `m.onnx: tensor "w": its elements are in another file`, ""},
		"external int":     {[]*onnxio.Model{ints}, `m.onnx: tensor "i": its elements are in another file`, ""},
		"shared":           {[]*onnxio.Model{fixture(t, "batchnorm-shared")}, `batchnorm-shared.onnx: tensor "a.running_mean": running statistics shared by batch norm nodes "bn1" and "bn2"`, "the shared part runs once"},
		"in a branch":      {[]*onnxio.Model{fixture(t, "batchnorm-if")}, `batchnorm-if.onnx: node "deep": batch norm inside a control-flow body`, ""},
		"quantised":        {[]*onnxio.Model{quantised("QLinearConv")}, `m.onnx: is quantised: node "q" is QLinearConv`, "export the float network"},
		"dequantised":      {[]*onnxio.Model{quantised("DequantizeLinear")}, `m.onnx: is quantised: node "q" is DequantizeLinear`, "export the float network"},
		"strings":          {[]*onnxio.Model{strings}, `m.onnx: tensor "s": holds strings`, "without the look-up of its class names"},
	} {
		_, err := New(c.models)
		wantError(t, name, err, c.text, c.hint)
	}
}

// network is a model of two tensors and two nodes, and what a test changes.
func network(t *testing.T, path string, ops []string, initializers ...[]byte) *onnxio.Model {
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
		return tensor(name, onnxio.Float, shape, make([]byte, 4*n))
	}
	ops := []string{"Conv", "Relu"}
	first := network(t, "a.onnx", ops, f("w", 2, 3), f("b", 3))
	const compare = "all checkpoints must come from one network: compare them with the inspection of a.onnx and b.onnx"
	for name, c := range map[string]struct {
		ops          []string
		initializers [][]byte
		text, also   string
	}{
		"shape":      {ops, [][]byte{f("w", 3, 2), f("b", 3)}, `tensor "w": shape [3 2], want [2 3] as in a.onnx`, ""},
		"rank":       {ops, [][]byte{f("w", 6), f("b", 3)}, `tensor "w": shape [6], want [2 3] as in a.onnx`, ""},
		"type":       {ops, [][]byte{f("w", 2, 3), tensor("b", onnxio.Float16, []int64{3}, make([]byte, 6))}, `tensor "b": type float16, want float as in a.onnx`, ""},
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
		_, err := New([]*onnxio.Model{first, first, network(t, "b.onnx", c.ops, c.initializers...)})
		var e *onnxio.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: error %v, want an *onnxio.Error", name, err)
		} else if e.Error() != "b.onnx: "+c.text || e.Hint != compare+c.also {
			t.Errorf("%s: error %q\nwant b.onnx: %s\nhint %q\nwant %q", name, err, c.text, e.Hint, compare+c.also)
		}
	}
}

// A network may have very many matrices, none of them another's copy, and names that
// end alike: work that grows with the square of their number would take many
// minutes here.
func TestManyTensors(t *testing.T) {
	const count = 50_000
	model := func(k int) *onnxio.Model {
		var nodes [][]byte
		inits := [][]byte{floats32("pad", make(weights.Slice, 4<<20), 4<<20)} // justifies the memory that nodes take
		for i := range count {
			name := fmt.Sprintf("layer%d.weight", i)
			values := weights.Slice{float32(i), float32(i + k), float32(k), 1}
			if i == 7 {
				values[0], values[2] = 5, 5+float32(k) // the transpose of the fifth
				values[1], values[3] = float32(k), 1
			}
			nodes = append(nodes, node("MatMul", name, []string{"x", name}, []string{"y"}))
			inits = append(inits, floats32(name, values, 2, 2))
		}
		return withNodes(t, fmt.Sprint(k), nodes, inits...)
	}
	models := []*onnxio.Model{model(1), model(2)}
	s, err := New(models)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range s.Layout.Tensors {
		if found, _ := s.Layout.Find(entry.Name); found.Offset != entry.Offset {
			t.Fatalf("%q is not found", entry.Name)
		}
		if want := map[string]string{"layer7.weight": "layer5.weight"}[entry.Name]; entry.Tied != want || entry.Transposed != (want != "") {
			t.Errorf("%q is tied to %q", entry.Name, entry.Tied)
		}
	}
	d := dict{}
	for i := range count {
		d[fmt.Sprintf("my.net.layer%d.weight", i)] = array{shape: []int64{2, 2}, values: weights.Slice{float32(i), float32(i + 1), 1, 1}}
	}
	f, err := statefile.Open(d.write(t, filepath.Join(t.TempDir(), "s.safetensors")))
	if err != nil {
		t.Fatal(err)
	}
	st, err := openState(f, "")
	if err != nil {
		t.Fatal(err)
	}
	defer st.file.Close()
	if got := findNamings(st, namesOf(models[0])); got[0] != (naming{"my.net.", ""}) {
		t.Errorf("namings %v", got)
	}
}
