package weights

import (
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"sync"
)

// writeBlock is the number of elements that are converted at a time.
const writeBlock = 1 << 16

// WriteTensor writes the elements of one tensor, in its type, from the vector of its role. It rounds them if the type
// is narrower. An element that is too large for the type is an error that names the tensor. If the vector stores the
// elements in the same type, as a [Concat] may, they are copied. Otherwise all cores convert or draw them, a block on
// each.
func WriteTensor(w io.Writer, entry Tensor, from Vector) error {
	n := entry.Len()
	if entry.Tied != "" && entry.Transposed {
		return writeTransposed(w, entry, from, transposeBytes)
	}
	if data, ok := stored(entry, from); ok {
		_, err := w.Write(data)
		return err
	}
	blocks := make([]stretch, min(runtime.GOMAXPROCS(0), int((n+writeBlock-1)/writeBlock)))
	errs := make([]error, len(blocks))
	for off := int64(0); off < n; {
		var wg sync.WaitGroup
		used := 0
		for ; used < len(blocks) && off < n; used++ {
			k, at, count := used, off, min(writeBlock, n-off)
			wg.Go(func() { errs[k] = Guarded(func() error { return blocks[k].read(entry, from, at, count) })() })
			off += count
		}
		wg.Wait()
		for k := range used {
			if errs[k] != nil {
				return errs[k]
			}
			if _, err := w.Write(blocks[k].encoded); err != nil {
				return err
			}
		}
	}
	return nil
}

// stored returns the elements of a tensor if the vector stores them in the same type.
func stored(entry Tensor, from Vector) ([]byte, bool) {
	if v, ok := from.(interface {
		Stored(off, n int64) (Piece, bool)
	}); ok {
		if p, ok := v.Stored(entry.Offset, entry.Len()); ok && p.DType == entry.DType {
			return p.Data, true
		}
	}
	return nil, false
}

// A stretch is some elements of a tensor in the type of the file.
type stretch struct {
	values  []float32
	encoded []byte
}

func (s *stretch) read(entry Tensor, from Vector, off, n int64) error {
	if int64(cap(s.values)) < n {
		s.values, s.encoded = make([]float32, n), make([]byte, n*entry.DType.Size())
	}
	s.values, s.encoded = s.values[:n], s.encoded[:n*entry.DType.Size()]
	if err := from.ReadAt(s.values, entry.Offset+off); err != nil {
		return err
	}
	entry.DType.PutFloat32s(s.encoded, s.values)
	if i := overflow(entry.DType, s.encoded); i >= 0 {
		return fmt.Errorf("tensor %q: value %v at index %d is beyond %v", entry.Name, s.values[i], off+int64(i), entry.DType)
	}
	return nil
}

// overflow returns the index of the first element of a 16-bit type that is not
// finite, or -1.
func overflow(d DType, encoded []byte) int {
	exponent := map[DType]uint16{F16: 0x7c00, BF16: 0x7f80}[d]
	for i := 0; exponent > 0 && 2*i < len(encoded); i++ {
		if binary.LittleEndian.Uint16(encoded[2*i:])&exponent == exponent {
			return i
		}
	}
	return -1
}

// transposeBytes bounds the memory for a matrix that is written as its transpose.
const transposeBytes = 64 << 20

// writeTransposed writes a tied matrix whose transpose is in the vector. It writes as many rows at a time as fit into
// limit bytes. They are a part of each row in the vector.
func writeTransposed(w io.Writer, entry Tensor, from Vector, limit int64) error {
	rows, columns, size := entry.Shape[0], entry.Shape[1], entry.DType.Size()
	whole, isStored := stored(entry, from)
	var s stretch
	group := max(1, min(rows, limit/max(1, columns*size)))
	out := make([]byte, group*columns*size)
	for first := int64(0); first < rows; first += group {
		n := min(group, rows-first)
		for c := range columns {
			if at := c*rows + first; isStored {
				s.encoded = whole[at*size : (at+n)*size]
			} else if err := s.read(entry, from, at, n); err != nil {
				return err
			}
			for r := range n {
				copy(out[(r*columns+c)*size:], s.encoded[r*size:][:size])
			}
		}
		if _, err := w.Write(out[:n*columns*size]); err != nil {
			return err
		}
	}
	return nil
}
