package task

import (
	"fmt"
	"strings"
)

// Auto is the word for choosing the task from the scores; see [InferTask].
const Auto = "auto"

// contradiction returns an error if the scores cannot belong to the named task, judged by their number and their
// activation.
func contradiction(name string, s OutputSpec) error {
	softmax, sigmoid := strings.HasSuffix(s.Activation, "softmax"), s.Activation == "sigmoid"
	says := func(format string, args ...any) error {
		return fmt.Errorf("tensor %q: "+format, append([]any{s.Output}, args...)...)
	}
	switch {
	case name == "labels" && softmax:
		return says("comes out of a %s, so that its classes exclude each other: no independent labels", s.Activation)
	case name == "regression" && softmax:
		return says("comes out of a %s, which gives probabilities of classes and no numbers of a regression", s.Activation)
	case (name == "classes" || name == "binary") && softmax && s.Count == 1:
		return says("a %s over a single score, which is always %d", s.Activation, map[string]int{"softmax": 1, "logsoftmax": 0}[s.Activation])
	case name == "classes" && sigmoid && s.Count > 1:
		return says("%d scores that each come out of a sigmoid: classes that do not exclude each other are independent labels, --task labels", s.Count)
	case name == "classes" && s.Count == 1:
		return says("one number for an example, and classes have a score each: a single score is that of class 1 of two, --task binary")
	case name == "binary" && sigmoid && s.Count > 1:
		return says("%d scores that each come out of a sigmoid, and the task binary has one: these are independent labels, --task labels", s.Count)
	case name == "binary" && s.Count > 1:
		return says("%d numbers for an example, and the task binary has one score, that of class 1: a score for each of several classes is --task classes", s.Count)
	}
	return nil
}
