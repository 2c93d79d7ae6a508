package onnxio

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/testfile"
	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
)

// epoch30 is a real export by PyTorch 2.15.
const epoch30 = "../fixtures/mnist/checkpoints/epoch-30.onnx"

func open(t testing.TB, path string) *Model {
	t.Helper()
	m, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func fixture(t testing.TB, name string) *Model {
	return open(t, filepath.Join("testdata", name+".onnx"))
}

// described is what testdata/make.py recorded of a model.
type described struct {
	IR         int64     `json:"ir"`
	Producer   [2]string `json:"producer"`
	Opset      int64     `json:"opset"`
	Functions  int       `json:"functions"`
	Graph      any       `json:"graph"`
	Parameters []string  `json:"parameters"` // of this file alone; nil where it must be refused
	Statistics []string  `json:"statistics"`
	Replaced   string    `json:"replaced_sha256"`
}

// golden returns make.py's records by the path of the model.
func golden(t testing.TB) map[string]described {
	t.Helper()
	var byName map[string]described
	testfile.JSON(t, "testdata/golden.json", &byName)
	out := make(map[string]described)
	for name, d := range byName {
		out[filepath.Join("testdata", name)] = d
	}
	return out
}

// The describe functions mirror make.py's.
func describeGraph(g *Graph) map[string]any {
	nodes, initializers := []any{}, []any{}
	for _, n := range g.Nodes {
		attributes := []any{}
		for _, a := range n.Attributes {
			graphs, dims := []any{}, []int64{}
			for _, s := range a.Graphs {
				graphs = append(graphs, describeGraph(s))
			}
			if a.Tensor != nil {
				dims = list(a.Tensor.Shape)
			}
			attributes = append(attributes, map[string]any{
				"name": a.Name, "type": a.Type, "int": a.Int, "float": float64(a.Float), "tensor": dims, "graphs": graphs,
			})
		}
		nodes = append(nodes, map[string]any{
			"name": n.Name, "op": n.OpType, "domain": n.Domain, "inputs": list(n.Inputs), "outputs": list(n.Outputs), "attributes": attributes,
		})
	}
	for _, t := range g.Initializers {
		initializers = append(initializers, map[string]any{"name": t.Name, "type": t.ElemType, "shape": list(t.Shape)})
	}
	return map[string]any{
		"name": g.Name, "nodes": nodes, "initializers": initializers,
		"inputs": describeValues(g.Inputs), "outputs": describeValues(g.Outputs),
	}
}

func describeValues(values []Value) []any {
	out := []any{}
	for _, v := range values {
		out = append(out, map[string]any{"name": v.Name, "type": v.ElemType, "shape": v.Shape, "dims": list(v.Dims)})
	}
	return out
}

// firstDifference returns the first line in which two values differ as JSON.
func firstDifference(t *testing.T, a, b any) (string, string) {
	t.Helper()
	x, err1 := json.MarshalIndent(a, "", " ")
	y, err2 := json.MarshalIndent(b, "", " ")
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(y), "\n")
	for i, line := range strings.Split(string(x), "\n") {
		if i == len(lines) || line != lines[i] {
			return fmt.Sprintf("line %d: %s", i, line), strings.Join(lines[i:min(i+1, len(lines))], "")
		}
	}
	return "", strings.Join(lines[strings.Count(string(x), "\n")+1:], " ")
}

// list makes an empty JSON list of a nil slice.
func list[T any](s []T) []T { return append([]T{}, s...) }

func TestScanAgreesWithPython(t *testing.T) {
	for path, want := range golden(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			m := open(t, path)
			got := described{IR: m.IRVersion, Producer: [2]string{m.ProducerName, m.ProducerVersion}, Opset: m.Opset,
				Functions: len(m.Functions), Parameters: want.Parameters, Statistics: want.Statistics, Replaced: want.Replaced}
			js, err := json.Marshal(describeGraph(m.Graph))
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(js, &got.Graph); err != nil {
				t.Fatal(err)
			}
			if g, w := firstDifference(t, got, want); g != w {
				t.Errorf("scanned %s, Python says %s", g, w)
			}
		})
	}
}

func TestFeedInputs(t *testing.T) {
	for name, want := range map[string][]string{
		"testdata/ir3.onnx":          {"x"}, // the weights are inputs too
		"testdata/batchnorm-if.onnx": {"x", "cond"},
		epoch30:                      {"input"},
	} {
		var got []string
		for _, v := range open(t, name).FeedInputs() {
			got = append(got, v.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: inputs to feed %q, want %q", name, got, want)
		}
	}
}

// A repeated shape replaces the one before: dimensions and their names must
// stay in step.
func TestRepeatedShape(t *testing.T) {
	dim := wire.AppendBytes(nil, wire.ShapeDim, wire.AppendString(nil, wire.DimParam, "n"))
	shapes := wire.AppendBytes(wire.AppendBytes(nil, wire.TensorTypeShape, dim), wire.TensorTypeShape, slices.Concat(dim, dim))
	value := wire.AppendBytes(wire.AppendString(nil, wire.ValueName, "x"), wire.ValueType, wire.AppendBytes(nil, wire.TypeTensor, shapes))
	m := parse(t, encodeModel(wire.AppendBytes(tinyGraph(), wire.GraphInput, value)))
	if v := m.Graph.Inputs[0]; !slices.Equal(v.Shape, []int64{-1, -1}) || !slices.Equal(v.Dims, []string{"n", "n"}) {
		t.Errorf("shape %v, names %q", v.Shape, v.Dims)
	}
}

func TestGraphs(t *testing.T) {
	var names []string
	for _, g := range fixture(t, "batchnorm-if").Graphs() {
		names = append(names, g.Name)
	}
	if !slices.Equal(names, []string{"g", "else", "then"}) {
		t.Errorf("graphs %q", names)
	}
}

func TestRefusedFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	twice := wire.AppendBytes(encodeModel(tinyGraph()), wire.ModelGraph, tinyGraph())
	noOpset := wire.AppendBytes(varintField(nil, wire.ModelIR, 8), wire.ModelGraph, tinyGraph())
	noIR := wire.AppendBytes(wire.AppendBytes(nil, wire.ModelGraph, tinyGraph()), wire.ModelOpset, varintField(nil, wire.OpsetVersion, 18))
	segment := wire.AppendBytes(nil, wire.TensorSegment, nil)
	dims := slices.Concat(varintField(nil, wire.TensorDims, 1<<40), varintField(nil, wire.TensorDims, 1<<40))
	initializer := func(body []byte) []byte {
		return encodeModel(wire.AppendBytes(tinyGraph(), wire.GraphInitializer, body))
	}
	constant := func(attributes ...[]byte) []byte {
		return encodeModel(wire.AppendBytes(tinyGraph(), wire.GraphNode, node("Constant", "k", nil, []string{"c"}, attributes...)))
	}
	for path, want := range map[string]string{
		write("constant-outputs", encodeModel(wire.AppendBytes(tinyGraph(), wire.GraphNode, node("Constant", "k", nil, nil)))):                      `node "k": a Constant with 0 outputs`,
		write("constant-float", constant(wire.AppendBytes(wire.AppendString(nil, wire.AttrName, "value_float"), wire.AttrFloats, make([]byte, 8)))): `node "k": a Constant with a value_float of 8 bytes`,
		write("constant-varint", constant(varintField(wire.AppendString(nil, wire.AttrName, "value_floats"), wire.AttrFloats, 1<<21))):              "wire type 0, want 2",
		"testdata/sparse.onnx":                   "has sparse initializers",
		"testdata/training-info.onnx":            "holds training information",
		"testdata/zip.onnx":                      "a zip archive, not ONNX",
		"testdata/make.py":                       "not a readable ONNX model",
		write("empty", nil):                      "the file is empty",
		write("zeros", make([]byte, 100)):        "not a readable ONNX model",
		write("two-graphs", twice):               "several graph fields",
		write("no-opset", noOpset):               "no opset version in it: truncated?",
		write("no-ir", noIR):                     "not an ONNX model",
		write("only-ir", varintField(nil, 1, 8)): "not an ONNX model",
		write("no-nodes", encodeModel(nil)):      "no nodes or no outputs",
		write("graph-varint", varintField(encodeModel(nil), wire.ModelGraph, 1)):                                                  "not a readable ONNX model",
		write("no-operator", encodeModel(wire.AppendBytes(tinyGraph(), wire.GraphNode, nil))):                                     "a node without an operator",
		write("not-utf8", wire.AppendString(encodeModel(tinyGraph()), wire.ModelProducer, "\xff")):                                "not UTF-8",
		write("segment", initializer(segment)):                                                                                    "tensor in segments",
		write("huge-dims", initializer(dims)):                                                                                     "too many elements",
		write("negative-dim", initializer(varintField(nil, wire.TensorDims, 1<<64-1))):                                            "negative dimension",
		write("no-elements", initializer(tensor("w", Float, []int64{2}, nil))):                                                    `tensor "w": float [2] without elements`,
		write("odd-elements", initializer(tensor("w", Float, []int64{2}, make([]byte, 9)))):                                       `tensor "w": 9 bytes of elements, want 8 for float [2]`,
		write("many-elements", initializer(tensor("w", Float16, []int64{2}, make([]byte, 8)))):                                    `tensor "w": 8 bytes of elements, want 4 for float16 [2]`,
		write("same-name", encodeModel(tinyGraph(tensor("w", Int64, []int64{0}, nil), tensor("w", Float, nil, make([]byte, 4))))): `tensor "w": two initializers have this name`,
	} {
		_, err := Open(path)
		var e *Error
		if !errors.As(err, &e) || !strings.HasPrefix(err.Error(), path+": ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", path, err, want)
		}
	}
	// What the machine refuses is not the model's fault.
	var e *Error
	if _, err := Open(filepath.Join(dir, "absent")); !errors.Is(err, os.ErrNotExist) || errors.As(err, &e) {
		t.Errorf("absent file: %v", err)
	}
}

func TestElemTypeNames(t *testing.T) {
	got := map[ElemType]string{Float: "", BFloat16: "", Int64: "", 99: ""}
	for e := range got {
		got[e] = e.String() + " " + e.DType().String()
	}
	want := map[ElemType]string{Float: "float F32", BFloat16: "bfloat16 BF16", Int64: "int64 invalid", 99: "type 99 invalid"}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A network may have very many nodes: work that grows with their square would take
// many minutes here.
func TestLongChain(t *testing.T) {
	const nodes = 100_000
	var list, same [][]byte
	for i := range nodes {
		list = append(list, node("Identity", "", []string{fmt.Sprint("v", i)}, []string{fmt.Sprint("v", i+1)}))
		same = append(same, node("Constant", "", nil, []string{"c"}, tensorAttribute("value", tensor("", Float, nil, make([]byte, 4)))))
	}
	pad := tensor("pad", Uint8, []int64{100 << 20}, make([]byte, 100<<20)) // which justifies the memory that nodes take
	m := parse(t, encodeModel(graph(append(list, same...), [][]byte{pad}, [][]byte{output(fmt.Sprint("v", nodes), Float)})))
	value, steps := fmt.Sprint("v", nodes), 0
	for n := m.Graph.Producer(value); n != nil; n = m.Graph.Producer(value) {
		value, steps = n.Inputs[0], steps+1
	}
	if value != "v0" || steps != nodes {
		t.Errorf("%q is %d nodes before the output, want v0 and %d", value, steps, nodes)
	}
	if first := m.Graph.Producer("c"); first != &m.Graph.Nodes[nodes] {
		t.Errorf("of nodes with one output not the first: %v", first)
	}
	if last := m.Tensors()[nodes-1]; last.Name != fmt.Sprint("c#", nodes) {
		t.Errorf("the last constant is named %q", last.Name)
	}
	m.Places()
	if m.Head(fmt.Sprint("v", nodes)); len(m.Merged()) != 0 {
		t.Error("tensors behind what a network takes")
	}
}
