// Package forge changes the content of safetensors files and repairs their checksums. Tests use it.
package forge

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/swagwrap/swagwrap/internal/promise"
	"github.com/swagwrap/swagwrap/weights"
)

// File is the content of a safetensors file.
type File struct {
	Metadata map[string]string // without the checksums
	Sections []weights.Section
	Data     [][]byte // of the sections
}

// Open reads the file in b.
func Open(b []byte) (*File, error) {
	st, err := weights.ParseSafetensors("forged", b)
	if err != nil {
		return nil, err
	}
	f := &File{Metadata: maps.Clone(st.Metadata), Sections: st.Sections}
	delete(f.Metadata, "crc32c")
	delete(f.Metadata, "crc32c_header")
	for _, s := range st.Sections {
		v, _ := st.View(s.Name)
		f.Data = append(f.Data, bytes.Clone(v.Data))
	}
	return f, nil
}

// Bytes returns the file with valid checksums. It fails if the data of a section does not have the size of its shape.
func (f *File) Bytes() ([]byte, error) {
	for i, s := range f.Sections {
		if n, err := weights.Elements(s.Shape); err != nil || n != int64(len(f.Data[i]))/s.DType.Size() {
			return nil, fmt.Errorf("section %q: %d bytes for %v", s.Name, len(f.Data[i]), s.Shape)
		}
	}
	var out memory
	w, err := weights.NewSafetensorsWriter(&out, f.Sections, f.Metadata)
	if err != nil {
		return nil, err
	}
	for i, b := range f.Data {
		if _, err := w.Section(i).Write(b); err != nil {
			return nil, err
		}
	}
	return out, w.Close()
}

// memory is a file in memory.
type memory []byte

func (m *memory) WriteAt(b []byte, at int64) (int, error) {
	if end := int(at) + len(b); end > len(*m) {
		*m = append(*m, make([]byte, end-len(*m))...)
	}
	return copy((*m)[at:], b), nil
}

// Mutated returns a copy of the file with one change: in the metadata, in the list of sections, or in the data of a section.
func (f *File) Mutated(r *rand.Rand) *File {
	m := &File{maps.Clone(f.Metadata), slices.Clone(f.Sections), slices.Clone(f.Data)}
	keys := slices.Sorted(maps.Keys(m.Metadata))
	key := keys[r.IntN(len(keys))]
	k := 0
	if len(m.Sections) > 0 {
		k = r.IntN(len(m.Sections))
	}
	switch what := r.IntN(12); {
	case what == 0:
		delete(m.Metadata, key)
	case what == 1:
		m.Metadata[key] = m.Metadata[keys[r.IntN(len(keys))]]
	case what < 8 || len(m.Sections) == 0:
		m.Metadata[key] = string(promise.Mutate(r, []byte(m.Metadata[key])))
	case what == 8:
		m.Sections, m.Data = slices.Delete(m.Sections, k, k+1), slices.Delete(m.Data, k, k+1)
	case what == 9:
		m.resize(r, k)
	case what == 10:
		m.Sections[k].Name = m.Sections[r.IntN(len(m.Sections))].Name + []string{"", "x", "\x00", "0"}[r.IntN(4)]
	default:
		m.Data[k] = bytes.Clone(m.Data[k])
		for range min(len(m.Data[k]), 1+r.IntN(8)) {
			m.Data[k][r.IntN(len(m.Data[k]))] = []byte{0, 0xff, 0x7f, 0x80, 1}[r.IntN(5)]
		}
	}
	return m
}

// resize gives a section another type and shape, and zeros for data.
func (f *File) resize(r *rand.Rand, k int) {
	s := &f.Sections[k]
	s.Shape = slices.Clone(s.Shape)
	if len(s.Shape) == 0 || r.IntN(4) == 0 {
		s.Shape = append(s.Shape, int64(r.IntN(3)))
	} else {
		s.Shape[r.IntN(len(s.Shape))] = []int64{0, 1, 2, 3, 1000, 1 << 40}[r.IntN(6)]
	}
	if r.IntN(3) == 0 {
		s.DType = []weights.DType{weights.F32, weights.F64, weights.F16, weights.I64, weights.U8}[r.IntN(5)]
	}
	const most = 1 << 20
	if n, err := weights.Elements(s.Shape); err == nil && n < most {
		f.Data[k] = make([]byte, n*s.DType.Size())
	}
}
