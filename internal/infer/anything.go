package infer

import (
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// Scoreless reports whether the network's outputs have no meaning here: see [task.None].
func (g *Graph) Scoreless() bool { return task.Scoreless(g.card) }

// firstOutput returns the output that is taken if none is named. Without a meaning it is the first of floats.
func firstOutput(m *onnxio.Model, card swag.Card) string {
	if i := slices.IndexFunc(m.Graph.Outputs, isScores); task.Scoreless(card.Task) && i >= 0 {
		return m.Graph.Outputs[i].Name
	}
	return m.Graph.Outputs[0].Name
}

// GivesFloats reports whether an output of the model is a tensor of floats, or may be one.
func GivesFloats(m *onnxio.Model) bool { return slices.ContainsFunc(m.Graph.Outputs, isScores) }

// readAnything takes an output of any shape. All its numbers behind the batch are those of an example.
func (g *Graph) readAnything(o onnxio.Value) error {
	g.scores = task.OutputSpec{Output: o.Name}
	g.output, g.layout = o, Layout{Positions: 1}
	if len(o.Shape) == 0 || slices.ContainsFunc(o.Shape[1:], func(d int64) bool { return d < 1 }) {
		return nil // a run tells
	}
	n, err := weights.Within(o.Shape[1:], mostElements)
	if err != nil {
		return &onnxio.Error{Path: g.path, Tensor: o.Name, Err: err}
	}
	g.layout.Count = int(n)
	return nil
}

// anything returns the layout of an output in a run.
func (g *Graph) anything(shape []int64, rows int) (l Layout, err error) {
	if len(shape) == 0 || int(shape[0]) != rows {
		return l, &onnxio.Error{Tensor: g.scores.Output, What: fmt.Sprintf("output of shape %v for %d examples, want a row for each", shape, rows)}
	}
	n, err := weights.Within(shape[1:], mostElements)
	if err != nil || n < 1 {
		return l, &onnxio.Error{Tensor: g.scores.Output, What: fmt.Sprintf("output of shape %v, want numbers for each example", shape)}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shape = slices.Clone(shape[1:])
	return Layout{Count: int(n), Positions: 1}, nil
}

// Shape returns the shape of an example's output in the last run, of the task none.
func (g *Graph) Shape() []int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shape
}

// Outputs returns the names of the outputs of floats that are no states. left has the others, with the reason.
func (n *Network) Outputs() (names, left []string) {
	for _, o := range n.skeleton.Graph.Outputs {
		switch {
		case slices.ContainsFunc(n.States(), func(p swag.StatePair) bool { return p.Out == o.Name }):
			left = append(left, fmt.Sprintf("%s (a state)", o.Name))
		case !isScores(o):
			left = append(left, fmt.Sprintf("%s (no floats)", o.Name))
		default:
			names = append(names, o.Name)
		}
	}
	return names, left
}
