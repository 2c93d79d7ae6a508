package onnxio

import "testing"

// Dropout is active where its third input says so, or where nothing but the session's inputs could say that it is not.
func TestActiveDropout(t *testing.T) {
	t.Parallel()
	drop := func(inputs ...string) []byte { return node("Dropout", "drop", inputs, []string{"y"}) }
	mode := func(v byte) []byte { return tensor("mode", Bool, nil, []byte{v}) }
	constant := node("Constant", "", nil, []string{"mode"}, tensorAttribute("value", tensor("", Bool, nil, []byte{1})))
	for name, c := range map[string]struct {
		graph []byte
		want  bool
	}{
		"true":               {graph([][]byte{drop("x", "ratio", "mode")}, [][]byte{mode(1)}, [][]byte{output("y", Float)}), true},
		"true in a Constant": {graph([][]byte{constant, drop("x", "ratio", "mode")}, nil, [][]byte{output("y", Float)}), true},
		"an input":           {graph([][]byte{drop("x", "", "mode")}, nil, [][]byte{output("y", Float)}), true},
		"false":              {graph([][]byte{drop("x", "ratio", "mode")}, [][]byte{mode(0)}, [][]byte{output("y", Float)}), false},
		"at rest":            {graph([][]byte{drop("x", "ratio")}, nil, [][]byte{output("y", Float)}), false},
		"another operator":   {graph([][]byte{node("Where", "", []string{"x", "a", "b"}, []string{"y"})}, nil, [][]byte{output("y", Float)}), false},
	} {
		m := parse(t, encodeModel(c.graph))
		if got := ActiveDropout(m); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		e, err := m.inference()
		if err != nil {
			t.Fatal(err)
		}
		l := layoutOf(t, m)
		tpl, err := e.Template(l)
		if err != nil {
			t.Fatal(err)
		}
		p, s := vectors(t, m, l)
		if ActiveDropout(parse(t, render(t, tpl, l, p, s))) {
			t.Errorf("%s: still active in inference", name)
		}
	}
}
