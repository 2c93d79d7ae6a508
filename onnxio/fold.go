package onnxio

import "regexp"

// foldSigns are the names that exporters give to tensors which batch norm was
// folded into (facts from their sources and from runs).
var foldSigns = []struct {
	exporter string
	name     *regexp.Regexp
}{
	{"PyTorch's TorchScript exporter", regexp.MustCompile(`^onnx::Conv(Transpose)?_\d+$`)},
	{"PyTorch's dynamo exporter", regexp.MustCompile(`\.weight_bias$`)},
	{"tf2onnx", regexp.MustCompile(`_weights_fused_bn`)},
}

// KeepBatchNorm is the export call that keeps batch norm, for hints.
const KeepBatchNorm = "torch.onnx.export(model.eval(), x, path, dynamo=True, optimize=False, external_data=False)"
