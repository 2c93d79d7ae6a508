package checkpoints

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// twoLayers is x → Gemm(w1, b1) → Relu → Gemm(w2, b2) → y, by the given names,
// with values that depend on the seed.
type twoLayers struct {
	seed  int
	names string // of w1, b1, w2 and b2
	order []int  // of the initializers in the file; those left out are not written
	more  [][]byte
	last  string // the last node's operator, Gemm unless given
}

func (c twoLayers) model(t testing.TB, path string) *onnxio.Model {
	t.Helper()
	if c.names == "" {
		c.names = "w1 b1 w2 b2"
	}
	if c.order == nil {
		c.order = []int{0, 1, 2, 3}
	}
	if c.last == "" {
		c.last = "Gemm"
	}
	n := strings.Fields(c.names)
	nodes := append(c.more,
		node("Gemm", "first", []string{"x", n[0], n[1]}, []string{"h"}),
		node("Relu", "relu", []string{"h"}, []string{"r"}),
		node(c.last, "last", []string{"r", n[2], n[3]}, []string{"y"}))
	var inits [][]byte
	for _, i := range c.order {
		inits = append(inits, floats32(n[i], c.values(i), [][]int64{{2, 2}, {2}, {2, 2}, {2}}[i]...))
	}
	return withNodes(t, path, nodes, inits...)
}

// values are those of w1, b1, w2 or b2.
func (c twoLayers) values(i int) weights.Slice {
	return replacement([]int64{4, 2, 4, 2}[i], 7*i+31*c.seed)
}

func TestMatching(t *testing.T) {
	identity := node("Identity", "alias", []string{"w1"}, []string{"w2"})
	constant := node("Constant", "constant", nil, []string{"w2"}, tensorAttribute("value", floats32("", twoLayers{seed: 1}.values(2), 2, 2)))
	for name, c := range map[string]struct {
		other   twoLayers
		byPlace bool
		values  [4]int // which values of the other stand for w1, b1, w2 and b2
	}{
		"same":                       {twoLayers{seed: 1}, false, [4]int{0, 1, 2, 3}},
		"another order in the file":  {twoLayers{seed: 1, order: []int{3, 1, 0, 2}}, false, [4]int{0, 1, 2, 3}},
		"numbered anew":              {twoLayers{seed: 1, names: "MatMul/ReadVariableOp_7:0 Add_7:0 MatMul_9:0 Add_9:0"}, true, [4]int{0, 1, 2, 3}},
		"names of equal shape swap":  {twoLayers{seed: 1, names: "w2 b2 w1 b1"}, true, [4]int{0, 1, 2, 3}},
		"some names swap, new order": {twoLayers{seed: 1, names: "w2 b1 w1 b2", order: []int{2, 3, 0, 1}}, true, [4]int{0, 1, 2, 3}},
		"merged by Identity":         {twoLayers{seed: 1, order: []int{0, 1, 3}, more: [][]byte{identity}}, false, [4]int{0, 1, 0, 3}},
		"merged, renumbered":         {twoLayers{seed: 1, names: "a b a c", order: []int{0, 1, 3}}, true, [4]int{0, 1, 0, 3}},
		"in a Constant node":         {twoLayers{seed: 1, order: []int{0, 1, 3}, more: [][]byte{constant}}, false, [4]int{0, 1, 2, 3}},
	} {
		first, other := twoLayers{}.model(t, "a.onnx"), c.other.model(t, "b.onnx")
		s, err := New([]*onnxio.Model{other, first})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if s.ByPlace != c.byPlace || s.Reference != 1 {
			t.Errorf("%s: by place %v, reference %d", name, s.ByPlace, s.Reference)
		}
		if got := tensorNames(s.Layout.Tensors); !slices.Equal(got, []string{"w1", "b1", "w2", "b2"}) {
			t.Errorf("%s: tensors %q", name, got)
		}
		var want weights.Slice
		for _, i := range c.values {
			want = append(want, c.other.values(i)...)
		}
		p, none := vectors(t, s.Models[0], s.Layout)
		if !slices.Equal(read(t, p), want) {
			t.Errorf("%s: parameters %v, want %v", name, read(t, p), want)
		}
		// A template of either file gives it back, unless one tensor of it has to
		// be two.
		tpl, err := onnxio.NewTemplate(s.Models[0], s.Layout)
		if c.values[2] == 0 {
			wantError(t, name, err, `b.onnx: tensor "`, "")
			wantError(t, name, err, `stands for both "w1" and "w2", which differ in other checkpoints`, "")
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got, err := tpl.Render(s.Layout, p, none); err != nil || string(got) != string(other.Bytes()) {
			t.Errorf("%s: rewritten, the file changes", name)
		}
	}
}

// Where the nodes stand in another order, names are what is left.
func TestMatchingByName(t *testing.T) {
	branches := func(seed int, ops ...string) *onnxio.Model {
		var nodes [][]byte
		for _, op := range ops {
			nodes = append(nodes, node(op, "", []string{"x", op}, []string{op + "_y"}))
		}
		return withNodes(t, "m.onnx", nodes, floats32("Add", replacement(2, seed), 2), floats32("Mul", replacement(2, seed+9), 2))
	}
	s, err := New([]*onnxio.Model{branches(1, "Add", "Mul"), branches(2, "Mul", "Add")})
	if err != nil {
		t.Fatal(err)
	}
	for i, seed := range []int{1, 2} {
		p, _ := vectors(t, s.Models[i], s.Layout)
		if want := slices.Concat(replacement(2, seed), replacement(2, seed+9)); s.ByPlace || !slices.Equal(read(t, p), want) {
			t.Errorf("checkpoint %d: parameters %v, want %v; by place %v", i, read(t, p), want, s.ByPlace)
		}
	}
}

// The names are those of the last file with the most tensors.
func TestReference(t *testing.T) {
	full, merged := twoLayers{}, twoLayers{order: []int{0, 1, 3}, more: [][]byte{node("Identity", "", []string{"w1"}, []string{"w2"})}}
	for want, kinds := range [][]twoLayers{{full, merged, merged}, {merged, full, merged}, {full, merged, full}, {full, full, merged, full, merged}} {
		var models []*onnxio.Model
		for i, c := range kinds {
			c.seed = i
			models = append(models, c.model(t, fmt.Sprint(i)))
		}
		if s, err := New(models); err != nil || s.Reference != want {
			t.Errorf("%d: reference %d, %v", want, s.Reference, err)
		}
	}
}

// Models that no pairing fits are refused in terms of the first file given,
// whichever the reference is.
func TestUnlikeModels(t *testing.T) {
	inputs := func(t *testing.T, path string) *onnxio.Model {
		nodes := [][]byte{node("Gemm", "first", []string{"x", "w", "b"}, []string{"y"})}
		return withNodes(t, path, nodes, floats32("w", replacement(4, 0), 2, 2))
	}
	stored := func(t *testing.T, path string) *onnxio.Model {
		nodes := [][]byte{node("Gemm", "first", []string{"x", "w", "b"}, []string{"y"})}
		return withNodes(t, path, nodes, floats32("w", replacement(4, 0), 2, 2), floats32("b", replacement(2, 0), 2))
	}
	for name, c := range map[string]struct {
		models     []*onnxio.Model
		text, also string
	}{
		"operator":        {[]*onnxio.Model{twoLayers{}.model(t, "a"), twoLayers{last: "Conv"}.model(t, "b")}, `b: node 2 is Conv "last", want Gemm "last" as in a`, ""},
		"first has fewer": {[]*onnxio.Model{inputs(t, "a"), stored(t, "b")}, `b: tensor "b": not in a`, ""},
		"first has more":  {[]*onnxio.Model{stored(t, "a"), inputs(t, "b")}, `b: tensor "b": missing, but present in a`, ""},
		"the third":       {[]*onnxio.Model{inputs(t, "a"), inputs(t, "b"), stored(t, "c")}, `c: tensor "b": not in a`, ""},
		"shapes, renumbered": {[]*onnxio.Model{stored(t, "a"), withNodes(t, "b", [][]byte{node("Gemm", "first", []string{"x", "k", "l"}, []string{"y"})},
			floats32("k", replacement(6, 0), 3, 2), floats32("l", replacement(2, 0), 2))}, `b: tensor "w": missing, but present in a`, `tensor "k": not in a`},
	} {
		_, err := New(c.models)
		wantError(t, name, err, c.text, "the inspection of a and "+c.text[:1])
		wantError(t, name, err, "", c.also)
	}
	// One place, two tensors, where the other file has one tensor for both.
	twice := func(path, first, second string, inits ...[]byte) *onnxio.Model {
		return withNodes(t, path, [][]byte{node("Add", "", []string{"x", first}, []string{"h"}), node("Add", "", []string{"h", second}, []string{"y"})}, inits...)
	}
	a, b := twice("a", "w", "w", floats32("w", replacement(2, 0), 2)), twice("b", "p", "q", floats32("p", replacement(2, 0), 2), floats32("q", replacement(2, 3), 2))
	pairs, why := pairByPlace(a, b)
	if pairs != nil || len(why) == 0 || !strings.Contains(why[0].What, `has the place that "p" has elsewhere, where a has one tensor, "w"`) {
		t.Errorf("pairs %v, %v", pairs, why)
	}
	var e *onnxio.Error
	if _, err := Match(b, a); !errors.As(err, &e) {
		t.Errorf("error %v", err)
	}
	if same, err := Match(a, a); same != a || err != nil {
		t.Errorf("a as itself: %v", err)
	}
}

func transposed(v weights.Slice, rows, columns int) weights.Slice {
	out := make(weights.Slice, 0, len(v))
	for c := range columns {
		for r := range rows {
			out = append(out, v[r*columns+c])
		}
	}
	return out
}

// tied is a model with matrices, and what is none, that are each other's copies;
// one of them is not where it is broken.
func tied(t testing.TB, seed int, broken bool) *onnxio.Model {
	t.Helper()
	a, sq, v := replacement(6, seed), replacement(4, seed+40), replacement(3, seed+70)
	differing := slices.Clone(a)
	if broken {
		differing[5]++
	}
	double := func(name string, v weights.Slice, shape ...int64) []byte {
		b := make([]byte, 8*len(v))
		weights.F64.PutFloat32s(b, v)
		for i := range v { // beyond float32
			b[8*i]++
		}
		return tensor(name, onnxio.Double, shape, b)
	}
	return tiny(t,
		floats32("a", a, 2, 3), floats32("copy", a, 2, 3), floats32("turned", transposed(a, 2, 3), 3, 2),
		floats32("v1", v, 3), floats32("v2", v, 3), floats32("reshaped", a, 3, 2), floats32("flat", a, 6),
		floats32("square", sq, 2, 2), floats32("square turned", transposed(sq, 2, 2), 2, 2),
		floats32("differing", differing, 2, 3), double("wide", a, 2, 3), double("wide turned", transposed(a, 2, 3), 3, 2),
	)
}

func TestTies(t *testing.T) {
	one, two := tied(t, 1, false), tied(t, 2, true)
	l := layoutOf(t, one, tied(t, 3, false), two)
	var got []string
	for _, e := range l.Tensors {
		got = append(got, strings.TrimRight(fmt.Sprintf("%s %d %s %v", e.Name, e.Offset, e.Tied, e.Transposed), " "))
	}
	want := []string{
		"a 0  false", "copy 0 a false", "turned 0 a true", "v1 6  false", "v2 9  false", "reshaped 0 a false", "flat 12  false",
		"square 18  false", "square turned 18 square true", "differing 22  false", "wide 28  false", "wide turned 28 wide true",
	}
	if !slices.Equal(got, want) || l.Len(weights.Parameter) != 34 {
		t.Errorf("layout %q, want %q; %d parameters", got, want, l.Len(weights.Parameter))
	}
	for _, m := range []*onnxio.Model{one, two} {
		tpl := templateOf(t, m, l)
		own, none := vectors(t, m, l)
		if got, err := tpl.Render(l, own, none); err != nil || string(got) != string(m.Bytes()) {
			t.Error("with its own weights the model changes")
		}
		p := replacement(34, 5)
		filled := refill(t, m, l, p, none)
		again := layoutOf(t, filled)
		for name, want := range map[string]weights.Slice{
			"a": p[:6], "copy": p[:6], "turned": transposed(p[:6], 2, 3), "reshaped": p[:6], "square": p[18:22], "square turned": transposed(p[18:22], 2, 2),
			"differing": p[22:28], "wide": p[28:], "wide turned": transposed(p[28:], 2, 3),
		} {
			e, _ := again.Find(name)
			got := make(weights.Slice, len(want))
			e.DType.Float32s(got, filled.Elements(filled.Tensor(name)))
			if !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
	}
	if err := templateOf(t, one, l).WriteTo(io.Discard, 0, l, broken{}, nil); err == nil {
		t.Error("an unreadable vector goes unnoticed")
	}
}

// An exported model, which is simplified, is matched with the checkpoints. The exporter's zero biases are no places of
// tensors, and the bounds of a Clip are further constants.
func TestMatchSimplified(t *testing.T) {
	const folder = "../../fixtures/exporters/"
	other := open(t, folder+"torch-torchscript/ckpt-4.onnx")
	for _, name := range []string{"torch-dynamo", "torchvision-mobile/dynamo"} {
		ref, m := open(t, folder+name+"/ckpt-1.onnx"), open(t, folder+name+"/ckpt-2.onnx")
		simple, err := m.Simplified()
		if err != nil {
			t.Fatal(err)
		}
		if len(simple.Places()) >= len(m.Places()) {
			t.Errorf("%s: nothing was simplified", name)
		}
		for k, pair := range [][2]*onnxio.Model{{simple, ref}, {ref, simple}} { // whichever is the reference
			same, err := Match(pair[0], pair[1])
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range m.Graph.Initializers {
				if got, want := same.Elements(same.Tensor(x.Name)), [][]byte{m.Elements(x), ref.Elements(ref.Tensor(x.Name))}[k]; string(got) != string(want) {
					t.Errorf("%s: tensor %q has the elements of another", name, x.Name)
				}
			}
		}
		set, err := New([]*onnxio.Model{ref, simple, open(t, folder+name+"/ckpt-3.onnx")})
		if err != nil {
			t.Fatal(err)
		}
		plain, err := New([]*onnxio.Model{ref, m, open(t, folder+name+"/ckpt-3.onnx")})
		if err != nil {
			t.Fatal(err)
		}
		for _, role := range []weights.Role{weights.Parameter, weights.Statistic} {
			if got, want := tensorNames(set.Layout.Role(role)), tensorNames(plain.Layout.Role(role)); !slices.Equal(got, want) {
				t.Errorf("%s: %vs %q, want %q", name, role, got, want)
			}
		}
		_, err = Match(simple, other)
		wantError(t, name, err, "", "all checkpoints must come from one network")
	}
}
