package onnxio

import (
	"maps"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
)

// An input is row numbers where its values come to a Gather unchanged, and the table is of
// the model.
func TestRows(t *testing.T) {
	table := func(name string, shape ...int64) []byte {
		n := int64(4)
		for _, d := range shape {
			n *= d
		}
		return tensor(name, Float, shape, make([]byte, n))
	}
	gather := func(from, ids string) []byte { return node("Gather", "", []string{from, ids}, []string{"of " + ids}) }
	nodes := [][]byte{
		gather("words", "direct"),
		node("Cast", "", []string{"floats"}, []string{"whole"}), node("Unsqueeze", "", []string{"whole", "axes"}, []string{"column"}), gather("words", "column"),
		gather("words", "both"), gather("few", "both"), // the smallest table counts
		node("Gather", "", []string{"wide", "last axis"}, []string{"y"}, intAttribute("axis", 1)),
		node("Gather", "", []string{"wide", "negative axis"}, []string{"y2"}, intAttribute("axis", 1<<64-1)),
		node("Cast", "", []string{"half"}, []string{"table"}), gather("table", "cast table"),
		node("Constant", "", nil, []string{"held"}, tensorAttribute("value", table("", 6, 2))), gather("held", "constant table"),
		// The values are changed, or are not all there, or the table is computed.
		node("Mod", "", []string{"hashed", "buckets"}, []string{"bucket"}), gather("words", "bucket"),
		node("Slice", "", []string{"sliced", "s", "e"}, []string{"slice"}), gather("words", "slice"),
		node("Relu", "", []string{"words"}, []string{"computed"}), gather("computed", "of computed"),
		node("Gather", "", []string{"data", "zero"}, []string{"y3"}),
		node("Identity", "", []string{"loop"}, []string{"loop"}), gather("loop", "cyclic"),
	}
	g := graph(nodes, [][]byte{table("words", 12, 2), table("few", 5, 2), table("wide", 2, 7), table("half", 9, 2)}, [][]byte{output("y", Float)})
	for _, name := range []string{"direct", "floats", "both", "last axis", "negative axis", "cast table", "constant table", "hashed", "sliced", "of computed", "data", "cyclic"} {
		g = wire.AppendBytes(g, wire.GraphInput, output(name, Int64))
	}
	want := map[string]int64{"direct": 12, "floats": 12, "both": 5, "last axis": 7, "negative axis": 7, "cast table": 9, "constant table": 6}
	if got := parse(t, encodeModel(g)).Rows(); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
