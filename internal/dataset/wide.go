package dataset

import "math"

// Integers that float32 cannot represent are stored as the bits of an int64, in two values. [Field].Wide marks them.

// widen doubles the number of values of an example.
func (e *examples) widen() { e.wide, e.elems = true, 2*e.elems }

// putWide stores v as integer k.
func putWide(dst []float32, k int, v int64) {
	dst[2*k], dst[2*k+1] = math.Float32frombits(uint32(v)), math.Float32frombits(uint32(v>>32))
}

// WideAt returns integer k of the values of a field with Wide set.
func WideAt(values []float32, k int) int64 {
	return int64(math.Float32bits(values[2*k])) | int64(math.Float32bits(values[2*k+1]))<<32
}
