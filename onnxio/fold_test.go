package onnxio

import (
	"bytes"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
)

func TestFoldedBatchNorm(t *testing.T) {
	named := func(name string) *Model { return parse(t, encodeModel(tinyGraph(tensor(name, Int64, nil, nil)))) }
	conv := func(domain, weight, bias, out string) *Model {
		n := wire.AppendString(node("Conv", "node", []string{"x", weight, bias}, []string{out}), wire.NodeDomain, domain)
		return parse(t, encodeModel(graph([][]byte{n}, [][]byte{tensor(weight, Float, []int64{1}, make([]byte, 4)), tensor(bias, Float, []int64{1}, make([]byte, 4)), tensor("fc.weight", Float, []int64{1}, make([]byte, 4))}, [][]byte{output(out, Float)})))
	}
	keras32 := func(mean, scale, bias string) *Model {
		nodes := [][]byte{node("Sub", "a", []string{"x", mean}, []string{"1"}), node("Mul", "b", []string{"1", scale}, []string{"2"}), node("Add", "c", []string{"2", bias}, []string{"y"})}
		return parse(t, encodeModel(graph(nodes, [][]byte{tensor(mean, Float, []int64{1}, make([]byte, 4)), tensor(scale, Float, []int64{1}, make([]byte, 4)), tensor(bias, Float, []int64{1}, make([]byte, 4))}, [][]byte{output("y", Float)})))
	}
	for want, models := range map[string][]*Model{
		"PyTorch's TorchScript exporter": {open(t, "../fixtures/mnist/folded/torchscript-epoch-30.onnx"), fixture(t, "folded"), named("onnx::ConvTranspose_7")},
		"PyTorch's dynamo exporter":      {open(t, "../fixtures/mnist/folded/dynamo-epoch-30.onnx"), named("layer1.conv.weight_bias")},
		"tf2onnx":                        {named("model/conv/Conv2D_weights_fused_bn"), named("a/Conv2D_bias_fused_bn")},
		"TensorFlow":                     {named("net/bn/batchnorm/mul:0"), named("batchnorm_1/sub:0"), named("net/bn/batchnorm_1/sub_1:0")},
		"ONNX Runtime's optimiser":       {named("ConvBnFusion_W_conv1.weight"), named("ConvBnFusion_BN_B_1.bias"), named("MatMulBnFusion_GemmB_fc.weight"), conv("com.microsoft.nchwc", "w", "b", "y")},
		"Keras with the backend torch":   {keras32("onnx::Sub_82", "onnx::Mul_91", "onnx::Add_85")},
		"onnxslim":                       {conv("", "getitem_weight", "getitem_bias", "getitem"), conv("", "/bn/BatchNormalization_output_0_weight", "/bn/BatchNormalization_output_0_bias", "/bn/BatchNormalization_output_0")},
		"onnx-simplifier, or an old exporter of PyTorch,": {conv("", "_v_28", "_v_29", "conv2d"), conv("", "193", "194", "192")},
		"": {keras32("mean", "onnx::Mul_91", "onnx::Add_85"), keras32("onnx::Sub_82", "onnx::Mul_91", "bias"), conv("", "conv0_weight", "conv0_bias", "node"), conv("", "node_weight", "node_bias", "node"), conv("", "0.weight", "0.bias", "12"), named("ConvBnFusion"), conv("com.example", "getitem_weight", "getitem_bias", "getitem"),
			fixture(t, "raw-f32"), fixture(t, "batchnorm"), named("onnx::MatMul_36"), named("conv.weight"), named("my_onnx::Conv_1x"), named("net/batchnorm/mul_x")},
	} {
		for _, m := range models {
			if got := foldedBy(m); got != want {
				t.Errorf("%s, tensor %q: %q, want %q", m.Path, m.Graph.Initializers[0].Name, got, want)
			}
		}
	}
	got := keras32("onnx::Sub_82", "onnx::Mul_91", "onnx::Add_85").FoldedBatchNorm()
	withConv := keras32("onnx::Sub_82", "onnx::Mul_91", "onnx::Add_85")
	withConv.tensors = append([]*Tensor{{Name: "onnx::Conv_92"}}, withConv.tensors...)
	if by := foldedBy(withConv); by != kerasTorch {
		t.Errorf("Keras, with a convolution: %q", by)
	}
	if !strings.Contains(got.String(), `"onnx::Sub_82"`) || !strings.Contains(got.String(), "no posterior of the parameters exists") ||
		!strings.Contains(got.Keep, "swagwrap.keras.Callback(") {
		t.Errorf("Keras: %v, keep %s", got, got.Keep)
	}
	// Some batch norms may be left beside the folded ones.
	bn := node("BatchNormalization", "bn", []string{"x", "onnx::Conv_1", "b", "m", "v"}, []string{"y"})
	m := parse(t, encodeModel(graph([][]byte{bn}, [][]byte{tensor("onnx::Conv_1", Int64, nil, nil)}, [][]byte{output("y", Float)})))
	got = m.FoldedBatchNorm()
	if got == nil || got.Tensor != "onnx::Conv_1" || got.Keep != KeepTorchScript || !strings.Contains(got.String(), `tensor "onnx::Conv_1" has the name that PyTorch's TorchScript`) {
		t.Errorf("with a batch norm left: %v", got)
	}
}

// Layers with a bias of their own keep all names: the exporter's note in the
// metadata is the only sign. Here a real export has its telling names changed.
func TestFoldedBatchNormByMetadata(t *testing.T) {
	m := open(t, "../fixtures/exporters/torch-dynamo-default/ckpt-1.onnx")
	renamed := parse(t, bytes.ReplaceAll(m.Bytes(), []byte("weight_bias"), []byte("weight_bixs")))
	got := renamed.FoldedBatchNorm()
	if got == nil || got.Tensor != "" || got.Node != "node_Conv_33" || !strings.Contains(got.String(), `metadata of node "node_Conv_33"`) {
		t.Errorf("folding %v", got)
	}
}

func foldedBy(m *Model) string {
	if f := m.FoldedBatchNorm(); f != nil {
		return f.Exporter
	}
	return ""
}

// Ultralytics folds batch norm in PyTorch, so only its metadata tell its networks from those without batch norm.
func TestFoldedBeforeTheExport(t *testing.T) {
	t.Parallel()
	model := func(author string, extra ...[]byte) *Model {
		inputs := []string{"x", "conv.weight", "conv.bias"}
		nodes := append([][]byte{node("Conv", "conv", inputs, []string{"y"})}, extra...)
		var weights [][]byte
		for _, name := range []string{"conv.weight", "conv.bias", "bn"} {
			weights = append(weights, tensor(name, Float, []int64{1}, make([]byte, 4)))
		}
		m := encodeModel(graph(nodes, weights, [][]byte{output("y", Float)}))
		return parse(t, append(m, AppendMetadata(nil, map[string]string{"author": author, "task": "classify"})...))
	}
	if got := foldedBy(model("Ultralytics")); got != "ultralytics" {
		t.Errorf("exporter %q", got)
	}
	if f := model("Ultralytics").FoldedBatchNorm(); !strings.Contains(f.String(), `the weight "conv.weight" has a bias`) || f.Keep != KeepUltralytics {
		t.Errorf("%v", f)
	}
	kept := node("BatchNormalization", "bn", []string{"y", "bn", "bn", "bn", "bn"}, []string{"z"})
	for what, m := range map[string]*Model{"another author": model("me"), "batch norm is kept": model("Ultralytics", kept)} {
		if got := foldedBy(m); got != "" {
			t.Errorf("%s: exporter %q", what, got)
		}
	}
}

// A network without normalisation looks like one whose batch norm was folded: every convolution has a bias.
func TestUnnormalised(t *testing.T) {
	t.Parallel()
	model := func(inputs []string, extra ...[]byte) *Model {
		nodes := append([][]byte{node("Conv", "conv", inputs, []string{"y"})}, extra...)
		var weights [][]byte
		for _, name := range []string{"conv.weight", "conv.bias"} {
			weights = append(weights, tensor(name, Float, []int64{1}, make([]byte, 4)))
		}
		return parse(t, encodeModel(graph(nodes, weights, [][]byte{output("y", Float)})))
	}
	biased := []string{"x", "conv.weight", "conv.bias"}
	if w := Unnormalised(model(biased)); w == nil || w.Name != "conv.weight" {
		t.Errorf("%v", w)
	}
	for what, m := range map[string]*Model{
		"a convolution without a bias": model(biased, node("Conv", "b", []string{"y", "conv.weight"}, []string{"z"})),
		"batch norm":                   model(biased, node("BatchNormalization", "b", []string{"y", "conv.weight", "conv.bias", "conv.bias", "conv.bias"}, []string{"z"})),
		"layer norm":                   model(biased, node("LayerNormalization", "b", []string{"y", "conv.weight"}, []string{"z"})),
		"one written out":              model(biased, node("Sqrt", "b", []string{"y"}, []string{"z"})),
	} {
		if w := Unnormalised(m); w != nil {
			t.Errorf("%s: %v", what, w.Name)
		}
	}
}

// The pad token is in the graphs of networks that take the last token before it. Those that look for the end of the text have none.
func TestEndTokens(t *testing.T) {
	t.Parallel()
	model := func(nodes ...[]byte) *Model {
		return parse(t, encodeModel(wire.AppendBytes(graph(nodes, [][]byte{tensor("pad", Int64, nil, []byte{50, 0, 0, 0, 0, 0, 0, 0})}, [][]byte{output("y", Float)}),
			wire.GraphInput, wire.AppendString(nil, wire.ValueName, "ids"))))
	}
	equal, not := node("Equal", "e", []string{"cast", "pad"}, []string{"is"}), node("Not", "n", []string{"is"}, []string{"not"})
	cast, argmax := node("Cast", "c", []string{"ids"}, []string{"cast"}), node("ArgMax", "a", []string{"not"}, []string{"y"})
	if got := EndTokens(model(cast, equal, not, argmax)); len(got) != 1 || got["ids"] != 50 {
		t.Errorf("%v", got)
	}
	for what, m := range map[string]*Model{
		"of the end of the text": model(cast, equal, node("ArgMax", "a", []string{"is"}, []string{"y"})),
		"for positions only":     model(cast, equal, not, node("CumSum", "a", []string{"not"}, []string{"y"})),
	} {
		if got := EndTokens(m); len(got) != 0 {
			t.Errorf("%s: %v", what, got)
		}
	}
}
