package onnxio

import (
	"slices"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
)

// FreeBatch leaves open the first dimension of what the model takes and gives,
// where the exporter fixed it, and drops the shapes that follow from it in between.
// Whether examples are then computed each by itself is for the caller to see:
// exporters write the size of the batch into the graph, too.
func (e *Edit) FreeBatch() {
	g := e.m.Graph
	for _, v := range e.m.FeedInputs() {
		if v.fixesBatch() {
			e.splice(v.msg.Span(), wire.AppendBytes(nil, graphInput, v.freed()), g.msg)
		}
	}
	for _, v := range g.Outputs {
		if v.fixesBatch() {
			e.splice(v.msg.Span(), wire.AppendBytes(nil, graphOutput, v.freed()), g.msg)
		}
	}
	for _, at := range g.inferred {
		e.splice(at, nil, g.msg)
	}
}

func (v Value) fixesBatch() bool { return len(v.Shape) > 0 && v.Shape[0] >= 0 }

// freed encodes the value with its first dimension open.
func (v Value) freed() []byte {
	shape := slices.Clone(v.Shape)
	shape[0] = -1
	return encodeValue(v.Name, v.ElemType, shape)
}
