package onnxio

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"

	"github.com/swagwrap/swagwrap/weights"
)

// edited returns the bytes of m with e's changes and m's own weights.
func edited(t testing.TB, m *Model, e *Edit) []byte {
	t.Helper()
	l := layoutOf(t, m)
	tpl, err := e.Template(l)
	if err != nil {
		t.Fatal(err)
	}
	p, s := vectors(t, m, l)
	return render(t, tpl, l, p, s)
}

// trainAll is the edit that recomputing statistics needs: every batch norm in
// training mode, its outputs and the shape of its input graph outputs.
func trainAll(t testing.TB, m *Model) *Edit {
	t.Helper()
	bns, err := m.BatchNorms()
	if err != nil {
		t.Fatal(err)
	}
	e := m.Edit()
	for i, bn := range bns {
		out := func(what string) string { return fmt.Sprintf("new_%s_%d", what, i) }
		e.InsertAfter(bn.Node, "Shape", out("node"), bn.Node.Inputs[:1], []string{out("shape")})
		e.TrainBatchNorm(bn, out("mean"), out("var"))
		e.AddGraphOutput(out("mean"), bn.ElemType, bn.Channels)
		e.AddGraphOutput(out("var"), bn.ElemType, bn.Channels)
		e.AddGraphOutput(out("shape"), Int64, -1)
	}
	return e
}

func (m *Model) encoded(msg *wire.Message) []byte { return m.Bytes()[msg.Tag:msg.Body.End] }

// The edited graph is as wanted, and all else is there byte for byte.
func TestTrainBatchNorms(t *testing.T) {
	for _, path := range []string{"testdata/batchnorm.onnx", "testdata/batchnorm-opset9.onnx", "testdata/batchnorm-training.onnx", "testdata/batchnorm-identity.onnx", epoch30} {
		m := open(t, path)
		got := parse(t, edited(t, m, trainAll(t, m)))

		bns, _ := m.BatchNorms()
		byNode := map[*Node]int{}
		for i, bn := range bns {
			byNode[bn.Node] = i
		}
		rest := got.Graph.Nodes
		next := func() *Node { n := &rest[0]; rest = rest[1:]; return n }
		for k := range m.Graph.Nodes {
			old, n := &m.Graph.Nodes[k], next()
			i, isBN := byNode[old]
			if !isBN {
				if !bytes.Equal(got.encoded(n.msg), m.encoded(old.msg)) {
					t.Errorf("%s: node %q changed", path, old.Name)
				}
				continue
			}
			outputs := []string{old.Outputs[0], fmt.Sprintf("new_mean_%d", i), fmt.Sprintf("new_var_%d", i)}
			attributes := map[string]string{"momentum": "1 0 0"}
			if bns[i].OldOpset {
				outputs = append(outputs, outputs[1]+"_saved", outputs[2]+"_saved")
			} else {
				attributes["training_mode"] = "2 1 0"
			}
			for _, a := range old.Attributes {
				if a.Name != "momentum" && a.Name != "training_mode" {
					attributes[a.Name] = fmt.Sprint(a.Type, a.Int, a.Float)
				}
			}
			if !slices.Equal(n.Outputs, outputs) || !slices.Equal(n.Inputs, old.Inputs) || n.Name != old.Name || n.OpType != old.OpType {
				t.Errorf("%s: node %+v, want outputs %q", path, n, outputs)
			}
			if len(n.Attributes) != len(attributes) {
				t.Errorf("%s: %d attributes, want %v", path, len(n.Attributes), attributes)
			}
			for _, a := range n.Attributes {
				if v := fmt.Sprint(a.Type, a.Int, a.Float); v != attributes[a.Name] {
					t.Errorf("%s: attribute %s is %s, want %s", path, a.Name, v, attributes[a.Name])
				}
			}
			if s := next(); s.OpType != "Shape" || s.Inputs[0] != old.Inputs[0] || s.Outputs[0] != fmt.Sprintf("new_shape_%d", i) || s.Name != fmt.Sprintf("new_node_%d", i) {
				t.Errorf("%s: after %q comes %+v", path, old.Name, s)
			}
		}
		if len(rest) > 0 {
			t.Errorf("%s: %d nodes too many", path, len(rest))
		}

		for k, old := range m.Graph.Initializers {
			if !bytes.Equal(got.encoded(got.Graph.Initializers[k].msg), m.encoded(old.msg)) {
				t.Errorf("%s: initializer %q changed", path, old.Name)
			}
		}
		if len(got.Graph.Outputs) != len(m.Graph.Outputs)+3*len(bns) || !bytes.Equal(got.encoded(got.Graph.Outputs[0].msg), m.encoded(m.Graph.Outputs[0].msg)) {
			t.Errorf("%s: %d outputs", path, len(got.Graph.Outputs))
		}
		for i, v := range got.Graph.Outputs[len(m.Graph.Outputs):] {
			want := Value{Name: fmt.Sprintf("new_%s_%d", []string{"mean", "var", "shape"}[i%3], i/3), ElemType: []ElemType{Float, Float, Int64}[i%3]}
			want.Shape = []int64{bns[i/3].Channels}
			if i%3 == 2 {
				want.Shape[0] = -1
			}
			if v.Name != want.Name || v.ElemType != want.ElemType || !slices.Equal(v.Shape, want.Shape) {
				t.Errorf("%s: output %+v, want %+v", path, v, want)
			}
		}
		// What surrounds the graph is untouched.
		before, after := m.Bytes()[:m.Graph.msg.Length], m.Bytes()[m.Graph.msg.Body.End:]
		if !bytes.HasPrefix(got.Bytes(), before) || !bytes.HasSuffix(got.Bytes(), after) {
			t.Errorf("%s: bytes outside the graph changed", path)
		}
		again, err := got.BatchNorms()
		if err != nil || len(again) != len(bns) || slices.ContainsFunc(again, func(bn BatchNorm) bool { return !bn.IsTraining }) {
			t.Errorf("%s: batch norms %+v, %v: not all train", path, again, err)
		}
	}
}

// The order of the calls does not matter where both change one place: what is
// appended to a node goes before what is inserted after it.
func TestEditOrder(t *testing.T) {
	m := fixture(t, "raw-f32")
	n := &m.Graph.Nodes[0]
	insert := func(e *Edit) { e.InsertAfter(n, "Relu", "later", []string{"y"}, []string{"z"}) }
	appendOutput := func(e *Edit) { e.appendOutput(n, "second") }
	one, two := m.Edit(), m.Edit()
	insert(one)
	appendOutput(one)
	appendOutput(two)
	insert(two)
	a, b := edited(t, m, one), edited(t, m, two)
	if !bytes.Equal(a, b) {
		t.Error("the result depends on the order of the calls")
	}
	if got := parse(t, a).Graph.Nodes; len(got) != 2 || !slices.Equal(got[0].Outputs, []string{"y", "second"}) || got[1].Name != "later" {
		t.Errorf("nodes %+v", got)
	}
}

// Length prefixes of node, graph and enclosing messages take another byte at
// 128 and at 16,384: an edit that crosses a border, up or down, must give just
// what an encoder writes that has the edited model from the start.
func TestPrefixGrowth(t *testing.T) {
	t.Parallel()
	w := tensor("w", Float, []int64{2}, []byte{1, 0, 0, 0, 2, 0, 0, 0})
	y := [][]byte{output("y", Float)}
	in, out := []string{"x", "w"}, []string{"y"}
	long := strings.Repeat("o", 200)
	oldAttribute := append(intAttribute("old", 7), wire.AppendString(nil, 4, long)...) // a long value that shrinks away
	after := node("Neg", "after", []string{"y"}, []string{"z"})

	cases := map[string]struct {
		before func(name string) []byte
		edit   func(e *Edit, m *Model)
		after  func(name string) []byte
	}{
		"growing": {
			func(name string) []byte {
				return encodeModel(graph([][]byte{node("Add", name, in, out)}, [][]byte{w}, y))
			},
			func(e *Edit, m *Model) {
				n := &m.Graph.Nodes[0]
				e.setInt(n, "axis", 1)
				e.AddGraphOutput("z", Float)
				e.InsertAfter(n, "Neg", "after", []string{"y"}, []string{"z"})
			},
			func(name string) []byte {
				g := graph([][]byte{node("Add", name, in, out, intAttribute("axis", 1)), after}, [][]byte{w}, y)
				return encodeModel(wire.AppendBytes(g, wire.GraphOutput, output("z", Float)))
			},
		},
		"shrinking": {
			func(name string) []byte {
				return encodeModel(graph([][]byte{node("Add", name, in, out, oldAttribute)}, [][]byte{w}, y))
			},
			func(e *Edit, m *Model) { e.setInt(&m.Graph.Nodes[0], "old", 1<<40) },
			func(name string) []byte {
				return encodeModel(graph([][]byte{node("Add", name, in, out, intAttribute("old", 1<<40))}, [][]byte{w}, y))
			},
		},
		"in a body": {
			func(name string) []byte {
				body := graph([][]byte{node("Add", name, in, out)}, nil, y)
				return encodeModel(graph([][]byte{node("If", "if", in, out, graphAttribute("then_branch", body))}, [][]byte{w}, y))
			},
			func(e *Edit, m *Model) { e.setInt(&m.Graphs()[1].Nodes[0], "axis", 1) },
			func(name string) []byte {
				body := graph([][]byte{node("Add", name, in, out, intAttribute("axis", 1))}, nil, y)
				return encodeModel(graph([][]byte{node("If", "if", in, out, graphAttribute("then_branch", body))}, [][]byte{w}, y))
			},
		},
		"same size": {
			func(name string) []byte {
				return encodeModel(graph([][]byte{node("Add", name, in, out, intAttribute("old", 7))}, [][]byte{w}, y))
			},
			func(e *Edit, m *Model) { e.setInt(&m.Graph.Nodes[0], "old", 8) },
			func(name string) []byte {
				return encodeModel(graph([][]byte{node("Add", name, in, out, intAttribute("old", 8))}, [][]byte{w}, y))
			},
		},
	}
	for what, c := range cases {
		crossings := map[[2]int]bool{}
		check := func(length int) {
			name := strings.Repeat("n", length)
			m := parse(t, c.before(name))
			e := m.Edit()
			c.edit(e, m)
			got := edited(t, m, e)
			if want := c.after(name); !bytes.Equal(got, want) {
				t.Errorf("%s, name of %d bytes: the edited model differs from one encoded so", what, length)
			}
			was, is := m.Graph.msg, parse(t, got).Graph.msg
			crossings[[2]int{was.Body.Start - was.Length, is.Body.Start - is.Length}] = true
		}
		for length := range 260 {
			check(length)
			check(16_384 - 260 + length)
		}
		// The sweep must have met both borders, or it proves nothing.
		if up, down := crossings[[2]int{1, 2}] && crossings[[2]int{2, 3}], crossings[[2]int{3, 2}]; !up && !down && what != "same size" {
			t.Errorf("%s: the graph's prefix never changes its size: %v", what, crossings)
		}
	}
}

// A prefix longer than it need be is valid protobuf, and is written anew only
// where its message changes.
func TestOverlongPrefix(t *testing.T) {
	small := func(v uint64) []byte {
		return graph([][]byte{node("Relu", "n", []string{"x"}, []string{"y"}, intAttribute("a", v))}, nil, [][]byte{output("y", Float)})
	}
	overlong := func(g []byte) []byte {
		data := append(varintField(nil, wire.ModelIR, 8), wire.ModelGraph<<3|2, byte(len(g))|0x80, 0x80, 0)
		return wire.AppendBytes(append(data, g...), wire.ModelOpset, varintField(nil, wire.OpsetVersion, 18))
	}
	m := parse(t, overlong(small(1)))
	resized, same := m.Edit(), m.Edit()
	resized.AddGraphOutput("z", Float)
	same.setInt(&m.Graph.Nodes[0], "a", 2)
	for name, c := range map[string]struct {
		e    *Edit
		want []byte
	}{
		"unedited":          {m.Edit(), m.Bytes()},
		"of another length": {resized, encodeModel(wire.AppendBytes(small(1), wire.GraphOutput, output("z", Float)))},
		"of equal length":   {same, overlong(small(2))},
	} {
		if got := edited(t, m, c.e); !bytes.Equal(got, c.want) {
			t.Errorf("%s: % x, want % x", name, got, c.want)
		}
	}
}

// NewTemplate brings a training export back to inference: just what an encoder
// writes that has the model so from the start.
func TestInference(t *testing.T) {
	stats := [][]byte{tensor("m", Float, []int64{1}, make([]byte, 4)), tensor("v", Float, []int64{1}, make([]byte, 4))}
	model := func(opset uint64, nodes ...[]byte) []byte {
		b := wire.AppendBytes(varintField(nil, wire.ModelIR, 8), wire.ModelGraph, graph(nodes, stats, [][]byte{output("y", Float)}))
		return wire.AppendBytes(b, wire.ModelOpset, varintField(nil, wire.OpsetVersion, opset))
	}
	bn := func(outputs string, attributes ...[]byte) []byte {
		return node("BatchNormalization", "bn", []string{"x", "g", "b", "m", "v"}, strings.Fields(outputs), attributes...)
	}
	dropout := func(domain string, inputs ...string) []byte {
		return wire.AppendString(node("Dropout", "drop", inputs, []string{"z", "mask"}), wire.NodeDomain, domain)
	}
	branch := func(inputs ...string) []byte {
		return node("If", "if", []string{"c"}, []string{"w"}, graphAttribute("then_branch", graph([][]byte{dropout("", inputs...)}, nil, nil)))
	}
	mode := func(v uint64) []byte { return intAttribute("training_mode", v) }
	for name, c := range map[string]struct{ before, after []byte }{
		"batch norm":     {model(15, bn("y mean var", mode(1))), model(15, bn("y", mode(0)))},
		"old batch norm": {model(9, bn("y mean var a b")), model(9, bn("y"))},
		"at rest":        {model(15, bn("y", mode(0)), dropout("", "y", "ratio")), model(15, bn("y", mode(0)), dropout("", "y", "ratio"))},
		"dropout":        {model(15, bn("y"), dropout("", "y", "ratio", "mode")), model(15, bn("y"), dropout("", "y", "ratio"))},
		"no ratio":       {model(15, bn("y"), dropout("", "y", "", "mode")), model(15, bn("y"), dropout("", "y"))},
		"branch":         {model(15, bn("y"), branch("y", "ratio", "mode")), model(15, bn("y"), branch("y", "ratio"))},
		"other domain":   {model(15, dropout("com.example", "y", "a", "b")), model(15, dropout("com.example", "y", "a", "b"))},
	} {
		m := parse(t, c.before)
		l := layoutOf(t, m)
		p, s := vectors(t, m, l)
		if got := render(t, templateOf(t, m, l), l, p, s); !bytes.Equal(got, c.after) {
			t.Errorf("%s: nodes %+v, want %+v", name, parse(t, got).Graph.Nodes, parse(t, c.after).Graph.Nodes)
		}
	}
}

func TestEditConflict(t *testing.T) {
	m := fixture(t, "batchnorm")
	e := m.Edit()
	e.setInt(&m.Graph.Nodes[0], "momentum", 0)
	e.setInt(&m.Graph.Nodes[0], "momentum", 1)
	_, err := e.Template(layoutOf(t, m))
	wantError(t, "one attribute twice", err, "batchnorm.onnx: shares byte 118 of batchnorm.onnx with another tensor or edit", "")
}

// Holes and edits mix: the weights of an edited model can be replaced.
func TestEditedTemplate(t *testing.T) {
	m := open(t, epoch30)
	l := layoutOf(t, m)
	tpl, err := trainAll(t, m).Template(l)
	if err != nil {
		t.Fatal(err)
	}
	p, s := replacement(l.Len(weights.Parameter), 1), replacement(l.Len(weights.Statistic), 2)
	gotP, gotS := vectors(t, parse(t, render(t, tpl, l, p, s)), l)
	if !slices.Equal(read(t, gotP), p) || !slices.Equal(read(t, gotS), s) {
		t.Error("weights of the edited model do not read back")
	}
}
