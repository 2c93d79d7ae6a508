package task

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/setting"
)

// Form says what the scores of a classifier are. Every task reads it in one place, where
// it turns scores into outcomes ([Task.Outcome], [Fusable]).
type Form string

// The forms, in the words of the model card and of --scores.
const (
	// Logits go through a softmax, or each through a sigmoid.
	Logits Form = "logits"
	// Probabilities are used unchanged. The task classes divides each row by its sum.
	Probabilities Form = "probabilities"
	// LogProbabilities are natural logarithms of probabilities.
	LogProbabilities Form = "log-probabilities"
)

// Forms lists them.
var Forms = []Form{Logits, Probabilities, LogProbabilities}

// ParseForm returns the form of that name; "" is none.
func ParseForm(s string) (Form, error) {
	if f := Form(s); f == "" || slices.Contains(Forms, f) {
		return f, nil
	}
	return "", fmt.Errorf("%q: want logits, probabilities or log-probabilities", s)
}

// Proven is the form that the activation behind the scores proves, or "".
func (s OutputSpec) Proven() Form {
	switch s.Activation {
	case "softmax", "sigmoid":
		return Probabilities
	case "logsoftmax":
		return LogProbabilities
	}
	return ""
}

// form is what the scores are taken for: what was decided, what the graph proves, or
// else logits.
func (s OutputSpec) form() Form {
	for _, f := range []Form{s.Form, s.Proven()} {
		if f != "" {
			return f
		}
	}
	return Logits
}

// scoreWord is what a single score is called.
func (s OutputSpec) scoreWord() string {
	switch s.form() {
	case Probabilities:
		return "probability"
	case LogProbabilities:
		return "log-probability"
	}
	if s.Open && s.Form == "" {
		return "score"
	}
	return "logit"
}

// CheckForm fails where a form was decided that the graph disproves, or that the task does
// not know.
func (s OutputSpec) CheckForm(task string) error {
	switch proven := s.Proven(); {
	case s.Form == "":
	case task == "regression":
		return fmt.Errorf("tensor %q: the scores of a regression are numbers, and not %s: leave %s out", s.Output, s.Form, setting.Scores)
	case proven != "" && proven != s.Form:
		return fmt.Errorf("tensor %q: the graph ends in a %s, so its scores are %s, and not %s: %s", s.Output,
			strings.ToLower(s.Activation), proven, s.Form, setting.Scores.With(string(proven)))
	}
	return nil
}

// bounded adds what keeps probabilities in [0, 1] that rounding may bring out of it. Those
// of a sigmoid or softmax stay inside.
func (s OutputSpec) bounded(g Graph, scores string) string {
	if s.Activation != "" {
		return scores
	}
	return g.AtMost(g.AtLeast(scores, 0), 1)
}
