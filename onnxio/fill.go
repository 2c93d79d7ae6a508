package onnxio

import (
	"io"
	"runtime"
	"sync"

	"github.com/swagwrap/swagwrap/weights"
)

// fillBlock is the number of elements that are converted at a time.
const fillBlock = 1 << 16

// writeElements writes the elements of one tensor. What must be converted, or
// drawn, is so on all cores, a block on each.
func writeElements(w io.Writer, entry weights.Tensor, from weights.Vector) error {
	n := entry.Len()
	if entry.Tied != "" && entry.Transposed {
		return writeTransposed(w, entry, from, transposeBytes)
	}
	if data, ok := stored(entry, from); ok {
		_, err := w.Write(data)
		return err
	}
	blocks := make([]stretch, min(runtime.GOMAXPROCS(0), int((n+fillBlock-1)/fillBlock)))
	errs := make([]error, len(blocks))
	for off := int64(0); off < n; {
		var wg sync.WaitGroup
		used := 0
		for ; used < len(blocks) && off < n; used++ {
			k, at, count := used, off, min(fillBlock, n-off)
			wg.Go(func() { errs[k] = blocks[k].read(entry, from, at, count) })
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

// stored returns the elements of a tensor where the vector holds them in its
// very type.
func stored(entry weights.Tensor, from weights.Vector) ([]byte, bool) {
	if v, ok := from.(interface {
		Stored(off, n int64) (weights.Piece, bool)
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

// read reads elements [off, off+n) of the tensor.
func (s *stretch) read(entry weights.Tensor, from weights.Vector, off, n int64) error {
	if int64(cap(s.values)) < n {
		s.values, s.encoded = make([]float32, n), make([]byte, n*entry.DType.Size())
	}
	s.values, s.encoded = s.values[:n], s.encoded[:n*entry.DType.Size()]
	if err := from.ReadAt(s.values, entry.Offset+off); err != nil {
		return err
	}
	entry.DType.PutFloat32s(s.encoded, s.values)
	return nil
}

// transposeBytes bounds what is held of a matrix that is written as its
// transpose.
const transposeBytes = 64 << 20

// writeTransposed writes a tied matrix whose transpose is in the vector: as many
// rows at a time as fit into limit bytes, which are a stretch of each row there.
func writeTransposed(w io.Writer, entry weights.Tensor, from weights.Vector, limit int64) error {
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

// releaseBytes is how much is written before the memory that reading it took
// is given back.
const releaseBytes = 64 << 20

// A releasing writer gives the memory of mapped files back as it goes: what is
// written from them would count as this process's memory otherwise.
type releasing struct {
	w       io.Writer
	release []func()
	pending int
}

func (r *releasing) Write(p []byte) (done int, err error) {
	for done < len(p) && err == nil {
		next := p[done:min(len(p), done+releaseBytes-r.pending)]
		n, failed := r.w.Write(next)
		if err = failed; n < len(next) && err == nil {
			err = io.ErrShortWrite
		}
		done += n
		if r.pending += n; r.pending >= releaseBytes {
			for _, release := range r.release {
				release()
			}
			r.pending = 0
		}
	}
	return done, err
}

// releaser returns what gives a vector's memory back.
func releaser(v weights.Vector) func() {
	if r, ok := v.(interface{ Release() }); ok {
		return r.Release
	}
	return func() {}
}
