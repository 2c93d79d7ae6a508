package calibrate

import (
	"encoding/binary"
	"errors"
	"iter"
	"math"
	"slices"
)

// Append appends the sums to b, for [ParseClassSums].
func (s *ClassSums) Append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(s.Classes))
	b = binary.AppendUvarint(b, uint64(s.Positions))
	b = appendFloat(appendFloat(b, s.NLL), s.Brier)
	for _, n := range s.matrix() {
		b = binary.AppendUvarint(b, uint64(n))
	}
	for _, all := range [][]confidenceCell{s.confidence, s.border, s.class} {
		b = appendCells(b, len(all), slices.All(all))
	}
	return b
}

// appendCells appends the number of cells, and then each cell that counts something behind its distance from the one
// before. all has cells in their order.
func appendCells(b []byte, n int, all iter.Seq2[int, confidenceCell]) []byte {
	b, last := binary.AppendUvarint(b, uint64(n)), -1
	for at, c := range all {
		if c.Count == 0 {
			continue
		}
		b = binary.AppendUvarint(b, uint64(at-last))
		b = binary.AppendUvarint(b, uint64(c.Count))
		b = appendFloat(binary.AppendUvarint(b, uint64(c.Right)), c.Sum)
		last = at
	}
	return binary.AppendUvarint(b, 0)
}

func appendFloat(b []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
}

var errDamaged = errors.New("calibrate: damaged sums")

// maxClasses bounds the memory that damaged sums can ask for.
const maxClasses = 1 << 12

// ParseClassSums is the inverse of [ClassSums.Append].
func ParseClassSums(b []byte) (*ClassSums, error) {
	r := &sumsReader{b: b}
	n := r.count(maxClasses)
	if n < 1 {
		return nil, errDamaged
	}
	if n*n > len(b) { // a number of the confusion matrix takes a byte or more
		return nil, errDamaged
	}
	s := NewClassSums(n)
	s.Positions = int64(r.count(math.MaxInt64))
	s.NLL, s.Brier = r.float(), r.float()
	for at := range n * n {
		if v := int64(r.count(math.MaxInt64)); v != 0 {
			s.count(at, v)
		}
	}
	s.confidence, s.border, s.class = r.list(cells), r.list(cells), r.list(n*classBins)
	if r.bad || len(r.b) > 0 {
		return nil, errDamaged
	}
	return s, nil
}

// sumsReader reads numbers. After a number that is missing or too large, bad is set, and all numbers are 0.
type sumsReader struct {
	b   []byte
	bad bool
}

func (r *sumsReader) count(most uint64) int {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > most || r.bad {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return int(v)
}

func (r *sumsReader) float() float64 {
	if len(r.b) < 8 || r.bad {
		r.bad = true
		return 0
	}
	v := math.Float64frombits(binary.LittleEndian.Uint64(r.b))
	r.b = r.b[8:]
	return v
}

// list reads n cells, or none.
func (r *sumsReader) list(n int) []confidenceCell {
	out := make([]confidenceCell, n)
	if !r.cells(n, func(at int, c confidenceCell) { out[at] = c }) {
		return nil
	}
	return out
}

// cells calls use with each of n cells that counts something. It reports false if the list is empty.
func (r *sumsReader) cells(n int, use func(at int, c confidenceCell)) bool {
	have := r.count(uint64(n))
	if have == 0 {
		r.count(0) // the end of an empty list
		return false
	}
	if have != n {
		r.bad = true
		return false
	}
	for at := -1; ; {
		step := r.count(uint64(n))
		if step == 0 {
			return true
		}
		if at += step; at >= n {
			r.bad = true
			return false
		}
		use(at, confidenceCell{int64(r.count(math.MaxInt64)), int64(r.count(math.MaxInt64)), r.float()})
	}
}
