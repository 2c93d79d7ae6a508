package ensemble

import (
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio"
)

// Mix plans the components of an ensemble: a mixture of Gaussians where there
// are several posteriors, such as those of runs with different seeds. That is
// MultiSWAG (Wilson and Izmailov, "Bayesian deep learning and a probabilistic
// perspective of generalization", NeurIPS 2020), which weighs them alike.
//
// The members are spread over the posteriors as evenly as possible, and where
// that leaves some over, the first posteriors have one more; antithetic pairs
// stay together. The posteriors' weights are in the given ratio, or equal where
// it is nil. They do not depend on the members: a posterior of more members is
// known better, but does not count more.
func Mix(posteriors, members int, ratio []float64, antithetic bool) ([]Component, error) {
	unit := 1
	if antithetic {
		unit = 2
	}
	switch {
	case members%unit != 0:
		return nil, fmt.Errorf("%d members: antithetic ones come in pairs", members)
	case members < unit*posteriors:
		return nil, fmt.Errorf("members: %d, want at least %d, %d from each of %d posteriors", members, unit*posteriors, unit, posteriors)
	case ratio == nil:
		ratio = slices.Repeat([]float64{1}, posteriors)
	case len(ratio) != posteriors:
		return nil, fmt.Errorf("%d weights for %d posteriors", len(ratio), posteriors)
	}
	total := 0.0
	for _, r := range ratio {
		if !(r > 0) || math.IsInf(r, 1) {
			return nil, fmt.Errorf("weight %v: want a finite number above 0", r)
		}
		total += r
	}
	units := members / unit
	components := make([]Component, posteriors)
	for i, r := range ratio {
		share := r / total
		if share == 0 {
			return nil, fmt.Errorf("weight %v: is nothing beside the others", r)
		}
		n := units / posteriors
		if i < units%posteriors {
			n++
		}
		components[i] = Component{Members: unit * n, Weight: share}
	}
	return components, nil
}

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
	if n.classes > 0 && o.classes > 0 && n.classes != o.classes {
		return fmt.Errorf("%s: %d classes, want %d as in %s", n.Posterior.Path, n.classes, o.classes, o.Posterior.Path)
	}
	a, b := n.Input.Shape[1:], o.Input.Shape[1:]
	if !slices.EqualFunc(a, b, func(x, y int64) bool { return x == y || x < 0 || y < 0 }) {
		return fmt.Errorf("%s: tensor %q: examples of shape %v, want %v as in %s", n.Posterior.Path, n.Input.Name, a, b, o.Posterior.Path)
	}
	return nil
}

// classCount returns the number of classes that a network tells apart, or 0 if
// its graph does not say.
func classCount(m *onnxio.Model) int64 {
	if shape := m.Graph.Outputs[0].Shape; len(shape) == 2 && shape[1] > 0 {
		return shape[1]
	}
	return 0
}
