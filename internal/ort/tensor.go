package ort

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	binding "github.com/yalue/onnxruntime_go"

	"github.com/swagwrap/swagwrap/weights"
)

// A Tensor is an input or output of a run, in row-major order. Exactly one of the data fields is set, with as many
// elements as Shape says. A scalar has an empty Shape and one element.
type Tensor struct {
	Name  string // may be empty in an input, which is then identified by its position
	Shape []int64

	F32 []float32
	F64 []float64
	F16 []uint16 // IEEE 754 binary16 bits
	U8  []uint8
	I64 []int64

	// Raw holds the elements of an input of another type, in the machine's byte order. Type is ONNX's name of that
	// type: "bool", or an integer type that [RawSize] knows.
	Raw  []byte
	Type string // type of Raw

	device *value // the elements, on the device of a provider, instead of the fields above
}

// rawTypes maps the types of Raw to the binding's types and the bytes of an element.
var rawTypes = map[string]struct {
	of   binding.TensorElementDataType
	size int
}{
	"bool":   {binding.TensorElementDataTypeBool, 1},
	"int8":   {binding.TensorElementDataTypeInt8, 1},
	"int16":  {binding.TensorElementDataTypeInt16, 2},
	"uint16": {binding.TensorElementDataTypeUint16, 2},
	"int32":  {binding.TensorElementDataTypeInt32, 4},
	"uint32": {binding.TensorElementDataTypeUint32, 4},
	"uint64": {binding.TensorElementDataTypeUint64, 8},
}

// RawSize returns the number of bytes of an element of a raw tensor, or 0 if Raw does not support the type.
func RawSize(dtype string) int { return rawTypes[dtype].size }

// DType returns the type of the data: "float32", "float64", "float16", "uint8", "int64" or Type. It returns "" unless
// exactly one data field is set.
func (t Tensor) DType() string {
	if t.device != nil {
		return t.device.dtype
	}
	var set []string
	for i, isSet := range []bool{t.F32 != nil, t.F64 != nil, t.F16 != nil, t.U8 != nil, t.I64 != nil, t.Raw != nil} {
		if isSet {
			set = append(set, [...]string{"float32", "float64", "float16", "uint8", "int64", t.Type}[i])
		}
	}
	if len(set) != 1 {
		return ""
	}
	return set[0]
}

func (t Tensor) len() int {
	return len(t.F32) + len(t.F64) + len(t.F16) + len(t.U8) + len(t.I64) + len(t.Raw)/max(1, RawSize(t.Type))
}

// elements returns the number of elements of a shape. Axes behind the batch may be empty, as a cache is at first.
func elements(shape []int64) (int64, error) {
	if len(shape) > 0 && shape[0] == 0 {
		return 0, fmt.Errorf("shape %v: a batch of 0", shape)
	}
	return weights.Elements(shape)
}

// check compares an input with what the model declares.
func (t Tensor) check(want ValueInfo) error {
	dtype := t.DType()
	if dtype == "" {
		return fmt.Errorf("not exactly one data field is set")
	}
	if dtype != want.DType {
		return fmt.Errorf("type %s, want %s", dtype, want.DType)
	}
	n, err := elements(t.Shape)
	if err != nil {
		return err
	}
	if t.device == nil && int64(t.len()) != n {
		return fmt.Errorf("%d elements for shape %v, want %d", t.len(), t.Shape, n)
	}
	if want.Shape == nil {
		return nil
	}
	fits := func(want, have int64) bool { return want < 0 || want == have }
	if !slices.EqualFunc(want.Shape, t.Shape, fits) {
		return fmt.Errorf("shape %v, want %s", t.Shape, want.formatShape())
	}
	return nil
}

// value wraps a checked tensor for the binding. The C side keeps a bare pointer to the data, so the data stay pinned
// until the value is destroyed.
func (t Tensor) value(pins *runtime.Pinner) (binding.Value, error) {
	switch {
	case t.F32 != nil:
		return newValue(t.Shape, t.F32, pins)
	case t.F64 != nil:
		return newValue(t.Shape, t.F64, pins)
	case t.U8 != nil:
		return newValue(t.Shape, t.U8, pins)
	case t.I64 != nil:
		return newValue(t.Shape, t.I64, pins)
	case t.Raw != nil:
		return newRaw(t.Shape, t.Raw, rawTypes[t.Type].of, pins)
	}
	data := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(t.F16))), 2*len(t.F16))
	return newRaw(t.Shape, data, binding.TensorElementDataTypeFloat16, pins)
}

func newRaw(shape []int64, data []byte, of binding.TensorElementDataType, pins *runtime.Pinner) (binding.Value, error) {
	if len(data) == 0 {
		data = make([]byte, 1) // the binding wants one
	}
	pins.Pin(&data[0])
	return binding.NewCustomDataTensor(shape, data, of)
}

func newValue[T float32 | float64 | uint8 | int64](shape []int64, data []T, pins *runtime.Pinner) (binding.Value, error) {
	if len(shape) == 0 {
		return binding.NewScalar(data[0])
	}
	if len(data) > 0 {
		pins.Pin(&data[0])
	}
	return binding.NewTensor(shape, data)
}

// take returns an output as Go memory, which survives v.Destroy.
func take(v binding.Value) (Tensor, error) {
	t := Tensor{Shape: v.GetShape()}
	if !data(v, &t.F32) && !data(v, &t.F64) && !data(v, &t.U8) && !data(v, &t.I64) {
		return t, fmt.Errorf("a value of type %T is not supported", v)
	}
	return t, nil
}

// data sets dst to the elements of v and reports whether they have this type.
func data[T float32 | float64 | uint8 | int64](v binding.Value, dst *[]T) bool {
	switch v := v.(type) {
	case *binding.Tensor[T]:
		*dst = v.GetData()
	case *binding.Scalar[T]:
		*dst = []T{v.GetData()}
	default:
		return false
	}
	return true
}
