package infer

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio"
)

// Align checks that the networks can be averaged. They must be of different posteriors, take the same inputs and
// distinguish the same number of classes, as far as their graphs say. If one network leaves an input dimension open
// and another fixes it, it becomes fixed in both. Batch dimensions stay as they are.
func Align(networks []*Network) error {
	for i, n := range networks {
		for _, o := range networks[:i] {
			if err := n.differs(o); err != nil {
				return err
			}
		}
	}
	for _, n := range networks {
		n.Input.Shape, n.Inputs = slices.Clone(n.Input.Shape), slices.Clone(n.Inputs)
		for _, o := range networks {
			fix(n.Input.Shape, o.Input.Shape)
		}
		for i, v := range n.Inputs {
			n.Inputs[i].Shape = slices.Clone(v.Shape)
			for _, o := range networks {
				fix(n.Inputs[i].Shape, o.of(v.Name).Shape)
			}
		}
	}
	return nil
}

// fix takes over the dimensions that another network fixes, except the batch.
func fix(shape, other []int64) {
	for axis := 1; axis < len(shape); axis++ {
		shape[axis] = max(shape[axis], other[axis])
	}
}

// alike reports whether two inputs can take the same examples.
func alike(v, w onnxio.Value) bool {
	return slices.EqualFunc(v.Shape[1:], w.Shape[1:], func(x, y int64) bool { return x == y || x < 0 || y < 0 })
}

// differs returns why n and o cannot be averaged, or nil.
func (n *Network) differs(o *Network) error {
	if n.Posterior.ID == o.Posterior.ID {
		return fmt.Errorf("%s: is the same posterior as %s", n.Posterior.Path, o.Posterior.Path)
	}
	if n.layout.Count > 0 && o.layout.Count > 0 && n.layout.Count != o.layout.Count {
		return fmt.Errorf("%s: %d classes, want %d as in %s", n.Posterior.Path, n.layout.Count, o.layout.Count, o.Posterior.Path)
	}
	if len(n.Inputs) != len(o.Inputs) {
		return fmt.Errorf("%s: takes %d inputs, want %d as %s", n.Posterior.Path, len(n.Inputs), len(o.Inputs), o.Posterior.Path)
	}
	for _, v := range n.Inputs {
		switch w := o.of(v.Name); {
		case w == nil:
			return fmt.Errorf("%s: tensor %q: %s takes nothing of that name", n.Posterior.Path, v.Name, o.Posterior.Path)
		case !alike(v, *w):
			return fmt.Errorf("%s: tensor %q: examples of shape %v, want %v as in %s", n.Posterior.Path, v.Name, v.Shape[1:], w.Shape[1:],
				o.Posterior.Path)
		case len(n.Inputs) > 1 && v.ElemType != w.ElemType:
			return fmt.Errorf("%s: tensor %q: %v, want %v as in %s", n.Posterior.Path, v.Name, v.ElemType, w.ElemType, o.Posterior.Path)
		}
	}
	for _, part := range []struct {
		what string
		a, b any
	}{
		{"preprocess", n.Posterior.Card.Preprocess, o.Posterior.Card.Preprocess},
		{"task", n.card, o.card},
		{"targets", n.Posterior.Card.Targets, o.Posterior.Card.Targets},
		{"state", n.States(), o.States()},
		{"class_names", n.Posterior.Card.ClassNames, o.Posterior.Card.ClassNames},
		{"columns", n.Posterior.Card.Columns, o.Posterior.Card.Columns},
		{"pad", n.Posterior.Card.Pad, o.Posterior.Card.Pad},
	} {
		if !reflect.DeepEqual(part.a, part.b) {
			return fmt.Errorf("%s: %s of its model card is not that of %s", n.Posterior.Path, part.what, o.Posterior.Path)
		}
	}
	return nil
}
