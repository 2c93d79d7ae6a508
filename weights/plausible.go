package weights

import (
	"cmp"
	"fmt"
	"math"
)

// MaxMagnitude is 2⁶⁴, about 1.8e19: from here on the square of a value is beyond
// float32.
const MaxMagnitude = 0x1p64

// Plausible reports whether v can be a weight of a network that was trained: it
// is finite, and below 2⁶⁴ in magnitude. A network with a larger one computes
// nothing but infinities and certainties, most of which look finite in the end.
func Plausible(v float32) bool { return -MaxMagnitude < v && v < MaxMagnitude } // no NaN

// ImplausibleError names an element of a tensor that no training leaves.
type ImplausibleError struct {
	Tensor Tensor
	Index  int64 // of the element in the tensor
	Value  float32
	Want   string // instead; "" means what is Plausible
}

func (e *ImplausibleError) Error() string {
	return fmt.Sprintf("tensor %q: %s", e.Tensor.Name, e.What())
}

// What is the error without the tensor's name.
func (e *ImplausibleError) What() string {
	value := fmt.Sprintf("value %v", e.Value)
	if e.Tensor.DType == F64 && math.IsInf(float64(e.Value), 0) {
		value = "value beyond float32" // in the file it may be finite
	}
	return fmt.Sprintf("%s at index %d, want %s", value, e.Index, cmp.Or(e.Want, "finite weights of less than 1.8e+19"))
}

// Sound returns an [*ImplausibleError] for the first of values that is not
// [Plausible]: elements from off on of the flat vector of role r.
func (l *Layout) Sound(r Role, values []float32, off int64) error {
	for i, v := range values {
		if !Plausible(v) {
			tensor, at := l.At(r, off+int64(i))
			return &ImplausibleError{Tensor: tensor, Index: at, Value: v}
		}
	}
	return nil
}
