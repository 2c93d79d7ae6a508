package onnxio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/onnxio/internal/wire"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/swagwrap/swagwrap/weights"
)

// A file cut anywhere is an *Error: at 64 even places, in its last bytes, where
// a cut may fall between two fields, and everywhere in a small one.
func TestTruncated(t *testing.T) {
	real, small := open(t, epoch30).Bytes(), fixture(t, "batchnorm").Bytes()
	check := func(data []byte, n int) {
		_, err := Parse("cut.onnx", data[:n:n])
		var e *Error
		if !errors.As(err, &e) || e.Path != "cut.onnx" {
			t.Errorf("cut to %d of %d bytes: %v", n, len(data), err)
		}
	}
	for i := range 64 {
		check(real, len(real)*i/64)
		check(real, len(real)-1-i)
	}
	for n := range small {
		check(small, n)
	}
}

func TestDeepNesting(t *testing.T) {
	nest := func(depth int) []byte {
		g := tinyGraph()
		for range depth {
			g = graph([][]byte{node("If", "if", nil, []string{"y"}, graphAttribute("then_branch", g))}, nil, [][]byte{output("y", Float)})
		}
		return encodeModel(g)
	}
	parse(t, nest(maxDepth))
	_, err := Parse("m.onnx", nest(maxDepth+1))
	wantError(t, "one more", err, "graphs nest deeper than 32", "")
	_, err = Parse("m.onnx", nest(2000))
	wantError(t, "2000", err, "graphs nest deeper than 32", "")

	// Groups, which ONNX does not use, nest in the wire format itself.
	_, err = Parse("m.onnx", bytes.Repeat([]byte{99<<3&0x7f | 3}, 1<<20))
	wantError(t, "groups", err, "not a readable ONNX model", "")
}

// Files of a few megabytes that are all items, the cheapest of each kind, must
// not take more than four times their size and 64 MB.
func TestItemBombs(t *testing.T) {
	const n = 1 << 20
	repeat := func(num protowire.Number, body []byte) []byte {
		return bytes.Repeat(wire.AppendBytes(nil, num, body), n)
	}
	var (
		nodes        = repeat(wire.GraphNode, wire.AppendString(nil, wire.NodeOpType, "A"))
		initializers = repeat(wire.GraphInitializer, nil)
		inputs       = repeat(wire.GraphInput, nil)
		inNode       = func(body []byte) []byte {
			return wire.AppendBytes(nil, wire.GraphNode, append(wire.AppendString(nil, wire.NodeOpType, "A"), body...))
		}
		inAttribute = func(body []byte) []byte { return inNode(wire.AppendBytes(nil, wire.NodeAttribute, body)) }
		inTensor    = func(body []byte) []byte { return wire.AppendBytes(nil, wire.GraphInitializer, body) }
		dims        = bytes.Repeat(wire.AppendBytes(nil, wire.ShapeDim, nil), n)
		shape       = wire.AppendBytes(nil, wire.ValueType, wire.AppendBytes(nil, wire.TypeTensor, wire.AppendBytes(nil, wire.TensorTypeShape, dims)))
	)
	for name, g := range map[string][]byte{
		"nodes":             nodes,
		"initializers":      initializers,
		"inputs":            inputs,
		"node inputs":       inNode(repeat(wire.NodeInput, nil)),
		"node outputs":      inNode(repeat(wire.NodeOutput, nil)),
		"attributes":        inNode(repeat(wire.NodeAttribute, nil)),
		"graphs":            inAttribute(repeat(wire.AttrGraph, nil)),
		"attribute tensors": inAttribute(repeat(wire.AttrTensor, nil)),
		"shape dimensions":  wire.AppendBytes(nil, wire.GraphInput, shape),
		"tensor dimensions": inTensor(bytes.Repeat(varintField(nil, wire.TensorDims, 1), n)),
		"packed dimensions": inTensor(wire.AppendBytes(nil, wire.TensorDims, bytes.Repeat([]byte{1}, n))),
		"unpacked elements": inTensor(bytes.Repeat(varintField(nil, wire.TensorInt64, 1), n)),
		"mixed":             bytes.Join([][]byte{nodes, initializers, inputs}, nil),
	} {
		data := encodeModel(append(g, tinyGraph()...))
		var err error
		t.Run(name, func(t *testing.T) {
			// All that is allocated counts. A list that grows gives back as much as it keeps, so this is twice the guarantee.
			reliability.Heap(t, 2*len(data)+16<<20, func() { _, err = Parse("bomb.onnx", data) })
		})
		if err != nil && !strings.Contains(err.Error(), "too many nodes, tensors and names") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A graph of 100,000 nodes whose weights are elsewhere is not taken for a bomb.
func TestManyNodes(t *testing.T) {
	var nodes [][]byte
	x := "input"
	for i := range 100_000 {
		name := fmt.Sprintf("/model/layers.%d/self_attn/Gemm_%d", i/40, i)
		var attributes [][]byte
		if i%5 == 0 {
			attributes = [][]byte{intAttribute("transA", 0), intAttribute("transB", 1)}
		}
		nodes = append(nodes, node("Gemm", name, []string{x, "model.weight", "model.bias"}, []string{name + "_output_0"}, attributes...))
		x = name + "_output_0"
	}
	m := parse(t, encodeModel(graph(nodes, nil, [][]byte{output(x, Float)})))
	if len(m.Graph.Nodes) != len(nodes) {
		t.Errorf("%d nodes, want %d", len(m.Graph.Nodes), len(nodes))
	}
}

// A tensor that claims more than the file holds costs nothing.
func TestHugeClaims(t *testing.T) {
	huge := tensor("w", Int64, []int64{1 << 50}, nil)
	data := encodeModel(tinyGraph(huge, tensor("v", Float, []int64{0, 1 << 50}, nil)))
	var l *weights.Layout
	allocated := reliability.Allocated(func() { l = layoutOf(t, parse(t, data)) })
	if allocated > 1<<20 || l.Len(weights.Parameter) != 0 {
		t.Errorf("%d bytes are allocated for %d; %d parameters", allocated, len(data), l.Len(weights.Parameter))
	}
}

func FuzzParse(f *testing.F) {
	paths, err := filepath.Glob("testdata/*.onnx")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add(weightsAnywhere(1))
	f.Add(encodeModel(tinyGraph(floats("a", replacement(6, 1), 2, 3), floats("copy", replacement(6, 1), 2, 3), tensor("wide", Double, []int64{1}, make([]byte, 8)))))
	given := map[string][]byte{"weights.bin": make([]byte, 64)}
	f.Fuzz(func(t *testing.T, data []byte) {
		var m *Model
		var err error
		reliability.Heap(t, len(data), func() { m, err = ParseFiles("fuzz", data, given) })
		if err != nil {
			return
		}
		m.FoldedBatchNorm()
		m.FeedInputs()
		l, err := NewLayout([]*Model{m})
		if err != nil {
			return
		}
		tpl, err := m.Edit().Template(l)
		if err != nil {
			if m.hasExternal() {
				return // two tensors in the same bytes
			}
			t.Fatal(err)
		}
		// A model that is accepted comes back byte for byte, but for elements that
		// must be decoded, and comes back equal then.
		p, s := vectors(t, m, l)
		for name, b := range written(t, tpl, "fuzz", l, p, s) {
			if name == "fuzz" && !decodes(m) && b != string(data) || name != "fuzz" && b != string(given[name]) {
				t.Errorf("with its own weights %q changes", name)
			}
		}
		read := func(tpl *Template) *Model {
			files := written(t, tpl, "other", l, p, s)
			again, err := ParseFiles("other", []byte(files["other"]), map[string][]byte{"other.weights.bin": []byte(files["other.weights.bin"])})
			if err != nil {
				t.Fatal(err)
			}
			return again
		}
		sameElements(t, m, read(tpl))
		exported, err := NewExportTemplate(m, l)
		if err != nil {
			t.Fatal(err)
		}
		forRuntime, err := NewRuntimeTemplate(m, l)
		if err != nil {
			t.Fatal(err)
		}
		sameElements(t, read(exported), parse(t, render(t, forRuntime, l, p, s)))
		// It can be brought to inference, its batch norms into training, and the
		// result be read.
		if _, err := templateOf(t, m, l).Model("inference", l); err != nil {
			t.Error(err)
		}
		if bns, err := m.BatchNorms(); err == nil && len(bns) > 0 && !m.hasExternal() {
			back := parse(t, edited(t, m, trainAll(t, m)))
			if len(back.Graph.Nodes) != len(m.Graph.Nodes)+len(bns) {
				t.Errorf("%d nodes after the edit, want %d", len(back.Graph.Nodes), len(m.Graph.Nodes)+len(bns))
			}
		}
		stored, err := tpl.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseTemplate(stored); err != nil {
			t.Error(err)
		}
	})
}

// sameElements checks that two models hold the same tensors, wherever they keep
// them.
func sameElements(t testing.TB, a, b *Model) {
	t.Helper()
	if len(a.tensors) != len(b.tensors) {
		t.Fatalf("%d tensors, want %d", len(b.tensors), len(a.tensors))
	}
	for i, x := range a.tensors {
		y := b.tensors[i]
		if x.Name != y.Name || !slices.Equal(x.Shape, y.Shape) || x.ElemType != y.ElemType || !bytes.Equal(held(a, x), held(b, y)) {
			t.Errorf("tensor %q %v %v is %q %v %v, or of other elements", x.Name, x.Shape, x.ElemType, y.Name, y.Shape, y.ElemType)
		}
	}
}

// held returns a tensor's elements; of integers in the model file, the raw data.
func held(m *Model, t *Tensor) []byte {
	if t.external != nil || t.IsFloat() {
		return m.Elements(t)
	}
	var raw []byte
	s := wire.NewScanner(m.data)
	s.Fields(t.msg.Body, func(f wire.Field) error {
		if f.Num == wire.TensorRaw {
			raw, _ = s.Bytes(f)
		}
		return nil
	})
	return raw
}

func FuzzTemplate(f *testing.F) {
	m := open(f, filepath.Join(scattered(f, 1), "m.onnx"))
	l := layoutOf(f, m)
	stored, err := templateOf(f, m, l).MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	p, s := vectors(f, m, l)
	f.Add(stored)
	f.Fuzz(func(t *testing.T, data []byte) {
		var tpl *Template
		var err error
		reliability.Heap(t, len(data), func() { tpl, err = ParseTemplate(data) })
		if err != nil {
			return
		}
		for _, name := range []string{tpl.Files()[0], "other.onnx"} {
			total := new(bytes.Buffer)
			err = tpl.Write(name, func(file string) (io.Writer, error) {
				if file != name && !contained(file) {
					t.Errorf("%q is written", file)
				}
				return total, nil
			}, l, p, s)
			if err == nil && name == tpl.Files()[0] && int64(total.Len()) != tpl.Size() {
				t.Errorf("%d bytes, want %d", total.Len(), tpl.Size())
			}
		}
		tpl.Model("fuzz", l)
	})
}
