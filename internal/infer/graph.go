package infer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"

	"github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/word"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// Graph is the common part of models that differ only in weights: their inputs, and the output with their scores.
type Graph struct {
	// Input is the input of the models; -1 stands for a free dimension. If there are several Inputs, it has their
	// names, the batch, and the number of all elements of an example.
	Input  onnxio.Value
	Inputs []onnxio.Value // all, in the graph's order
	// EndTokens are the pad tokens that the graph itself looks for, by input: see [onnxio.EndTokens].
	EndTokens map[string]int64

	path    string
	half    string           // a recurrent operator with weights in float16, or ""
	misread string           // see [onnxio.MisreadByWebGPU]
	states  *states          // nil without states that come back as outputs
	proven  sync.Once        // see [Scorer.proveStates]
	wrong   error            // the error that the proof found
	rows    map[string]int64 // of inputs that are row numbers: see [onnxio.Model.Rows]
	scores  task.OutputSpec  // without their number, which some graphs leave open
	layout  Layout           // layout of the scores, as far as the graph tells it
	output  onnxio.Value     // the output with the scores
	card    string           // the task that the model card names, or ""
	ignore  *int             // the label of positions that count nowhere, or nil
	placed  atomic.Bool      // see [EngineOptions].Placed
	taken   []string         // of the task none, the outputs that a Scorer takes together, or nil for the one

	mu    sync.Mutex
	task  task.Task    // nil until the first run
	parts []OutputPart // of the last run of a Scorer
}

// ReadGraph reads the graph of m. output names the output with the scores; "" means the first. card says what scores
// mean.
func ReadGraph(m *onnxio.Model, output string, card swag.Card) (*Graph, error) {
	if len(m.Graph.Outputs) == 0 {
		return nil, &onnxio.Error{Path: m.Path, What: "the network has no output"}
	}
	numbers, err := RegressionSpec(card)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Path, err)
	}
	if output == "" {
		output = m.Graph.Outputs[0].Name
		if i := slices.IndexFunc(m.Graph.Outputs, isScores); task.Scoreless(card.Task) && i >= 0 {
			output = m.Graph.Outputs[i].Name // without a meaning it is the first of floats
		}
	}
	g := &Graph{path: m.Path, card: card.Task, ignore: card.IgnoreIndex, half: m.HalfRecurrence(), misread: onnxio.MisreadByWebGPU(m)}
	if g.states, err = readStates(m, output, card); err != nil {
		return nil, err
	}
	if err := g.readInputs(m); err != nil {
		return nil, err
	}
	var names []string
	for _, o := range m.Graph.Outputs {
		if o.Name == output {
			if g.Scoreless() {
				return g, g.readAnything(o)
			}
			if err := checkType(m, o); err != nil {
				return nil, err
			}
			o = g.states.arranged(o, g.Inputs[0])
			g.scores = task.OutputSpec{Output: output, Activation: activation(m, output), Regression: numbers, Axis: card.ClassAxis}
			g.output = o
			if g.scores.Form, err = task.ParseForm(card.Scores); err == nil {
				err = g.scores.CheckForm(card.Task)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: model card: %w", m.Path, err)
			}
			if g.states != nil && len(o.Shape) == 3 {
				g.scores.Axis = cmp.Or(card.ClassAxis, classAxis(o, g.Inputs), -1) // −1 as in all recurrent networks
			}
			if g.layout, err = layoutOf(g.scores.Axis, o, g.Inputs); err != nil && g.scores.Axis == 0 {
				if g.scores.Axis = classAxis(o, g.Inputs); g.scores.Axis != 0 {
					g.layout, err = layoutOf(g.scores.Axis, o, g.Inputs)
				}
			}
			if err != nil {
				return nil, &onnxio.Error{Path: m.Path, Tensor: output, What: err.Error(), Hint: notARow() + otherRows(m, output, g.Inputs)}
			}
			if each := stacked(o, g.Inputs[0]); each > 1 && g.states == nil {
				return nil, &onnxio.Error{
					Path:   m.Path,
					Tensor: output,
					What: fmt.Sprintf("an output of shape %s: %d rows of scores for each example, want one",
						onnxio.FormatShape(o.Shape, o.Dims), each),
					Hint: averageRows(each),
				}
			}
			if _, err := weights.Within(open(o.Shape[min(1, len(o.Shape)):]), mostElements); err != nil {
				return nil, tooLarge(m, "scores", o)
			}
			return g, g.fits()
		}
		names = append(names, o.Name)
	}
	return nil, fmt.Errorf("%s: output %w", m.Path, &word.Unknown{Word: output, Want: names})
}

// RegressionSpec returns the model card's description of a regression, or nil for other tasks.
func RegressionSpec(card swag.Card) (*task.RegressionSpec, error) {
	if card.Targets == nil {
		return nil, nil
	}
	n := &task.RegressionSpec{Head: regression.VarianceHead(card.Targets.VarianceHead), Noise: card.Targets.NoiseStd}
	if n.Head != "" {
		if err := n.Head.Check(); err != nil {
			return nil, fmt.Errorf("model card: %w", err)
		}
	}
	if n.Head != "" && n.Noise != nil {
		return nil, fmt.Errorf("model card: a variance head (%s), and noise too, want one of them", n.Head)
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

// Layout is how the scores of an example lie in an output. A pixel or a token is a
// position. For most networks the example itself is the only position. A number that the graph leaves open is 0.
type Layout struct {
	Count     int `json:"scores"`    // of a position
	Positions int `json:"positions"` // of an example
	// Sides are the sizes of the axes of positions, such as height and width.
	Sides [3]int `json:"sides,omitzero"`
}

// Size returns the number of scores of an example.
func (l Layout) Size() int { return l.Count * l.Positions }

// layoutOf returns the layout of an output, as far as its shape shows it. axis is that of the scores if an example has
// several positions, else 0; see [swag.Card]. Without it, layoutOf fails if the shape cannot be a row of scores. An
// axis as long as one of the input, such as a sequence, counts as more than one.
func layoutOf(axis int, o onnxio.Value, inputs []onnxio.Value) (Layout, error) {
	row := Layout{Positions: 1}
	if o.Shape == nil {
		return row, nil
	}
	if axis != 0 {
		return positions(axis, o)
	}
	total, wide, open := int64(1), 0, false
	for axis, d := range o.Shape {
		switch {
		case axis == 0 || d == 1:
		case d < 0:
			open = true
			if axis < len(o.Dims) && follows(o.Dims[axis], inputs) {
				wide++
			}
		case wide < 2:
			total, wide = total*d, wide+1
		}
	}
	switch {
	case len(o.Shape) == 0 || wide > 1:
		return row, fmt.Errorf("an output of shape %s, want a row of scores for each example", onnxio.FormatShape(o.Shape, o.Dims))
	case !open:
		row.Count = int(total)
	}
	return row, nil
}

// follows reports whether the size of an axis follows from that of an input axis behind the batch. PyTorch writes such
// sizes as formulas: "4*(((h - 1)//4)) + 4".
func follows(name string, inputs []onnxio.Value) bool {
	words := strings.FieldsFunc(name, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return slices.ContainsFunc(inputs, func(v onnxio.Value) bool {
		return slices.ContainsFunc(v.Dims[min(1, len(v.Dims)):], func(of string) bool {
			return of != "" && (of == name || slices.Contains(words, of))
		})
	})
}

// positions returns the layout of an output with scores along one axis, and positions along the axes behind the batch.
func positions(axis int, o onnxio.Value) (Layout, error) {
	n, l := len(o.Shape), Layout{Positions: 1}
	if n < 3 || n-2 > len(l.Sides) {
		return l, fmt.Errorf("an output of shape %s, want [N C H W], [N H W C], [N T C] or [N C T], since the model card names a class "+
			"axis", onnxio.FormatShape(o.Shape, o.Dims))
	}
	axis, side := (axis+n)%n, 0
	for i, d := range o.Shape[1:] {
		if i+1 == axis {
			l.Count = int(max(d, 0))
			continue
		}
		l.Positions *= int(max(d, 0))
		l.Sides[side] = int(max(d, 0))
		side++
	}
	return l, nil
}

// otherRows names the other outputs that may be rows of scores, as a line of a hint.
func otherRows(m *onnxio.Model, not string, inputs []onnxio.Value) string {
	var names []string
	for _, o := range m.Graph.Outputs {
		if _, err := layoutOf(0, o, inputs); err == nil && o.Name != not {
			names = append(names, setting.OutputName.With(o.Name))
		}
	}
	if names == nil {
		return ""
	}
	return "\nother outputs may have them: fit " + strings.Join(names, " or ")
}

// notARow says what to do with a network whose output is not one row of scores for each example.
func notARow() string {
	return task.ForNone() + "\nwhich axis has the scores of a position (a pixel or a token)? The graph does not tell: " +
		setting.Fit.With(setting.ClassAxis.With("-1")) + " says the last, " + setting.ClassAxis.With("1") + " the one behind the batch\n" +
		"if an example has one answer, export the network with a head that pools, so that its output is [batch, scores]"
}

// classAxis returns the axis of the scores in an output with several positions: 1, or −1 for the last. It returns 0 if
// neither names nor the number of axes tell. Sizes do not count, because there may be as many classes as tokens. Axes
// of positions have the names of axes of the input. Outputs of four axes are those of networks for pictures. Their
// scores lie where the channels of the pictures lie.
func classAxis(o onnxio.Value, inputs []onnxio.Value) int {
	n := len(o.Shape)
	if n < 3 {
		return 0
	}
	var scores []int
	for axis := 1; axis < n; axis++ {
		if name := o.Dims[axis]; o.Shape[axis] > 0 || name != "" && !follows(name, inputs) {
			scores = append(scores, axis)
		}
	}
	switch {
	case len(scores) == 1 && scores[0] == 1:
		return 1
	case len(scores) == 1 && scores[0] == n-1:
		return -1
	case n > 3 && len(inputs) == 1 && len(inputs[0].Shape) == n && (preprocess.Settings{}).LayoutOf(inputs[0].Shape[1:]) == "nchw":
		return 1
	}
	return 0
}

// Positions says how labels are stored if examples have several positions, or returns nil.
func (g *Graph) Positions() *target.Positions {
	if g.scores.Axis == 0 {
		return nil
	}
	spec := g.scores
	spec.Count = g.layout.Count
	classes, _ := g.Classes()
	return &target.Positions{Width: spec.LabelWidth(g.card), Axis: spec.Axis, Ignore: g.ignore, Classes: classes}
}

// Axis returns the axis of the scores in an output with several positions, or 0; see [swag.Card].
func (g *Graph) Axis() int { return g.scores.Axis }

// Large reports, also before the first run, whether outcomes are too large to keep those of all examples: see [task.Large].
func (g *Graph) Large() bool { return g.scores.Axis != 0 }

// Traits are those of the task in the model card, also before the first run.
func (g *Graph) Traits() task.Traits { return task.TraitsOf(g.card) }

// Axes returns the number of axes of that output, with the batch.
func (g *Graph) Axes() int { return len(g.output.Shape) }

// InferTask returns the task that follows from the scores alone, or from the number of class names; see
// [task.InferTask].
func (g *Graph) InferTask(names int) (string, error) {
	s := g.scores
	s.Count = g.layout.Count
	return task.InferTask(s, names)
}

// fits fails if the scores of the graph cannot belong to the task that the model card names.
func (g *Graph) fits() error {
	if g.card == "" || g.layout.Count == 0 {
		return nil
	}
	_, err := g.Task(g.layout)
	return err
}

// CheckNames fails if there are class names, and the graph has another number of classes.
func (g *Graph) CheckNames(names []string) error {
	if names == nil || g.layout.Count == 0 {
		return nil
	}
	t, err := g.Task(g.layout)
	if err == nil && len(names) != t.About().Classes {
		err = fmt.Errorf("%d class names, and the network has %s", len(names), t.About().Size)
	}
	return err
}

// Classes returns the number of classes. It is 0 if the graph does not tell it, and for a task without classes. positive
// reports whether class 1 is the positive one of two.
func (g *Graph) Classes() (n int, positive bool) {
	if g.layout.Count == 0 {
		return 0, false
	}
	t, err := g.Task(g.layout)
	if err != nil {
		return 0, false
	}
	_, positive = t.(task.Decided)
	return t.About().Classes, positive
}

// Form is what the scores were decided to be, or what the graph proves, or "". A regression
// has none, also behind a sigmoid.
func (g *Graph) Form() task.Form {
	if !g.Traits().Form {
		return ""
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return cmp.Or(g.scores.Form, g.scores.Proven())
}

// Proven returns the form of the scores that the final activation proves, or "".
func (g *Graph) Proven() task.Form {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.scores.Proven()
}

// Decide sets the form of the scores, before the first run. It fails if the graph disproves it.
func (g *Graph) Decide(f task.Form) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.scores
	s.Form = f
	if err := s.CheckForm(g.card); err != nil {
		return err
	}
	g.scores.Form, g.task = f, nil
	return nil
}

// Output returns the name of the output with the scores.
func (g *Graph) Output() string { return g.scores.Output }

// Layout returns the layout of the scores, as far as the graph says.
func (g *Graph) Layout() Layout { return g.layout }

// Known returns the task of the first run, or nil before it.
func (g *Graph) Known() task.Task {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.task
}

// Task returns the task for scores of the given layout.
func (g *Graph) Task(l Layout) (task.Task, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.task == nil || g.measured() != l {
		s := g.scores
		s.Count, s.Positions, s.Sides = l.Count, l.Positions, l.Sides
		t, err := task.New(g.card, s)
		if err != nil {
			return nil, err
		}
		// other fields are read without the lock
		g.task, g.scores.Count, g.scores.Positions, g.scores.Sides = t, s.Count, s.Positions, s.Sides
	}
	return g.task, nil
}

// Scores returns the layout of the scores of each example in an output, and the scores, example by example. rows is the number
// of examples that the network got, with those that fill up a batch.
func (g *Graph) Scores(out ort.Tensor, rows int) (l Layout, values []float32, err error) {
	values, err = Float32s(out)
	if err != nil {
		return l, nil, err
	}
	if g.Scoreless() {
		l, err = g.anything(g.Output(), out.Shape, rows)
		return l, values, err
	}
	l, err = layoutOf(g.scores.Axis, onnxio.Value{Shape: out.Shape}, nil)
	if err != nil || l.Size() < 1 || int(out.Shape[0]) != rows {
		return l, nil, rowsError(g.scores.Output, out.Shape, rows)
	}
	return l, values, nil
}
