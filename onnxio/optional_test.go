package onnxio

import (
	"slices"
	"testing"
)

func TestDropEmptyInputs(t *testing.T) {
	inner := graph([][]byte{node("LayerNormalization", "", []string{"x", "w", ""}, []string{"y"})}, nil, [][]byte{output("y", Float)})
	m := parse(t, encodeModel(graph([][]byte{
		node("Resize", "", []string{"x", "", "s", ""}, []string{"a"}),
		node("Clip", "", []string{"a", "", ""}, []string{"b"}),
		node("If", "", []string{"b"}, []string{"y"}, graphAttribute("then_branch", inner)),
	}, nil, [][]byte{output("y", Float)})))
	f, err := m.Runtime()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"x", "", "s"}, {"a"}, {"b"}, {"x", "w"}}
	var got [][]string
	for _, g := range parse(t, rendered(t, f)).Graphs() {
		for _, n := range g.Nodes {
			got = append(got, n.Inputs)
		}
	}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("inputs %q, want %q", got, want)
	}
}
