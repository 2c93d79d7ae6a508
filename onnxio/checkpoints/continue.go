package checkpoints

import (
	"bytes"
	"fmt"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// Continue prepares later checkpoints of the network ref for the vectors of l, a layout that was made without them.
// Tensors that are constant in l must be equal in them too, and so must tensors that are tied in l.
//
// In the result, Reference is the last model that has the names of ref and as many tensors, or −1. Such a model can
// represent the network from now on. Errors are of type [*onnxio.Error].
func Continue(ref *onnxio.Model, l *weights.Layout, models []*onnxio.Model) (*Set, error) {
	s := &Set{Layout: l, Reference: -1}
	for i, m := range models {
		same, err := Match(m, ref)
		if err != nil {
			return nil, err
		}
		names, equal := namesOf(m), len(floats(m)) == len(floats(ref))
		for _, t := range l.Tensors {
			if !t.DType.IsFloat() {
				continue
			}
			held, err := same.Lookup(t)
			if err != nil {
				return nil, err
			}
			equal = equal && names[t.Name] == held
			if what := departs(same, ref, t, l); what != "" {
				return nil, &onnxio.Error{Path: m.Path, Tensor: held.Name, What: what, Hint: "fit a new posterior from all checkpoints"}
			}
		}
		s.Models, s.ByPlace = append(s.Models, same), s.ByPlace || !equal
		if equal {
			s.Reference = i
		}
	}
	if err := s.sound(ref); err != nil {
		return nil, err
	}
	return s, nil
}

// departs describes how a tensor contradicts the layout, or returns "".
func departs(m, ref *onnxio.Model, t weights.Tensor, l *weights.Layout) string {
	switch {
	case t.Role == weights.Constant && !bytes.Equal(m.Elements(m.Tensor(t.Name)), ref.Elements(ref.Tensor(t.Name))):
		return fmt.Sprintf("differs, but was equal in all checkpoints of %s", ref.Path)
	case t.Tied != "":
		o, _ := l.Find(t.Tied)
		a, b := m.Elements(m.Tensor(o.Name)), m.Elements(m.Tensor(t.Name))
		if t.Transposed && !transposes(a, b, int(o.Shape[0]), int(o.Shape[1]), int(t.DType.Size())) || !t.Transposed && !bytes.Equal(a, b) {
			return fmt.Sprintf("differs from %q, but was one with it in all checkpoints of %s", m.Tensor(o.Name).Name, ref.Path)
		}
	}
	return ""
}
