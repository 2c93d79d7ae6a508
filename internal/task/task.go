// Package task says what the scores of a network mean.
//
// A [Task] turns the scores that one network gives for an example into an outcome,
// which can be averaged over members; it turns the average into a row of
// predictions, says which columns such rows have, and how good they are beside
// labels. Each task is a file of its own: nothing elsewhere asks what the numbers
// are in order to decide what to do.
//
// # Invariants
//
// An outcome has Width numbers, all finite. Scores that give none are an error,
// and never averaged.
//
// # Concurrency
//
// Tasks are values: their methods may be called from several goroutines.
package task

import (
	"fmt"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// Scores are what a network gives out for an example, as far as its graph and a
// first run tell.
type Scores struct {
	Output     string `json:"output"`     // name of the graph's output
	Activation string `json:"activation"` // what it ends in: "softmax", "logsoftmax", "sigmoid", or "" for none of these
	Count      int    `json:"count"`      // numbers for an example
	// Numbers is of a regression, and nil where nothing was said of it.
	Numbers *Numbers `json:"-"`
}

// Task is what scores mean.
type Task interface {
	// Name is its word in a model card.
	Name() string
	// Describe says in words what the scores are taken for.
	Describe() string
	// Size says in words what networks must agree in to be averaged: "10 classes".
	Size() string
	// Width is how many numbers an outcome has.
	Width() int

	// Outcome turns the scores of one example into its outcome, in dst, and returns
	// its entropy in nats. It fails for scores that are not finite, or not what they
	// claim to be.
	Outcome(dst []float64, scores []float32) (entropy float64, err error)
	// Likelihoods are how probable the outcomes make the labels, one number or several for
	// an example; the mean of their negative logarithms is the first metric. Those of an
	// average of outcomes are the averages of theirs. There are none where outcomes lack
	// noise: see [Noisy].
	Likelihoods(outcomes []float64, labels truth.Truth) []float64
	// Uncertainties lists ways to measure how uncertain outcomes are, the main one
	// first.
	Uncertainties() []Uncertainty
	// Divergence is the mean over examples of how far two networks' outcomes, n×Width
	// each, are apart, in nats.
	Divergence(a, b []float64) float64

	// ClassNames is how many names of classes there are room for; 0 where there are
	// no classes.
	ClassNames() int
	// CheckLabel fails for what no example can have. It is of one.
	CheckLabel(label truth.Truth) error
	// Columns lists what a row of predictions holds, and Values appends a row's
	// numbers to dst, in that order. label is of the one example, if anything is
	// known of it.
	Columns(want Want) []Column
	Values(dst []float64, want Want, a Average, label truth.Truth) []float64
	// Shown are the numbers of n outcomes that are for others to read, so many of each.
	Shown(outcomes []float64) (values []float64, width int)
	// NewSummary begins to add up how good rows are.
	NewSummary() Summary

	// Metrics lists what Evaluate finds, and Losses what differences are of; the
	// first of these is the one that verdicts go by.
	Metrics() []Metric
	Losses() []Loss
	// Evaluate scores the outcomes of n examples, n×Width, beside their labels.
	Evaluate(outcomes []float64, labels truth.Truth, opts EvaluateOptions) (*Evaluation, error)
	// Align makes evaluations that were not of main metrics only comparable where
	// what is measured hangs on how good the best of them is.
	Align(evaluations []*Evaluation)

	// Calibrators lists the ways to repair averaged outcomes. What one is fitted to,
	// Fit returns; Apply stores outcomes repaired by it in dst, which may be
	// the same, or nil. CrossFit repairs each half
	// of the outcomes, cut at random, by what fits the other.
	Calibrators() []Calibrator
	Fit(by calibrate.Scaler, outcomes []float64, labels truth.Truth) (*calibrate.Scaling, error)
	Apply(dst []float64, s *calibrate.Scaling, outcomes []float64) []float64
	CrossFit(by calibrate.Scaler, outcomes []float64, labels truth.Truth, seed uint64) ([]float64, *calibrate.Scaling, error)
	// CrossFits says what that is worth, over several ways to cut.
	CrossFits(by calibrate.Scaler, outcomes []float64, labels truth.Truth, seed uint64) (calibrate.CrossFitted, error)
}

// Curved is a task whose scores are the parameters of an exponential family: what
// the Laplace approximation needs.
type Curved interface {
	Task
	// Link returns the outcome of logits, k numbers, in dst.
	Link(dst, logits []float64)
	// AddCurvature adds the Hessian of the expected loss in the logits of n examples,
	// n×k, to a matrix k×k.
	AddCurvature(hessian, logits *mat.Dense)
}

// Decided is a task whose prediction is by a threshold on the probability of class 1.
type Decided interface {
	Task
	// Decide chooses the threshold for averaged outcomes beside their labels.
	Decide(outcomes []float64, labels truth.Truth, by calibrate.Criterion) (calibrate.OperatingPoint, error)
}

// A kind makes a task of scores. ok is false where the scores are not of it.
type kind struct {
	name  string
	means string     // what a user knows it by
	truth truth.Kind // what is known of examples
	of    func(Scores) (t Task, ok bool, err error)
}

// kinds lists the tasks: the first that takes the scores is what they mean, unless
// a model card names another.
var kinds = []kind{
	{"binary", "one score, of class 1 of two (trained with binary cross-entropy)", truth.Classes, newBinary},
	{"classes", "a score for each of several classes that exclude each other (trained with cross-entropy)", truth.Classes, newClasses},
	{"labels", "a score for each of several labels that do not exclude each other (trained with binary cross-entropy)", truth.Labels, newLabels},
	{"regression", "means of numbers to predict, or means and variances (--variance-head)", truth.Numbers, newRegression},
}

// Names lists the tasks.
func Names() []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// Truth says what is known of examples of the task of that name, which is classes where it
// is none yet.
func Truth(name string) truth.Kind {
	for _, k := range kinds {
		if k.name == name {
			return k.truth
		}
	}
	return truth.Classes
}

// Of returns the task of scores. name is that of a model card, or "" to go by the
// scores.
func Of(name string, s Scores) (Task, error) {
	for _, k := range kinds {
		if name != "" && name != k.name {
			continue
		}
		if err := contradiction(name, s); err != nil {
			return nil, err
		}
		t, ok, err := k.of(s)
		if ok || err != nil {
			return t, err
		}
		if name != "" {
			return nil, fmt.Errorf("tensor %q: %d numbers for an example are not scores for the task %q", s.Output, s.Count, name)
		}
	}
	if name != "" {
		return nil, fmt.Errorf("no task %q, want one of %s", name, strings.Join(Names(), ", "))
	}
	return nil, fmt.Errorf("tensor %q: %d numbers for an example are scores for no task", s.Output, s.Count)
}

// OfWidth returns the task of that name whose outcomes have so many numbers.
func OfWidth(name string, width int) (Task, error) {
	for _, count := range []int{width, width - 1, width / 3} { // one score is of two classes; a label and a target have three numbers
		if t, err := Of(name, Scores{Count: count}); err == nil && t.Width() == width {
			return t, nil
		}
	}
	return nil, fmt.Errorf("task %q has no outcomes of %d numbers", name, width)
}

// Average is what members say of an example together.
type Average struct {
	Outcome []float64 // Σ w·outcome over members, with Σ w = 1
	Entropy float64   // Σ w·entropy over members, nats
	Members []float32 // each member's outcome, S×Width; nil unless they are kept
	Weights []float64 // theirs, which add up to 1; nil for equal ones
	// Calibrate changes an averaged outcome, and is nil where nothing does.
	Calibrate func(outcome []float64)
	// Threshold is that of a [Decided] task; 0 for the usual one.
	Threshold float64
}

// Summary adds up how good predictions are.
type Summary interface {
	// Add takes in a row's values, in the order of Columns, and the number of its class, −1
	// for none. It reports whether anything was known to judge them beside.
	Add(values []float64, label int) (judged bool)
	// Scores are those of all so far.
	Scores() []Score
	// Warning says why one of them should not be taken at face value, or is "".
	Warning() string
}

// inWords joins warnings, or is "".
func inWords(warnings []error) string {
	var texts []string
	for _, w := range warnings {
		texts = append(texts, w.Error())
	}
	return strings.Join(texts, "; ")
}

// Score is a number with a name.
type Score struct {
	Metric
	Value float64
	Unit  string
}
