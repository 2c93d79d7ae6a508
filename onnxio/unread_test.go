package onnxio

import (
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
)

// An input is read by any node but those of its shape, one in a body of another among them.
func TestUnread(t *testing.T) {
	inputs := []string{"a", "shaped", "captured", "given out", "nothing"}
	body := graph([][]byte{node("Relu", "", []string{"captured"}, []string{"c"})}, nil, [][]byte{output("c", Float)})
	nodes := [][]byte{
		node("Relu", "", []string{"a"}, []string{"y"}),
		node("Shape", "", []string{"a"}, []string{"s"}),
		node("Shape", "", []string{"shaped"}, []string{"t"}),
		node("If", "", []string{"s"}, []string{"z"}, graphAttribute("then_branch", body)),
	}
	g := graph(nodes, nil, [][]byte{output("y", Float), output("given out", Float)})
	for _, name := range inputs {
		g = wire.AppendBytes(g, wire.GraphInput, output(name, Float))
	}
	if got := parse(t, encodeModel(g)).Unread(); !slices.Equal(got, []string{"shaped", "nothing"}) {
		t.Errorf("%q", got)
	}
}
