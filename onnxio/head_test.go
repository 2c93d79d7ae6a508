package onnxio

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swagwrap/swagwrap/weights"
)

// The last layer as each exporter writes it: the weight stored either way round,
// a bias in the Gemm, behind a MatMul or missing, and nodes behind it. That the
// layer found computes the network's output is tested in internal/ensemble.
func TestHead(t *testing.T) {
	const exporters = "../fixtures/exporters/"
	for path, want := range map[string]Head{
		epoch30: {Features: "relu_5", Weight: "fc2.weight", Bias: "fc2.bias", ScoresFirst: true, Scores: 10, Width: 32},
		exporters + "torch-torchscript/ckpt-1.onnx":                    {Features: "/Relu_2_output_0", Weight: "fc2.weight", Bias: "fc2.bias", ScoresFirst: true, Scores: 10, Width: 12},
		exporters + "bn-1d-3d/training-mode/ckpt-1.onnx":               {Features: "/drop/Dropout_output_0", Weight: "fc.weight", Bias: "fc.bias", ScoresFirst: true, Scores: 10, Width: 72},
		exporters + "jax2onnx/nnx/ckpt-1.onnx":                         {Features: "relu_out_2", Weight: "const_16", Bias: "const_17", Scores: 10, Width: 12},
		exporters + "keras-tf2onnx/tf-keras/ckpt-1.onnx":               {Features: "model/relu3/Relu:0", Weight: "model/fc2/MatMul/ReadVariableOp:0", Bias: "model/fc2/BiasAdd/ReadVariableOp:0", Scores: 10, Width: 12},
		exporters + "transformer-tied/dynamo/ckpt-1.onnx":              {Features: "select_3", Weight: "head.weight", ScoresFirst: true, Scores: 16, Width: 12},
		exporters + "transformer-tied/torchscript-folding/ckpt-1.onnx": {Features: "/Gather_output_0", Weight: "onnx::MatMul_205", Scores: 16, Width: 12},
		"../cmd/swagwrap/testdata/softmax-1.onnx":                      {Features: "flat", Weight: "fc.weight", Bias: "fc.bias", ScoresFirst: true, Scores: 3, Width: 2},
	} {
		m := open(t, path)
		got, err := m.Head(m.Graph.Outputs[0].Name)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		want.Alpha, want.Beta, want.ElemType = 1, 1, Float
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

// Outputs that come from something else than a linear layer with stored weights.
func TestNoHead(t *testing.T) {
	w := tensor("w", Float, []int64{2, 3}, make([]byte, 24))
	b := tensor("b", Float, []int64{3}, make([]byte, 12))
	gemm := func(inputs []string, attributes ...[]byte) []byte {
		return node("Gemm", "g", inputs, []string{"y"}, attributes...)
	}
	for want, nodes := range map[string][][]byte{
		"is Relu, want a linear layer":                   {node("Relu", "g", []string{"x"}, []string{"y"})},
		"takes its features transposed":                  {gemm([]string{"x", "w", "b"}, intAttribute("transA", 1))},
		"its weight is no stored matrix":                 {gemm([]string{"x", "z"})},
		"its bias is not stored":                         {gemm([]string{"x", "w", "z"})},
		"an Add behind a Gemm":                           {node("Gemm", "g", []string{"x", "w"}, []string{"z"}), node("Add", "a", []string{"z", "b"}, []string{"y"})},
		"comes from no node that is known":               {node("Softmax", "s", []string{"y"}, []string{"y"}), node("Relu", "", []string{"x"}, []string{"z"})},
		`tensor "w": a bias of shape [2 3] for 3 scores`: {gemm([]string{"x", "w", "w"})},
	} {
		m := parse(t, encodeModel(graph(nodes, [][]byte{w, b}, [][]byte{output("y", Float)})))
		name := "y"
		if strings.HasPrefix(want, "comes from") {
			name = "missing"
		}
		if _, err := m.Head(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	// Softmax nodes in a circle end somewhere.
	m := parse(t, encodeModel(graph([][]byte{node("Softmax", "s", []string{"y"}, []string{"y"})}, [][]byte{w}, [][]byte{output("y", Float)})))
	if _, err := m.Head("y"); err == nil {
		t.Error("a circle has a head")
	}
}

// The features are an output more, of the layer's type and width.
func TestHeadTemplate(t *testing.T) {
	m := open(t, epoch30)
	h, err := m.Head("logits")
	if err != nil {
		t.Fatal(err)
	}
	names := m.FeatureTensors("logits")
	if n := len(names); n < 2 || n > 6 || names[n-1] != h.Features || slices.ContainsFunc(names, func(name string) bool { return !m.Makes(name) }) {
		t.Errorf("features %q", names)
	}
	none := &weights.Layout{}
	tpl, err := HeadTemplate(m, h, none)
	if err != nil {
		t.Fatal(err)
	}
	got := parse(t, render(t, tpl, none, weights.Slice{}, weights.Slice{})).Graph.Outputs
	if len(got) != 2 || got[1].Name != h.Features || got[1].ElemType != Float || !slices.Equal(got[1].Shape, []int64{-1, 32}) {
		t.Errorf("outputs %+v", got)
	}
}

// Each layer that says what it drops is switched by a tensor of ours, with its
// seed, and batch norm is not in training mode. That it drops is tested in
// internal/ensemble.
func TestDropoutTemplate(t *testing.T) {
	none := &weights.Layout{}
	m := open(t, "../fixtures/exporters/bn-1d-3d/training-mode/ckpt-1.onnx")
	tpl, err := DropoutTemplate(m, none, func(k int) int64 { return int64(40 + k) })
	if err != nil {
		t.Fatal(err)
	}
	got := parse(t, render(t, tpl, none, weights.Slice{}, weights.Slice{}))
	layers := 0
	for i := range got.Graph.Nodes {
		n := &got.Graph.Nodes[i]
		if n.OpType != "Dropout" {
			continue
		}
		on := got.Tensor(n.Inputs[2])
		if len(n.Inputs) != 3 || on == nil || on.ElemType.String() != "bool" || n.attribute("seed").Int != int64(40+layers) {
			t.Errorf("layer %d: inputs %q, attributes %+v", layers, n.Inputs, n.Attributes)
		}
		layers++
	}
	if layers == 0 {
		t.Error("the fixture has no Dropout")
	}
	bns, err := got.BatchNorms()
	if err != nil {
		t.Fatal(err)
	}
	for _, bn := range bns {
		if bn.IsTraining {
			t.Errorf("node %q is in training mode", bn.Node.Name)
		}
	}
	for _, path := range []string{epoch30, "../fixtures/exporters/bn-1d-3d/torchscript-opset9/ckpt-1.onnx"} {
		if _, err := DropoutTemplate(open(t, path), none, nil); !errors.Is(err, ErrNoDropout) {
			t.Errorf("%s: error %v", path, err)
		}
	}
}
