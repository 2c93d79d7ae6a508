package weights

import (
	"bytes"
	"errors"
	"io"
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
		inFile, err := NewConcat([]Piece{{F32, f32(v[:2])}, {dtype, want}})
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
