package onnxio

import (
	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
)

// Merged returns the names that Identity nodes of the main graph give to initializers, with these initializers.
// PyTorch's TorchScript exporter writes tensors that happen to be equal, such as the biases of a fresh network, only
// once. It writes Identity nodes for the other names.
func (m *Model) Merged() map[string]*Tensor {
	held := make(map[string]*Tensor)
	for _, t := range m.Graph.Initializers {
		held[t.local] = t
	}
	out := make(map[string]*Tensor)
	for i := range m.Graph.Nodes {
		n := &m.Graph.Nodes[i]
		if n.OpType != "Identity" || n.Domain != "" || len(n.Inputs) != 1 || len(n.Outputs) != 1 {
			continue
		}
		if t := held[n.Inputs[0]]; t != nil {
			held[n.Outputs[0]], out[n.Outputs[0]] = t, t
		}
	}
	return out
}

// Unmerge returns the model with the given names of [Model.Merged] as separate initializers, which replace the
// Identity nodes. m must stay open.
func (m *Model) Unmerge(names []string) (*Model, error) {
	merged := m.Merged()
	e := m.Edit()
	for _, name := range names {
		of := merged[name]
		if of == nil {
			continue
		}
		if err := m.Readable(of); err != nil {
			return nil, err
		}
		e.splice(m.Graph.Producer(name).msg.Span(), nil, m.Graph.msg)
		e.append(m.Graph.msg, wire.Initializer(name, of.ElemType, of.Shape, m.Elements(of)))
	}
	return changed(e)
}
