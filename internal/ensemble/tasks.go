package ensemble

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/onnxio"
)

// A Task says what the scores are that a network gives out. It is read from the
// graph, but for the number of scores, which some graphs leave open.
type Task struct {
	Output     string `json:"output"`     // name of the graph's output
	Activation string `json:"activation"` // what it ends in: "softmax", "sigmoid", or "" for logits
}

// newTask reads the task of the output with the given name, or of the first.
func newTask(m *onnxio.Model, output string) (Task, error) {
	if output == "" {
		output = m.Graph.Outputs[0].Name
	}
	var names []string
	for _, o := range m.Graph.Outputs {
		if o.Name == output {
			return Task{Output: output, Activation: activation(m, output)}, nil
		}
		names = append(names, fmt.Sprintf("%q", o.Name))
	}
	return Task{}, fmt.Errorf("%s: no output %q, want one of %s", m.Path, output, strings.Join(names, ", "))
}

// passing are operators that do not change values.
var passing = []string{"Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"}

// activation returns which activation function a value comes out of.
func activation(m *onnxio.Model, value string) string {
	for range m.Graph.Nodes { // a graph from elsewhere may go round in circles
		i := slices.IndexFunc(m.Graph.Nodes, func(n onnxio.Node) bool { return slices.Contains(n.Outputs, value) })
		if i < 0 {
			break
		}
		switch n := m.Graph.Nodes[i]; {
		case n.OpType == "Softmax", n.OpType == "Sigmoid":
			return strings.ToLower(n.OpType)
		case slices.Contains(passing, n.OpType) && len(n.Inputs) > 0:
			value = n.Inputs[0]
		default:
			return "" // LogSoftmax is as good as any logits
		}
	}
	return ""
}

// Describe says in words what n scores for an example are taken for.
func (t Task) Describe(n int) string {
	what := map[string]string{"": "logit", "softmax": "probability", "sigmoid": "probability"}[t.Activation]
	if n == 1 {
		return fmt.Sprintf("output %q: the %s of class 1 of 2", t.Output, what)
	}
	return fmt.Sprintf("output %q: %d classes, a %s for each", t.Output, n, what)
}

// scores returns how many scores for each of n examples the output holds, and
// the scores, row by row. Where the network takes batches of one size only
// there may be more rows.
func (t Task) scores(out ort.Tensor, n int) (columns int, values []float32, err error) {
	bad := func(format string, args ...any) (int, []float32, error) {
		return 0, nil, fmt.Errorf("tensor %q: %s", t.Output, fmt.Sprintf(format, args...))
	}
	values, err = float32s(out)
	if err != nil {
		return 0, nil, err
	}
	columns, wide := 1, 0
	for axis, d := range out.Shape {
		if axis > 0 && d != 1 {
			columns, wide = int(d), wide+1
		}
	}
	switch {
	case len(out.Shape) == 0 || wide > 1 || columns < 1 || int(out.Shape[0]) < n:
		return bad("output of shape %v for %d examples, want [%d classes]", out.Shape, n, n)
	case columns > 1 && t.Activation == "sigmoid":
		return bad("%d scores that each come out of a sigmoid: classes that do not exclude each other are not supported", columns)
	case columns == 1 && t.Activation == "softmax":
		return bad("a softmax over a single score, which is always 1")
	}
	return columns, values, nil
}

// probabilities turns the scores of one example into the probabilities of the
// classes; a single score is about class 1 of two. It fails for what is not
// finite, and for what claims to be probabilities and is not.
func (t Task) probabilities(dst []float64, scores []float32) error {
	total := 0.0
	for c, v := range scores {
		if v-v != 0 {
			return fmt.Errorf("the network's output is not finite: class %d has %v", c, v)
		}
		total += float64(v)
	}
	switch {
	case len(scores) == 1 && t.Activation == "sigmoid":
		if total < 0 || total > 1 {
			return fmt.Errorf("the network ends in a sigmoid, but its output is no probability: %v", scores[0])
		}
		dst[0], dst[1] = 1-total, total
	case len(scores) == 1: // the softmax of (0, z)
		calibrate.Softmax(dst, []float64{0, total}, 2, 1)
	case t.Activation == "softmax":
		if math.Abs(total-1) > 1e-3 || slices.Min(scores) < 0 {
			return fmt.Errorf("the network ends in a softmax, but its outputs are no probabilities: they add up to %v, and the least is %v", total, slices.Min(scores))
		}
		for c, v := range scores { // rounded to float32 by the network
			dst[c] = float64(v) / total
		}
	default:
		for c, v := range scores {
			dst[c] = float64(v)
		}
		calibrate.Softmax(dst, dst, len(dst), 1)
	}
	return nil
}

// classesOf returns how many classes a number of scores tells apart.
func classesOf(columns int) int { return max(2, columns) }
