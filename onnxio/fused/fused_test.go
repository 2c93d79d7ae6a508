package fused_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/onnxio/fused"
	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
	"github.com/swagwrap/swagwrap/weights"
)

// network reads what the checkpoints of a fixture have in common.
func network(t *testing.T, pattern string) (*fused.Network, *weights.Layout) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", "fixtures", filepath.FromSlash(pattern)))
	if err != nil || len(paths) < 2 {
		t.Fatalf("%s: %d files, %v", pattern, len(paths), err)
	}
	var models []*onnxio.Model
	for _, path := range paths[:2] {
		m, err := onnxio.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		models = append(models, m)
	}
	set, err := checkpoints.New(models)
	if err != nil {
		t.Fatal(err)
	}
	m := set.Models[set.Reference]
	template, err := onnxio.NewWholeTemplate(m, set.Layout)
	if err != nil {
		t.Fatal(err)
	}
	n, err := fused.NewNetwork(paths[0], template, set.Layout, m.FeedInputs(), m.Graph.Outputs[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	return n, set.Layout
}

// written has a model of the network's first scores written, and reads it back.
func written(t *testing.T, m *fused.Model, parameters []weights.Slice) (*onnxio.Model, map[string][]byte) {
	t.Helper()
	if err := m.Gives("prob", m.Scores(0), -1); err != nil {
		t.Fatal(err)
	}
	buffers := make(map[string]*bytes.Buffer)
	err := m.Write("fused.onnx", func(name string) (io.Writer, error) {
		buffers[name] = &bytes.Buffer{}
		return buffers[name], nil
	}, func(do func(weights.Vector) error) error {
		for _, p := range parameters {
			if err := do(p); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	dir, files := t.TempDir(), make(map[string][]byte)
	for name, b := range buffers {
		files[name] = b.Bytes()
		if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	back, err := onnxio.Open(filepath.Join(dir, "fused.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { back.Close() })
	model, data, err := m.Size("fused.onnx")
	if model != int64(len(files["fused.onnx"])) || data != int64(len(files["fused.onnx.data"])) || err != nil {
		t.Errorf("%d and %d bytes are announced, %d and %d written, %v", model, data, len(files["fused.onnx"]), len(files["fused.onnx.data"]), err)
	}
	return back, files
}

func floats(t *testing.T, m *onnxio.Model, name string) []float32 {
	t.Helper()
	x := m.Tensor(name)
	if x == nil || x.ElemType != onnxio.Float {
		t.Fatalf("no float tensor %q", name)
	}
	out := make([]float32, x.Len())
	weights.F32.Float32s(out, m.Elements(x))
	return out
}

// drawn are vectors about a mean.
func drawn(n int64, count int) (mean weights.Slice, members []weights.Slice) {
	r := rand.New(rand.NewPCG(1, 1))
	mean = make(weights.Slice, n)
	for i := range mean {
		mean[i] = float32(r.NormFloat64())
	}
	for range count {
		v := make(weights.Slice, n)
		for i := range v {
			v[i] = mean[i] + float32(0.01*r.NormFloat64())
		}
		members = append(members, v)
	}
	return mean, members
}

// What is computed from inputs and constants alone is there once, also where branches of an If read it, and has no value of a member in it.
func TestSharedNodes(t *testing.T) {
	for pattern, want := range map[string]int{
		"exporters/control-flow/cond-torchscript/ckpt-*.onnx":  4, // Flatten, ReduceMean, Greater and Cast
		"exporters/torchvision-mobile/torchscript/ckpt-*.onnx": 0,
	} {
		n, l := network(t, pattern)
		_, parameters := drawn(l.Len(weights.Parameter), 3)
		var members []fused.Member
		for k := range parameters {
			s := make(weights.Slice, l.Len(weights.Statistic))
			s[0] = float32(k) // no two alike
			members = append(members, fused.Member{Number: k, Statistics: s})
		}
		m, err := fused.New([]*fused.Network{n}, members, fused.Options{})
		if err != nil {
			t.Fatal(err)
		}
		back, _ := written(t, m, parameters)
		count := make(map[string]int)
		for _, d := range back.Graph.Nodes {
			owner, _, _ := strings.Cut(d.Name, "/")
			count[owner]++
			for _, in := range d.Inputs {
				if owner == "shared" && strings.HasPrefix(in, "member-") {
					t.Errorf("%s: %s reads %s", pattern, d.Name, in)
				}
			}
		}
		if count["shared"] != want || count["member-000"] == 0 || count["member-000"] != count["member-002"] {
			t.Errorf("%s: %v nodes, want %d shared ones", pattern, count, want)
		}
	}
}

// Members have their tensors under their numbers, elements and all, and what is the same for all
// is there once.
func TestModel(t *testing.T) {
	n, l := network(t, "mnist/checkpoints/epoch-*.onnx")
	_, parameters := drawn(l.Len(weights.Parameter), 2)
	for name, c := range map[string]struct {
		statistics [2]float32
		external   bool
	}{
		"of their own": {[2]float32{1, 2}, false},
		"frozen":       {[2]float32{3, 3}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var members []fused.Member
			for k, v := range c.statistics {
				s := make(weights.Slice, l.Len(weights.Statistic))
				for i := range s {
					s[i] = v
				}
				members = append(members, fused.Member{Number: 3 + 4*k, Statistics: s})
			}
			m, err := fused.New([]*fused.Network{n}, members, fused.Options{External: c.external, Producer: "me", Metadata: map[string]string{"k": "v"}})
			if err != nil {
				t.Fatal(err)
			}
			back, files := written(t, m, parameters)
			if (len(files) == 2) != c.external {
				t.Errorf("%d files", len(files))
			}
			for _, e := range l.Tensors {
				want := map[weights.Role]weights.Slice{weights.Parameter: parameters[1], weights.Statistic: members[1].Statistics}[e.Role]
				name := "member-007/" + e.Name
				switch {
				case e.Role == weights.Constant:
					continue
				case e.Role == weights.Statistic && c.statistics[0] == c.statistics[1]:
					if back.Tensor(name) != nil {
						t.Errorf("%s: is there for a member, and is the same for all", name)
					}
					name = "shared/" + e.Name
				}
				for i, v := range floats(t, back, name) {
					if v != want[e.Offset+int64(i)] {
						t.Fatalf("%s: element %d is %v, want %v", name, i, v, want[e.Offset+int64(i)])
					}
				}
			}
			seen := map[string]bool{"": true, back.Graph.Inputs[0].Name: true}
			for _, x := range back.Graph.Initializers {
				if seen[x.Name] {
					t.Errorf("%q twice", x.Name)
				}
				seen[x.Name] = true
			}
			for _, d := range back.Graph.Nodes {
				for _, in := range d.Inputs {
					if !seen[in] {
						t.Errorf("node %q reads %q, which is not there yet", d.Name, in)
					}
				}
				for _, out := range d.Outputs {
					if out == "prob" && d.OpType == "Identity" {
						t.Error("an Identity joins the output with another name, which OpenVINO then shows")
					}
					if seen[out] && out != "" {
						t.Errorf("%q is computed twice", out)
					}
					seen[out] = true
				}
			}
			if in := back.Graph.Inputs; len(in) != 1 || in[0].Shape[0] != -1 || back.ProducerName != "me" {
				t.Errorf("input %+v, producer %q", in, back.ProducerName)
			}
		})
	}
}

// A value that is two outputs, and that a node reads, has a name of its own, behind the output's in the alphabet: no node reads an output.
func TestNoNodeReadsAnOutput(t *testing.T) {
	n, l := network(t, "mnist/checkpoints/epoch-*.onnx")
	_, parameters := drawn(l.Len(weights.Parameter), 1)
	m, err := fused.New([]*fused.Network{n}, []fused.Member{{Statistics: make(weights.Slice, l.Len(weights.Statistic))}}, fused.Options{})
	if err != nil {
		t.Fatal(err)
	}
	value := m.Op("Neg", m.Scores(0))
	for _, o := range [][2]string{{"first", value}, {"second", value}, {"size", m.Op("Abs", value)}} {
		if err := m.Gives(o[0], o[1], -1); err != nil {
			t.Fatal(err)
		}
	}
	back, _ := written(t, m, parameters)
	names, ops := map[string]bool{}, map[string]int{}
	for _, d := range back.Graph.Nodes {
		for _, out := range back.Graph.Outputs {
			if slices.Contains(d.Inputs, out.Name) {
				t.Errorf("node %q reads the output %s", d.Name, out.Name)
			}
		}
		if d.OpType == "Identity" && d.Outputs[0] == "first" && d.Inputs[0] < "first" {
			t.Errorf("OpenVINO calls the output first %s", d.Inputs[0])
		}
		if names[d.Name] {
			t.Errorf("two nodes are %s", d.Name)
		}
		names[d.Name] = true
		ops[d.OpType]++
	}
	if ops["Neg"] != 1 || ops["Abs"] != 1 || ops["Identity"] != 2 {
		t.Errorf("operators %v", ops)
	}
}

// An input may have a name like those of operators that average. It may not have one like those of members.
func TestNamesOfInputs(t *testing.T) {
	for name, want := range map[string]string{
		"average/Neg_2":  "",
		"shared":         "",
		"member-000/x":   `m.onnx: tensor "member-000/x": an input whose name`,
		"shared/running": `m.onnx: tensor "shared/running": an input whose name`,
	} {
		value := func(num wire.Number, name string) []byte {
			return wire.AppendBytes(nil, num, wire.Value(name, onnxio.Float, []int64{-1, 3}, nil))
		}
		graph := slices.Concat(wire.Node("Abs", "abs", []string{name}, []string{"y"}), value(wire.GraphInput, name), value(wire.GraphOutput, "y"))
		opset := wire.AppendBytes(nil, wire.ModelOpset, wire.AppendVarint(nil, wire.OpsetVersion, 17))
		m, err := onnxio.Parse("m.onnx", wire.AppendBytes(append(wire.AppendVarint(nil, wire.ModelIR, 8), opset...), wire.ModelGraph, graph))
		if err != nil {
			t.Fatal(err)
		}
		none := &weights.Layout{}
		template, err := onnxio.NewWholeTemplate(m, none)
		if err != nil {
			t.Fatal(err)
		}
		n, err := fused.NewNetwork("m.onnx", template, none, m.FeedInputs(), "y")
		if err != nil {
			t.Fatal(err)
		}
		model, err := fused.New([]*fused.Network{n}, []fused.Member{{}}, fused.Options{})
		if err != nil || want != "" {
			if err == nil || want == "" || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
			continue
		}
		if op := model.Op("Neg", model.Scores(0)); op == name {
			t.Errorf("an operator gives the input %s", name)
		}
	}
}

// A deviation in 8 bits is off by half a step at most, and a step is a 127th of the largest
// deviation in its row; vectors are whole.
func TestInt8(t *testing.T) {
	n, l := network(t, "mnist/checkpoints/epoch-*.onnx")
	mean, parameters := drawn(l.Len(weights.Parameter), 2)
	n.Mean = mean
	statistics := make(weights.Slice, l.Len(weights.Statistic))
	m, err := fused.New([]*fused.Network{n}, []fused.Member{{Number: 0, Statistics: statistics}, {Number: 1, Statistics: statistics}}, fused.Options{Storage: fused.Int8})
	if err != nil {
		t.Fatal(err)
	}
	back, _ := written(t, m, parameters)
	matrices := 0
	for _, e := range l.Role(weights.Parameter) {
		name, want := "member-001/"+e.Name, parameters[1][e.Offset:][:e.Len()]
		q := back.Tensor(name + "/deviation")
		if (q != nil) != (len(e.Shape) > 1) {
			t.Errorf("%s of shape %d: deviations %v", name, e.Shape, q)
		}
		if q == nil {
			if got := floats(t, back, name); got[0] != want[0] {
				t.Errorf("%s: %v, want %v", name, got[0], want[0])
			}
			continue
		}
		matrices++
		steps, base := floats(t, back, name+"/step"), floats(t, back, "mean/"+e.Name)
		row := len(want) / len(steps)
		raw, ok := elements(back, q)
		if !ok {
			t.Fatalf("%s: cannot be read", q.Name)
		}
		for r, step := range steps {
			peak := 0.0
			for i := r * row; i < (r+1)*row; i++ {
				d := float64(want[i] - base[i])
				peak = max(peak, math.Abs(d))
				if got := float64(int8(raw[i])) * float64(step); math.Abs(got-d) > float64(step)*0.5000001 {
					t.Fatalf("%s: element %d deviates by %v, want %v to half of %v", name, i, got, d, step)
				}
			}
			if math.Abs(float64(step)*127-peak) > 1e-6*peak {
				t.Errorf("%s: row %d has steps of %v, want a 127th of %v", name, r, step, peak)
			}
		}
	}
	if matrices < 3 {
		t.Errorf("%d matrices", matrices)
	}
}

// elements finds a tensor's raw bytes in a file that was written here.
func elements(m *onnxio.Model, t *onnxio.Tensor) ([]byte, bool) {
	at := bytes.Index(m.Bytes(), []byte(t.Name))
	if at < 0 || int64(len(m.Bytes())) < int64(at)+t.Len() {
		return nil, false
	}
	// Behind the name stands the field of raw data: tag, length, elements.
	b := m.Bytes()[at+len(t.Name):]
	if b[0] != 9<<3|2 {
		return nil, false
	}
	for b = b[1:]; b[0]&0x80 != 0; b = b[1:] {
	}
	return b[1:][:t.Len()], true
}

// Networks that cannot stand in one graph are refused with what to do.
func TestRefused(t *testing.T) {
	a, l := network(t, "exporters/bn-1d-3d/torchscript-opset13/*.onnx")
	b, _ := network(t, "exporters/bn-1d-3d/torchscript-opset15/*.onnx")
	members := []fused.Member{{Statistics: make(weights.Slice, l.Len(weights.Statistic))}, {Number: 1, Network: 1, Statistics: make(weights.Slice, l.Len(weights.Statistic))}}
	_, err := fused.New([]*fused.Network{a, b}, members, fused.Options{})
	var e *onnxio.Error
	if !errors.As(err, &e) || !strings.Contains(e.What, `opset 15 of "ai.onnx", and another of the networks has 13`) || e.Hint == "" {
		t.Errorf("opsets 13 and 15: %v", err)
	}
	c, _ := network(t, "mnist/checkpoints/epoch-*.onnx")
	d, _ := network(t, "exporters/torch-torchscript/*.onnx")
	if _, err = fused.New([]*fused.Network{c, d}, members, fused.Options{}); !errors.As(err, &e) {
		t.Errorf("inputs of different shapes: %v", err)
	}
	if _, err = fused.New([]*fused.Network{a}, nil, fused.Options{}); err == nil {
		t.Error("no members are a model")
	}
}
