package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// complete MODEL... fails where the graph of an exported model lacks what other compilers need: see [graphFaults]. Names of values behind
// "-" may lack their shape.
func complete(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: complete MODEL... [- VALUE...]")
	}
	var unknown []string
	if i := slices.Index(args, "-"); i >= 0 {
		args, unknown = args[:i], args[i+1:]
	}
	for _, name := range args {
		faults, values, err := graphFaults(ts.MkAbs(name), unknown)
		ts.Check(err)
		if len(faults) > 0 {
			ts.Fatalf("%s: %d faults:\n%s", name, len(faults), strings.Join(faults[:min(len(faults), 20)], "\n"))
		}
		ts.Logf("%s: %d values", name, values)
	}
}

// graphFaults returns what is wrong with the graph of a model: names of nodes that are missing or not unique, constants that are no tensors,
// and values without type and rank, or with others than they have in ONNX Runtime, for one example and for three.
func graphFaults(path string, unknown []string) (faults []string, values int, err error) {
	bad := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	m, err := onnxio.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer m.Close()
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, 0, err
	}
	declared := valuesOf(decodeModel(data))
	names := map[string]bool{}
	for _, n := range m.Graph.Nodes {
		if n.Name == "" || names[n.Name] {
			bad("%s node %q has no name of its own", n.OpType, n.Name)
		}
		names[n.Name] = true
		for _, a := range n.Attributes {
			if n.OpType == "Constant" && a.Name != "value" {
				bad("constant %q is in %s", n.Outputs, a.Name)
			}
		}
	}
	var computed []string
	e := m.Edit()
	for i := range m.Graph.Nodes {
		n := &m.Graph.Nodes[i]
		for _, name := range n.Outputs {
			v, ok := declared[name]
			switch {
			case name == "" || slices.Contains(unknown, name):
				continue
			case !ok || v.ElemType == 0 || v.Shape == nil:
				bad("%q of %s %q has no type and shape: %v", name, n.OpType, n.Name, v)
				continue
			}
			computed = append(computed, name)
			e.InsertAfter(n, "Shape", "shape of "+name, []string{name}, []string{"shape of " + name})
			e.AddGraphOutput("shape of "+name, onnxio.Int64)
			if !slices.ContainsFunc(m.Graph.Outputs, func(o onnxio.Value) bool { return o.Name == name }) {
				e.AddGraphOutput(name, v.ElemType) // the runtime compares the types of outputs
			}
		}
	}
	if len(computed) == 0 {
		return append(faults, "no values"), 0, nil
	}
	none := &weights.Layout{}
	t, err := e.Template(none)
	if err != nil {
		return nil, 0, err
	}
	filled, err := t.Fill(none, weights.Slice{}, weights.Slice{})
	if err != nil {
		return nil, 0, err
	}
	wrong, err := wrongShapes(m, filled, computed, declared)
	return append(faults, wrong...), len(computed), err
}

// wrongShapes compares shapes of values with those in ONNX Runtime.
func wrongShapes(m *onnxio.Model, filled onnxio.Filled, computed []string, declared map[string]onnxio.Value) (faults []string, err error) {
	library, err := ort.Provider{}.Find("")
	if err != nil {
		return nil, err
	}
	rt, err := ort.Provider{}.Open(library)
	if err != nil {
		return nil, err
	}
	var outputs []string
	for _, name := range computed {
		outputs = append(outputs, "shape of "+name)
	}
	s, err := rt.NewFilledSession(context.Background(), filled, ort.Options{Outputs: outputs, Plain: true})
	if err != nil {
		return []string{err.Error()}, nil // types differ
	}
	defer s.Close()
	for _, count := range []int64{1, 3} {
		var inputs []ort.Tensor
		for _, v := range m.FeedInputs() {
			if fixed := v.Shape[0]; fixed > 0 && fixed != count {
				inputs = nil
				break
			}
			inputs = append(inputs, madeUp(v, count))
		}
		if inputs == nil {
			continue // a network of one size
		}
		got, err := s.Run(context.Background(), inputs)
		if err != nil {
			return nil, fmt.Errorf("%d examples: %w", count, err)
		}
		for k, name := range computed {
			is, want := got[k].I64, declared[name].Shape
			fits := len(is) == len(want)
			for i := 0; fits && i < len(is); i++ {
				fits = want[i] < 0 || want[i] == is[i]
			}
			if !fits {
				faults = append(faults, fmt.Sprintf("%q: shape %d for %d examples, and the model says %d", name, is, count, want))
			}
		}
	}
	return faults, nil
}

// madeUp are examples of an input. Whole numbers are so small that any vocabulary has them.
func madeUp(v onnxio.Value, count int64) ort.Tensor {
	const side = 8
	t, n := ort.Tensor{Name: v.Name, Shape: slices.Clone(v.Shape)}, int64(1)
	for i, d := range t.Shape {
		if i == 0 {
			t.Shape[i] = count
		} else if d < 0 {
			t.Shape[i] = side
		}
		n *= t.Shape[i]
	}
	r := rand.New(rand.NewPCG(1, 2))
	switch v.ElemType {
	case onnxio.Float:
		t.F32 = make([]float32, n)
		for i := range t.F32 {
			t.F32[i] = float32(r.NormFloat64())
		}
	case onnxio.Uint8:
		t.U8 = make([]uint8, n)
	case onnxio.Int64:
		t.I64 = slices.Repeat([]int64{1}, int(n))
	case onnxio.Float16:
		t.F16 = make([]uint16, n)
	case onnxio.Double:
		t.F64 = make([]float64, n)
	default:
		t.Type = ort.DType(v.ElemType)
		t.Raw = make([]byte, int(n)*ort.RawSize(t.Type))
	}
	return t
}

// declaredValues returns the values that the graph of a model declares: its value_info and outputs.
func declaredValues(model *field) []*field {
	return append(model.all(7, 12), model.all(7, 13)...)
}

// all returns the fields at a path of numbers.
func (f *field) all(path ...protowire.Number) (found []*field) {
	if len(path) == 0 {
		return []*field{f}
	}
	for _, c := range f.fields {
		if c.num == path[0] {
			found = append(found, c.all(path[1:]...)...)
		}
	}
	return found
}

// valuesOf decodes the values that a model declares.
func valuesOf(model *field) map[string]onnxio.Value {
	values := map[string]onnxio.Value{}
	for _, f := range declaredValues(model) {
		var v onnxio.Value
		for _, name := range f.all(1) {
			v.Name = string(name.bytes)
		}
		for _, elem := range f.all(2, 1, 1) {
			v.ElemType = onnxio.ElemType(elem.number)
		}
		for _, shape := range f.all(2, 1, 2) {
			v.Shape = []int64{}
			for _, dimension := range shape.all(1) {
				size := int64(-1)
				for _, known := range dimension.all(1) {
					size = int64(known.number)
				}
				v.Shape = append(v.Shape, size)
			}
		}
		values[v.Name] = v
	}
	return values
}

// What complete looks for is found.
func TestGraphFaults(t *testing.T) {
	t.Parallel()
	good := filepath.Join(t.TempDir(), "good.onnx")
	if code := run(t.Context(), []string{"swagwrap", "export", "-q", "-o", good, "--portable", "--template", filepath.Join("testdata", "ckpt-1.onnx"),
		"--checkpoint", filepath.Join("testdata", "ckpt-1.onnx")}, io.Discard, os.Stderr); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		want   string
		change func(model *field)
	}{
		{"", func(*field) {}},
		{"has no type and shape", func(m *field) {
			m.all(7)[0].fields = slices.DeleteFunc(m.all(7)[0].fields, func(f *field) bool { return f.num == 13 })
		}},
		{"Type Error", func(m *field) { m.all(7, 13)[0].all(2, 1, 1)[0].number = uint64(onnxio.Int64) }},
		{"and the model says", func(m *field) { last := m.all(7, 13)[0].all(2, 1, 2)[0]; last.fields = last.fields[:1] }},
		{"and the model says", func(m *field) { m.all(7, 13)[0].all(2, 1, 2, 1, 1)[0].number++ }},
		{"no name of its own", func(m *field) { m.all(7, 1, 3)[0].bytes = nil }},
		{"no name of its own", func(m *field) { m.all(7, 1, 3)[0].bytes = m.all(7, 1, 3)[1].bytes }},
	} {
		model := decodeModel(data)
		tt.change(model)
		bad := filepath.Join(t.TempDir(), "bad.onnx")
		if err := os.WriteFile(bad, appendFields(nil, model.fields), 0o666); err != nil {
			t.Fatal(err)
		}
		faults, _, err := graphFaults(bad, nil)
		if err != nil || (len(faults) == 0) != (tt.want == "") || !strings.Contains(strings.Join(faults, "\n"), tt.want) {
			t.Errorf("%q, %v, want %q", faults, err, tt.want)
		}
	}
}
