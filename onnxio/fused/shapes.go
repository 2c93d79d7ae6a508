package fused

import (
	"slices"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
)

// Unshaped returns the names of values whose type or rank the networks' graphs do not show. The model has no value_info for them.
func Unshaped(m *Model) []string { return m.unshaped }

// shapes finds types and shapes of the values that members of network i compute.
func shapes(m *Model, i int) {
	n := m.networks[i]
	known := make(map[string]onnxio.Value)
	for k, v := range m.inputs {
		v = *n.input(k, v.Name)
		v.Shape, v.Dims = slices.Clone(v.Shape), slices.Clone(v.Dims)
		v.Shape[0], v.Dims[0] = -1, m.inputs[k].Dims[0]
		if n.half && v.ElemType == onnxio.Float {
			v.ElemType = onnxio.Float16
		}
		known[v.Name] = v
	}
	for _, t := range n.tensors {
		known[t.name] = onnxio.Value{Name: t.name, ElemType: t.elem, Shape: t.shape}
	}
	computed := make(map[string]bool)
	for _, d := range n.nodes {
		for _, name := range d.Outputs {
			computed[name] = tensorOf(d) == nil
		}
	}
	values, unknown := onnxio.Shapes(n.graph, known)
	of := make(map[string]onnxio.Value)
	for _, v := range values {
		if computed[v.Name] {
			of[v.Name] = v
		}
	}
	m.values = append(m.values, of)
	for _, name := range unknown {
		if computed[name] {
			m.unshaped = append(m.unshaped, name)
		}
	}
}

// valueInfo encodes types and shapes of the values that nodes compute. of has those that are known.
func valueInfo(of map[string]onnxio.Value, nodes []*onnxio.Node, r *renaming) (fields []byte) {
	for _, d := range nodes {
		for _, name := range d.Outputs {
			if v, ok := of[name]; ok {
				v.Name = r.of(name)
				fields = append(fields, v.Info()...)
			}
		}
	}
	return fields
}

// info is valueInfo for a block, whose nodes read inputs of the model and what members give.
func info(m *Model, b block) (fields []byte, err error) {
	if len(b.nodes) == 0 {
		return nil, nil
	}
	graph := append(b.fields(m.given), m.outputs...)
	reads := m.inputs
	for k, member := range m.members {
		if v, ok := m.values[member.Network][m.networks[member.Network].output]; ok {
			v.Name = m.renaming(k).of(v.Name)
			reads = append(slices.Clip(reads), v)
		}
	}
	for _, v := range reads {
		graph = append(graph, wire.AppendBytes(nil, wire.GraphInput, wire.Value(v.Name, v.ElemType, v.Shape, v.Dims))...)
	}
	model := append(wire.AppendVarint(nil, wire.ModelIR, uint64(m.ir)), encodeOpsets(m.opsets)...)
	parsed, err := onnxio.Parse("average", wire.AppendBytes(model, wire.ModelGraph, graph))
	if err != nil {
		return nil, err
	}
	values, unknown := onnxio.Shapes(parsed, nil)
	for _, v := range values {
		if !slices.ContainsFunc(parsed.Graph.Outputs, func(o onnxio.Value) bool { return o.Name == v.Name }) {
			fields = append(fields, v.Info()...)
		}
	}
	m.unshaped = append(m.unshaped, unknown...)
	return fields, nil
}

func encodeOpsets(opsets []onnxio.Opset) (fields []byte) {
	for _, o := range opsets {
		body := wire.AppendVarint(wire.AppendString(nil, wire.OpsetDomain, o.Domain), wire.OpsetVersion, uint64(o.Version))
		fields = append(fields, wire.AppendBytes(nil, wire.ModelOpset, body)...)
	}
	return fields
}
