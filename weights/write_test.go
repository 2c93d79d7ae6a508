package weights

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// A matrix is written as its transpose in pieces of any size.
func TestWriteTransposed(t *testing.T) {
	const rows, columns = 7, 5
	entry := Tensor{Name: "w", Shape: []int64{rows, columns}, DType: F32, Role: Parameter, Tied: "o", Transposed: true, Offset: 3}
	v := counted(3 + rows*columns)
	want := f32(transposed(v[3:], columns, rows))
	inFile, err := NewConcat([]Piece{{DType: F32, Data: f32(v)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int64{0, 1, 4 * columns, 3 * 4 * columns, 1 << 20} {
		for _, from := range []Vector{v, inFile} {
			var b bytes.Buffer
			if err := writeTransposed(&b, entry, from, limit); err != nil || !bytes.Equal(b.Bytes(), want) {
				t.Errorf("%T, limit %d: % x, want % x; %v", from, limit, b.Bytes(), want, err)
			}
		}
	}
}

func transposed(v Slice, rows, columns int) Slice {
	out := make(Slice, 0, len(v))
	for c := range columns {
		for r := range rows {
			out = append(out, v[r*columns+c])
		}
	}
	return out
}

func counted(n int) Slice {
	s := make(Slice, n)
	for i := range s {
		s[i] = float32(i*37%101-50) / 8
	}
	return s
}

func f32(v Slice) []byte {
	b := make([]byte, 4*len(v))
	F32.PutFloat32s(b, v)
	return b
}

// A tensor of several blocks is converted as it would be in one go, and one that is
// stored in its own type is copied.
func TestWriteTensor(t *testing.T) {
	const n = 3*writeBlock + 5
	v := counted(n + 2)
	for _, dtype := range []DType{F16, BF16, F32, F64} {
		want := make([]byte, n*dtype.Size())
		dtype.PutFloat32s(want, v[2:])
		inFile, err := NewConcat([]Piece{{DType: F32, Data: f32(v[:2])}, {DType: dtype, Data: want}})
		if err != nil {
			t.Fatal(err)
		}
		for _, from := range []Vector{v, inFile} {
			var b bytes.Buffer
			if err := WriteTensor(&b, Tensor{Shape: []int64{n}, DType: dtype, Offset: 2}, from); err != nil || !bytes.Equal(b.Bytes(), want) {
				t.Errorf("%v from %T: other bytes, %v", dtype, from, err)
			}
		}
	}
	if err := WriteTensor(io.Discard, Tensor{Shape: []int64{n}, DType: F16}, unreadable{n}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("an unreadable vector: %v", err)
	}
}

type unreadable struct{ n int64 }

func (u unreadable) Len() int64                  { return u.n }
func (unreadable) ReadAt([]float32, int64) error { return io.ErrClosedPipe }

// What is too large for a type is not written as infinite.
func TestWriteOverflow(t *testing.T) {
	for _, c := range []struct {
		dtype DType
		value float32
		ok    bool
	}{
		{F16, 65504, true}, {F16, 65519, true}, {F16, 65520, false}, {F16, -70000, false},
		{BF16, 3.38e38, true}, {BF16, 3.4e38, false}, {F32, 3.4e38, true}, {F64, 3.4e38, true},
	} {
		v := make(Slice, writeBlock+10)
		v[writeBlock+3] = c.value
		err := WriteTensor(io.Discard, Tensor{Name: "t", DType: c.dtype, Shape: []int64{int64(len(v))}}, v)
		if c.ok != (err == nil) || err != nil && !strings.Contains(err.Error(), fmt.Sprintf(`tensor "t": value %v at index %d is beyond %v`, c.value, writeBlock+3, c.dtype)) {
			t.Errorf("%v of %v: %v", c.value, c.dtype, err)
		}
	}
}
