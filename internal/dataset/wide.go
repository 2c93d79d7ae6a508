package dataset

import "math"

// Whole numbers that float32 does not hold travel as the bits of an int64, in the place of
// two values: [Field].Wide says so.

// widen doubles the places of an example.
func (e *examples) widen() { e.wide, e.elems = true, 2*e.elems }

// putWide writes v in the place of whole number k.
func putWide(dst []float32, k int, v int64) {
	dst[2*k], dst[2*k+1] = math.Float32frombits(uint32(v)), math.Float32frombits(uint32(v>>32))
}

// WideAt returns whole number k of the values of a field that is Wide.
func WideAt(values []float32, k int) int64 {
	return int64(math.Float32bits(values[2*k])) | int64(math.Float32bits(values[2*k+1]))<<32
}
