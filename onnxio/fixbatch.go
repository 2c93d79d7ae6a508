package onnxio

import (
	"slices"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"

	"github.com/swagwrap/swagwrap/weights"
)

// RunOf returns the part Run for batches of one size. A runtime then computes shapes while it loads the model, and not in
// each run. RunOf returns Run itself if no input leaves its batch free. The graph may accept no batch of that size.
func (f *Parameterized) RunOf(batch int64) ([]byte, error) {
	m, err := Parse("run", f.Run)
	if err != nil {
		return nil, err
	}
	e, inputs := m.Edit(), m.FeedInputs()
	for _, v := range inputs[:len(inputs)-len(f.Names)] {
		if len(v.Shape) > 0 && !v.fixesBatch() {
			shape := slices.Clone(v.Shape)
			shape[0] = batch
			e.splice(v.msg.Span(), wire.AppendBytes(nil, wire.GraphInput, wire.Value(v.Name, v.ElemType, shape, v.Dims)), m.Graph.msg)
		}
	}
	if e.splices == nil {
		return f.Run, nil
	}
	t, err := e.Template(&weights.Layout{})
	if err != nil {
		return nil, err
	}
	return t.Render(&weights.Layout{}, weights.Slice{}, weights.Slice{})
}
