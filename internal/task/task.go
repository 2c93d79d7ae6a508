// Package task defines what the scores of a network mean.
//
// A [Task] turns the scores of one network for an example into an outcome, which can be averaged over members. It turns
// the average into a row of predictions, lists the columns of such rows, and scores predictions against labels. Each
// task is in a file of its own. Code outside this package should not ask which task it has in order to decide what to
// do.
//
// # Invariants
//
// An outcome has Width numbers, all finite. Scores without a valid outcome give an error, and are never averaged.
//
// # Concurrency
//
// Tasks are immutable, so several goroutines may call their methods.
package task

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/word"
)

// OutputSpec describes the output of a network for an example, as far as its graph and a first run show.
type OutputSpec struct {
	// Open says that only the values can tell the form, since the graph ends in no layer that gives logits.
	Open       bool   `json:"-"`
	Output     string `json:"output"`     // name of the graph's output
	Activation string `json:"activation"` // activation at the end: "softmax", "logsoftmax", "sigmoid", or "" for none of these
	Count      int    `json:"count"`      // numbers for a position
	// Axis is the axis of the scores if an example has several positions, such as pixels or tokens: 1, or −1 for the
	// last. It is 0 if the example itself is the only position.
	Axis int `json:"axis,omitempty"`
	// Positions is the number of positions of an example with an Axis, or 0 as long as it is unknown. Sides are the
	// sizes of the other axes, such as height and width.
	Positions int    `json:"positions,omitempty"`
	Sides     [3]int `json:"sides,omitzero"`
	// Form is the form of the scores, if it was set. "" leaves it to the activation: scores without an activation are
	// logits.
	Form Form `json:"form,omitempty"`
	// Next says that the label of a position is the next token of a text, as of a language model.
	Next bool `json:"next,omitempty"`
	// Regression describes the targets of a regression. It is nil if nothing is known about them.
	Regression *RegressionSpec `json:"-"`
}

// Task is the meaning of scores.
type Task interface {
	// About describes the task.
	About() *About

	// Outcome computes the outcome for the scores of one example. It stores it in dst, and returns its entropy in nats.
	// It fails if scores are not finite, or do not have the declared form.
	Outcome(dst []float64, scores []float32) (entropy float64, err error)
	// Likelihoods returns the likelihoods of the labels under the outcomes, with one or several numbers per example.
	// The mean of their negative logarithms is the first metric. The likelihoods of an average of outcomes are the
	// averages of their likelihoods. The result is empty if outcomes lack noise; see [Missing].
	Likelihoods(outcomes []float64, labels target.Target) []float64
	// Uncertainties lists measures of the uncertainty of outcomes, the main one first.
	Uncertainties() []Uncertainty
	// Divergence returns the mean over examples of the divergence between the outcomes of two networks, in nats. Each
	// has n×Width numbers.
	Divergence(a, b []float64) float64

	// CheckLabel returns an error if no example can have this label. label belongs to one example.
	CheckLabel(label target.Target) error
	// Columns lists the columns of a row of predictions. Values appends the numbers of a row to dst, in that order.
	// label belongs to this example, and may be unknown.
	Columns(want RowOptions) []Column
	Values(dst []float64, want RowOptions, a Average, label target.Target) []float64
	// Shown returns the numbers of n outcomes that users see, width for each.
	Shown(outcomes []float64) (values []float64, width int)
	// NewReducer returns the reducer of no examples. See also [NewEvaluator].
	NewReducer(opts EvaluateOptions) Reducer

	// Calibrators lists the ways to calibrate averaged outcomes. Apply stores calibrated outcomes in dst, which may be
	// outcomes or nil. A map of a distribution function has no outcomes; see [EvaluateOptions].
	Calibrators() []Calibrator
	Apply(dst []float64, c *Calibration, outcomes []float64) []float64
}

// About describes a task.
type About struct {
	Name    string // name in a model card
	Meaning string // meaning of the scores, in words
	Size    string // what networks must have in common to be averaged, such as "10 classes"
	Width   int    // number of values in the outcome of an example, with all its positions
	Classes int    // number of classes or labels, or 0 for a task without them
}

// described implements a method of [Task].
type described struct{ about *About }

func (d described) About() *About { return d.about }

// Curved is a task whose scores are the parameters of an exponential family. The Laplace approximation needs this.
type Curved interface {
	Task
	// Link stores the outcome of k logits in dst.
	Link(dst, logits []float64)
	// AddCurvature adds the Hessian of the expected loss with respect to the logits, summed over n examples, to a k×k
	// matrix. logits is n×k.
	AddCurvature(hessian, logits *mat.Dense)
}

// Evident is a task whose logits say more than the probabilities: how far they are above others, not only above each other.
type Evident interface {
	Task
	// Evident reports whether the scores are logits of several classes.
	Evident() bool
	// Evidence returns log Σ exp z and max z of the logits z of an example: means over its first positions.
	Evidence(logits []float32, positions int) (logSumExp, largest float64)
}

// Decided is a task whose prediction depends on a threshold on the probability of class 1.
type Decided interface {
	Task
	// Decide chooses the threshold for averaged outcomes with the given labels.
	Decide(outcomes []float64, labels target.Target, by detect.Criterion) (detect.OperatingPoint, error)
}

// Paired is a task with independent labels, each a task of two classes.
type Paired interface {
	Task
	// Pairs returns a row for each label of each outcome: the probabilities that the example lacks it and that it has it.
	Pairs(outcomes []float64) []float64
	// FromPairs is the inverse of Pairs. The expected entropies are 0.
	FromPairs(pairs []float64) []float64
}

// Logged is a task whose calibrations scale logarithms: the log-probabilities of classes, or the log-odds of labels. Logits hold
// differences that probabilities lose, because float64 rounds them to 0 or 1.
type Logged interface {
	Task
	// Logs returns the logarithms of outcomes that logits have given, n rows of one number for each class or label. Logarithms
	// have the bits of those of the outcomes, unless these have lost digits.
	Logs(outcomes, logits []float64) []float64
	// FitLogs is [Calibrator].Fit, and ApplyLogs is Apply, of logarithms instead of outcomes.
	FitLogs(by Method, logs []float64, labels target.Target) (*Calibration, error)
	ApplyLogs(c *Calibration, logs []float64) (outcomes []float64)
	// FitParts returns FitLogs of some of the rows, which takes less time, or nil if the method has no such way.
	FitParts(by Method, logs []float64, labels target.Target) (fit func(rows []int) *Calibration, err error)
	// Scaled returns logarithms after a calibration, up to a constant for each example. LogLosses returns the first loss of each
	// example from such logarithms.
	Scaled(c *Calibration, logs []float64) []float64
	LogLosses(logs []float64, labels target.Target) []float64
}

// Targeted is a task that predicts numbers.
type Targeted interface {
	Task
	// LogLikelihoods returns the logarithm of the density at each target, n × targets, or nil if outcomes lack noise.
	LogLikelihoods(outcomes []float64, targets target.Target) []float64
	// Moments returns the moments of target k of an outcome, in the units of the target.
	Moments(outcome []float64, k int) regression.Moments
	// FromMoments returns the outcome with the moments of each target, in the network's units.
	FromMoments(moments []regression.Moments) []float64
}

// Traits are what the name of a task tells before a network has run.
type Traits struct {
	Labels target.Kind // kind of the labels
	// Form says that scores have a [Form], and Alone that each of them is one of its own: a label, or class 1 of two.
	Form, Alone bool
	// Targets says that a model card describes targets: their units, and their noise if networks do not predict it. The mixture of
	// the members then holds more than their average.
	Targets bool
	// Text says that examples are windows of a text, whose next tokens are the labels.
	Text bool
	// Threshold says that a threshold on the probability of class 1 decides.
	Threshold bool
	// Shares says that classes of examples have shares, which sum to 1, unless an example has several positions.
	Shares bool
}

// A kind makes a task from scores. ok is false if the scores do not fit the task.
type kind struct {
	name  string
	means string // description for users
	Traits
	of func(OutputSpec) (t Task, ok bool, err error)
}

// kinds lists the tasks. The first that accepts the scores is used, unless a model card names another.
var kinds = []kind{
	{"binary", "one score, of class 1 of two, trained with binary cross-entropy",
		Traits{Labels: target.Classes, Form: true, Alone: true, Threshold: true, Shares: true}, newBinary},
	{"classes", "a score for each of several classes that exclude each other, trained with cross-entropy",
		Traits{Labels: target.Classes, Form: true, Shares: true}, newClasses},
	{NextToken, "a score for each word of a vocabulary, for what comes next in a text, by a language model",
		Traits{Labels: target.Classes, Form: true, Text: true}, newNextToken},
	{"labels", "a score for each of several labels that do not exclude each other, trained with binary cross-entropy",
		Traits{Labels: target.Labels, Form: true, Alone: true}, newLabels},
	{"regression", "means of numbers to predict, or means and variances", Traits{Labels: target.Numbers, Targets: true}, newRegression},
	{None, "outputs without a meaning here: only weights are averaged", Traits{Labels: target.Classes, Form: true}, newNone},
}

// TraitsOf returns the traits of the named task. They are those of classes for an unknown name.
func TraitsOf(name string) Traits {
	for _, k := range kinds {
		if k.name == name {
			return k.Traits
		}
	}
	return Traits{Labels: target.Classes, Form: true, Shares: true}
}

// Names lists the names of the tasks.
func Names() []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// New returns the task for the scores: of several positions where they have an Axis. name is the name in a model card, or "" to
// choose by the scores.
func New(name string, s OutputSpec) (Task, error) {
	t, err := ofPosition(name, s)
	if err != nil || s.Axis == 0 {
		return t, err
	}
	s.Next = t.About().Name == NextToken
	return newSeveral(t, s), nil
}

// ofPosition returns the task of one position for the scores.
func ofPosition(name string, s OutputSpec) (Task, error) {
	for _, k := range kinds {
		if name != k.name && (name != "" || k.name == None) {
			continue
		}
		if err := contradiction(name, s); err != nil {
			return nil, err
		}
		if err := s.CheckForm(k.name); err != nil {
			return nil, err
		}
		t, ok, err := k.of(s)
		if ok || err != nil {
			return t, err
		}
		if name == NextToken && s.Axis == 0 {
			return nil, fmt.Errorf("tensor %q: %d scores for an example, want those of each position: a network that returns the last "+
				"position only, as nanoGPT does without targets, must be exported with all of them", s.Output, s.Count)
		}
		if name != "" {
			return nil, fmt.Errorf("tensor %q: %d numbers for an example are not scores for the task %q", s.Output, s.Count, name)
		}
	}
	if name != "" {
		return nil, fmt.Errorf("task %w", &word.Unknown{Word: name, Want: Names()})
	}
	return nil, fmt.Errorf("tensor %q: %d numbers for an example are scores for no task", s.Output, s.Count)
}

// LabelWidth returns the number of labels or targets of a position, for the named task. It is 1 for classes.
func (s OutputSpec) LabelWidth(name string) int {
	s.Axis = 0
	if t, err := ofPosition(name, s); err == nil && t.About().Classes == 0 {
		return t.About().Width / perTarget
	} else if err == nil && TraitsOf(name).Labels == target.Labels {
		return s.Count
	}
	return 1
}

// Targets returns the number of targets of a regression, or 0 for other tasks. t is the task of one position.
func Targets(t Task) int {
	if _, ok := t.(Targeted); ok {
		return t.About().Width / perTarget
	}
	return 0
}

// Average is the average of the members for one example.
type Average struct {
	Outcome []float64 // Σ w·outcome over members, with Σ w = 1
	Entropy float64   // Σ w·entropy over members, nats
	// Evidence holds the averages of the two numbers of [Evident] over members, or is nil.
	Evidence []float64
	Members  []float32 // outcome of each member, S×Width; nil unless members are kept
	Weights  []float64 // weights of the members, which add up to 1; nil for equal ones
	// Calibrate calibrates an averaged outcome in place. It may be nil.
	Calibrate func(outcome []float64)
	// Threshold is the threshold of a [Decided] task. 0 stands for the usual one.
	Threshold float64
}

// CheckLabels fails if an example has a label that the task cannot have, such as a class that the network does not know. name
// returns the name of an example. Examples without a label pass. Labels of pixels and tokens are checked when they are
// used, because each example has a file of them.
func CheckLabels(t Task, labels target.Target, name func(i int) string) error {
	if labels.Dense() {
		return nil
	}
	for i := range labels.Len() {
		label := labels.At(i)
		if !label.Known() {
			continue
		}
		if err := t.CheckLabel(label); err != nil {
			return fmt.Errorf("%s: %w", name(i), err)
		}
	}
	return nil
}
