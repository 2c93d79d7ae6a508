package infer

import (
	"errors"
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/word"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// Scoreless reports whether the network's outputs have no meaning here: see [task.None].
func (g *Graph) Scoreless() bool { return task.Scoreless(g.card) }

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

// ErrRows says that an output has no row for each example: a detector that chooses its boxes gives as many as it finds.
var ErrRows = errors.New("want a row for each example")

// anything returns the layout of an output in a run.
func (g *Graph) anything(name string, shape []int64, rows int) (l Layout, err error) {
	if len(shape) == 0 || int(shape[0]) != rows {
		return l, &onnxio.Error{Tensor: name, What: fmt.Sprintf("output of shape %v for a batch of %d", shape, rows), Err: ErrRows,
			Hint: "export a graph that ends before it chooses what to keep, such as boxes: only then have outputs a mean"}
	}
	n, err := weights.Within(shape[1:], mostElements)
	if err != nil || n < 1 {
		return l, &onnxio.Error{Tensor: name, What: fmt.Sprintf("output of shape %v, want numbers for each example", shape)}
	}
	return Layout{Count: int(n), Positions: 1}, nil
}

// An OutputPart is an output among those that a [Scorer] takes together. An example has Count numbers of it.
type OutputPart struct {
	Name  string
	Shape []int64 // of an example
	Count int
}

// TakeOutputs lets the runs of a [Scorer] give the numbers of several outputs, one output behind the other, so that one pass serves
// all of them. The network is of the task none.
func (n *Network) TakeOutputs(names []string) error {
	known, _ := n.Outputs()
	for _, name := range names {
		if !slices.Contains(known, name) {
			return fmt.Errorf("%s: output %w", n.Posterior.Path, &word.Unknown{Word: name, Want: known})
		}
	}
	n.taken = names
	return nil
}

// OutputParts returns the outputs of the last run of a [Scorer], in the order of their numbers.
func (g *Graph) OutputParts() []OutputPart {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.parts
}

// takes returns the names of the outputs that the runs of a [Scorer] give.
func (g *Graph) takes() []string {
	if g.taken != nil {
		return g.taken
	}
	return []string{g.Output()}
}

// together returns the scores of a run: its output, or the numbers of all outputs that are taken, example by example.
func (g *Graph) together(out []ort.Tensor, rows int) (ort.Tensor, error) {
	if g.taken == nil {
		return out[0], nil
	}
	var parts []OutputPart
	var values [][]float32
	width := 0
	for i, name := range g.taken {
		l, err := g.anything(name, out[i].Shape, rows)
		if err == nil {
			var v []float32
			v, err = Float32s(out[i])
			values = append(values, v)
		}
		if err != nil {
			return ort.Tensor{}, err
		}
		parts = append(parts, OutputPart{name, slices.Clone(out[i].Shape[1:]), l.Count})
		width += l.Count
	}
	all := make([]float32, 0, rows*width)
	for row := range rows {
		for i, p := range parts {
			all = append(all, values[i][row*p.Count:][:p.Count]...)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.parts = parts
	return ort.Tensor{Name: g.Output(), Shape: []int64{int64(rows), int64(width)}, F32: all}, nil
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
