package checkpoints

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// array is a tensor of a state_dict.
type array struct {
	shape  []int64
	values weights.Slice
	dtype  weights.DType // Invalid: F32
}

// numbers are n values that no other seed gives.
func numbers(n, seed int) weights.Slice {
	v := make(weights.Slice, n)
	for i := range v {
		v[i] = float32(seed)*100 + float32(i) + 0.123456
	}
	return v
}

func fill(seed int, shape ...int64) array {
	n, _ := weights.Elements(shape)
	return array{shape: shape, values: numbers(int(n), seed)}
}

func (a array) with(values ...float32) array { a.values = values; return a }

// same is n times one value, as fresh biases have.
func same(v float32, n int) array {
	return array{shape: []int64{int64(n)}, values: slices.Repeat(weights.Slice{v}, n)}
}

type dict map[string]array

// write saves a state_dict.
func (d dict) write(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	names := slices.Sorted(maps.Keys(d))
	var sections []weights.Section
	for _, name := range names {
		sections = append(sections, weights.Section{Name: name, DType: cmp.Or(d[name].dtype, weights.F32), Shape: d[name].shape})
	}
	w, err := weights.NewSafetensorsWriter(f, sections, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		raw := make([]byte, int64(len(d[name].values))*sections[i].DType.Size())
		if sections[i].DType.IsFloat() {
			sections[i].DType.PutFloat32s(raw, d[name].values)
		}
		if _, err := w.Section(i).Write(raw); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// initializer is an array as a graph holds it.
func initializer(name string, a array) []byte { return floats32(name, a.values, a.shape...) }

// uses is a node that takes the given tensors.
func uses(names ...string) []byte {
	return node("Concat", "n", names, []string{"y"})
}

func identity(of, name string) []byte {
	return node("Identity", "i", []string{of}, []string{name})
}

func constantNode(name string, a array) []byte {
	return node("Constant", "c", nil, []string{name}, tensorAttribute("value", initializer("", a)))
}

type templateCase struct {
	name   string
	nodes  [][]byte
	inits  [][]byte
	proof  dict
	states []dict
	wrong  string // of the error; else
	hint   string
	// want are the elements of the graph's tensors in the last state.
	want  map[string]weights.Slice
	notes int
	// warning is the only one.
	warning string
	unused  []string // of the template
}

// A network of two weights; w and v are those of the template's own state.
func two(seed int) dict { return dict{"a.weight": fill(seed, 2, 3), "b.weight": fill(seed+50, 3)} }

func plainGraph(d dict) [][]byte {
	var out [][]byte
	for _, name := range slices.Sorted(maps.Keys(d)) {
		out = append(out, initializer(name, d[name]))
	}
	return out
}

func templateCases() []templateCase {
	plus := func(d dict, name string, a array) dict {
		c := maps.Clone(d)
		c[name] = a
		return c
	}
	renamed := func(d dict, prefix string) dict {
		c := dict{}
		for name, a := range d {
			c[prefix+name] = a
		}
		return c
	}
	both := func(student, teacher dict) dict {
		c := renamed(teacher, "ema_model.")
		maps.Copy(c, renamed(student, "model."))
		return c
	}
	all := [][]byte{uses("a.weight", "b.weight")}
	t1, t2, t3 := two(1), two(2), two(3)
	want := func(d dict) map[string]weights.Slice {
		out := map[string]weights.Slice{}
		for name, a := range d {
			out[name] = a.values
		}
		return out
	}
	flip := func(a array) array {
		return array{shape: []int64{a.shape[1], a.shape[0]}, values: transposed(a.values, int(a.shape[0]), int(a.shape[1]))}
	}
	inMemory := func(d dict) dict { // as safetensors' numpy.save_file stores Fortran-ordered arrays
		return plus(d, "a.weight", array{shape: d["a.weight"].shape, values: flip(d["a.weight"]).values})
	}
	normed := func(seed int) dict {
		return dict{"w": fill(seed, 3), "b": fill(seed+1, 3), "mean": fill(seed+2, 3), "var": fill(seed+3, 3)}
	}
	kernel := fill(7, 5, 3, 2, 2)   // out, in, height, width
	asHWIO := func(k array) array { // the shape of k, the elements as height, width, in, out
		a := array{shape: k.shape}
		for pixel := range 4 {
			for in := range 3 {
				for out := range 5 {
					a.values = append(a.values, k.values[(out*3+in)*4+pixel])
				}
			}
		}
		return a
	}
	rnn := fill(7, 4, 8)
	permuted := array{shape: []int64{1, 4, 8}, values: slices.Concat(rnn.values[8:16], rnn.values[:8], rnn.values[24:], rnn.values[16:24])}
	zero := same(0, 3)
	merged := []dict{{"p": zero, "q": zero}, {"p": same(1, 3), "q": same(2, 3)}, {"p": same(3, 3), "q": same(4, 3)}}
	return []templateCase{
		{name: "the same names", nodes: all, inits: plainGraph(t1), states: []dict{t1, t2}, want: want(t2)},
		{name: "the last has the graph's weights", nodes: all, inits: plainGraph(t3), states: []dict{t2, t1, t3}, want: want(t3)},
		{name: "another file has them", nodes: all, inits: plainGraph(t3), proof: t3, states: []dict{t1, t2}, want: want(t2)},
		{name: "a wrapper in the graph", nodes: [][]byte{uses("m.a.weight", "m.b.weight")}, inits: plainGraph(renamed(t1, "m.")), states: []dict{t1, t2}, want: want(renamed(t2, "m."))},
		{name: "a wrapper in the files, and a head that is not exported", nodes: all, inits: plainGraph(t1), notes: 1, unused: []string{"head.*"},
			states: []dict{plus(renamed(t1, "backbone."), "head.weight", fill(9, 5)), plus(renamed(t2, "backbone."), "head.weight", fill(8, 5))}, want: want(t2)},
		{name: "DataParallel", nodes: all, inits: plainGraph(t1), states: []dict{t1, renamed(t2, "module.")}, want: want(t2)},

		{name: "untrained", nodes: all, inits: plainGraph(two(9)), states: []dict{t1, t2}, wrong: "holds the weights of none of the 2 state_dicts; nearest is a.safetensors: 2 of 2 tensors differ", hint: "Template GRAPH="},
		{name: "the same name, other values", nodes: all, inits: plainGraph(plus(t1, "a.weight", fill(4, 2, 3))), states: []dict{t1, t2},
			wrong: `nearest is a.safetensors: 1 of 2 tensors differ: "a.weight"`, hint: "export the graph again with every tensor"},
		{name: "saved in Fortran order", nodes: all, inits: plainGraph(t2), states: []dict{inMemory(t1), inMemory(t2)}, wrong: `nearest is b.safetensors: 1 of 2 tensors differ: "a.weight"`,
			hint: `"a.weight" of the file has the graph's numbers in another order: numpy's save_file of safetensors`},
		{name: "saved as kernels of Keras lie in memory", nodes: [][]byte{uses("k")}, inits: plainGraph(dict{"k": kernel}), states: []dict{{"k": asHWIO(kernel)}, {"k": fill(8, 5, 3, 2, 2)}},
			wrong: `a.safetensors: 1 of 1 tensors differ: "k"`, hint: "numpy.ascontiguousarray(x)"},
		{name: "the last has the graph's weights, in another order", nodes: [][]byte{uses("k")}, inits: plainGraph(dict{"k": kernel}), states: []dict{{"k": fill(8, 5, 3, 2, 2)}, {"k": asHWIO(kernel)}},
			wrong: `b.safetensors: 1 of 1 tensors differ: "k"`, hint: "numpy.ascontiguousarray(x)"},
		{name: "another network", nodes: all, inits: plainGraph(t1), states: []dict{plus(t1, "b.weight", fill(3, 4)), t2}, wrong: `a.safetensors: tensor "b.weight": shape [4], want [3]`},
		{name: "another network later", nodes: all, inits: plainGraph(t1), states: []dict{t1, plus(t2, "a.weight", fill(3, 3, 2))}, wrong: `b.safetensors: tensor "a.weight": shape [3 2], want [2 3]`},
		{name: "a tensor less", nodes: all, inits: plainGraph(t1), states: []dict{t1, {"a.weight": t2["a.weight"]}}, wrong: `b.safetensors: tensor "b.weight": missing`},
		{name: "a tensor more", nodes: all, inits: plainGraph(t1), states: []dict{t1, plus(t2, "c", fill(3, 3))}, wrong: `b.safetensors: tensor "c": not in the state_dicts`},

		{name: "transposed, under a number", nodes: [][]byte{uses("onnx::MatMul_7", "b.weight")}, inits: plainGraph(dict{"onnx::MatMul_7": flip(t1["a.weight"]), "b.weight": t1["b.weight"]}),
			states: []dict{t1, t2}, want: map[string]weights.Slice{"onnx::MatMul_7": flip(t2["a.weight"]).values, "b.weight": t2["b.weight"].values}},
		{name: "numbers for names, of the last", nodes: [][]byte{uses("onnx::Conv_1", "onnx::Conv_2")}, inits: plainGraph(dict{"onnx::Conv_1": t3["a.weight"], "onnx::Conv_2": t3["b.weight"]}),
			states: []dict{t1, t3, t2}, want: map[string]weights.Slice{"onnx::Conv_1": t2["a.weight"].values, "onnx::Conv_2": t2["b.weight"].values}},
		{name: "a zero without its sign", nodes: all, inits: plainGraph(plus(t1, "b.weight", t1["b.weight"].with(0, 0, 1))),
			states: []dict{plus(t1, "b.weight", t1["b.weight"].with(weights.Slice{float32(math.Copysign(0, -1)), 0, 1}...)), t2}, want: want(t2)},
		{name: "reshaped", nodes: [][]byte{uses("a.weight", "onnx::Mul_9")}, inits: plainGraph(dict{"a.weight": t1["a.weight"], "onnx::Mul_9": {shape: []int64{1, 3, 1, 1}, values: t1["b.weight"].values}}),
			states: []dict{t1, t2}, want: map[string]weights.Slice{"onnx::Mul_9": t2["b.weight"].values}},
		{name: "a transposed copy beside", nodes: [][]byte{uses("a.weight", "val_2", "b.weight")}, inits: plainGraph(plus(t1, "val_2", flip(t1["a.weight"]))),
			states: []dict{t1, t2}, want: map[string]weights.Slice{"a.weight": t2["a.weight"].values, "val_2": flip(t2["a.weight"]).values}},
		{name: "tied", nodes: all, inits: plainGraph(t1), states: []dict{plus(t1, "out.weight", t1["a.weight"]), plus(t2, "out.weight", t2["a.weight"])}, want: want(t2), notes: 1},
		{name: "tied no more", nodes: all, inits: plainGraph(t1), states: []dict{plus(t1, "out.weight", t1["a.weight"]), plus(t2, "out.weight", t3["a.weight"])},
			wrong: `b.safetensors: tensor "out.weight": differs from "a.weight"`, hint: "export the graph again"},

		{name: "merged by TorchScript", nodes: [][]byte{identity("p", "q"), uses("p", "q")}, inits: [][]byte{initializer("p", zero)}, states: merged, want: want(merged[2])},
		{name: "merged without a trace", nodes: [][]byte{uses("p", "p")}, inits: [][]byte{initializer("p", zero)}, proof: merged[0], states: merged[1:],
			wrong: `a.safetensors: tensor "q": differs from "p", and the template model.onnx has one tensor for both`, hint: "export the graph again"},
		{name: "equal always", nodes: all, inits: plainGraph(t1), states: []dict{plus(t1, "c", same(7, 3)), plus(t2, "c", same(7, 3))}, want: want(t2), notes: 1},
		{name: "merged, and one more constant", nodes: [][]byte{uses("p", "val_0")}, inits: plainGraph(dict{"p": zero, "val_0": fill(3, 3)}), states: merged, wrong: `b.safetensors: tensor "q": differs from "p"`},

		{name: "gates in another order", nodes: [][]byte{uses("val_111")}, inits: plainGraph(dict{"val_111": permuted}), states: []dict{{"lstm.weight": rnn}, {"lstm.weight": fill(8, 4, 8)}},
			wrong: `tensor "lstm.weight": of a.safetensors, is not in the graph as it is: "val_111" [1 4 8] may have been computed`, hint: "optimize=False"},
		{name: "gates in another order, beside the weights", nodes: [][]byte{uses("val_111", "lstm.weight")}, inits: plainGraph(dict{"val_111": permuted, "lstm.weight": rnn}),
			states: []dict{{"lstm.weight": rnn}, {"lstm.weight": fill(8, 4, 8)}}, wrong: `"val_111" [1 4 8] may have been computed`},
		{name: "a product", nodes: [][]byte{uses("mul", "b.weight")}, inits: plainGraph(dict{"mul": fill(5, 2, 3), "b.weight": t1["b.weight"]}), states: []dict{t1, t2},
			wrong: `tensor "a.weight": of a.safetensors, is not in the graph as it is: "mul" [2 3] may have been computed`},

		{name: "a buffer baked in", nodes: [][]byte{uses("a.weight", "b.weight", "table")}, inits: plainGraph(plus(t1, "table", fill(6, 20))),
			states: []dict{plus(t1, "freqs", fill(7, 10)), plus(t2, "freqs", fill(7, 10))}, want: want(t2), notes: 1, warning: "not in the checkpoints, and kept as model.onnx has them: table"},
		{name: "batch norm without its statistics", nodes: [][]byte{node("BatchNormalization", "n", []string{"x", "w", "b", "mean", "var"}, []string{"y"})},
			inits: plainGraph(dict{"w": fill(1, 3), "b": fill(2, 3), "mean": fill(3, 3), "var": fill(4, 3)}), states: []dict{{"w": fill(1, 3), "b": fill(2, 3)}, {"w": fill(5, 3), "b": fill(6, 3)}},
			wrong: `a.safetensors: tensor "mean": missing, but the graph model.onnx has it`, hint: "StateDict KEY"},
		{name: "an exporter that moved the statistics", nodes: [][]byte{node("BatchNormalization", "n", []string{"x", "w", "b", "mean", "var"}, []string{"y"})},
			inits:  plainGraph(plus(plus(normed(1), "mean", fill(8, 3)), "var", fill(9, 3))),
			states: []dict{normed(1), normed(20)}, wrong: `2 of 4 tensors differ: "mean", "var"`, hint: "only running statistics of batch norm differ"},
		{name: "integers", nodes: all, inits: plainGraph(t1), states: []dict{{"a.weight": {t1["a.weight"].shape, t1["a.weight"].values, weights.I32}, "b.weight": t1["b.weight"]}, t2},
			wrong: `a.safetensors: tensor "a.weight": I32, want floats as in model.onnx`},
		{name: "two networks in a file", nodes: all, inits: plainGraph(t1), states: []dict{both(t1, two(8)), both(t2, two(9))}, want: want(t2), notes: 1},
		{name: "one is rounded", nodes: all, inits: plainGraph(t1), states: []dict{t1, {"a.weight": {[]int64{2, 3}, make(weights.Slice, 6), weights.BF16}, "b.weight": {[]int64{3}, make(weights.Slice, 3), weights.BF16}}},
			warning: "of the checkpoints some store their weights in another type, which rounds them: BF16, F32"},
		{name: "a buffer baked in that changes", nodes: [][]byte{uses("a.weight", "b.weight", "table")}, inits: plainGraph(plus(t1, "table", fill(6, 20))),
			states: []dict{plus(t1, "freqs", fill(7, 10)), plus(t2, "freqs", fill(8, 10))}, wrong: `tensor "freqs": of a.safetensors, is not in the graph as it is: "table" [20]`},
		{name: "weights that no file has", nodes: [][]byte{uses("a.weight", "b.weight", "temperature", "val_3")}, inits: plainGraph(plus(plus(t1, "temperature", array{values: weights.Slice{1.7}}), "val_3", array{values: weights.Slice{2.7}})),
			states: []dict{t1, t2}, want: map[string]weights.Slice{"temperature": {1.7}}, warning: "not in the checkpoints, and kept as model.onnx has them: temperature"},
		{name: "not exported", nodes: all, inits: plainGraph(t1), states: []dict{plus(t1, "aux", fill(7, 4)), plus(t2, "aux", fill(8, 4))}, want: want(t2), notes: 1, unused: []string{"aux"}},
		{name: "constants of a formula", nodes: append([][]byte{constantNode("eps", array{values: weights.Slice{1e-5}}), constantNode("mask", array{shape: []int64{4}, values: weights.Slice{0, 1, 1, 0}})}, uses("a.weight", "b.weight", "eps", "mask")),
			inits: plainGraph(t1), states: []dict{t1, t2}, want: want(t2)},
		{name: "a single weight in a Constant", nodes: append([][]byte{constantNode("k", array{values: weights.Slice{1.2345678}})}, uses("a.weight", "b.weight", "k")),
			inits: plainGraph(t1), states: []dict{plus(t1, "scale", array{values: weights.Slice{1.2345678}}), plus(t2, "scale", array{values: weights.Slice{7.5}})},
			want: map[string]weights.Slice{"k": {7.5}}},
		{name: "a single weight that was computed with", nodes: append([][]byte{constantNode("k", array{values: weights.Slice{2.4691356}})}, uses("a.weight", "b.weight", "k")),
			inits: plainGraph(t1), states: []dict{plus(t1, "scale", array{values: weights.Slice{1.2345678}}), plus(t2, "scale", array{values: weights.Slice{7.5}})},
			wrong: `tensor "scale": of a.safetensors, is not in the graph as it is: "k" [] may have been computed`},
	}
}

func TestTemplate(t *testing.T) {
	for _, tc := range templateCases() {
		t.Run(tc.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := os.WriteFile("model.onnx", encode(tc.nodes, tc.inits...), 0o666); err != nil {
				t.Fatal(err)
			}
			tpl := NewTemplate(open(t, "model.onnx"), nil)
			tpl.Unused = tc.unused
			if tc.proof != nil {
				tpl.Proof = tc.proof.write(t, "proof.safetensors")
			}
			var paths []string
			for i, d := range tc.states {
				paths = append(paths, d.write(t, string(rune('a'+i))+".safetensors"))
			}
			models, err := Open(paths, tpl)
			if tc.wrong != "" {
				wantError(t, tc.name, err, tc.wrong, tc.hint)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range models {
				defer m.Close()
			}
			checkElements(t, models[len(models)-1], tc.want)
			if notes := tpl.Recipe().Notes(); len(notes) != tc.notes {
				t.Errorf("notes %q, want %d", notes, tc.notes)
			}
			if w := tpl.Recipe().Warnings(true); slices.ContainsFunc(w, func(s string) bool { return !strings.HasPrefix(s, "of the checkpoints") }) {
				t.Errorf("warnings of what is proved: %q", w)
			}
			if w := tpl.Recipe().Warnings(false); strings.Join(w, "\n") != tc.warning {
				t.Errorf("warnings %q, want %q", w, tc.warning)
			}
			readAgain(t, tpl, models, paths)
		})
	}
}

func checkElements(t *testing.T, m *onnxio.Model, want map[string]weights.Slice) {
	t.Helper()
	for name, values := range want {
		x := m.Tensor(name)
		if x == nil {
			t.Fatalf("no tensor %q", name)
		}
		got := make(weights.Slice, x.Len())
		x.ElemType.DType().Float32s(got, m.Elements(x))
		if !slices.Equal(got, values) {
			t.Errorf("tensor %q is %v, want %v", name, got, values)
		}
	}
}

// readAgain reads checkpoints against the graph that a posterior keeps, which has no
// weights, by the recipe it keeps.
func readAgain(t *testing.T, tpl *Template, models []*onnxio.Model, paths []string) {
	t.Helper()
	set, err := New(models)
	if err != nil {
		t.Fatal(err)
	}
	cut := templateOf(t, set.Models[set.Reference], set.Layout)
	skeleton, err := cut.Model("posterior", set.Layout)
	if err != nil {
		t.Fatal(err)
	}
	js, err := json.Marshal(tpl.Recipe())
	var r Recipe
	if err != nil || json.Unmarshal(js, &r) != nil {
		t.Fatal(err)
	}
	again, err := Open(paths, NewTemplate(skeleton, &r))
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range again {
		defer m.Close()
		for _, role := range []weights.Role{weights.Parameter, weights.Statistic} {
			want, err := set.Models[i].Vector(set.Layout, role)
			if err != nil {
				t.Fatal(err)
			}
			got, err := m.Vector(set.Layout, role)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(read(t, got), read(t, want)) {
				t.Errorf("%s: other %ss when it is read again", m.Path, role)
			}
		}
		whole, err := m.Runtime()
		if err != nil {
			t.Fatal(err)
		}
		b, err := whole.Template.Render(whole.Layout, whole.Parameters, whole.Statistics)
		if err != nil {
			t.Fatal(err)
		}
		run, err := onnxio.Parse("run.onnx", b)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range floats(models[i]) {
			if !sameStretches(x.Len(), stretchesOf(models[i], x), stretchesOf(run, run.Tensor(x.Name)), bytes.Equal) {
				t.Errorf("%s: tensor %q has other elements in a session", m.Path, x.Name)
			}
		}
	}
}

// Elements of another type are converted as PyTorch's float() does, and never
// narrowed.
func TestTemplateTypes(t *testing.T) {
	t.Chdir(t.TempDir())
	values := weights.Slice{1, -0.333251953125, 65504, 5.9604644775390625e-08, 0}
	for _, d := range []weights.DType{weights.F16, weights.BF16, weights.F64, weights.F32} {
		stored := make([]byte, 5*d.Size())
		d.PutFloat32s(stored, values)
		as := make(weights.Slice, 5)
		d.Float32s(as, stored)
		if err := os.WriteFile("model.onnx", encode([][]byte{uses("w")}, floats32("w", as, 5)), 0o666); err != nil {
			t.Fatal(err)
		}
		one := dict{"w": {[]int64{5}, values, d}}.write(t, "a.safetensors")
		two := dict{"w": {[]int64{5}, slices.Repeat(weights.Slice{0.5}, 5), d}}.write(t, "b.safetensors")
		models, err := Open([]string{one, two}, NewTemplate(open(t, "model.onnx"), nil))
		if err != nil {
			t.Fatalf("%v: %v", d, err)
		}
		checkElements(t, models[0], map[string]weights.Slice{"w": as})
		if got := read(t, first(vectors(t, models[0], layoutOf(t, models...)))); !slices.Equal(got, as) {
			t.Errorf("%v: %v, want %v", d, got, as)
		}
		for _, m := range models {
			m.Close()
		}
	}
	raw := make([]byte, 10)
	weights.F16.PutFloat32s(raw, values)
	if err := os.WriteFile("model.onnx", encode([][]byte{uses("w")}, tensor("w", onnxio.Float16, []int64{5}, raw)), 0o666); err != nil {
		t.Fatal(err)
	}
	path := dict{"w": {[]int64{5}, values, weights.F32}}.write(t, "a.safetensors")
	_, err := Open([]string{path}, NewTemplate(open(t, "model.onnx"), nil))
	wantError(t, "narrowed", err, `a.safetensors: tensor "w": F32, which does not go into the graph's F16`, "export the graph in the type")
}

func first[T any](a T, _ T) T { return a }

// What is frozen in all checkpoints is theirs, though the graph was exported from
// other weights.
func TestTemplateFrozen(t *testing.T) {
	t.Chdir(t.TempDir())
	init, frozen := two(1), fill(5, 2, 3)
	if err := os.WriteFile("model.onnx", encode([][]byte{uses("a.weight", "b.weight")}, plainGraph(init)...), 0o666); err != nil {
		t.Fatal(err)
	}
	tpl := NewTemplate(open(t, "model.onnx"), nil)
	tpl.Proof = init.write(t, "init.safetensors")
	var paths []string
	for i := range 2 {
		paths = append(paths, dict{"a.weight": frozen, "b.weight": fill(7+i, 3)}.write(t, fmt.Sprintf("%d.safetensors", i)))
	}
	models, err := Open(paths, tpl)
	if err != nil {
		t.Fatal(err)
	}
	l := layoutOf(t, models...)
	if p := tensorNames(l.Role(weights.Parameter)); !slices.Equal(p, []string{"b.weight"}) {
		t.Fatalf("parameters %q", p)
	}
	out := refill(t, models[1], l, numbers(3, 9), weights.Slice{})
	checkElements(t, out, map[string]weights.Slice{"a.weight": frozen.values, "b.weight": numbers(3, 9)})
}

// Without a template, and for what is no checkpoint, the error says what to do.
func TestOpenRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	sd := two(1).write(t, "a.pt")
	_, err := Open([]string{sd}, nil)
	wantError(t, "no template", err, "a.pt: a checkpoint of PyTorch, which has weights and no graph", "Template model.onnx")
	if err := os.WriteFile("model.onnx", encode([][]byte{uses("a.weight", "b.weight")}, plainGraph(two(1))...), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("b.pt", []byte("PK\x03\x04"), 0o666); err != nil {
		t.Fatal(err)
	}
	tpl := NewTemplate(open(t, "model.onnx"), nil)
	_, err = Open([]string{"model.onnx", sd, "b.pt"}, tpl)
	wantError(t, "damaged", err, "b.pt: ", "")
	tpl.StateDict = "ema"
	_, err = Open([]string{sd}, tpl)
	wantError(t, "no file has the key", err, `a.pt: no state_dict under "ema"`, "leave out StateDict")
	under := dict{}
	for name, v := range two(2) {
		under["ema."+name] = v
	}
	nested := under.write(t, "nested.pt")
	models, err := Open([]string{sd, nested}, tpl) // a file that is one itself is taken, if others have the key
	if err != nil || !strings.Contains(strings.Join(tpl.Recipe().Warnings(false), ""), `with nothing under "ema", and taken as they are: a.pt`) {
		t.Fatalf("%v, %v", models, err)
	}
	for _, m := range models {
		m.Close()
	}
	if _, err = Open([]string{"gone.pt"}, tpl); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

// The file that the user names for the graph is closed when the error is made. It says what differs, and an array whose axes were
// stored in another order.
func TestProofOfOtherWeights(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("model.onnx", encode([][]byte{uses("a.weight", "b.weight")}, plainGraph(two(1))...), 0o666); err != nil {
		t.Fatal(err)
	}
	transposed := two(1)
	v := transposed["a.weight"].values
	transposed["a.weight"] = transposed["a.weight"].with(v[0], v[3], v[1], v[4], v[2], v[5])
	for _, c := range []struct {
		name       string
		named      dict
		text, hint string
	}{
		{"other weights", two(3), "model.onnx: does not hold the weights of named.safetensors: 2 of 2 tensors differ", "load a checkpoint into the model"},
		{"turned", transposed, `1 of 2 tensors differ: "a.weight"`, "numpy.ascontiguousarray(x)"},
	} {
		named, sd := c.named.write(t, "named.safetensors"), two(2).write(t, "a.safetensors")
		tpl := NewTemplate(open(t, "model.onnx"), nil)
		tpl.Proof = named
		_, err := Open([]string{sd}, tpl)
		wantError(t, c.name, err, c.text, c.hint)
	}
}
