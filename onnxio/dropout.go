package onnxio

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"

	"github.com/swagwrap/swagwrap/weights"
)

// ErrNoDropout is the error for a model in which no layer can drop anything.
var ErrNoDropout = errors.New("the graph keeps no Dropout: export with model.train(), then " +
	"torch.onnx.export(..., dynamo=True, optimize=False)")

// ActiveDropout reports whether a Dropout of the main graph was exported in training mode. [Edit.DisableDropout] switches it off.
// Some exporters give a layer at rest its third input, training_mode, as false.
func ActiveDropout(m *Model) bool {
	return slices.ContainsFunc(m.Places(), func(p Place) bool {
		n := p.Node
		if p.Graph != m.Graph || n.OpType != "Dropout" || n.Domain != "" || len(n.Inputs) < 3 || n.Inputs[2] == "" {
			return false
		}
		mode := p.Tensors[2]
		if mode == nil {
			return true
		}
		b, _ := m.data.Bytes(mode.payload)
		return !bytes.Equal(b, []byte{0})
	})
}

// DropoutTemplate is [NewRuntimeTemplate] of a model whose Dropout layers drop in every run, while batch norm is in
// inference mode. seed returns the seed of the k-th of these layers. A session with seeds gives the same numbers in
// the same sequence of runs (https://onnx.ai/onnx/operators/onnx__Dropout.html).
//
// Dropout stays off in the bodies of functions and control flow, and in opsets before 12. It also stays off in layers
// that do not give the share they drop. If no other layer exists, the error is [ErrNoDropout].
func DropoutTemplate(m *Model, l *weights.Layout, seed func(k int) int64) (*Template, error) {
	dropping := *m
	dropping.dropout = true // keeps inference from switching them off, in a training-mode export too
	m = &dropping
	e, err := m.inference()
	if err != nil {
		return nil, err
	}
	if m.Opset < 12 {
		return nil, fmt.Errorf("%w, in opset 12 or later", ErrNoDropout)
	}
	on := unused("swagwrap_dropout_on", e.names())
	layers := 0
	for i := range m.Graph.Nodes {
		n := &m.Graph.Nodes[i]
		if n.OpType != "Dropout" || n.Domain != "" || len(n.Inputs) < 2 || n.Inputs[1] == "" {
			continue
		}
		e.remove(n, n.inputs[2:])
		e.append(n.msg, wire.AppendString(nil, wire.NodeInput, on))
		e.setInt(n, "seed", seed(layers))
		layers++
	}
	if layers == 0 {
		return nil, ErrNoDropout
	}
	e.addInitializer(on, boolean, []byte{1})
	e.ForRuntime()
	return e.Template(l)
}

// names returns the names of the values in the graph.
func (e *Edit) names() map[string]bool {
	taken := make(map[string]bool)
	for _, v := range e.m.Graph.Inputs {
		taken[v.Name] = true
	}
	for _, t := range e.m.tensors {
		taken[t.local] = true
	}
	for _, n := range e.m.Graph.Nodes {
		for _, out := range n.Outputs {
			taken[out] = true
		}
	}
	return taken
}
