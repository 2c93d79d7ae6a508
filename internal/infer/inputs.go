package infer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// readInputs reads the network's inputs. Several inputs form a record: the elements of each input follow those of the
// one before. See [Graph].Input.
func (g *Graph) readInputs(m *onnxio.Model) error {
	g.Inputs, g.rows, g.EndTokens = g.states.inputs(m.FeedInputs()), m.Rows(), onnxio.EndTokens(m)
	if len(g.Inputs) == 0 {
		return &onnxio.Error{Path: m.Path, What: "the network takes no input"}
	}
	batch, fixed, total := int64(-1), "", int64(0)
	var names []string
	for _, v := range g.Inputs {
		if len(v.Shape) == 0 && strings.Contains(v.Name, "sliding_window") { // as the exporter of Transformers names it
			return &onnxio.Error{Path: m.Path, Tensor: v.Name, What: "a cache with a sliding window, which is not supported",
				Hint: "export the network without its cache (use_cache=False), and score windows that overlap: " +
					setting.Text.With(`"window=N stride=M"`)}
		}
		if len(v.Shape) == 0 {
			return &onnxio.Error{Path: m.Path, Tensor: v.Name, What: "the input has no batch dimension"}
		}
		names = append(names, v.Name)
		switch n := v.Shape[0]; {
		case n >= 0 && batch >= 0 && n != batch:
			return &onnxio.Error{
				Path:   m.Path,
				Tensor: v.Name,
				What:   fmt.Sprintf("takes batches of %d only, and input %q of %d", n, fixed, batch),
			}
		case n >= 0:
			batch, fixed = n, v.Name
		}
		if len(g.Inputs) > 1 && !feeds(ort.DType(v.ElemType)) {
			return &onnxio.Error{
				Path:   m.Path,
				Tensor: v.Name,
				What:   fmt.Sprintf("an input of type %v, want a float type, an integer type or bool", v.ElemType),
			}
		}
		size, err := weights.Within(open(v.Shape[1:]), mostElements)
		if err != nil {
			return tooLarge(m, "an input", v)
		}
		if total >= 0 {
			total += size
		}
		if len(v.Shape) > 1 && slices.Min(v.Shape[1:]) < 1 {
			total = -1
		}
	}
	if g.Input = g.Inputs[0]; len(g.Inputs) > 1 {
		g.Input = onnxio.Value{
			Name:     strings.Join(names, "+"),
			ElemType: onnxio.Float,
			Shape:    []int64{batch, total},
			Dims:     []string{"batch", ""},
		}
	}
	return nil
}

// Fields returns the inputs, for [dataset.Options].
func (g *Graph) Fields() []dataset.Field {
	var out []dataset.Field
	for _, v := range g.Inputs {
		out = append(out, dataset.Field{
			Name:  v.Name,
			Shape: v.Shape[1:],
			Dims:  v.Dims[1:],
			Type:  ort.DType(v.ElemType),
			Rows:  g.rows[v.Name],
		})
	}
	return out
}

// feeds reports whether tensors of the type can be inputs.
func feeds(dtype string) bool {
	return slices.Contains([]string{"float32", "float64", "float16", "int64", "uint8"}, dtype) || ort.RawSize(dtype) > 0
}

// of returns the input with the given name, or nil. A single input may have any name.
func (g *Graph) of(name string) *onnxio.Value {
	if len(g.Inputs) == 1 {
		return &g.Inputs[0]
	}
	i := slices.IndexFunc(g.Inputs, func(v onnxio.Value) bool { return v.Name == name })
	if i < 0 {
		return nil
	}
	return &g.Inputs[i]
}

// Ragged reports whether examples have lists of different lengths.
func Ragged(data dataset.Dataset) bool {
	for k := range dataset.Fields(data) {
		if dataset.Length(data, k, 0) >= 0 {
			return true
		}
	}
	return false
}
