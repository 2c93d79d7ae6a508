package dataset

import (
	"encoding/binary"
	"hash"

	"github.com/swagwrap/swagwrap/weights"
)

// Values are the values of one example, or of several examples one after the other. Integers are exact; a float32 holds
// only those up to 2²⁴.
type Values struct {
	Floats []float32 // values of the fields that take floats or uint8
	Ints   []int64   // values of the fields for which [Field.Ints] is true
}

// Floats returns Values without integers.
func Floats(values []float32) Values { return Values{Floats: values} }

// Size is the number of values of an example.
type Size struct{ Floats, Ints int }

// SizeOf returns the size of an example of d.
func SizeOf(d Dataset) (s Size, err error) {
	fields := Fields(d)
	if fields == nil {
		n, err := weights.Elements(d.Shape())
		return Size{Floats: int(n)}, err
	}
	for _, f := range fields {
		s = s.plus(f.Size())
	}
	return s, nil
}

func (s Size) plus(more Size) Size { return Size{s.Floats + more.Floats, s.Ints + more.Ints} }

// Bytes returns the memory for an example.
func (s Size) Bytes() int64 { return 4*int64(s.Floats) + 8*int64(s.Ints) }

// Make returns memory for n examples. Its values are zero.
func (s Size) Make(n int) Values {
	return Values{make([]float32, n*s.Floats), make([]int64, n*s.Ints)}
}

// Holds reports whether the memory of v suffices for n examples of size s.
func (v Values) Holds(s Size, n int) bool {
	return cap(v.Floats) >= n*s.Floats && cap(v.Ints) >= n*s.Ints
}

// Rows returns the examples [first, end) of v. It shares memory with v. s is the size of an example.
func (v Values) Rows(s Size, first, end int) Values {
	return Values{v.Floats[first*s.Floats : end*s.Floats], v.Ints[first*s.Ints : end*s.Ints]}
}

func (v Values) size() Size { return Size{len(v.Floats), len(v.Ints)} }

// Cut splits v after the values of size s.
func (v Values) Cut(s Size) (first, rest Values) {
	return Values{v.Floats[:s.Floats], v.Ints[:s.Ints]}, Values{v.Floats[s.Floats:], v.Ints[s.Ints:]}
}

// Hash adds the values to a hash.
func (v Values) Hash(sum hash.Hash) {
	for _, part := range []any{v.Floats, v.Ints} {
		binary.Write(sum, binary.LittleEndian, part) // a hash takes all
	}
}

// Clear sets all values to zero.
func (v Values) Clear() {
	clear(v.Floats)
	clear(v.Ints)
}

// Copy sets v to the first values of from.
func (v Values) Copy(from Values) {
	copy(v.Floats, from.Floats)
	copy(v.Ints, from.Ints)
}

// Field returns the values of field k of an example. It shares memory with v.
func (v Values) Field(fields []Field, k int) Values {
	for _, f := range fields[:k] {
		_, v = v.Cut(f.Size())
	}
	v, _ = v.Cut(fields[k].Size())
	return v
}
