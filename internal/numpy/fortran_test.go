package numpy

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
)

// fortran is an array of the numbers 0, 1, 2 … in C order, stored in Fortran order.
func fortran(shape ...int) []byte {
	n := 1
	for _, d := range shape {
		n *= d
	}
	head := bytes.Replace(Header("<u2", shape...), []byte("False"), []byte("True "), 1)
	for to := range n { // place in Fortran order
		rest, k, index := to, 0, make([]int, len(shape))
		for k = range shape {
			index[k], rest = rest%shape[k], rest/shape[k]
		}
		v := 0
		for k, i := range index {
			v = v*shape[k] + i
		}
		head = binary.LittleEndian.AppendUint16(head, uint16(v))
	}
	return head
}

// Arrays in Fortran order have the elements of the same arrays in C order, as a whole and one example at a time.
func TestFortran(t *testing.T) {
	for _, shape := range [][]int{{5}, {1, 4}, {3, 4}, {4, 1, 3}, {2, 3, 4}, {3, 2, 4, 5}} {
		b := fortran(shape...)
		f, err := New(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		a, err := f.Read("", Values)
		if err != nil || !slices.Equal(a.Shape, shape) {
			t.Errorf("%d: %v, %v", shape, a.Shape, err)
			continue
		}
		var each []float64
		err = f.Each("", Values, func(_ int, one Array) error {
			each = append(each, one.Float64s()...)
			return nil
		})
		for k, v := range a.Float64s() {
			if v != float64(k) || err != nil || each[k] != v {
				t.Errorf("%d: %v and %v, %v", shape, a.Float64s(), each, err)
				break
			}
		}
	}
}
