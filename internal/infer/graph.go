package infer

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
)

// Graph is what models that differ in weights only have in common: what they take,
// and where their scores come out.
type Graph struct {
	// Input is what they take; -1 stands for a free dimension. Of several Inputs it has the
	// names, the batch, and the number of all elements of an example.
	Input  onnxio.Value
	Inputs []onnxio.Value // all, in the graph's order

	scores task.Scores // without their number, which some graphs leave open
	width  int64       // what the graph says of that number, or 0
	card   string      // the task that the model card names, or ""
	placed atomic.Bool // see [Engine.Placed]

	mu   sync.Mutex
	task task.Task // nil until the first run
}

// ReadGraph reads the graph of m. output names the output with the scores; "" is
// the first. card says what scores mean.
func ReadGraph(m *onnxio.Model, output string, card swag.Card) (*Graph, error) {
	if len(m.Graph.Outputs) == 0 {
		return nil, &onnxio.Error{Path: m.Path, What: "the network has no output"}
	}
	numbers, err := Numbers(card)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Path, err)
	}
	g := &Graph{card: card.Task}
	if err := g.readInputs(m); err != nil {
		return nil, err
	}
	if output == "" {
		output = m.Graph.Outputs[0].Name
	}
	var names []string
	for _, o := range m.Graph.Outputs {
		if o.Name == output {
			g.scores = task.Scores{Output: output, Activation: activation(m, output), Numbers: numbers}
			if g.width, err = width(o); err != nil {
				return nil, &onnxio.Error{Path: m.Path, Tensor: output, What: err.Error()}
			}
			return g, g.fits()
		}
		names = append(names, fmt.Sprintf("%q", o.Name))
	}
	return nil, fmt.Errorf("%s: no output %q, want one of %s", m.Path, output, strings.Join(names, ", "))
}

// Numbers is what a model card says of a regression, nil of other tasks.
func Numbers(card swag.Card) (*task.Numbers, error) {
	if card.Targets == nil {
		return nil, nil
	}
	n := &task.Numbers{Head: regression.VarianceHead(card.Targets.VarianceHead), Noise: card.Targets.NoiseStd}
	if n.Head != "" {
		if err := n.Head.Check(); err != nil {
			return nil, fmt.Errorf("model card: %w", err)
		}
	}
	if n.Head != "" && n.Noise != nil {
		return nil, fmt.Errorf("model card: a variance head (%s), and noise beside it, want one of them", n.Head)
	}
	if len(card.Targets.Mean) != len(card.Targets.Std) {
		return nil, fmt.Errorf("model card: %d means of targets, and %d standard deviations", len(card.Targets.Mean), len(card.Targets.Std))
	}
	for i, std := range card.Targets.Std {
		u := regression.Units{Mean: card.Targets.Mean[i], Std: std}
		if err := u.Check(); err != nil {
			return nil, fmt.Errorf("model card: %w", err)
		}
		n.Units = append(n.Units, u)
	}
	for _, std := range n.Noise {
		if !(std > 0) || math.IsInf(std, 1) {
			return nil, fmt.Errorf("model card: standard deviation of the noise %v, want a positive finite number", std)
		}
	}
	return n, nil
}

// width is how many scores an example has, as far as the output's shape tells; 0
// where it does not. It fails where that cannot be a row of scores.
func width(o onnxio.Value) (int64, error) {
	if o.Shape == nil {
		return 0, nil
	}
	total, wide := int64(1), 0
	for axis, d := range o.Shape {
		switch {
		case axis == 0 || d == 1 || wide > 1:
		case d < 0:
			return 0, nil
		default:
			total, wide = total*d, wide+1
		}
	}
	if len(o.Shape) == 0 || wide > 1 {
		return 0, fmt.Errorf("an output of shape %s, want a row of scores for each example", onnxio.FormatShape(o.Shape, o.Dims))
	}
	return total, nil
}

// Tell returns the task that the scores tell by themselves, or by the number of
// names that their classes have; see [task.Tell].
func (g *Graph) Tell(names int) (string, error) {
	s := g.scores
	s.Count = int(g.width)
	return task.Tell(s, names)
}

// fits fails where the graph says that its scores are not of the task that the
// model card names.
func (g *Graph) fits() error {
	if g.card == "" || g.width == 0 {
		return nil
	}
	_, err := g.Task(int(g.width))
	return err
}

// CheckNames fails if there are names of classes, and the graph says that there are
// not so many.
func (g *Graph) CheckNames(names []string) error {
	if names == nil || g.width == 0 {
		return nil
	}
	t, err := g.Task(int(g.width))
	if err == nil && len(names) != t.ClassNames() {
		err = fmt.Errorf("%d class names, and the network has %s", len(names), t.Size())
	}
	return err
}

// passing are operators that do not change values.
var passing = []string{"Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"}

// activation returns which activation function a value comes out of.
func activation(m *onnxio.Model, value string) string {
	for range m.Graph.Nodes { // a graph from elsewhere may have cycles
		i := slices.IndexFunc(m.Graph.Nodes, func(n onnxio.Node) bool { return slices.Contains(n.Outputs, value) })
		if i < 0 {
			break
		}
		switch n := m.Graph.Nodes[i]; {
		case n.OpType == "Softmax", n.OpType == "LogSoftmax", n.OpType == "Sigmoid":
			return strings.ToLower(n.OpType)
		case slices.Contains(passing, n.OpType) && len(n.Inputs) > 0:
			value = n.Inputs[0]
		default:
			return ""
		}
	}
	return ""
}

// Output is the name of the output with the scores.
func (g *Graph) Output() string { return g.scores.Output }

// Width is how many scores an example has, as far as the graph says; else 0.
func (g *Graph) Width() int { return int(g.width) }

// Known is the task of the first run, or nil before it.
func (g *Graph) Known() task.Task {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.task
}

// Task returns what count scores for an example mean.
func (g *Graph) Task(count int) (task.Task, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.task == nil || g.scores.Count != count {
		s := g.scores
		s.Count = count
		t, err := task.Of(g.card, s)
		if err != nil {
			return nil, err
		}
		g.task, g.scores.Count = t, count
	}
	return g.task, nil
}

// Scores returns how many scores for each of n examples the output holds, and the
// scores, row by row. Where the network takes batches of one size only there may
// be more rows.
func (g *Graph) Scores(out ort.Tensor, n int) (count int, values []float32, err error) {
	values, err = Float32s(out)
	if err != nil {
		return 0, nil, err
	}
	count, wide := 1, 0
	for axis, d := range out.Shape {
		if axis > 0 && d != 1 {
			count, wide = int(d), wide+1
		}
	}
	if len(out.Shape) == 0 || wide > 1 || count < 1 || int(out.Shape[0]) < n {
		return 0, nil, fmt.Errorf("tensor %q: output of shape %v for %d examples, want [%d classes]", g.scores.Output, out.Shape, n, n)
	}
	return count, values, nil
}
