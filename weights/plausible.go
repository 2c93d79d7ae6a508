package weights

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
)

// MaxMagnitude is 2⁶⁴, about 1.8e19. The square of a larger value is beyond float32.
const MaxMagnitude = 0x1p64

// Plausible reports whether v can be a weight of a trained network: it is finite, and below 2⁶⁴ in magnitude. A
// network with a larger weight computes only infinities and certainties, and most of its results look finite in the
// end.
func Plausible(v float32) bool { return Weight.Possible(float64(v)) }

// A Quantity is the kind of a stored number. It decides which values are possible.
type Quantity int

// The quantities that files hold.
const (
	Weight        Quantity = iota // a weight, or a mean of weights
	Variance                      // variance of a weight: 0 to the square of MaxMagnitude
	Deviation                     // deviation of weights from their mean, or a principal direction of deviations
	BatchMean                     // batch norm's running mean
	BatchVariance                 // batch norm's running variance
	Number                        // any finite number
)

// maxDeviation is 2⁸¹. That is twice MaxMagnitude, times the 2¹⁶ models that a principal direction may sum.
const maxDeviation = 0x1p81

// maxBatchVariance is 2¹⁰⁴, about 2e31. Sums of more than 2²⁴ squares of values with such a variance are beyond
// float32.
const maxBatchVariance = 0x1p104

// Possible reports whether v can be such a quantity. NaN and infinities never are.
func (q Quantity) Possible(v float64) bool {
	lo, hi := q.limits()
	return lo <= v && v <= hi
}

// limits returns the smallest and the largest possible value.
func (q Quantity) limits() (lo, hi float64) {
	switch q {
	case Weight, BatchMean:
		hi = math.Nextafter(MaxMagnitude, 0)
	case Variance:
		return 0, MaxMagnitude * MaxMagnitude
	case Deviation:
		hi = maxDeviation
	case BatchVariance:
		return 0, maxBatchVariance
	default:
		hi = math.MaxFloat64
	}
	return -hi, hi
}

// FirstImpossible returns the index of the first number in data that is not Possible, or -1. data holds little-endian
// elements of type F32 or F64. The check is about as fast as reading memory.
func (q Quantity) FirstImpossible(d DType, data []byte) int64 {
	const stretch = 1 << 12 // bytes
	for off := 0; off < len(data); off += stretch {
		part := data[off:min(len(data), off+stretch)]
		if q.allPossible(d, part) {
			continue
		}
		values := make([]float64, int64(len(part))/d.Size())
		d.Float64s(values, part)
		for i, v := range values {
			if !q.Possible(v) {
				return int64(off)/d.Size() + int64(i)
			}
		}
	}
	return -1
}

// allPossible reports whether all of data are surely Possible. Magnitudes of floats, read as integers, have the order
// of the floats, and NaN is the largest. The sum of a magnitude and missing sets the sign bit if the magnitude is
// above the limit.
func (q Quantity) allPossible(d DType, data []byte) bool {
	lo, hi := q.limits()
	var missing, signs, over uint64
	if d == F64 {
		signs = 1 << 63
		missing = signs - 1 - math.Float64bits(hi)
	} else {
		limit := float32(min(hi, math.MaxFloat32))
		if float64(limit) > hi { // rounded up
			limit = math.Nextafter32(limit, 0)
		}
		signs = 1<<63 | 1<<31
		missing = (1<<31 - 1 - uint64(math.Float32bits(limit))) * (1<<32 | 1)
	}
	negative := uint64(0)
	if lo >= 0 { // negative values are impossible
		negative = signs
	}
	for ; len(data) >= 32; data = data[32:] {
		x := (*[32]byte)(data)
		a, b, c, d := binary.LittleEndian.Uint64(x[:8]), binary.LittleEndian.Uint64(x[8:16]), binary.LittleEndian.Uint64(x[16:24]),
			binary.LittleEndian.Uint64(x[24:])
		over |= (a|b|c|d)&negative | (a&^signs + missing) | (b&^signs + missing) | (c&^signs + missing) | (d&^signs + missing)
	}
	for ; len(data) >= 8; data = data[8:] {
		x := binary.LittleEndian.Uint64(data)
		over |= x&negative | (x&^signs + missing)
	}
	return over&signs == 0 && len(data) == 0
}

// first returns the index of the first value that is not Possible, or -1. Each weight of each member comes here.
func (q Quantity) first(values []float32) int {
	lo, hi := q.limits()
	for i, v := range values {
		if x := float64(v); !(lo <= x && x <= hi) {
			return i
		}
	}
	return -1
}

// Want describes the possible values.
func (q Quantity) Want() string {
	return [...]string{"finite weights of less than 1.8e+19", "finite variances of 0 to 3.4e+38", "finite deviations of less than 2.4e+24",
		"finite batch-norm means of less than 1.8e+19", "finite batch-norm variances of 0 to 2e+31", "finite numbers"}[q]
}

// ImplausibleError names an element of a tensor that no training leaves behind.
type ImplausibleError struct {
	Tensor Tensor
	Index  int64 // index of the element in the tensor
	Value  float32
	Want   string // what is possible instead; "" means [Quantity.Want] of a Weight
}

func (e *ImplausibleError) Error() string {
	return fmt.Sprintf("tensor %q: %s", e.Tensor.Name, e.What())
}

// What returns the error without the tensor's name.
func (e *ImplausibleError) What() string {
	value := fmt.Sprintf("value %v", e.Value)
	if e.Tensor.DType == F64 && math.IsInf(float64(e.Value), 0) {
		value = "value beyond float32" // the number in the file may be finite
	}
	return fmt.Sprintf("%s at index %d, want %s", value, e.Index, cmp.Or(e.Want, Weight.Want()))
}

// Sound returns an [*ImplausibleError] for the first value that is not [Plausible]. values are elements of the flat
// vector of role r, starting at off.
func (l *Layout) Sound(r Role, values []float32, off int64) error {
	if i := Weight.first(values); i >= 0 {
		tensor, at := l.At(r, off+int64(i))
		return &ImplausibleError{Tensor: tensor, Index: at, Value: values[i]}
	}
	return nil
}

// SoundAs returns an [*ImplausibleError] for the first value that is not possible as q. values are elements of tensor
// t.
func SoundAs(q Quantity, t Tensor, values []float32) error {
	if i := q.first(values); i >= 0 {
		return &ImplausibleError{Tensor: t, Index: int64(i), Value: values[i], Want: q.Want()}
	}
	return nil
}
