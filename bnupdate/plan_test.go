package bnupdate

import (
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/weights"
)

const fixture = "../fixtures/mnist/checkpoints/"

// openSome opens real PyTorch exports with eight batch norms, of rank 2 and 4.
func openSome(t testing.TB, names ...string) ([]*onnxio.Model, *weights.Layout) {
	t.Helper()
	var models []*onnxio.Model
	for _, name := range names {
		m, err := onnxio.Open(fixture + name)
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
	l := set.Layout
	return models, l
}

func TestNewPlan(t *testing.T) {
	models, l := openSome(t, "epoch-01.onnx", "epoch-30.onnx")
	m := models[0]
	p, err := NewPlan(m, l, Keep{})
	if err != nil {
		t.Fatal(err)
	}
	bns, err := m.BatchNorms()
	if err != nil {
		t.Fatal(err)
	}
	if len(bns) != 8 || p.Layers() != 8 || len(p.Outputs) != 3*8 {
		t.Fatalf("%d batch norms: %d layers, %d outputs", len(bns), p.Layers(), len(p.Outputs))
	}
	if len(p.kept) != 2*(8+3*16+3*32+32) {
		t.Errorf("%d statistics", len(p.kept))
	}
	for i, layer := range p.layers {
		if layer.name != bns[i].Mean || layer.mean.Name != bns[i].Mean || layer.vari.Name != bns[i].Var {
			t.Errorf("layer %d: %+v, want %+v", i, layer, bns[i])
		}
	}

	train := rewritten(t, p, m, l)
	if got, want := len(train.Graph.Outputs), len(m.Graph.Outputs)+len(p.Outputs); got != want {
		t.Errorf("%d graph outputs, want %d", got, want)
	}
	for i, out := range train.Graph.Outputs[len(m.Graph.Outputs):] {
		if want := []onnxio.ElemType{onnxio.Float, onnxio.Float, onnxio.Int64}[i%3]; out.Name != p.Outputs[i] || out.ElemType != want {
			t.Errorf("graph output %d: %s %v, want %s %v", i, out.Name, out.ElemType, p.Outputs[i], want)
		}
	}
	trained, err := train.BatchNorms()
	if err != nil || len(trained) != 8 {
		t.Fatalf("%d batch norms in the training graph: %v", len(trained), err)
	}
	for i, bn := range trained {
		attributes := map[string]onnxio.Attribute{}
		for _, a := range bn.Node.Attributes {
			if _, twice := attributes[a.Name]; twice {
				t.Errorf("node %q: attribute %q twice", bn.Node.Name, a.Name)
			}
			attributes[a.Name] = a
		}
		// Kills: PyTorch's momentum, or ONNX's inverted; statistics that are not graph outputs.
		if momentum, ok := attributes["momentum"]; !ok || momentum.Float != 0 || attributes["training_mode"].Int != 1 {
			t.Errorf("node %q: attributes %v", bn.Node.Name, attributes)
		}
		if epsilon := attributes["epsilon"].Float; epsilon != 1e-5 {
			t.Errorf("node %q: epsilon %v", bn.Node.Name, epsilon)
		}
		y := bns[i].Node.Outputs[0]
		if want := []string{y, p.Outputs[3*i], p.Outputs[3*i+1]}; !slices.Equal(bn.Node.Outputs, want) {
			t.Errorf("node %q: outputs %q, want %q", bn.Node.Name, bn.Node.Outputs, want)
		}
		at := slices.IndexFunc(train.Graph.Nodes, func(n onnxio.Node) bool { return slices.Contains(n.Outputs, p.Outputs[3*i+2]) })
		if at < 0 || train.Graph.Nodes[at].OpType != "Shape" || train.Graph.Nodes[at].Inputs[0] != bns[i].Node.Inputs[0] {
			t.Errorf("node %q: no Shape of its input", bn.Node.Name)
		}
	}
}

func TestNewPlanRefuses(t *testing.T) {
	models, _ := openSome(t, "epoch-01.onnx", "epoch-30.onnx")
	if _, err := NewPlan(models[0], &weights.Layout{}, Keep{}); err == nil || !strings.Contains(err.Error(), "running statistics that the layout does not have") {
		t.Errorf("empty layout: %v", err)
	}
}

// TestNoBatchNorm: there is nothing to recompute, and no batch is run.
func TestNoBatchNorm(t *testing.T) {
	// ir_version 8, opset 17, and a graph of one Relu.
	relu := "\x08\x08\x3a\x1b\x0a\x0c\x0a\x01x\x12\x01y\x22\x04Relu\x12\x01g\x5a\x03\x0a\x01x\x62\x03\x0a\x01y\x42\x02\x10\x11"
	m, err := onnxio.Parse("relu.onnx", []byte(relu))
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPlan(m, &weights.Layout{}, Keep{})
	if err != nil {
		t.Fatal(err)
	}
	res := recompute(t, p, nil, Reference)
	if p.Layers() != 0 || len(p.Outputs) != 0 || len(res.Statistics) != 0 {
		t.Errorf("plan %+v, result %+v", p, res)
	}
}
