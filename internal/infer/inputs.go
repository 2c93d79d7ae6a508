package infer

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/onnxio"
)

// readInputs reads what the network takes. Several inputs together are a record, whose
// elements lie one input's behind the other's: [Graph].Input.
func (g *Graph) readInputs(m *onnxio.Model) error {
	g.Inputs = m.FeedInputs()
	if len(g.Inputs) == 0 {
		return &onnxio.Error{Path: m.Path, What: "the network takes no input"}
	}
	batch, fixed, total := int64(-1), "", int64(0)
	var names []string
	for _, v := range g.Inputs {
		if len(v.Shape) == 0 {
			return &onnxio.Error{Path: m.Path, Tensor: v.Name, What: "the input has no batch dimension"}
		}
		names = append(names, v.Name)
		switch n := v.Shape[0]; {
		case n >= 0 && batch >= 0 && n != batch:
			return &onnxio.Error{Path: m.Path, Tensor: v.Name, What: fmt.Sprintf("takes batches of %d only, and input %q of %d", n, fixed, batch)}
		case n >= 0:
			batch, fixed = n, v.Name
		}
		if len(g.Inputs) > 1 && !feeds(typeOf(v)) {
			return &onnxio.Error{Path: m.Path, Tensor: v.Name, What: fmt.Sprintf("an input of type %v, want a float type, an integer type or bool", v.ElemType)}
		}
		size := int64(1)
		for _, d := range v.Shape[1:] {
			if size *= max(d, 1); size > maxRecord {
				return &onnxio.Error{Path: m.Path, Tensor: v.Name, What: fmt.Sprintf("an input of shape %s is too large", onnxio.FormatShape(v.Shape, v.Dims))}
			}
		}
		if total >= 0 {
			total += size
		}
		if len(v.Shape) > 1 && slices.Min(v.Shape[1:]) < 1 {
			total = -1
		}
	}
	if g.Input = g.Inputs[0]; len(g.Inputs) > 1 {
		g.Input = onnxio.Value{Name: strings.Join(names, "+"), ElemType: onnxio.Float, Shape: []int64{batch, total}, Dims: []string{"batch", ""}}
	}
	return nil
}

// maxRecord bounds the elements of an example, so that their number is a number.
const maxRecord = 1 << 40

// typeOf is the type of an input, as [dataset.Field] has it.
func typeOf(v onnxio.Value) string {
	switch v.ElemType {
	case onnxio.Float:
		return "float32"
	case onnxio.Double:
		return "float64"
	}
	return v.ElemType.String()
}

// Fields are the inputs of a network that takes several, for [dataset.Options], and nil of
// one that takes a single one.
func (g *Graph) Fields() []dataset.Field {
	if len(g.Inputs) < 2 {
		return nil
	}
	var out []dataset.Field
	for _, v := range g.Inputs {
		out = append(out, dataset.Field{Name: v.Name, Shape: v.Shape[1:], Dims: v.Dims[1:], Type: typeOf(v)})
	}
	return out
}

// feeds reports whether there are tensors of the type to feed.
func feeds(dtype string) bool {
	return slices.Contains([]string{"float32", "float64", "float16", "int64", "uint8"}, dtype) || ort.RawSize(dtype) > 0
}

// of returns the input of several that has the name, or nil; and else the only one,
// whatever it is called.
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

// feed makes the tensors of so many examples, whose values lie one example's behind the
// other's, and in an example one field's behind the other's.
func (s *Session) feed(data dataset.Dataset, rows int, values []float32) ([]ort.Tensor, error) {
	fields := dataset.Fields(data)
	if fields == nil && len(s.inputs) == 1 {
		t, err := tensor(s.inputs[0], append([]int64{int64(rows)}, data.Shape()...), values)
		return []ort.Tensor{t}, err
	}
	total := len(values) / rows
	out := make([]ort.Tensor, len(s.inputs))
	for i, to := range s.inputs {
		at, size, k := 0, 0, -1
		for j, f := range fields {
			size = f.Elements()
			if k = j; f.Name == to.Name {
				break
			}
			at, k = at+size, -1
		}
		if k < 0 {
			return nil, fmt.Errorf("tensor %q: the network takes it, and the examples have nothing of that name", to.Name)
		}
		part := make([]float32, rows*size)
		for r := range rows {
			copy(part[r*size:][:size], values[r*total+at:])
		}
		t, err := tensor(to, append([]int64{int64(rows)}, fields[k].Shape...), part)
		if err != nil {
			return nil, err
		}
		t.Name, out[i] = to.Name, t
	}
	return out, nil
}

// raw makes a tensor of one of the types that [ort.RawSize] knows.
func raw(t ort.Tensor, to ort.ValueInfo, values []float32) (ort.Tensor, error) {
	size := ort.RawSize(to.DType)
	t.Type, t.Raw = to.DType, make([]byte, 0, size*len(values))
	least, most := dataset.Field{Type: to.DType}.Limits()
	for _, v := range values {
		if w := float64(v); w != math.Trunc(w) || w < least || w > most {
			return t, fmt.Errorf("tensor %q: takes %s, not %v", to.Name, to.DType, v)
		}
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(int64(v))) // as all machines have it that ONNX Runtime is built for
		t.Raw = append(t.Raw, b[:size]...)
	}
	return t, nil
}
