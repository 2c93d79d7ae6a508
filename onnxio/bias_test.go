package onnxio

import (
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/weights"
)

// biased is the graph that PyTorch's exporter writes for a convolution without a
// bias when it is told not to optimise, with another constant in the place of 0.
func biased(t *testing.T, constant float32, spread ...string) *Model {
	value := make([]byte, 4)
	weights.F32.PutFloat32s(value, []float32{constant})
	nodes := [][]byte{
		node("Shape", "", []string{"w"}, []string{"channels"}, intAttribute("start", 0), intAttribute("end", 1)),
		node("Constant", "", nil, []string{"c0"}, tensorAttribute("value", tensor("", Float, nil, value))),
	}
	last := "c0"
	for _, op := range spread {
		in := []string{last, "x"}
		if op == "Expand" {
			in[1] = "channels"
		}
		last += "'"
		nodes = append(nodes, node(op, "", in, []string{last}))
	}
	nodes = append(nodes, node("Conv", "conv", []string{"x", "w", last}, []string{"y"}))
	w := tensor("w", Float, []int64{2, 1, 1, 1}, make([]byte, 8))
	return parse(t, encodeModel(graph(nodes, [][]byte{w}, [][]byte{output("y", Float)})))
}

func convInputs(m *Model) []string { return m.Graph.Nodes[len(m.Graph.Nodes)-1].Inputs }

func TestDropZeroBiases(t *testing.T) {
	none := &weights.Layout{}
	for name, test := range map[string]struct {
		model *Model
		drops bool
	}{
		"zero":              {biased(t, 0, "CastLike", "Expand"), true},
		"the other order":   {biased(t, 0, "Expand", "Cast", "Identity"), true},
		"not zero":          {biased(t, 1, "CastLike", "Expand"), false},
		"smaller than zero": {biased(t, -1e-45, "Expand"), false},
		"exp(0) is 1":       {biased(t, 0, "Exp", "Expand"), false},
		"input":             {biased(t, 0, "Shape", "Expand"), false},
	} {
		f, err := test.model.Runtime()
		if err != nil {
			t.Fatal(err)
		}
		ran := parse(t, rendered(t, f))
		got := convInputs(ran)
		// Only the convolution stays: nobody uses the others.
		if want := len(test.model.Graph.Nodes); test.drops && len(ran.Graph.Nodes) != 1 || !test.drops && len(ran.Graph.Nodes) != want {
			t.Errorf("%s: %d of %d nodes are left", name, len(ran.Graph.Nodes), want)
		}
		if dropped := len(got) == 2; dropped != test.drops || !slices.Equal(got, convInputs(test.model)[:len(got)]) {
			t.Errorf("%s: the convolution takes %q", name, got)
		}
		// So that checkpoints match it, a posterior's graph keeps it.
		if got := convInputs(parse(t, render(t, templateOf(t, test.model, none), none, weights.Slice{}, weights.Slice{}))); len(got) != 3 {
			t.Errorf("%s: the convolution of a posterior takes %q", name, got)
		}
	}
}

// A bias that is 0 in one checkpoint and not in others is a parameter: it stays.
func TestDropZeroBiasesKeepsParameters(t *testing.T) {
	zero, other := biased(t, 0, "CastLike", "Expand"), biased(t, 1, "CastLike", "Expand")
	l := layoutOf(t, zero, other)
	tpl, err := NewRuntimeTemplate(zero, l)
	if err != nil {
		t.Fatal(err)
	}
	p, s := vectors(t, other, l)
	if got := convInputs(parse(t, render(t, tpl, l, p, s))); len(got) != 3 {
		t.Errorf("the convolution takes %q", got)
	}
}

// A number with the type of float32 data is a constant when the model is run; of other data,
// of numbers that float32 has not, and where it is a weight, it stays as it is.
func TestFoldCastLikes(t *testing.T) {
	number := func(a []byte) []byte { return node("Constant", "", nil, []string{"c0"}, a) }
	float := func(v float32, shape ...int64) []byte {
		value := make([]byte, 4)
		weights.F32.PutFloat32s(value, []float32{v})
		return tensorAttribute("value", tensor("", Float, shape, value))
	}
	for name, test := range map[string]struct {
		constant []byte
		like     string
		weight   bool
		want     float32
		folds    bool
	}{
		"float":            {constant: float(6.5), like: "y", want: 6.5, folds: true},
		"whole":            {constant: intAttribute("value_int", 6), like: "w", want: 6, folds: true},
		"too many digits":  {constant: intAttribute("value_int", 1<<24+1), like: "w"},
		"a list":           {constant: float(6, 1), like: "y"},
		"like what is not": {constant: float(6), like: "shape"},
		"a weight":         {constant: float(6), like: "y", weight: true},
	} {
		nodes := [][]byte{
			number(test.constant),
			node("Relu", "", []string{"w"}, []string{"y"}),
			node("Shape", "", []string{"w"}, []string{"shape"}),
			node("CastLike", "", []string{"c0", test.like}, []string{"bound"}),
			node("Clip", "", []string{"y", "", "bound"}, []string{"z"}),
		}
		w := tensor("w", Float, []int64{2, 1, 1, 1}, make([]byte, 8))
		m := parse(t, encodeModel(graph(nodes, [][]byte{w}, [][]byte{output("z", Float)})))
		l := &weights.Layout{}
		if test.weight {
			l.Tensors = []weights.Tensor{{Name: "c0", DType: weights.F32, Role: weights.Parameter}}
		}
		template, err := NewRuntimeTemplate(m, l)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		ran := parse(t, render(t, template, l, weights.Slice{6}, weights.Slice{}))
		n := *ran.Graph.Producer("bound")
		if folds := n.OpType == "Constant"; folds != test.folds || (ran.Graph.Producer("c0") == nil) != folds {
			t.Errorf("%s: %s of %q, want folded: %v", name, n.OpType, n.Outputs, test.folds)
		} else if folds {
			if v, ok := ran.single(&n, nil); !ok || v != test.want {
				t.Errorf("%s: %v, want %v", name, v, test.want)
			}
		}
	}
}

// A folded CastLike may be the last one to read another.
func TestFoldCastLikesOfEachOther(t *testing.T) {
	m := parse(t, encodeModel(graph([][]byte{
		node("Constant", "", nil, []string{"c"}, intAttribute("value_int", 6)),
		node("CastLike", "", []string{"c", "w"}, []string{"a"}),
		node("CastLike", "", []string{"c", "a"}, []string{"b"}),
		node("Clip", "", []string{"w", "", "b"}, []string{"z"}),
	}, [][]byte{tensor("w", Float, []int64{1}, make([]byte, 4))}, [][]byte{output("z", Float)})))
	simple, err := m.Simplified()
	if err != nil {
		t.Fatal(err)
	}
	if n := simple.Graph.Producer("b"); n == nil || n.OpType != "Constant" || simple.Graph.Producer("c") != nil {
		t.Errorf("nodes %+v", simple.Graph.Nodes)
	}
}
