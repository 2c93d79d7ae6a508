package reference

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// elemTypes are the types of ONNX that a tensor in a file may have, as those of NumPy.
var elemTypes = map[onnxio.ElemType]numpy.Type{
	1:  {Name: "float32", Kind: 'f', Size: 4},
	2:  {Name: "uint8", Kind: 'u', Size: 1},
	3:  {Name: "int8", Kind: 'i', Size: 1},
	4:  {Name: "uint16", Kind: 'u', Size: 2},
	5:  {Name: "int16", Kind: 'i', Size: 2},
	6:  {Name: "int32", Kind: 'i', Size: 4},
	7:  {Name: "int64", Kind: 'i', Size: 8},
	9:  {Name: "bool", Kind: 'b', Size: 1},
	10: {Name: "float16", Kind: 'f', Size: 2},
	11: {Name: "float64", Kind: 'f', Size: 8},
}

// Fields of TensorProto (onnx.proto).
const (
	fieldDims, fieldType, fieldFloats, fieldInts32, fieldInts64, fieldRaw, fieldDoubles = 1, 2, 4, 5, 7, 9, 10
)

func readTensor(data []byte) (a numpy.Array, err error) {
	var elements []byte
	var whole []uint64
	for len(data) > 0 {
		num, wire, n := protowire.ConsumeTag(data)
		if n < 0 {
			return a, errors.New("not a tensor of ONNX")
		}
		data = data[n:]
		n = protowire.ConsumeFieldValue(num, wire, data)
		if n < 0 {
			return a, errors.New("not a tensor of ONNX: truncated")
		}
		value := data[:n]
		data = data[n:]
		if wire == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(value)
		}
		switch num {
		case fieldDims, fieldInts32, fieldInts64, fieldType:
			for len(value) > 0 && (wire == protowire.VarintType || num != fieldType) {
				v, n := protowire.ConsumeVarint(value)
				if n < 0 {
					return a, errors.New("not a tensor of ONNX: truncated")
				}
				value = value[n:]
				switch {
				case num == fieldType:
					a.Type = elemTypes[onnxio.ElemType(v)]
				case num == fieldDims && v > math.MaxInt32:
					return a, fmt.Errorf("a dimension of %d", v)
				case num == fieldDims:
					a.Shape = append(a.Shape, int(v))
				default:
					whole = append(whole, v)
				}
			}
		case fieldRaw, fieldFloats, fieldDoubles:
			elements = append(elements, value...)
		}
	}
	if a.Type.Size == 0 {
		return a, errors.New("elements of a type that is not supported, want numbers")
	}
	for _, v := range whole {
		elements = append(elements, binary.LittleEndian.AppendUint64(nil, v)[:a.Type.Size]...)
	}
	want := a.Type.Size
	for _, d := range a.Shape {
		if d > 0 && want > maxBytes/d {
			return a, fmt.Errorf("shape %d: more than %d bytes", a.Shape, maxBytes)
		}
		want *= d
	}
	if want == 0 || len(elements) != want {
		return a, fmt.Errorf("%d bytes of elements, want %d for shape %d", len(elements), want, a.Shape)
	}
	a.Data = elements
	return a, nil
}

// ErrInputType is the error for a graph that is not run here, such as one of bfloat16.
var ErrInputType = errors.New("inputs of this type are not run here")

// tensorOf returns an array as an input of the graph. Its numbers must be those of the graph's type.
func tensorOf(v onnxio.Value, a numpy.Array) (ort.Tensor, error) {
	t := ort.Tensor{Name: v.Name}
	for _, d := range a.Shape {
		t.Shape = append(t.Shape, int64(d))
	}
	n := len(a.Data) / a.Type.Size
	dtype := ort.DType(v.ElemType)
	whole := a.Type.Kind != 'f'
	if size := ort.RawSize(dtype); whole && size > 0 && size < 8 || dtype == "uint8" {
		for i := range n {
			if e, ok := a.Int64(i); ok && (e < -1<<(8*max(1, size)-1) || e >= 1<<(8*max(1, size))) {
				return t, fmt.Errorf("element %d is %d, want %s as the graph's input %q has", i, e, dtype, v.Name)
			}
		}
	}
	switch {
	case dtype == "float32":
		t.F32 = make([]float32, n)
		for i := range t.F32 {
			t.F32[i] = float32(a.Float64(i))
		}
	case dtype == "float64":
		t.F64 = a.Float64s()
	case dtype == "float16":
		t.F16 = make([]uint16, n)
		for i := range t.F16 {
			t.F16[i] = weights.Float16Bits(float32(a.Float64(i)))
		}
	case whole && dtype == "int64":
		t.I64 = make([]int64, n)
		for i := range t.I64 {
			t.I64[i], _ = a.Int64(i)
		}
	case whole && dtype == "uint8":
		t.U8 = make([]uint8, n)
		for i := range t.U8 {
			v, _ := a.Int64(i)
			t.U8[i] = uint8(v)
		}
	case whole && ort.RawSize(dtype) > 0:
		t.Type = dtype
		for i := range n {
			v, _ := a.Int64(i)
			t.Raw = append(t.Raw, binary.LittleEndian.AppendUint64(nil, uint64(v))[:ort.RawSize(dtype)]...)
		}
	case !strings.HasPrefix(dtype, "float") && !slices.Contains([]string{"int64", "uint8"}, dtype) && ort.RawSize(dtype) == 0:
		return t, fmt.Errorf("%w: the graph's input %q has type %s", ErrInputType, v.Name, dtype)
	default:
		return t, fmt.Errorf("type %s, want %s as the graph's input %q has", a.Type.Name, dtype, v.Name)
	}
	return t, nil
}

func pick(t ort.Tensor, examples []int) ort.Tensor {
	n := int(t.Shape[0])
	out := ort.Tensor{Name: t.Name, Type: t.Type, Shape: append([]int64{int64(len(examples))}, t.Shape[1:]...)}
	for _, i := range examples {
		out.F32 = append(out.F32, part(t.F32, n, i)...)
		out.F64 = append(out.F64, part(t.F64, n, i)...)
		out.F16 = append(out.F16, part(t.F16, n, i)...)
		out.U8 = append(out.U8, part(t.U8, n, i)...)
		out.I64 = append(out.I64, part(t.I64, n, i)...)
		out.Raw = append(out.Raw, part(t.Raw, n, i)...)
	}
	return out
}

// part returns the elements of example i of n.
func part[T any](all []T, n, i int) []T {
	size := len(all) / n
	return all[i*size:][:size]
}

// numbers returns the elements of an output.
func numbers(t ort.Tensor) []float64 {
	var out []float64
	switch {
	case t.F64 != nil:
		return slices.Clone(t.F64)
	case t.F16 != nil:
		for _, v := range t.F16 {
			out = append(out, float64(weights.Float16FromBits(v)))
		}
	}
	for _, v := range t.F32 {
		out = append(out, float64(v))
	}
	for _, v := range t.I64 {
		out = append(out, float64(v))
	}
	for _, v := range t.U8 {
		out = append(out, float64(v))
	}
	return out
}
