package onnxio

import (
	"fmt"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
)

// The cases that were wrong and right on WebGPU: fixtures/webgpu/README.md.
func TestMisreadByWebGPU(t *testing.T) {
	for _, c := range []struct {
		weight []int64
		more   [][]byte
		wrong  bool
	}{
		{[]int64{8, 6, 3, 3}, nil, true},
		{[]int64{4, 30, 3, 3}, [][]byte{wire.Ints("strides", []int64{2, 2})}, true},
		{[]int64{8, 6, 3}, nil, true},
		{[]int64{8, 6, 1, 1}, [][]byte{wire.Ints("strides", []int64{2, 2})}, true},
		{[]int64{8, 6, 1, 1}, [][]byte{wire.Ints("pads", []int64{1, 1, 1, 1})}, true},
		{[]int64{8, 6, 1, 1}, [][]byte{wire.Ints("pads", []int64{0, 0, 0, 0}), wire.Ints("strides", []int64{1, 1})}, false},
		{[]int64{6, 6, 3, 3}, nil, false},
		{[]int64{8, 3, 3, 3}, nil, false},
		{[]int64{8, 12, 3, 3}, nil, false},
		{[]int64{8, 10, 3, 3}, nil, false},
		{[]int64{8, 6, 3, 3, 3}, nil, false},
		{[]int64{8, 6, 3, 3}, [][]byte{wire.Int("group", 2)}, false},
	} {
		elements := int64(4)
		for _, d := range c.weight {
			elements *= d
		}
		graph := wire.Node("Conv", "conv", []string{"x", "w"}, []string{"y"}, c.more...)
		graph = append(graph, wire.Initializer("w", Float, c.weight, make([]byte, elements))...)
		graph = wire.AppendBytes(graph, wire.GraphInput, wire.Value("x", Float, nil, nil))
		graph = wire.AppendBytes(graph, wire.GraphOutput, wire.Value("y", Float, nil, nil))
		m, err := Parse("conv", small(graph, 17))
		if err != nil {
			t.Fatal(err)
		}
		if got := MisreadByWebGPU(m); (got == "y") != c.wrong {
			t.Errorf("%s: %q, wrong is %v", fmt.Sprint(c.weight, len(c.more)), got, c.wrong)
		}
	}
}
