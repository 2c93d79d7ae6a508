package onnxio

import (
	"slices"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
	"github.com/swagwrap/swagwrap/weights"
)

// identities returns the Identity nodes of the main graph that rename an initializer, by the new name, with the
// initializer.
func (m *Model) identities() map[string]identity {
	held := make(map[string]*Tensor)
	for _, t := range m.Graph.Initializers {
		held[t.local] = t
	}
	out := make(map[string]identity)
	for i := range m.Graph.Nodes {
		n := &m.Graph.Nodes[i]
		if n.OpType != "Identity" || n.Domain != "" || len(n.Inputs) != 1 || len(n.Outputs) != 1 {
			continue
		}
		if t := held[n.Inputs[0]]; t != nil {
			held[n.Outputs[0]] = t
			out[n.Outputs[0]] = identity{n, t}
		}
	}
	return out
}

type identity struct {
	node *Node
	of   *Tensor
}

// Merged returns the names that Identity nodes of the main graph give to initializers, with these initializers.
// PyTorch's TorchScript exporter writes tensors that happen to be equal, such as the biases of a fresh network, only
// once. It writes Identity nodes for the other names.
func (m *Model) Merged() map[string]*Tensor {
	out := make(map[string]*Tensor)
	for name, of := range m.identities() {
		out[name] = of.of
	}
	return out
}

// Unmerge returns the model with the given names of [Model.Merged] as separate initializers, which replace the
// Identity nodes. m must stay open.
func (m *Model) Unmerge(names []string) (*Model, error) {
	all := m.identities()
	e := m.Edit()
	for _, name := range names {
		is := all[name]
		if is.node == nil {
			continue
		}
		if err := m.Readable(is.of); err != nil {
			return nil, err
		}
		e.splice(is.node.msg.Span(), nil, m.Graph.msg)
		e.append(m.Graph.msg, wire.AppendBytes(nil, graphInitializer, encodeTensor(name, is.of, m.Elements(is.of))))
	}
	none := &weights.Layout{}
	t, err := e.Template(none)
	if err != nil {
		return nil, err
	}
	return t.Model(m.Path, none)
}

// encodeTensor encodes a TensorProto like t.
func encodeTensor(name string, t *Tensor, elements []byte) []byte {
	var dims []byte
	for _, d := range t.Shape {
		dims = wire.AppendVarint(dims, tensorDims, uint64(d))
	}
	return slices.Concat(dims, wire.AppendVarint(nil, tensorType, uint64(t.ElemType)), wire.AppendString(nil, tensorName, name),
		wire.AppendBytes(nil, tensorRaw, elements))
}
