package statefile

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/weights"
)

// maxHeader bounds the header of a safetensors file, at about 80,000 tensors. The decoded header takes several times
// as much memory.
const maxHeader = 8 << 20

var _ = register(format{
	suffixes: []string{".safetensors"},
	begins:   isSafetensors,
	read:     (*File).readSafetensors,
	origin: func(m *weights.Mapping) string {
		if st, err := weights.ParseSafetensors(m.Path, m.Data); err == nil {
			return st.Metadata[originKey]
		}
		return ""
	},
})

// isSafetensors looks for the length of a header, and the header.
func isSafetensors(_ string, head []byte) bool {
	return len(head) > 8 && head[8] == '{' && binary.LittleEndian.Uint64(head) < 1<<32
}

func (f *File) readSafetensors(path string, data []byte) error {
	if n := binary.LittleEndian.Uint64(data); n > maxHeader {
		return &Error{Path: path, What: fmt.Sprintf("a safetensors header of %d bytes, want at most %d", n, maxHeader)}
	}
	st, err := weights.ParseSafetensors(path, data)
	if err != nil {
		return err
	}
	if kind := st.Metadata["kind"]; strings.HasPrefix(kind, "swagwrap.") {
		return &Error{Path: path, What: "a " + kind + ", want a checkpoint"}
	}
	if f.metadata == nil {
		f.metadata = make(map[string]map[string]string)
	}
	f.metadata[path], f.Origin = st.Metadata, st.Metadata[originKey]
	sd := &StateDict{part: f.part, average: Average{Mark: st.Metadata[averageKey]}}
	for _, s := range st.Sections {
		v, _ := st.View(s.Name)
		sd.place(newPlain(path, s.Name, v))
	}
	// If a tensor has several names, save_model writes one of them, and the others as metadata: name → name that was
	// written.
	for _, name := range slices.Sorted(maps.Keys(st.Metadata)) {
		if v, ok := st.View(st.Metadata[name]); ok {
			if _, twice := st.View(name); !twice {
				sd.place(newPlain(path, name, v))
			}
		}
	}
	f.dicts = sd.orNone(path)
	return nil
}

// newPlain returns a section as a tensor. Its storage is the section.
func newPlain(path, name string, v weights.View) *Tensor {
	return &Tensor{Name: name, Short: name, Shape: v.Shape, Piece: weights.Piece{DType: v.DType, Data: v.Data},
		Storage: Storage{Path: path, Key: v.Name, Strides: fmt.Sprint(contiguous(v.Shape))}}
}
