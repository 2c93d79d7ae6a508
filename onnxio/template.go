package onnxio

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/swagwrap/swagwrap/weights"
)

// Template is a model whose parameters and statistics were cut out: its other
// bytes, and the holes between them. The elements that fill a hole are
// as many bytes as were cut, so that no length prefix changes.
type Template struct {
	literal []byte
	holes   []Hole // in file order
}

// Hole is where a tensor's elements belong.
type Hole struct {
	Tensor string `json:"tensor"`
	At     int64  `json:"at"`    // index into the other bytes
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

// Size returns the size of the filled model in bytes.
func (t *Template) Size() int64 {
	n := int64(len(t.literal))
	for _, h := range t.holes {
		n += h.Bytes
	}
	return n
}

// renderBlock is the number of elements converted at a time.
const renderBlock = 1 << 16

// WriteTo writes the model filled with the given parameters and statistics,
// flat vectors of l. Elements are rounded to the type the model stores.
func (t *Template) WriteTo(w io.Writer, l *weights.Layout, parameters, statistics weights.Vector) error {
	entries, err := t.entries(l)
	if err != nil {
		return err
	}
	values := make([]float32, renderBlock)
	encoded := make([]byte, renderBlock*8)
	at := int64(0)
	for i, h := range t.holes {
		if _, err := w.Write(t.literal[at:h.At]); err != nil {
			return err
		}
		at = h.At
		entry, from := entries[i], parameters
		if entry.Role == weights.Statistic {
			from = statistics
		}
		for off, n := int64(0), entry.Len(); off < n; off += renderBlock {
			block := values[:min(renderBlock, n-off)]
			if err := from.ReadAt(block, entry.Offset+off); err != nil {
				return err
			}
			bytes := encoded[:int64(len(block))*entry.DType.Size()]
			entry.DType.PutFloat32s(bytes, block)
			if _, err := w.Write(bytes); err != nil {
				return err
			}
		}
	}
	_, err = w.Write(t.literal[at:])
	return err
}

// entries returns the tensor of l that fills each hole.
func (t *Template) entries(l *weights.Layout) ([]weights.Tensor, error) {
	byName := make(map[string]weights.Tensor, len(l.Tensors))
	for _, entry := range l.Tensors {
		if entry.Role != weights.Constant {
			byName[entry.Name] = entry
		}
	}
	out := make([]weights.Tensor, len(t.holes))
	for i, h := range t.holes {
		entry, ok := byName[h.Tensor]
		if !ok || entry.Len()*entry.DType.Size() != h.Bytes {
			return nil, fmt.Errorf("tensor %q: hole of %d bytes does not fit the layout", h.Tensor, h.Bytes)
		}
		delete(byName, h.Tensor) // one hole each
		out[i] = entry
	}
	return out, nil
}

// Render is WriteTo into memory.
func (t *Template) Render(l *weights.Layout, parameters, statistics weights.Vector) ([]byte, error) {
	if _, err := t.entries(l); err != nil { // before a hole's size is believed
		return nil, err
	}
	var b bytes.Buffer
	b.Grow(int(t.Size()))
	if err := t.WriteTo(&b, l, parameters, statistics); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// maxHoles bounds the JSON of a template's holes, which takes some hundred
// bytes a tensor.
const maxHoles = 4 << 20

// MarshalBinary encodes the template as eight bytes of length, that many bytes
// of JSON that list the holes, and the other bytes of the model. See
// docs/formats.md.
func (t *Template) MarshalBinary() ([]byte, error) {
	js, err := json.Marshal(t.holes)
	if err != nil {
		return nil, err
	}
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(js)))
	return append(append(b, js...), t.literal...), nil
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
	t := &Template{literal: data[8+n:]}
	if err := json.Unmarshal(data[8:8+n], &t.holes); err != nil {
		return nil, fmt.Errorf("graph skeleton: %w", err)
	}
	at, size := int64(0), int64(len(t.literal))
	for _, h := range t.holes {
		if h.At < at || h.At > int64(len(t.literal)) || h.Bytes < 0 || size > maxFile-h.Bytes {
			return nil, fmt.Errorf("graph skeleton: hole for tensor %q is out of place", h.Tensor)
		}
		at, size = h.At, size+h.Bytes
	}
	return t, nil
}
