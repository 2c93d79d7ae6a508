package weights

import (
	"slices"
	"testing"
)

// Every stretch of a vector made of pieces, empty ones and all types among
// them, reads as the same stretch of the plain slice.
func TestConcat(t *testing.T) {
	var pieces []Piece
	var all Slice
	for _, p := range []struct {
		d DType
		n int
	}{{F32, 0}, {F32, 3}, {F16, 1}, {F64, 0}, {BF16, 0}, {F64, 4}, {BF16, 2}, {F32, 1}, {F16, 0}} {
		values := make([]float32, p.n)
		for i := range values {
			values[i] = float32(len(all)+i) + 0.5 // exact in every type
		}
		data := make([]byte, int64(p.n)*p.d.Size())
		p.d.PutFloat32s(data, values)
		pieces = append(pieces, Piece{DType: p.d, Data: data})
		all = append(all, values...)
	}
	c, err := NewConcat(pieces)
	if err != nil {
		t.Fatal(err)
	}
	if c.Len() != all.Len() {
		t.Fatalf("length %d, want %d", c.Len(), all.Len())
	}
	for from := range len(all) + 1 {
		for to := from; to <= len(all); to++ {
			got := make(Slice, to-from)
			if err := c.ReadAt(got, int64(from)); err != nil || !slices.Equal(got, all[from:to]) {
				t.Errorf("[%d, %d) = %v, %v, want %v", from, to, got, err, all[from:to])
			}
		}
	}
}

// A stretch inside one piece is given as it is stored.
func TestStored(t *testing.T) {
	data := []byte{0, 1, 2, 3, 4, 5, 6, 7}
	c, err := NewConcat([]Piece{{DType: F32}, {DType: F16, Data: data}, {DType: F64, Data: data}})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct {
		off, n int64
		want   []byte // nil: not in one piece
		dtype  DType
	}{
		{0, 4, data, F16}, {1, 2, data[2:6], F16}, {4, 1, data, F64},
		{3, 2, nil, Invalid}, {0, 5, nil, Invalid}, {0, 0, nil, Invalid}, {-1, 2, nil, Invalid}, {5, 1, nil, Invalid}, {4, 2, nil, Invalid},
	} {
		p, ok := c.Stored(s.off, s.n)
		if ok != (s.want != nil) || p.DType != s.dtype || !slices.Equal(p.Data, s.want) {
			t.Errorf("Stored(%d, %d) = %v, %v, want %v %v", s.off, s.n, p, ok, s.dtype, s.want)
		}
	}
}

func TestVectorsRefuseStretchesOutside(t *testing.T) {
	c, err := NewConcat([]Piece{{DType: F32, Data: make([]byte, 8, 64)}})
	if err != nil {
		t.Fatal(err)
	}
	// The slice has room behind its end, as the slices of a larger one do.
	for name, v := range map[string]Vector{"Concat": c, "Slice": make(Slice, 2, 16)} {
		for _, s := range []struct {
			off int64
			n   int
		}{{-1, 1}, {0, 3}, {1, 2}, {2, 1}, {3, 0}} {
			mustPanic(t, name, func() { v.ReadAt(make([]float32, s.n), s.off) })
		}
		if err := v.ReadAt(nil, 2); err != nil {
			t.Errorf("%s: nothing at the end: %v", name, err)
		}
	}
}

func TestNewConcatErrors(t *testing.T) {
	for _, p := range []Piece{{DType: F32, Data: make([]byte, 7)}, {DType: F64, Data: make([]byte, 4)}, {DType: I32, Data: make([]byte, 4)}, {DType: Invalid}} {
		if _, err := NewConcat([]Piece{p}); err == nil {
			t.Errorf("%d bytes of %v are accepted", len(p.Data), p.DType)
		}
	}
}
