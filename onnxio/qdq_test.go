package onnxio

import (
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
)

// The columns of a table and of a series have units of their own: the layer that takes them stays in float32. Pixels have one unit.
func TestQDQKeepsColumns(t *testing.T) {
	stored := func(name string, shape ...int64) []byte {
		n := int64(4)
		for _, d := range shape {
			n *= d
		}
		return tensor(name, Float, shape, make([]byte, n))
	}
	initializers := [][]byte{stored("first", 4, 4), stored("second", 4, 4), stored("std", 4), stored("kernel", 4, 4, 1), stored("filter", 4, 4, 1, 1)}
	table, series, pixels := []int64{-1, 4}, []int64{-1, 4, 9}, []int64{-1, 4, 9, 9}
	for name, test := range map[string]struct {
		shape []int64
		nodes [][]byte
		want  []string
	}{
		"a table": {table, [][]byte{node("Gemm", "", []string{"x", "first"}, []string{"h"}), node("Relu", "", []string{"h"}, []string{"r"}),
			node("Gemm", "", []string{"r", "second"}, []string{"y"})}, []string{"r"}},
		"divided, beside others": {table, [][]byte{node("Div", "", []string{"x", "std"}, []string{"scaled"}),
			node("Concat", "", []string{"scaled", "scaled"}, []string{"all"}, intAttribute("axis", 1)),
			node("MatMul", "", []string{"all", "first"}, []string{"h"}), node("MatMul", "", []string{"h", "second"}, []string{"y"})}, []string{"h"}},
		"a layer alone": {table, [][]byte{node("Gemm", "", []string{"x", "first"}, []string{"y"})}, nil},
		"a series":      {series, [][]byte{node("Conv", "", []string{"x", "kernel"}, []string{"y"})}, nil},
		"pixels": {pixels, [][]byte{node("Sub", "", []string{"x", "std"}, []string{"n"}), node("Conv", "", []string{"n", "filter"}, []string{"h"}),
			node("Relu", "", []string{"h"}, []string{"y"})}, []string{"n"}},
	} {
		g := wire.AppendBytes(graph(test.nodes, initializers, [][]byte{output("y", Float)}), wire.GraphInput, wire.Value("x", Float, test.shape, nil))
		if got := QDQValues(parse(t, encodeModel(g))); !slices.Equal(got, test.want) {
			t.Errorf("%s: in int8 %q, want %q", name, got, test.want)
		}
	}
}
