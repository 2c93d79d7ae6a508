package infer

import (
	"cmp"
	"fmt"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// mostElements bounds the elements of an example, and its scores. So the sum of several does not overflow.
const mostElements = 1 << 40

// open returns a shape with 1 for the dimensions that it leaves open.
func open(shape []int64) []int64 {
	out := make([]int64, len(shape))
	for i, d := range shape {
		out[i] = max(1, d)
	}
	return out
}

func tooLarge(m *onnxio.Model, what string, v onnxio.Value) error {
	return &onnxio.Error{
		Path:   m.Path,
		Tensor: v.Name,
		What:   fmt.Sprintf("%s of shape %s: too large", what, onnxio.FormatShape(v.Shape, v.Dims)),
		Hint:   free,
	}
}

// free helps with a graph whose sizes are wrong.
const free = "if these sizes are not meant, export the network with free dimensions: dynamic_axes, or dynamic_shapes"

// Fits fails if sizes that the graph fixes take more memory than there may be: one batch of examples, its states, or its
// scores. Fits must be called before anything of these sizes is made, because a graph may name any sizes.
func (g *Graph) Fits(b *memory.Budget) error {
	run := cmp.Or(b.Limit(), b.Networks()) // of ONNX Runtime, which makes the scores
	given := b.Batch()
	batch := int64(1)
	for _, v := range g.Inputs {
		batch = max(batch, v.Shape[0])
	}
	check := func(what string, v onnxio.Value, shape []int64, size, most int64) error {
		if _, err := weights.Within(shape, most/size); err == nil {
			return nil
		}
		return &onnxio.Error{Path: g.path, Tensor: v.Name,
			What: fmt.Sprintf("%s of shape %s: one batch takes more than the %d MiB that it may have", what,
				onnxio.FormatShape(v.Shape, v.Dims), most>>20),
			Hint: setting.Memory.With("SIZE") + " allows more\n" + free}
	}
	const float = 4      // bytes
	if g.states != nil { // they may be why the batch is fixed
		for i, v := range g.states.values {
			if err := check("a state", v, open(g.states.shape(i, int(batch), 1)), v.ElemType.DType().Size(), given); err != nil {
				return err
			}
		}
	}
	for _, v := range g.Inputs {
		size := int64(float)
		if (dataset.Field{Type: ort.DType(v.ElemType)}).Ints() {
			size = 8
		}
		if err := check("an input", v, append([]int64{batch}, open(v.Shape[1:])...), size, given); err != nil {
			return err
		}
	}
	return check("scores", g.output, []int64{batch, max(1, int64(g.layout.Count)), max(1, int64(g.layout.Positions))}, float, run)
}
