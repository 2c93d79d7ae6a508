package infer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
)

// A Choice is the output of a network that holds its scores.
type Choice struct {
	Output string
	// Why says why it was chosen among several, or is "" if the user or the graph left no choice.
	Why string
}

// ChooseOutput returns the output with the scores. It is that of the model card, or the only one. Among several, names decide
// and the number of classes. It fails with a [*SeveralOutputs] if they do not, and with an [*onnxio.Error] if no output can
// hold scores.
func ChooseOutput(m *onnxio.Model, card swag.Card) (Choice, error) {
	if card.Output != "" || len(m.Graph.Outputs) == 0 || task.Scoreless(card.Task) {
		return Choice{Output: card.Output}, nil // ReadGraph checks it
	}
	first := m.Graph.Outputs[0]
	if len(m.Graph.Outputs) == 1 {
		return Choice{Output: first.Name}, checkType(m, first)
	}
	states, err := pairStates(m, first.Name, card)
	if err != nil {
		return Choice{Output: first.Name}, nil // ReadGraph reports it
	}
	var found []onnxio.Value
	for _, o := range m.Graph.Outputs {
		if isScores(o) && !slices.ContainsFunc(states, func(p swag.StatePair) bool { return p.Out == o.Name }) {
			found = append(found, o)
		}
	}
	switch len(found) {
	case 0:
		return Choice{Output: first.Name}, checkType(m, first)
	case 1:
		why := ""
		if found[0].Name != first.Name {
			why = "as the only one of floats that is no state"
		}
		return Choice{found[0].Name, why}, nil
	}
	if names := len(card.ClassNames); names > 0 {
		fit := slices.DeleteFunc(slices.Clone(found), func(o onnxio.Value) bool { return !wide(o, names) })
		if len(fit) == 1 {
			return Choice{fit[0].Name, fmt.Sprintf("as the only one with a score for each of %d classes", names)}, nil
		}
		if len(fit) > 1 {
			found = fit
		}
	}
	if named := byName(found); named != "" {
		return Choice{named, "by its name"}, nil
	}
	if _, err := readStates(m, first.Name, card); err != nil && card.State != nil {
		return Choice{Output: first.Name}, nil // a wrong pair hides the scores: ReadGraph reports it
	}
	return Choice{}, &SeveralOutputs{m.Path, found}
}

// SeveralOutputs is the error for a network with several outputs. Neither their names nor the number of classes tell which one
// has the scores.
type SeveralOutputs struct {
	Path    string
	Outputs []onnxio.Value
}

func (e *SeveralOutputs) Error() string {
	var list []string
	for _, o := range e.Outputs {
		list = append(list, fmt.Sprintf("%q %s", o.Name, onnxio.FormatShape(o.Shape, o.Dims)))
	}
	return fmt.Sprintf("%s: the network has %d outputs that may be scores: %s", e.Path, len(list), strings.Join(list, ", "))
}

// Hints says how to choose.
func (e *SeveralOutputs) Hints() []string {
	var list []string
	for _, o := range e.Outputs {
		list = append(list, setting.OutputName.With(o.Name))
	}
	return []string{"say at fit which one has the scores: " + strings.Join(list, " or "), task.ForNone()}
}

// isScores reports whether an output may hold scores, which are tensors of floats. A graph may leave the type open.
func isScores(o onnxio.Value) bool {
	return !o.NoTensor && (o.ElemType == 0 || o.ElemType == onnxio.BFloat16 || o.ElemType.DType().IsFloat())
}

// checkType fails if an output cannot hold scores.
func checkType(m *onnxio.Model, o onnxio.Value) error {
	if isScores(o) {
		return nil
	}
	e := &onnxio.Error{Path: m.Path, Tensor: o.Name, What: fmt.Sprintf("%s, want scores, which have a float type", o.ElemType)}
	if o.NoTensor {
		e.What = "a sequence or a map, want a tensor of scores"
	}
	var others []string
	for _, other := range m.Graph.Outputs {
		switch {
		case isScores(other):
			others = append(others, setting.OutputName.With(other.Name))
		case other.NoTensor:
			e.Hint = fmt.Sprintf("output %q is a list of dictionaries: convert with skl2onnx again, with options={'zipmap': False}",
				other.Name)
		}
	}
	if others != nil {
		e.Hint = "scores may be in another output: " + strings.Join(others, " or ")
	}
	return e
}

// wide reports whether an output has a score for each class. One score is enough for two classes.
func wide(o onnxio.Value, classes int) bool {
	count := 0
	if l, err := layoutOf(0, o, nil); err == nil {
		count = l.Count
	} else if axis := slices.Index(o.Shape[min(1, len(o.Shape)):], int64(classes)); axis >= 0 { // pixels or tokens
		count = classes
	}
	return count == classes || count == 1 && classes == 2
}

// scoreNames are the words in the names of outputs with scores, the best first.
var scoreNames = [][]string{{"logits", "logit"}, {"scores", "score"}, {"probabilities", "probability", "probs", "prob", "proba"}}

// byName returns the only output that is called logits, or else scores, or else probabilities. An output of exactly that name
// comes before one that has the word among others, such as class_logits. byName returns "" if there is none, or several.
func byName(outputs []onnxio.Value) string {
	for _, names := range scoreNames {
		var exact, partial []string
		for _, o := range outputs {
			words := strings.FieldsFunc(strings.ToLower(o.Name), func(r rune) bool { return strings.ContainsRune("_-./: ", r) })
			switch is := func(w string) bool { return slices.Contains(names, w) }; {
			case len(words) == 1 && is(words[0]):
				exact = append(exact, o.Name)
			case slices.ContainsFunc(words, is) && !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "aux") }):
				partial = append(partial, o.Name)
			}
		}
		for _, list := range [][]string{exact, partial} {
			if len(list) == 1 {
				return list[0]
			}
			if len(list) > 1 {
				return ""
			}
		}
	}
	return ""
}
