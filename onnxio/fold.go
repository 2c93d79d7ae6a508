package onnxio

import (
	"fmt"
	"regexp"
	"strings"
)

// Folding says that an exporter folded batch norm into the neighbouring weights.
type Folding struct {
	Exporter string
	Tensor   string // name of the tensor that shows it, or ""
	Node     string // node whose metadata shows it
	From     string // a checkpoint with the statistics, if nothing in the file itself shows it
	Keep     string // the export call that keeps batch norm
}

// String says how the folding was noticed.
func (f *Folding) String() string {
	switch {
	case f.Exporter == ortOptimiser && f.Node != "":
		return fmt.Sprintf("batch norm is folded into the weights: node %q is for one kind of processor, and %s folds batch norm before "+
			"it writes such nodes", f.Node, f.Exporter)
	case f.Exporter == ultralytics:
		return fmt.Sprintf("batch norm is folded into the weights: the metadata say that %s wrote the file, which folds batch norm before "+
			"it exports. The convolution with the weight %q has a bias, and no layer is a batch norm", f.Exporter, f.Tensor)
	case f.From != "":
		return fmt.Sprintf("batch norm is folded into the weights: %s has its statistics, and here the convolution with the weight %q has "+
			"a bias, and no layer normalises", f.From, f.Tensor)
	case f.Exporter == kerasTorch:
		return fmt.Sprintf("batch norm is folded into the weights: %s multiplies scale and variance together before it exports. From the "+
			"tensor %q on, the files hold products, so that no posterior of the parameters exists", f.Exporter, f.Tensor)
	case f.Tensor == "":
		return fmt.Sprintf("batch norm is folded into the weights: %s says so in the metadata of node %q", f.Exporter, f.Node)
	}
	return fmt.Sprintf("batch norm is folded into the weights: tensor %q has the name that %s gives to a weight with batch norm folded in",
		f.Tensor, f.Exporter)
}

// Export calls that keep batch norm. docs/exporting.md shows them in full.
const (
	KeepPyTorch     = `torch.onnx.export(model.eval(), (x,), path, dynamo=True, optimize=False, dynamic_shapes=({0: torch.export.Dim("batch")},))`
	KeepPreserve    = `torch.onnx.export(model.eval(), x, path, dynamo=False, training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False, dynamic_axes={"input": {0: "batch"}})`
	KeepTorchScript = KeepPyTorch + ` or, with the older exporter, ` + KeepPreserve
	KeepOptimised   = KeepPyTorch + ", and give the files that the exporter writes, before any optimiser changes them"
	KeepKeras       = `train with model.fit(..., callbacks=[swagwrap.keras.Callback(folder, x)]), or save each epoch with swagwrap.tensorflow.save(folder, module, x, epoch) without Keras. They write one graph that keeps batch norm, and the weights by name (docs/exporting.md, "Keras")`
	KeepUltralytics = `model = YOLO("weights/last.pt").model.float().eval(); torch.onnx.export(model, (torch.zeros(2, 3, 224, 224),), ` +
		`"model.onnx", dynamo=True, optimize=False, dynamic_shapes=({0: torch.export.Dim("batch")},)), with the size of training in ` +
		`place of 224. That one graph is the template of all files in weights`
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
	{ortOptimiser, regexp.MustCompile(`^(ConvBnFusion_(W|BN_B)|MatMulBnFusion_Gemm(B|Bias)?)_`), KeepOptimised},
	{"TensorFlow", regexp.MustCompile(`(^|/)batchnorm(_\d+)?/(mul|sub)(_\d+)?:0$`), KeepKeras},
}

// FoldedBatchNorm says how an exporter folded batch norm into the weights, or returns nil if there is no sign of it.
// It looks at the names that exporters leave behind. One file alone cannot be unfolded. Some batch norms may be left:
// TorchScript's exporter only folds those after a convolution.
func (m *Model) FoldedBatchNorm() *Folding {
	for i := range m.Graph.Nodes { // first: its exporter is PyTorch's, and renames convolutions whether folded or not
		if n := &m.Graph.Nodes[i]; keras(m.Graph.Nodes[i:]) {
			return &Folding{Exporter: kerasTorch, Tensor: n.Inputs[1], Keep: KeepKeras}
		}
	}
	for _, t := range m.tensors {
		for _, sign := range foldSigns {
			if sign.name.MatchString(t.Name) {
				return &Folding{Exporter: sign.exporter, Tensor: t.Name, Keep: sign.keep}
			}
		}
	}
	for i := range m.Graph.Nodes {
		n := &m.Graph.Nodes[i]
		switch {
		case n.foldsBatchNorm:
			return &Folding{Exporter: dynamo, Node: n.Name, Keep: KeepPyTorch}
		case n.Domain == "com.microsoft.nchwc" && n.OpType == "Conv":
			return &Folding{Exporter: ortOptimiser, Node: n.Name, Keep: KeepOptimised}
		case n.Domain == "" && (n.OpType == "Conv" || n.OpType == "ConvTranspose"):
			if by := foldedConv(n, m.tensors); by != "" {
				return &Folding{Exporter: by, Tensor: n.Inputs[1], Keep: KeepOptimised}
			}
		}
	}
	return foldedBefore(m)
}

// foldedBefore finds the networks of a program that folds batch norm in PyTorch, before it exports. Nothing in such a graph has another
// name than in a network without batch norm, so the program's own metadata must say whose it is.
func foldedBefore(m *Model) *Folding {
	if m.Metadata["author"] != "Ultralytics" {
		return nil
	}
	tensor := ""
	for _, n := range m.Graph.Nodes {
		switch {
		case n.OpType == "BatchNormalization":
			return nil
		case n.OpType == "Conv" && len(n.Inputs) == 3 && tensor == "":
			tensor = n.Inputs[1]
		}
	}
	if tensor == "" {
		return nil
	}
	return &Folding{Exporter: ultralytics, Tensor: tensor, Keep: KeepUltralytics}
}

// Unnormalised returns the weight of the first convolution, if all of them have a bias and no layer normalises. Either the network is so,
// or batch norm was folded before the export. It returns nil for other networks.
func Unnormalised(m *Model) (weight *Tensor) {
	for i := range m.Graph.Nodes {
		switch n := &m.Graph.Nodes[i]; n.OpType {
		case "Conv", "ConvTranspose":
			if len(n.Inputs) != 3 {
				return nil
			}
			if weight == nil {
				weight = m.Tensor(n.Inputs[1])
			}
		case "Sqrt": // a normalisation that the exporter has written out
			return nil
		default:
			if strings.HasSuffix(n.OpType, "Normalization") {
				return nil
			}
		}
	}
	return weight
}

// The optimisers of ONNX files, which fold batch norm into the convolution before it.
const (
	ortOptimiser = "ONNX Runtime's optimiser"
	slimmer      = "onnxslim"
	ultralytics  = "ultralytics"
	kerasTorch   = "Keras with the backend torch"
	simplifier   = "onnx-simplifier, or an old exporter of PyTorch,"
)

// computed matches the names that PyTorch's TorchScript exporter gives to tensors that it computed.
var computed = regexp.MustCompile(`^onnx::(Sub|Mul|Add)_\d+$`)

// keras reports whether the nodes begin with the batch norm of Keras 3 with the backend torch, after its exporter computed the
// statistics. It is x − mean, times one tensor for scale and variance, plus the bias. These tensors have no own names.
func keras(nodes []Node) bool {
	ops := []string{"Sub", "Mul", "Add"}
	if len(nodes) < len(ops) {
		return false
	}
	for i, op := range ops {
		n := &nodes[i]
		if n.OpType != op || n.Domain != "" || len(n.Inputs) != 2 || len(n.Outputs) != 1 || !computed.MatchString(n.Inputs[1]) {
			return false
		}
		if i > 0 && n.Inputs[0] != nodes[i-1].Outputs[0] {
			return false
		}
	}
	return true
}

// unnamed matches the names that onnx-simplifier makes up. PyTorch before 1.11 made up such names, too.
var unnamed = regexp.MustCompile(`^(_v_)?\d+$`)

// foldedConv returns the optimiser that gives such names to the weights of a convolution, or "". onnxslim names weight and
// bias by the output. MXNet does too, but there the node has the same name as the output. A made-up name shows something only
// if other tensors have names.
func foldedConv(n *Node, tensors []*Tensor) string {
	if len(n.Inputs) != 3 || len(n.Outputs) != 1 {
		return ""
	}
	out, weight := n.Outputs[0], n.Inputs[1]
	switch {
	case weight == out+"_weight" && n.Inputs[2] == out+"_bias" && n.Name != out:
		return slimmer
	case !unnamed.MatchString(weight):
		return ""
	}
	for _, t := range tensors {
		if t.ElemType.DType().IsFloat() && !unnamed.MatchString(t.Name) {
			return simplifier
		}
	}
	return ""
}

// foldRule is the beginning of the names of the rewrites by which PyTorch's dynamo exporter folds batch norm
// (onnxscript, rewriter/rules/common). The exporter notes them in the metadata of the remaining node. If a layer had
// its own bias there is no other trace, because weight and bias keep their names.
const foldRule = "FuseBatchNormInto"

const dynamo = "PyTorch's dynamo exporter"
