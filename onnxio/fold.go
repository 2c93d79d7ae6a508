package onnxio

import (
	"fmt"
	"regexp"
)

// Folding says that an exporter folded batch norm into the neighbouring weights.
type Folding struct {
	Exporter string
	Tensor   string // name of the tensor that shows it, or ""
	Node     string // node whose metadata shows it
	Keep     string // the export call that keeps batch norm
}

// String says how the folding was noticed.
func (f *Folding) String() string {
	if f.Tensor == "" {
		return fmt.Sprintf("batch norm is folded into the weights: %s says so in the metadata of node %q", f.Exporter, f.Node)
	}
	return fmt.Sprintf("batch norm is folded into the weights: tensor %q has the name that %s gives to a weight with batch norm folded in", f.Tensor, f.Exporter)
}

// Export calls that keep batch norm. docs/exporting.md shows them in full.
const (
	KeepPyTorch     = `torch.onnx.export(model.eval(), (x,), path, dynamo=True, optimize=False, dynamic_shapes=({0: torch.export.Dim("batch")},))`
	KeepTorchScript = KeepPyTorch + ` or, with the older exporter, torch.onnx.export(model.eval(), x, path, dynamo=False, training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False, dynamic_axes={"input": {0: "batch"}})`
	KeepKeras       = `from tf2onnx.optimizer import _get_optimizers; optimizers = dict(_get_optimizers()); del optimizers["remove_back_to_back"]; tf2onnx.convert.from_keras(model, input_signature=(tf.TensorSpec((None, 32, 32, 3), tf.float32, name="input"),), output_path=path, optimizers=optimizers), where the model's batch norm layers are the FusedBN of docs/exporting.md, "Keras": Keras takes its own apart`
)

// foldSigns are the names that exporters give to tensors with batch norm folded in. fixtures has an export of each:
// mnist/folded, and exporters/keras-tf2onnx.
var foldSigns = []struct {
	exporter string
	name     *regexp.Regexp
	keep     string
}{
	{"PyTorch's TorchScript exporter", regexp.MustCompile(`^onnx::Conv(Transpose)?_\d+$`), KeepTorchScript},
	{dynamo, regexp.MustCompile(`\.weight_bias$`), KeepPyTorch},
	{"tf2onnx", regexp.MustCompile(`_(weights|bias)_fused_bn$`), KeepKeras},
	{"TensorFlow", regexp.MustCompile(`/batchnorm(_\d+)?/(mul|sub)(_\d+)?:0$`), KeepKeras},
}

// FoldedBatchNorm says how an exporter folded batch norm into the weights, or returns nil if there is no sign of it.
// It looks at the names that exporters leave behind. One file alone cannot be unfolded. Some batch norms may be left:
// TorchScript's exporter only folds those after a convolution.
func (m *Model) FoldedBatchNorm() *Folding {
	for _, t := range m.tensors {
		for _, sign := range foldSigns {
			if sign.name.MatchString(t.Name) {
				return &Folding{Exporter: sign.exporter, Tensor: t.Name, Keep: sign.keep}
			}
		}
	}
	for _, n := range m.Graph.Nodes {
		if n.foldsBatchNorm {
			return &Folding{Exporter: dynamo, Node: n.Name, Keep: KeepPyTorch}
		}
	}
	return nil
}

// foldRule is the beginning of the names of the rewrites by which PyTorch's dynamo exporter folds batch norm
// (onnxscript, rewriter/rules/common). The exporter notes them in the metadata of the remaining node. If a layer had
// its own bias there is no other trace, because weight and bias keep their names.
const foldRule = "FuseBatchNormInto"

const dynamo = "PyTorch's dynamo exporter"
