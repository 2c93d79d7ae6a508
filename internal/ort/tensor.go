package ort

import (
	"fmt"
	"math"
	"runtime"
	"unsafe"

	binding "github.com/yalue/onnxruntime_go"
)

// A Tensor is an input or output of a run, in row-major order. Exactly one of
// the data fields is set, with as many elements as Shape says; a scalar has an
// empty Shape and one element.
type Tensor struct {
	Name  string // empty in an input: the input at this place
	Shape []int64

	F32 []float32
	F64 []float64
	F16 []uint16 // IEEE 754 binary16 bits
	U8  []uint8
	I64 []int64
}

// DType returns the type of the data, "float32", "float64", "float16", "uint8"
// or "int64", or "" if not exactly one data field is set.
func (t Tensor) DType() string {
	name, n := "", 0
	for _, f := range []struct {
		set  bool
		name string
	}{{t.F32 != nil, "float32"}, {t.F64 != nil, "float64"}, {t.F16 != nil, "float16"}, {t.U8 != nil, "uint8"}, {t.I64 != nil, "int64"}} {
		if f.set {
			name = f.name
			n++
		}
	}
	if n != 1 {
		return ""
	}
	return name
}

func (t Tensor) len() int {
	return len(t.F32) + len(t.F64) + len(t.F16) + len(t.U8) + len(t.I64)
}

// elements returns the product of a shape that is positive throughout.
func elements(shape []int64) (int64, error) {
	n := int64(1)
	for _, d := range shape {
		if d < 1 {
			return 0, fmt.Errorf("shape %v has a dimension below 1", shape)
		}
		if n > math.MaxInt64/16/d {
			return 0, fmt.Errorf("shape %v is too large", shape)
		}
		n *= d
	}
	return n, nil
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
	if int64(t.len()) != n {
		return fmt.Errorf("%d elements for shape %v, want %d", t.len(), t.Shape, n)
	}
	if want.Shape == nil {
		return nil
	}
	ok := len(t.Shape) == len(want.Shape)
	for i := 0; ok && i < len(t.Shape); i++ {
		ok = want.Shape[i] < 0 || want.Shape[i] == t.Shape[i]
	}
	if !ok {
		return fmt.Errorf("shape %v, want %s", t.Shape, want.formatShape())
	}
	return nil
}

// value wraps a checked tensor for the binding, whose C side keeps the bare
// address of the data: pin it until the value is destroyed.
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
	}
	pins.Pin(&t.F16[0])
	data := unsafe.Slice((*byte)(unsafe.Pointer(&t.F16[0])), 2*len(t.F16))
	return binding.NewCustomDataTensor(t.Shape, data, binding.TensorElementDataTypeFloat16)
}

func newValue[T float32 | float64 | uint8 | int64](shape []int64, data []T, pins *runtime.Pinner) (binding.Value, error) {
	if len(shape) == 0 {
		return binding.NewScalar(data[0])
	}
	pins.Pin(&data[0])
	return binding.NewTensor(shape, data)
}

// take returns the Go memory of an output, which survives v.Destroy.
func take(v binding.Value) (Tensor, error) {
	t := Tensor{Shape: v.GetShape()}
	switch v := v.(type) {
	case *binding.Tensor[float32]:
		t.F32 = v.GetData()
	case *binding.Tensor[float64]:
		t.F64 = v.GetData()
	case *binding.Tensor[uint8]:
		t.U8 = v.GetData()
	case *binding.Tensor[int64]:
		t.I64 = v.GetData()
	case *binding.Scalar[float32]:
		t.F32 = []float32{v.GetData()}
	case *binding.Scalar[float64]:
		t.F64 = []float64{v.GetData()}
	case *binding.Scalar[uint8]:
		t.U8 = []uint8{v.GetData()}
	case *binding.Scalar[int64]:
		t.I64 = []int64{v.GetData()}
	default:
		return t, fmt.Errorf("a value of type %T is not supported", v)
	}
	return t, nil
}
