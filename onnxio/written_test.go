package onnxio

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"
)

// Roots names the stored tensors under a root, and no others.
func TestRoots(t *testing.T) {
	t.Parallel()
	number := func(name string, values ...float32) []byte {
		var raw []byte
		for _, v := range values {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
		}
		var shape []int64
		if len(values) > 1 {
			shape = []int64{int64(len(values))}
		}
		return tensor(name, Float, shape, raw)
	}
	for name, c := range map[string]struct {
		epsilon float32
		root    [][]byte
		want    []string
	}{
		"a root":            {1e-5, [][]byte{node("Sqrt", "", []string{"sum"}, []string{"root"})}, []string{"variance"}},
		"a power of 0.5":    {1e-5, [][]byte{node("Pow", "", []string{"sum", "half"}, []string{"root"})}, []string{"variance"}},
		"a large number":    {2, [][]byte{node("Sqrt", "", []string{"sum"}, []string{"root"})}, []string{"variance"}},
		"another operator":  {1e-5, [][]byte{node("Exp", "", []string{"sum"}, []string{"root"})}, nil},
		"a root of a pixel": {1e-5, [][]byte{node("Sqrt", "", []string{"x"}, []string{"root"})}, nil},
	} {
		nodes := append([][]byte{node("Add", "", []string{"variance", "epsilon"}, []string{"sum"})}, c.root...)
		nodes = append(nodes, node("Mul", "", []string{"x", "root"}, []string{"y"}))
		m := parse(t, encodeModel(graph(nodes, [][]byte{number("variance", 1, 2, 3), number("epsilon", c.epsilon), number("half", 0.5)},
			[][]byte{output("y", Float)})))
		var got []string
		for _, r := range m.Roots() {
			got = append(got, r.Tensor)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
