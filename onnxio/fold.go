package onnxio

import (
	"fmt"
	"regexp"
)

// foldSigns are the names that exporters give to tensors which batch norm was
// folded into. fixtures/mnist/folded has both of PyTorch's.
var foldSigns = []struct {
	exporter string
	name     *regexp.Regexp
}{
	{"PyTorch's TorchScript exporter", regexp.MustCompile(`^onnx::Conv(Transpose)?_\d+$`)},
	{"PyTorch's dynamo exporter", regexp.MustCompile(`\.weight_bias$`)},
	{"tf2onnx", regexp.MustCompile(`_weights_fused_bn`)},
}

// FoldedBatchNorm says how batch norm was folded into the weights by an
// exporter, judged by the names that exporters leave behind, or "" where there
// is no sign of it. One file alone cannot be unfolded. Some batch norms may be
// left: TorchScript's exporter folds those behind a convolution only.
func (m *Model) FoldedBatchNorm() string {
	for _, t := range m.Graph.Initializers {
		for _, sign := range foldSigns {
			if sign.name.MatchString(t.Name) {
				return fmt.Sprintf("tensor %q has the name that %s gives to a weight with batch norm folded in", t.Name, sign.exporter)
			}
		}
	}
	return ""
}

// KeepBatchNorm is PyTorch's export call that keeps batch norm, for hints.
const KeepBatchNorm = `torch.onnx.export(model.eval(), (x,), path, dynamo=True, optimize=False, external_data=False, dynamic_shapes=({0: torch.export.Dim("batch")},))`
