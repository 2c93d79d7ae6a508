package onnxio

import (
	"strings"
	"testing"
)

func TestFoldedBatchNorm(t *testing.T) {
	named := func(name string) *Model { return parse(t, encodeModel(tinyGraph(tensor(name, Int64, nil, nil)))) }
	for want, models := range map[string][]*Model{
		"PyTorch's TorchScript exporter": {fixture(t, "folded"), named("onnx::ConvTranspose_7")},
		"PyTorch's dynamo exporter":      {named("layer1.conv.weight_bias")},
		"tf2onnx":                        {named("model/conv/Conv2D_weights_fused_bn")},
		"":                               {fixture(t, "raw-f32"), fixture(t, "batchnorm"), named("onnx::MatMul_36"), named("conv.weight"), named("my_onnx::Conv_1x")},
	} {
		for _, m := range models {
			got := m.FoldedBatchNorm()
			if (got == "") != (want == "") || !strings.Contains(got, want) {
				t.Errorf("%s, tensor %q: %q, want %q in it", m.Path, m.Graph.Initializers[0].Name, got, want)
			}
		}
	}
	for name, want := range map[string]string{"torchscript-epoch-30.onnx": "TorchScript", "dynamo-epoch-30.onnx": "dynamo"} {
		if got := open(t, "../fixtures/mnist/folded/"+name).FoldedBatchNorm(); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q in it", name, got, want)
		}
	}
	// Some batch norms may be left beside the folded ones.
	bn := node("BatchNormalization", "bn", []string{"x", "onnx::Conv_1", "b", "m", "v"}, []string{"y"})
	m := parse(t, encodeModel(graph([][]byte{bn}, [][]byte{tensor("onnx::Conv_1", Int64, nil, nil)}, [][]byte{output("y", Float)})))
	if got := m.FoldedBatchNorm(); !strings.Contains(got, "TorchScript") {
		t.Errorf("with a batch norm left: %q", got)
	}
}
