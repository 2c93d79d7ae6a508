package infer

import (
	"fmt"
	"reflect"
	"slices"
)

// Align checks that the networks can be averaged: they are of different
// posteriors, and take the same input and tell the same number of classes
// apart, as far as their graphs say. A dimension of the input that one network
// leaves open and another fixes becomes fixed in both; batches remain each
// network's own affair.
func Align(networks []*Network) error {
	for i, n := range networks {
		for _, o := range networks[:i] {
			if err := n.differs(o); err != nil {
				return err
			}
		}
	}
	for _, n := range networks {
		n.Input.Shape = slices.Clone(n.Input.Shape)
		for axis := 1; axis < len(n.Input.Shape); axis++ {
			for _, o := range networks {
				n.Input.Shape[axis] = max(n.Input.Shape[axis], o.Input.Shape[axis])
			}
		}
	}
	return nil
}

// differs returns why n and o cannot be averaged, or nil.
func (n *Network) differs(o *Network) error {
	if n.Posterior.ID == o.Posterior.ID {
		return fmt.Errorf("%s: is the same posterior as %s", n.Posterior.Path, o.Posterior.Path)
	}
	if n.width > 0 && o.width > 0 && n.width != o.width {
		return fmt.Errorf("%s: %d classes, want %d as in %s", n.Posterior.Path, n.width, o.width, o.Posterior.Path)
	}
	a, b := n.Input.Shape[1:], o.Input.Shape[1:]
	if !slices.EqualFunc(a, b, func(x, y int64) bool { return x == y || x < 0 || y < 0 }) {
		return fmt.Errorf("%s: tensor %q: examples of shape %v, want %v as in %s", n.Posterior.Path, n.Input.Name, a, b, o.Posterior.Path)
	}
	for _, part := range []struct {
		what string
		a, b any
	}{
		{"preprocess", n.Posterior.Card.Preprocess, o.Posterior.Card.Preprocess},
		{"task", n.card, o.card},
		{"class_names", n.Posterior.Card.ClassNames, o.Posterior.Card.ClassNames},
	} {
		if !reflect.DeepEqual(part.a, part.b) {
			return fmt.Errorf("%s: %s of its model card is not that of %s", n.Posterior.Path, part.what, o.Posterior.Path)
		}
	}
	return nil
}
