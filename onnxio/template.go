package onnxio

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strings"

	"github.com/swagwrap/swagwrap/weights"
)

// Template is a model whose parameters and statistics were cut out: the other
// bytes of its files, and the holes between them. The elements that fill a
// hole are as many bytes as were cut, so that no length prefix changes.
type Template struct {
	files []templateFile // the model itself, then its data files by name
}

type templateFile struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"` // of literal
	Holes []Hole `json:"holes"` // in file order

	literal []byte
}

// Hole is where a tensor's elements belong.
type Hole struct {
	Tensor string `json:"tensor"`
	At     int64  `json:"at"`    // index into the file's other bytes
	Bytes  int64  `json:"bytes"` // length of the elements
}

// NewTemplate cuts the parameters and statistics of l out of m, brought to
// inference mode. Of a model that was exported for inference nothing else is
// changed.
func NewTemplate(m *Model, l *weights.Layout) (*Template, error) {
	e := m.Edit()
	if err := e.Inference(); err != nil {
		return nil, err
	}
	return e.Template(l)
}

// NewRuntimeTemplate is NewTemplate readied for sessions made from memory: it has
// one file, see [Edit.ForRuntime].
func NewRuntimeTemplate(m *Model, l *weights.Layout) (*Template, error) {
	e := m.Edit()
	if err := e.Inference(); err != nil {
		return nil, err
	}
	e.ForRuntime()
	return e.Template(l)
}

// Runtime returns the model as it is, readied like a [NewRuntimeTemplate].
func (m *Model) Runtime() ([]byte, error) {
	none := &weights.Layout{}
	t, err := NewRuntimeTemplate(m, none)
	if err != nil {
		return nil, err
	}
	return t.Render(none, nil, nil)
}

// Files returns the names of the template's files: the model's own, then those
// of its external data, as the model refers to them.
func (t *Template) Files() []string {
	var out []string
	for _, f := range t.files {
		out = append(out, f.Name)
	}
	return out
}

// Size returns the size of all filled files together, in bytes.
func (t *Template) Size() int64 {
	var n int64
	for _, f := range t.files {
		n += f.size()
	}
	return n
}

func (f templateFile) size() int64 {
	n := int64(len(f.literal))
	for _, h := range f.Holes {
		n += h.Bytes
	}
	return n
}

// Write writes the files of the template for a model whose file is called name.
// Data files that bear the name of the model they were cut from are renamed
// with it, others get the new name in front; under the old name all names
// stay. create is called for each file in turn, the model last.
func (t *Template) Write(name string, create func(file string) (io.Writer, error), l *weights.Layout, parameters, statistics weights.Vector) error {
	old := t.files[0].Name
	rename := func(location string) string {
		dir, base := path.Split(location)
		switch {
		case name == old:
			return location
		case strings.Contains(base, old):
			return dir + strings.Replace(base, old, name, 1)
		}
		return dir + name + "." + base
	}
	taken := map[string]bool{name: true}
	for i := 1; i < len(t.files); i++ {
		file := rename(t.files[i].Name)
		switch {
		case !contained(file): // a template comes from a posterior file, which is untrusted
			return &Error{Path: name, What: fmt.Sprintf("data file %q: not a plain path inside the model's folder", file)}
		case taken[file]:
			return &Error{Path: name, What: fmt.Sprintf("two of its files would be called %q", file)}
		}
		taken[file] = true
		w, err := create(file)
		if err != nil {
			return err
		}
		if err := t.WriteTo(w, i, l, parameters, statistics); err != nil {
			return err
		}
	}
	w, err := create(name)
	if err != nil {
		return err
	}
	if len(t.files) == 1 || name == old {
		return t.WriteTo(w, 0, l, parameters, statistics)
	}
	var model bytes.Buffer // small: its weights are elsewhere
	if err := t.WriteTo(&model, 0, l, parameters, statistics); err != nil {
		return err
	}
	m, err := Parse(name, model.Bytes())
	if err != nil {
		return err
	}
	e, none := m.Edit(), &weights.Layout{}
	e.RenameExternal(rename)
	renamed, err := e.Template(none)
	if err != nil {
		return err
	}
	return renamed.WriteTo(w, 0, none, nil, nil)
}

// WriteTo writes file i of the template, filled with the given parameters and
// statistics, flat vectors of l. Elements are rounded to the type the model
// stores. A vector that holds them in this very type, as a checkpoint's does,
// has them copied.
func (t *Template) WriteTo(w io.Writer, i int, l *weights.Layout, parameters, statistics weights.Vector) error {
	entries, err := t.entries(l)
	if err != nil {
		return err
	}
	file, at := t.files[i], int64(0)
	for _, h := range file.Holes {
		if _, err := w.Write(file.literal[at:h.At]); err != nil {
			return err
		}
		at = h.At
		from := parameters
		if entries[h.Tensor].Role == weights.Statistic {
			from = statistics
		}
		if err := writeElements(w, entries[h.Tensor], from); err != nil {
			return err
		}
	}
	_, err = w.Write(file.literal[at:])
	return err
}

// renderBlock is the number of elements converted at a time.
const renderBlock = 1 << 16

// writeElements writes the elements of one tensor.
func writeElements(w io.Writer, entry weights.Tensor, from weights.Vector) error {
	n := entry.Len()
	if entry.Tied != "" && entry.Transposed {
		return writeTransposed(w, entry, from)
	}
	if data, ok := stored(entry, from); ok {
		_, err := w.Write(data)
		return err
	}
	values := make([]float32, min(n, renderBlock))
	encoded := make([]byte, int64(len(values))*entry.DType.Size())
	for off := int64(0); off < n; off += renderBlock {
		block := values[:min(renderBlock, n-off)]
		if err := from.ReadAt(block, entry.Offset+off); err != nil {
			return err
		}
		b := encoded[:int64(len(block))*entry.DType.Size()]
		entry.DType.PutFloat32s(b, block)
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// stored returns the elements of a tensor where the vector holds them in its
// very type.
func stored(entry weights.Tensor, from weights.Vector) ([]byte, bool) {
	if c, ok := from.(*weights.Concat); ok {
		if p, ok := c.Stored(entry.Offset, entry.Len()); ok && p.DType == entry.DType {
			return p.Data, true
		}
	}
	return nil, false
}

// writeTransposed writes a tied matrix whose transpose is in the vector.
func writeTransposed(w io.Writer, entry weights.Tensor, from weights.Vector) error {
	rows, columns, size := int(entry.Shape[0]), int(entry.Shape[1]), int(entry.DType.Size())
	data, ok := stored(entry, from)
	if !ok {
		values := make([]float32, rows*columns)
		if err := from.ReadAt(values, entry.Offset); err != nil {
			return err
		}
		data = make([]byte, len(values)*size)
		entry.DType.PutFloat32s(data, values)
	}
	row := make([]byte, columns*size)
	for r := range rows {
		for c := range columns {
			copy(row[c*size:], data[(c*rows+r)*size:][:size])
		}
		if _, err := w.Write(row); err != nil {
			return err
		}
	}
	return nil
}

// entries returns the tensor of l that fills each hole, by name, and checks
// that it fits: a hole's size is not believed before.
func (t *Template) entries(l *weights.Layout) (map[string]weights.Tensor, error) {
	byName := make(map[string]weights.Tensor, len(l.Tensors))
	for _, entry := range l.Tensors {
		if entry.Role != weights.Constant {
			byName[entry.Name] = entry
		}
	}
	filled := make(map[string]bool)
	for _, f := range t.files {
		for _, h := range f.Holes {
			entry, ok := byName[h.Tensor]
			if !ok || filled[h.Tensor] || entry.Len()*entry.DType.Size() != h.Bytes {
				return nil, fmt.Errorf("tensor %q: hole of %d bytes does not fit the layout", h.Tensor, h.Bytes)
			}
			filled[h.Tensor] = true
		}
	}
	return byName, nil
}

// Render fills a template of one file in memory; see [Edit.ForRuntime].
func (t *Template) Render(l *weights.Layout, parameters, statistics weights.Vector) ([]byte, error) {
	if len(t.files) != 1 {
		return nil, fmt.Errorf("%s: %d files, want one", t.files[0].Name, len(t.files))
	}
	files, err := t.render(l, parameters, statistics)
	if err != nil {
		return nil, err
	}
	return files[0], nil
}

// render fills all files in memory, in the order of Files.
func (t *Template) render(l *weights.Layout, parameters, statistics weights.Vector) ([][]byte, error) {
	if _, err := t.entries(l); err != nil {
		return nil, err
	}
	var out [][]byte
	for i, f := range t.files {
		var b bytes.Buffer
		b.Grow(int(f.size()))
		if err := t.WriteTo(&b, i, l, parameters, statistics); err != nil {
			return nil, err
		}
		out = append(out, b.Bytes())
	}
	return out, nil
}

// Model is the template as a model whose parameters and statistics have these
// values; path is for error messages.
func (t *Template) Model(path string, l *weights.Layout, parameters, statistics weights.Vector) (*Model, error) {
	files, err := t.render(l, parameters, statistics)
	if err != nil {
		return nil, err
	}
	external := make(map[string][]byte)
	for i, name := range t.Files()[1:] {
		external[name] = files[i+1]
	}
	return ParseFiles(path, files[0], external)
}

// maxHoles bounds the JSON of a template's holes, which takes some hundred
// bytes a tensor.
const maxHoles = 4 << 20

// MarshalBinary encodes the template as eight bytes of length, that many bytes
// of JSON that list the files and their holes, and the other bytes of each
// file. See docs/formats.md.
func (t *Template) MarshalBinary() ([]byte, error) {
	js, err := json.Marshal(t.files)
	if err != nil {
		return nil, err
	}
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(js)))
	b = append(b, js...)
	for _, f := range t.files {
		b = append(b, f.literal...)
	}
	return b, nil
}

// ParseTemplate is the inverse of MarshalBinary. It keeps a reference to data.
func ParseTemplate(data []byte) (*Template, error) {
	if len(data) < 8 {
		return nil, errors.New("graph skeleton is truncated")
	}
	n := binary.LittleEndian.Uint64(data)
	if n > uint64(len(data)-8) {
		return nil, errors.New("graph skeleton is truncated")
	}
	if n > maxHoles {
		return nil, fmt.Errorf("graph skeleton: %d bytes of holes, want at most %d", n, maxHoles)
	}
	t := &Template{}
	if err := json.Unmarshal(data[8:8+n], &t.files); err != nil {
		return nil, fmt.Errorf("graph skeleton: %w", err)
	}
	rest := data[8+n:]
	for i := range t.files {
		f := &t.files[i]
		if f.Bytes < 0 || f.Bytes > int64(len(rest)) {
			return nil, fmt.Errorf("graph skeleton: file %q has %d bytes, of which %d are left", f.Name, f.Bytes, len(rest))
		}
		f.literal, rest = rest[:f.Bytes:f.Bytes], rest[f.Bytes:]
		at, size := int64(0), f.Bytes
		for _, h := range f.Holes {
			if h.At < at || h.At > f.Bytes || h.Bytes < 0 || h.Bytes > math.MaxInt64-size {
				return nil, fmt.Errorf("graph skeleton: hole for tensor %q is out of place", h.Tensor)
			}
			at, size = h.At, size+h.Bytes
		}
	}
	if len(t.files) == 0 || len(rest) > 0 {
		return nil, fmt.Errorf("graph skeleton: %d files and %d bytes too many", len(t.files), len(rest))
	}
	return t, nil
}
