package task

import (
	"fmt"
	"math"
	"strings"

	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/target"
)

// AmbiguousTask is the error for scores whose task the user must give. Without an activation, the logits of a classifier look
// like independent labels or the numbers of a regression. Several sigmoids may have been meant for classes.
type AmbiguousTask struct{ OutputSpec }

func (e *AmbiguousTask) Error() string {
	if e.Activation != "" {
		return fmt.Sprintf("tensor %q: %d scores that each come out of a %s: classes that do not exclude each other are independent "+
			"labels", e.Output, e.Count, e.Activation)
	}
	what := "numbers"
	switch e.Count {
	case 0:
	case 1:
		what = "one number"
	default:
		what = fmt.Sprintf("%d numbers", e.Count)
	}
	return fmt.Sprintf("tensor %q: %s for an example, with no activation behind: the graph does not tell what the scores mean",
		e.Output, what)
}

// OrdinalHint says how an ordinal network can be used, also after training.
func OrdinalHint() string {
	return "export the network so that it ends in the probabilities of its classes, which are the differences of the steps " +
		"(docs/exporting.md#ordinal-heads), and say " + setting.Fit.With(setting.Task.With("classes"))
}

// Hints lists the tasks that the scores may be of, and how to choose one, in one hint. Steps of an ordinal scale have another.
func (e *AmbiguousTask) Hints() []string {
	var all []string
	for _, k := range kinds {
		if k.name == None {
			continue // the last hint
		}
		if e.Count == 1 && k.Labels == target.Labels || e.Activation != "" && !k.Form {
			continue // one label is binary; an activation is seldom meant for numbers
		}
		if _, err := ofPosition(k.name, e.OutputSpec); err == nil || e.Count == 0 {
			all = append(all, setting.Task.With(k.name)+" ("+k.means+")")
		}
	}
	hint := "say at " + setting.Fit.String() + " what they are: " + strings.Join(all, ", or ")
	if e.Activation == "" {
		hint += ". Log-rates, quantiles and other scores: docs/tables.md#what-the-scores-are"
	}
	hints := []string{hint}
	if e.Activation == "sigmoid" {
		hints = append(hints, "steps P(y > k) of an ordinal scale (CORAL, CORN) are none of these: "+OrdinalHint())
	}
	return append(hints, ForNone())
}

// InferTask returns the name of the task that the scores imply. The activation implies it, or the names of the classes do.
// names is the number of class names. A Count of 0 means that the graph does not give it. Ambiguous scores give an
// [*AmbiguousTask] error.
func InferTask(s OutputSpec, names int) (string, error) {
	switch {
	case s.Activation == "" && (names == 0 || s.Count == 0 && names <= 2), s.Activation == "sigmoid" && s.Count > 1:
		return "", &AmbiguousTask{s}
	case s.Count > 0:
		t, err := ofPosition("", s)
		if err != nil {
			return "", err
		}
		return t.About().Name, nil
	case s.Activation == "sigmoid":
		return "binary", nil // the first run refuses more than one
	}
	return "classes", nil
}

// FromLabels returns the name of the task that labels imply for ambiguous scores. values holds the labels as numbers, one
// or several for each example. ok is false if the labels fit several tasks, as one-hot rows do. head is the word for the
// variance head of a regression. It is "" if the labels do not imply it.
func FromLabels(s OutputSpec, values target.Target) (name, head string, ok bool) {
	one, flags, whole, hot := values.Width == 1, true, true, true
	for i := range values.Len() {
		sum := 0.0
		for _, v := range values.At(i).Values {
			flags = flags && (v == 0 || v == 1 || v == target.Unknown)
			whole = whole && v == math.Trunc(v) && v >= 0 && (s.Count == 0 || v < float64(s.Count))
			sum += v
		}
		hot = hot && sum == 1
	}
	switch {
	case s.Count == 1 && one && flags:
		return "binary", "", true
	case s.Count != 1 && one && whole:
		return "classes", "", true
	case s.Count > 1 && s.Count == values.Width && flags:
		return "labels", "", !hot
	case s.Activation == "" && s.Count == values.Width:
		return "regression", "none", true
	case s.Activation == "" && s.Count == 2*values.Width:
		return "regression", "", true
	}
	return "", "", false
}

// FromOne reports whether labels are the classes 1 to count instead of 0 to count−1.
func FromOne(labels target.Target, count int) bool {
	if count < 2 || labels.Dense() {
		return false
	}
	least, most := math.MaxInt, 0
	for i := range labels.Len() {
		c := labels.At(i).Class()
		if row := labels.At(i).Values; len(row) == 1 && row[0] == math.Trunc(row[0]) {
			c = int(row[0])
		} else if row != nil {
			return false
		}
		least, most = min(least, c), max(most, c)
	}
	return least == 1 && most == count
}

// ClassCount returns the number of classes that labels show, which are one whole number for each example. It returns 0 for
// other labels.
func ClassCount(values target.Target) int {
	count := 0
	for i := range values.Len() {
		row := values.At(i).Values
		if len(row) != 1 || row[0] < 0 || row[0] != math.Trunc(row[0]) || row[0] >= 1<<20 {
			return 0
		}
		count = max(count, int(row[0])+1)
	}
	return count
}

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
		return says("a %s over a single score, which is always %d", s.Activation,
			map[string]int{"softmax": 1, "logsoftmax": 0}[s.Activation])
	case name == "classes" && sigmoid && s.Count > 1:
		return says("%d scores that each come out of a sigmoid: classes that do not exclude each other are independent labels, %s",
			s.Count, setting.Task.With("labels"))
	case name == "classes" && s.Count == 1:
		return says("one number for an example, and classes have a score each: a single score is that of class 1 of two, %s",
			setting.Task.With("binary"))
	case name == "binary" && sigmoid && s.Count > 1:
		return says("%d scores that each come out of a sigmoid, and the task binary has one: these are independent labels, %s", s.Count,
			setting.Task.With("labels"))
	case name == "binary" && s.Count > 1:
		return says("%d numbers for an example, and the task binary has one score, that of class 1: a score for each of several classes "+
			"is %s", s.Count, setting.Task.With("classes"))
	}
	return nil
}
