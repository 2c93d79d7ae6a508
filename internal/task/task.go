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

	"github.com/swagwrap/swagwrap/calibrate"
)

// Scores are what a network gives out for an example, as far as its graph and a
// first run tell.
type Scores struct {
	Output     string `json:"output"`     // name of the graph's output
	Activation string `json:"activation"` // what it ends in: "softmax", "sigmoid", or "" for neither
	Count      int    `json:"count"`      // numbers for an example
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

	// ClassNames is how many names of classes there are room for; 0 where there are
	// no classes.
	ClassNames() int
	// CheckLabel fails for a label that no example can have.
	CheckLabel(label int) error
	// Columns lists what a row of predictions holds, and Values appends a row's
	// numbers to dst, in that order. label is −1 where there is none.
	Columns(want Want) []Column
	Values(dst []float64, want Want, a Average, label int) []float64
	// NewSummary begins to add up how good rows are.
	NewSummary() Summary

	// Metrics lists what Evaluate finds, and Losses what differences are of; the
	// first of these is the one that verdicts go by.
	Metrics() []Metric
	Losses() []Loss
	// Evaluate scores the outcomes of n examples, n×Width, beside their labels.
	Evaluate(outcomes []float64, labels []int, opts calibrate.EvaluateOptions) (*Evaluation, error)
}

// Curved is a task whose expected loss has a known curvature in the scores, as the
// Laplace approximation needs it.
type Curved interface {
	Task
	// AddCurvature adds the Hessian of the expected loss in the scores, k×k in
	// row-major order, for one example's k scores.
	AddCurvature(hessian []float64, scores []float64)
}

// A kind makes a task of scores. ok is false where the scores are not of it.
type kind struct {
	name string
	of   func(Scores) (t Task, ok bool, err error)
}

// kinds lists the tasks: the first that takes the scores is what they mean, unless
// a model card names another.
var kinds = []kind{
	{"binary", newBinary},
	{"classes", newClasses},
}

// Names lists the tasks.
func Names() []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// Of returns the task of scores. name is that of a model card, or "" to go by the
// scores.
func Of(name string, s Scores) (Task, error) {
	for _, k := range kinds {
		if name != "" && name != k.name {
			continue
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

// Average is what members say of an example together.
type Average struct {
	Outcome []float64 // Σ w·outcome over members, with Σ w = 1
	Entropy float64   // Σ w·entropy over members, nats
	Members []float32 // each member's outcome, S×Width; nil unless they are kept
	// Calibrate changes an averaged outcome, and is nil where nothing does.
	Calibrate func(outcome []float64)
}

// Summary adds up how good predictions are.
type Summary interface {
	// Add takes in a row's values, in the order of Columns, and its label.
	Add(values []float64, label int)
	// Scores are those of all so far.
	Scores() []Score
}

// Score is a number with a name.
type Score struct {
	Metric
	Value float64
	Unit  string
}
