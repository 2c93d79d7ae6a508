package checkpoints

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
	"github.com/swagwrap/swagwrap/weights"
)

// golden is what PyTorch computes from a vector that is stored in a type: testdata/folded.py.
type golden struct {
	Stored    weights.Slice
	Constants map[string]float32
}

func goldens(t *testing.T) (of map[string]golden) {
	t.Helper()
	content, err := os.ReadFile("testdata/folded.json")
	if err == nil {
		err = json.Unmarshal(content, &of)
	}
	if err != nil {
		t.Fatal(err)
	}
	return of
}

// folded reads three checkpoints of a network with the vector v against a graph that has the given nodes instead of it.
func folded(t *testing.T, v array, unused []string, nodes ...[]byte) error {
	t.Helper()
	dir := t.TempDir()
	net := two(1)
	path := dir + "/model.onnx"
	if err := os.WriteFile(path, encode(append(nodes, uses("a.weight", "b.weight")), plainGraph(net)...), 0o666); err != nil {
		t.Fatal(err)
	}
	tpl := NewTemplate(open(t, path), nil)
	tpl.Unused = unused
	var paths []string
	for i := range 3 {
		d := two(1 + i)
		d["v"] = v.with(slices.Collect(func(yield func(float32) bool) {
			for _, x := range v.values {
				if !yield(x * (1 + 0.0625*float32(i))) {
					return
				}
			}
		})...)
		paths = append(paths, d.write(t, fmt.Sprintf("%s/%d.safetensors", dir, i)))
	}
	models, err := Open(paths, tpl)
	for _, m := range models {
		m.Close()
	}
	return err
}

// scalar is a Constant node of one number.
func scalar(v float32) []byte { return constantNode("k", array{values: weights.Slice{v}}) }

func TestFoldedConstants(t *testing.T) {
	for name, of := range goldens(t) {
		v := array{[]int64{int64(len(of.Stored))}, of.Stored, map[string]weights.DType{"float32": weights.F32, "float64": weights.F64, "float16": weights.F16, "bfloat16": weights.BF16}[name]}
		for function, constant := range of.Constants {
			for _, unused := range [][]string{nil, {"v"}} { // what the graph shows counts more than what the user says
				err := folded(t, v, unused, scalar(constant))
				var missing *MissingError
				if !errors.As(err, &missing) || missing.Asked || len(missing.Unused) > 0 || !strings.Contains(err.Error(), "which has "+function+" of ") {
					t.Errorf("%s %s = %v, unused %q: %v", name, function, constant, unused, err)
				}
			}
		}
	}
}

// A constant that is no function of the vector, and one of formulas, is no proof. Then the user is asked.
func TestFoldedConstantsAsked(t *testing.T) {
	of := goldens(t)["float32"]
	v := array{shape: []int64{4}, values: of.Stored}
	for name, number := range map[string]float32{
		"twice a sigmoid": 2*of.Constants["sigmoid(v[1])"] + 0.1, "near the exponential": of.Constants["exp(v[1])"] * (1 + 0x1p-18),
		"zero": 0, "half": 0.5, "root of a half": 0.70710677, "a third": 1. / 3, "GELU": 0.044715, "an epsilon": 1e-5,
	} {
		err := folded(t, v, nil, scalar(number))
		if q := Question(err); q == nil || !slices.Equal(q.Unused, []string{"v"}) || !strings.Contains(err.Error(), "Missing: v [4]") ||
			strings.Contains(err.Error(), "In no checkpoint") != strings.ContainsAny(name[:2], "w") && name != "near the exponential" {
			t.Errorf("%s: %v", name, err)
		}
		if err := folded(t, v, []string{"v"}, scalar(number)); err != nil {
			t.Errorf("%s, unused: %v", name, err)
		}
	}
}

// floatAttribute is an attribute with one float, which has field 2.
func floatAttribute(name string, v float32) []byte {
	return wire.AppendVarint(binary.LittleEndian.AppendUint32(append(wire.AppendString(nil, 1, name), 2<<3|5), math.Float32bits(v)), 20, 1)
}

// A number may stand in an attribute of a node, or in a graph within a node.
func TestFoldedElsewhere(t *testing.T) {
	of := goldens(t)["float32"]
	v := array{shape: []int64{4}, values: of.Stored}
	alpha := floatAttribute("alpha", of.Constants["exp(v[1])"])
	inner := wire.AppendBytes(nil, 1, scalar(of.Constants["tanh(v[3])"]))
	branch := wire.AppendVarint(wire.AppendBytes(wire.AppendString(nil, 1, "then_branch"), 6, inner), 20, 5)
	for want, n := range map[string][]byte{
		"exp(v[1]) of":  node("LeakyRelu", "act", []string{"x"}, []string{"z"}, alpha),
		"tanh(v[3]) of": node("If", "if", []string{"c"}, []string{"z"}, branch),
	} {
		if err := folded(t, v, nil, n); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// A constant with many elements near the elements of a large tensor proves nothing.
func TestFoldedByChance(t *testing.T) {
	large := array{shape: []int64{10000}, values: numbers(10000, 3)}
	for i := range large.values {
		large.values[i] = 1 + float32(i)/20000
	}
	if err := folded(t, large, nil, scalar(large.values[5001]+0x1p-23)); Question(err) == nil {
		t.Errorf("%v, want a question", err)
	}
}

// A number that changes between ONNX checkpoints is a parameter if it is a tensor, and is refused in an attribute.
func TestChangingNumbers(t *testing.T) {
	models := func(nodes func(v float32) [][]byte) (all []*onnxio.Model) {
		for i := range 3 {
			all = append(all, withNodes(t, fmt.Sprintf("%d.onnx", i), nodes(0.25+float32(i)/7), plainGraph(two(i))...))
		}
		return all
	}
	l := layoutOf(t, models(func(v float32) [][]byte { return [][]byte{scalar(v), uses("a.weight", "b.weight", "k")} })...)
	if k, ok := l.Find("k"); !ok || k.Role != weights.Parameter {
		t.Errorf("a Constant node has %v", k.Role)
	}
	_, err := New(models(func(v float32) [][]byte {
		return [][]byte{node("LeakyRelu", "act", []string{"x"}, []string{"z"}, floatAttribute("alpha", v)), uses("a.weight", "b.weight")}
	}))
	wantError(t, "an attribute", err, `alpha of LeakyRelu "act" is`, "not as Python's numbers")
}

// Patterns stand for modules, and wrong ones are errors.
func TestUnused(t *testing.T) {
	v := array{shape: []int64{4}, values: goldens(t)["float32"].Stored}
	for pattern, want := range map[string]string{"nosuch": "Unused nosuch: no checkpoint has a tensor of this name", "*": `Unused '*': the graph model.onnx has tensor`, "v,a.weight": "no checkpoint", "b": "has tensor \"b.weight\""} {
		err := folded(t, v, []string{pattern})
		if pattern == "b" {
			err = folded(t, v, []string{"v", "b"})
		}
		if e := new(UnusedError); !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}

// One checkpoint does not show that a tensor changes. A second one, which is read with the recipe of the first, does.
func TestMissingLater(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(i int) string {
		d := two(1)
		maps.Copy(d, dict{"a.weight": fill(1, 2, 3), "aux": fill(5+i, 3)})
		return d.write(t, fmt.Sprintf("%d.safetensors", i))
	}
	if err := os.WriteFile("model.onnx", encode([][]byte{uses("a.weight", "b.weight")}, plainGraph(two(1))...), 0o666); err != nil {
		t.Fatal(err)
	}
	tpl := NewTemplate(open(t, "model.onnx"), nil)
	read := func(tpl *Template, path string) error {
		models, err := Open([]string{path}, tpl)
		for _, m := range models {
			m.Close()
		}
		return err
	}
	if err := read(tpl, write(0)); err != nil {
		t.Fatal(err)
	}
	var missing *MissingError
	if err := read(tpl, write(1)); !errors.As(err, &missing) || !slices.Equal(missing.Unused, []string{"aux"}) {
		t.Errorf("%v", err)
	}
	if err := read(tpl.Without([]string{"aux"}), write(1)); err != nil {
		t.Error(err)
	}
}
