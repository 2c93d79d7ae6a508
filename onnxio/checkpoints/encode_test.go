package checkpoints

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
	"github.com/swagwrap/swagwrap/weights"
)

// A small encoder of ONNX, for models that no exporter would write. The numbers
// are those of onnx.proto's fields.

func tensor(name string, elem onnxio.ElemType, shape []int64, raw []byte) []byte {
	var b []byte
	for _, d := range shape {
		b = wire.AppendVarint(b, 1, uint64(d))
	}
	b = wire.AppendString(wire.AppendVarint(b, 2, uint64(elem)), 8, name)
	if raw != nil {
		b = wire.AppendBytes(b, 9, raw)
	}
	return b
}

func floats32(name string, values weights.Slice, shape ...int64) []byte {
	raw := make([]byte, 4*len(values))
	weights.F32.PutFloat32s(raw, values)
	return tensor(name, onnxio.Float, shape, raw)
}

// outside says that the elements of a tensor are in another file, but not in
// which.
func outside(tensor []byte) []byte { return wire.AppendVarint(tensor, 14, 1) }

// node takes attributes encoded.
func node(op, name string, inputs, outputs []string, attributes ...[]byte) []byte {
	var b []byte
	for _, s := range inputs {
		b = wire.AppendString(b, 1, s)
	}
	for _, s := range outputs {
		b = wire.AppendString(b, 2, s)
	}
	b = wire.AppendString(wire.AppendString(b, 3, name), 4, op)
	for _, a := range attributes {
		b = wire.AppendBytes(b, 5, a)
	}
	return b
}

func tensorAttribute(name string, tensor []byte) []byte {
	return wire.AppendVarint(wire.AppendBytes(wire.AppendString(nil, 1, name), 5, tensor), 20, 4)
}

// encode returns a model with one output, y.
func encode(nodes [][]byte, initializers ...[]byte) []byte {
	var g []byte
	for _, n := range nodes {
		g = wire.AppendBytes(g, 1, n)
	}
	for _, t := range initializers {
		g = wire.AppendBytes(g, 5, t)
	}
	g = wire.AppendBytes(g, 12, wire.AppendBytes(wire.AppendString(nil, 1, "y"), 2, wire.AppendBytes(nil, 1, wire.AppendVarint(nil, 1, uint64(onnxio.Float)))))
	b := wire.AppendBytes(wire.AppendVarint(nil, 1, 8), 7, g)
	return wire.AppendBytes(b, 8, wire.AppendVarint(nil, 2, 18))
}

func withNodes(t testing.TB, path string, nodes [][]byte, initializers ...[]byte) *onnxio.Model {
	t.Helper()
	m, err := onnxio.Parse(path, encode(nodes, initializers...))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// tiny is a model of the least graph that is accepted.
func tiny(t testing.TB, initializers ...[]byte) *onnxio.Model {
	t.Helper()
	return withNodes(t, "m.onnx", [][]byte{node("Relu", "n", []string{"x"}, []string{"y"})}, initializers...)
}

func open(t testing.TB, path string) *onnxio.Model {
	t.Helper()
	m, err := onnxio.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func fixture(t testing.TB, name string) *onnxio.Model {
	return open(t, filepath.Join("../testdata", name+".onnx"))
}

func layoutOf(t testing.TB, models ...*onnxio.Model) *weights.Layout {
	t.Helper()
	s, err := New(models)
	if err != nil {
		t.Fatal(err)
	}
	return s.Layout
}

func vectors(t testing.TB, m *onnxio.Model, l *weights.Layout) (parameters, statistics weights.Vector) {
	t.Helper()
	parameters, err1 := m.Vector(l, weights.Parameter)
	statistics, err2 := m.Vector(l, weights.Statistic)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	return parameters, statistics
}

func templateOf(t testing.TB, m *onnxio.Model, l *weights.Layout) *onnxio.Template {
	t.Helper()
	tpl, err := onnxio.NewTemplate(m, l)
	if err != nil {
		t.Fatal(err)
	}
	return tpl
}

// refill returns m with other weights.
func refill(t testing.TB, m *onnxio.Model, l *weights.Layout, parameters, statistics weights.Vector) *onnxio.Model {
	t.Helper()
	b, err := templateOf(t, m, l).Render(l, parameters, statistics)
	if err != nil {
		t.Fatal(err)
	}
	out, err := onnxio.Parse("m.onnx", b)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func read(t testing.TB, v weights.Vector) weights.Slice {
	t.Helper()
	s := make(weights.Slice, v.Len())
	if err := v.ReadAt(s, 0); err != nil {
		t.Fatal(err)
	}
	return s
}

// replacement is the values of ../testdata/make.py.
func replacement(n int64, seed int) weights.Slice {
	s := make(weights.Slice, n)
	for i := range s {
		s[i] = float32((i+seed)*37%101-50) / 8
	}
	return s
}

func tensorNames(tensors []weights.Tensor) []string {
	var names []string
	for _, t := range tensors {
		names = append(names, t.Name)
	}
	return names
}

func wantError(t *testing.T, name string, err error, text, hint string) {
	t.Helper()
	var e *onnxio.Error
	if !errors.As(err, &e) {
		t.Errorf("%s: error %v, want an *onnxio.Error", name, err)
	} else if !strings.Contains(e.Error(), text) || !strings.Contains(e.Hint, hint) {
		t.Errorf("%s: error %q, want %q\nhint %q, want %q", name, e, text, e.Hint, hint)
	}
}

// broken is a vector that cannot be read.
type broken struct{}

func (broken) Len() int64                    { return 1 << 40 }
func (broken) ReadAt([]float32, int64) error { return errors.New("broken") }
