package infer

import (
	"encoding/binary"
	"fmt"
	"math"
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
	g.Inputs, g.rows = g.states.inputs(m.FeedInputs()), m.Rows()
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

// feeds reports whether tensors of the type can be fed.
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

// feed makes the input tensors of rows examples. values holds one example after the other. idx are the examples, and
// there may be fewer than rows. Lists that were filled up to the longest of all are cut to the longest of these, unless
// idx is nil. If padTo is not nil, it has the length of the lists of each field instead.
func (s *Session) feed(data dataset.Dataset, idx []int, rows int, padTo []int, values dataset.Values) ([]ort.Tensor, error) {
	fields := dataset.Fields(data)
	if fields == nil && len(s.inputs) == 1 {
		t, err := tensor(s.inputs[0], append([]int64{int64(rows)}, data.Shape()...), values)
		return []ort.Tensor{t}, err
	}
	total, err := dataset.SizeOf(data)
	if err != nil {
		return nil, err
	}
	out := make([]ort.Tensor, len(s.inputs))
	for i, to := range s.inputs {
		k := slices.IndexFunc(fields, func(f dataset.Field) bool { return f.Name == to.Name || len(fields) == 1 && len(s.inputs) == 1 })
		if k < 0 {
			return nil, fmt.Errorf("tensor %q: the network takes it, and the examples have nothing of that name", to.Name)
		}
		own := fields[k]
		shape := append([]int64{int64(rows)}, own.Shape...)
		if longest := longest(data, k, idx); longest > 0 {
			shape[1] = int64(longest)
			if padTo != nil {
				shape[1] = int64(padTo[k])
			}
		}
		own.Shape = shape[1:]
		size := own.Size()
		part := size.Make(rows)
		for r := range rows {
			part.Rows(size, r, r+1).Copy(values.Rows(total, r, r+1).Field(fields, k))
		}
		t, err := tensor(to, shape, part)
		if err != nil {
			return nil, err
		}
		t.Name, out[i] = to.Name, t
	}
	return out, nil
}

// longest returns the length of the longest of the examples in a field whose lists were filled up, and at least 1. It
// returns 0 for other fields.
func longest(data dataset.Dataset, field int, idx []int) int {
	most := 0
	for _, i := range idx {
		if n := dataset.Length(data, field, i); n >= 0 {
			most = max(most, n, 1)
		}
	}
	return most
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

// tensor returns values as a tensor of the input's type.
func tensor(to ort.ValueInfo, shape []int64, values dataset.Values) (ort.Tensor, error) {
	t, floats := ort.Tensor{Shape: shape}, values.Floats
	switch to.DType {
	case "float32":
		t.F32 = floats
	case "float64":
		t.F64 = make([]float64, len(floats))
		for i, v := range floats {
			t.F64[i] = float64(v)
		}
	case "float16":
		t.F16 = make([]uint16, len(floats))
		for i, v := range floats {
			t.F16[i] = weights.Float16Bits(v)
		}
	case "uint8": // pixels
		t.U8 = make([]uint8, len(floats))
		for i, v := range floats {
			if t.U8[i] = uint8(v); float32(t.U8[i]) != v {
				return t, fmt.Errorf("tensor %q: takes whole numbers up to 255, not %v", to.Name, v)
			}
		}
	default:
		return integers(t, to, values)
	}
	if len(values.Ints) > 0 {
		return t, fmt.Errorf("tensor %q: takes %s, and the examples have whole numbers", to.Name, to.DType)
	}
	return t, nil
}

// integers sets the elements of a tensor of an integer type. Floats must be whole numbers.
func integers(t ort.Tensor, to ort.ValueInfo, values dataset.Values) (ort.Tensor, error) {
	size := ort.RawSize(to.DType)
	if size == 0 && to.DType != "int64" {
		return t, fmt.Errorf("tensor %q: takes %s, want a float type, an integer type or bool", to.Name, to.DType)
	}
	whole, want := slices.Clip(values.Ints), to.DType
	if size == 0 {
		want = "whole numbers"
	}
	for _, v := range values.Floats {
		if w := float64(v); w != math.Trunc(w) || math.Abs(w) >= 1<<63 {
			return t, fmt.Errorf("tensor %q: takes %s, not %v", to.Name, want, v)
		}
		whole = append(whole, int64(v))
	}
	if size == 0 {
		t.I64 = whole
		return t, nil
	}
	t.Type, t.Raw = to.DType, make([]byte, 0, size*len(whole))
	least, most := dataset.Field{Type: to.DType}.Limits()
	for _, v := range whole {
		if v < least || v > most {
			return t, fmt.Errorf("tensor %q: takes %s, not %v", to.Name, to.DType, v)
		}
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(v)) // like all machines that ONNX Runtime is built for
		t.Raw = append(t.Raw, b[:size]...)
	}
	return t, nil
}
