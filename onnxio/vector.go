package onnxio

import (
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/weights"
)

// A vector is a flat vector of a model, whose memory it can give back.
type vector struct {
	*weights.Concat
	m *Model
}

func (v vector) Release() { v.m.Release() }

// Vector returns the model's flat vector of role r. It reads from the model's file, and is valid until the model is
// closed.
func (m *Model) Vector(l *weights.Layout, r weights.Role) (weights.Vector, error) {
	var pieces []weights.Piece
	for _, want := range l.Role(r) {
		t, err := m.Lookup(want)
		if err != nil {
			return nil, err
		}
		pieces = append(pieces, m.piece(t))
	}
	c, err := weights.NewConcat(pieces)
	if err != nil {
		return nil, err
	}
	return vector{c, m}, nil
}

// Lookup returns the model's tensor for a layout's entry. It checks that the two agree and that the elements can be
// read. Errors are of type [*Error].
func (m *Model) Lookup(want weights.Tensor) (*Tensor, error) {
	t, err := m.matching(want)
	if err != nil {
		return nil, err
	}
	return t, m.Readable(t)
}

// matching returns the model's tensor for a layout's entry, and checks that the two agree.
func (m *Model) matching(want weights.Tensor) (*Tensor, error) {
	t := m.known[want.Name]
	switch {
	case t == nil:
		return nil, &Error{Path: m.Path, Tensor: want.Name, What: "missing"}
	case !slices.Equal(t.Shape, want.Shape) || t.ElemType.DType() != want.DType:
		return nil, &Error{
			Path:   m.Path,
			Tensor: want.Name,
			What:   fmt.Sprintf("%v %v, want %v %v", t.ElemType.DType(), t.Shape, want.DType, want.Shape),
		}
	}
	return t, nil
}
