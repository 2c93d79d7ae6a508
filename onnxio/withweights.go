package onnxio

import (
	"fmt"

	"github.com/swagwrap/swagwrap/weights"
)

// WithWeights returns the network of m with other elements. Those of the given tensors are in files of another format.
// The result closes these files, [Model.Files] returns them, and errors name them as path. The other elements are
// those of m, which must stay open. The elements are as many as m's own. If their type is narrower than the tensor's,
// or float64 for float32, they are converted when they are read.
func (m *Model) WithWeights(path string, files []*weights.Mapping, elements map[*Tensor]weights.Piece) (*Model, error) {
	for t, p := range elements {
		switch {
		case p.Len() != t.Len():
			return nil, &Error{Path: path, Tensor: t.Name, What: fmt.Sprintf("%d elements, want %d", p.Len(), t.Len())}
		case !converts(p.DType, t.ElemType.DType()):
			return nil, &Error{
				Path:   path,
				Tensor: t.Name,
				What:   fmt.Sprintf("%v, which does not go into the graph's %v", p.DType, t.ElemType.DType()),
				Hint:   "export the graph in the type that the checkpoints have",
			}
		}
	}
	c := *m
	c.Path, c.name, c.mappings, c.held = path, m.fileName(), files, elements
	return &c, nil
}

// converts reports whether elements may change their type: without loss, or by rounding a double like PyTorch's
// float().
func converts(from, to weights.DType) bool {
	return from == to || from.IsFloat() && (to == weights.F32 || to == weights.F64)
}

// Stretch returns elements [off, off+n) of a tensor in the layout of memory, little-endian. It returns nil if they
// are not available: see [Model.Readable]. They are valid until the model is closed.
func (m *Model) Stretch(t *Tensor, off, n int64) []byte {
	size := t.ElemType.DType().Size()
	p, ok := m.held[t]
	switch {
	case !ok:
		b := m.own(t)
		if b == nil {
			return nil
		}
		return b[off*size : (off+n)*size : (off+n)*size]
	case p.DType == t.ElemType.DType():
		return p.Stretch(off, n)
	}
	b, values := make([]byte, n*size), make([]float32, min(n, convertBlock))
	for done := int64(0); done < n; done += int64(len(values)) {
		part := values[:min(int64(len(values)), n-done)]
		p.DType.Float32s(part, p.Stretch(off+done, int64(len(part))))
		t.ElemType.DType().PutFloat32s(b[done*size:], part)
	}
	return b
}

// convertBlock is the number of elements that are converted at a time.
const convertBlock = 1 << 14

// piece returns a tensor's elements as they are stored.
func (m *Model) piece(t *Tensor) weights.Piece {
	if p, ok := m.held[t]; ok {
		return p
	}
	return weights.Piece{DType: t.ElemType.DType(), Data: m.own(t)}
}
