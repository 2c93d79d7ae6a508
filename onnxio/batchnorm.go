package onnxio

import (
	"fmt"
	"slices"
)

// BatchNorm is a batch-norm layer whose running statistics are stored. Most are BatchNormalization nodes. Their
// statistics are found through Identity nodes, which exporters leave behind when they merge equal tensors. Other
// layers are written out in operators: see [Model.WrittenBatchNorms].
type BatchNorm struct {
	Node       *Node
	Written    *Formula // of a layer that is written out in operators, the last of which is Node; nil for a BatchNormalization node
	Input      string   // name of the value that the layer normalises
	Mean, Var  string   // names of the tensors that hold the running statistics
	Epsilon    float64
	Momentum   float64 // ONNX's: the share that the running statistics keep at each batch
	Channels   int64
	ElemType   ElemType // type of the statistics
	OldOpset   bool     // before opset 14: no training_mode attribute, training means five outputs
	IsTraining bool     // exported in training mode
}

// BatchNorms returns the batch norm nodes of the main graph in node order. It leaves out nodes whose statistics are
// computed in the graph, such as exported InstanceNorm layers, because nothing is stored for them. It fails if the
// statistics cannot be recomputed, because two nodes share them, or the node is inside a function or the body of an
// If or Loop.
func (m *Model) BatchNorms() ([]BatchNorm, error) { return m.batchNorms(false) }

// batchNorms is BatchNorms. shared allows nodes to share their statistics, as members with frozen statistics do in one
// model.
func (m *Model) batchNorms(shared bool) ([]BatchNorm, error) {
	owner := make(map[*Tensor]string)
	var out []BatchNorm
	for _, p := range m.Places() {
		n := p.Node
		if n.OpType != "BatchNormalization" || n.Domain != "" {
			continue
		}
		fail := func(tensor, hint, format string, args ...any) error {
			return &Error{Path: m.Path, Tensor: tensor, What: fmt.Sprintf(format, args...), Hint: hint}
		}
		if len(n.Inputs) != 5 || len(n.Outputs) == 0 {
			return nil, fail("", "", "node %q: batch norm with %d inputs, want 5", n.Name, len(n.Inputs))
		}
		mean, vari := p.Tensors[3], p.Tensors[4]
		if slices.Contains(m.Functions, p.Graph) {
			return nil, fail("", "write the model with its functions inlined: onnx.inliner.inline_local_functions(model)",
				"node %q: batch norm inside function %q", n.Name, p.Graph.Name)
		}
		if mean == nil || vari == nil {
			continue
		}
		if p.Graph != m.Graph {
			return nil, fail("", "", "node %q: batch norm inside a control-flow body: its statistics cannot be recomputed", n.Name)
		}
		if mean.Len() != vari.Len() {
			return nil, fail(vari.Name, "", "shape %v, want %v as its running mean has", vari.Shape, mean.Shape)
		}
		for _, t := range []*Tensor{mean, vari} {
			if first, taken := owner[t]; taken && !shared {
				return nil, fail(t.Name, "export the network so that the shared part runs once, on all its inputs together. This also "+
					"works after training, with the same weights: f = model.encoder(torch.cat([a, b])); a, b = f.chunk(2). Inputs of "+
					"different kinds need a BatchNorm module for each, from before training",
					"running statistics shared by batch norm nodes %q and %q", first, n.Name)
			}
			owner[t] = n.Name
		}
		old := m.Opset < 14
		out = append(out, BatchNorm{
			Node:       n,
			Input:      n.Inputs[0],
			Epsilon:    n.Float("epsilon", 1e-5),
			Momentum:   n.Float("momentum", 0.9),
			Mean:       mean.Name,
			Var:        vari.Name,
			Channels:   mean.Len(),
			ElemType:   mean.ElemType,
			OldOpset:   old,
			IsTraining: n.Int("training_mode", 0) == 1 || old && len(n.Outputs) > 1,
		})
	}
	return out, nil
}

// InstanceStatistics returns the names of tensors that hold the running statistics of InstanceNorm layers
// (track_running_stats in PyTorch). In evaluation mode exporters write such a layer as a batch norm over examples and
// channels together. Its statistics are repeated for each example.
func (m *Model) InstanceStatistics() (names []string) {
	v := m.viewer()
	for _, p := range v.places {
		if p.Node.OpType != "BatchNormalization" || len(p.Node.Inputs) != 5 {
			continue
		}
		for k := 3; k < 5; k++ {
			of, ok := v.producer(p, k)
			for range maxView {
				if !ok || !repeats(of) && !v.isView(of) {
					break
				}
				if w := v.view(of, 0); w != nil && w.tensor.IsFloat() && repeats(of) {
					names = append(names, w.tensor.Name)
					break
				}
				of, ok = v.producer(of, 0)
			}
		}
	}
	return names
}

func repeats(p Place) bool { return p.Node.OpType == "Tile" || p.Node.OpType == "Expand" }
