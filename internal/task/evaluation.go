package task

import (
	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// Metric is a score of a set of predictions, as tables and JSON show it.
type Metric struct {
	Key     string // in JSON
	Header  string // in tables
	Digits  int    // after the point
	Percent bool   // a share, shown as a percentage
	Further bool   // not among those that every table shows
	Note    string // what readers of the header must know, or ""
	// Optional ones are left empty where they are NaN.
	Optional bool
	// Decision is of those that hang on a threshold.
	Decision bool
}

// EvaluateOptions say how outcomes are scored.
type EvaluateOptions struct {
	calibrate.EvaluateOptions
	// MainOnly leaves out what takes longer than the main metrics: other values are
	// NaN, and there are no curves.
	MainOnly bool
	// Threshold is that of a [Decided] task; 0 for the usual one.
	Threshold float64
}

// Uncertainty measures how uncertain averaged outcomes are, n×Width: larger is less
// certain. expected are the expected entropies.
type Uncertainty struct {
	Key     string // in JSON
	Name    string
	Members bool // is zero for a single network
	Of      func(outcomes, expected []float64) []float64
	// Label is its name and unit on an axis, and Bins are the edges of histograms that hold
	// all values; "" and nil of entropies in nats, which have those of the paper.
	Label string
	Bins  func(values ...[]float64) []float64
}

// Loss is what a method can be better or worse in, example by example: lower is
// better.
type Loss struct {
	Key  string // in JSON
	Name string // in words
}

// Calibrator is a way to repair averaged outcomes, the first of a task's by a single
// number.
type Calibrator struct {
	calibrate.Scaler
	Name string // behind a method's: "Temp"
	// Words are what it is called in a sentence, and Symbol the number that is fitted, both
	// of the first only.
	Words, Symbol string
	// Columns are what tables show of a method so repaired.
	Columns []Metric
}

// Evaluation is how good predictions are.
type Evaluation struct {
	Values []float64   // in the order of Metrics
	Losses [][]float64 // in the order of Losses, one for each example
	// Reliability and RiskCoverage are nil for a task that has no confidence.
	Reliability  []calibrate.ReliabilityBin
	RiskCoverage []calibrate.RiskPoint
	// Parts are the same of each of several numbers to predict, of which Values has means;
	// nil where there is one.
	Parts []Part
	// Figures show how far what is predicted can be taken at its word, where that is not
	// the Reliability of a confidence.
	Figures []Figure
	// Points are what any threshold could decide of a [Decided] task, by scores of one order
	// with the probabilities, and Decided what was decided; nil for others.
	Points  []calibrate.OperatingPoint
	Decided calibrate.Decisions
	// Warnings say why a score should not be taken at face value.
	Warnings []error

	sets []calibrate.Sets // of several levels, of which Values has one
}

// Part is how well one of several numbers is predicted.
type Part struct {
	Name   string
	Values []float64 // in the order of Metrics
}

// Figure is a line with 95 % intervals: of several methods one figure is drawn. Titles and
// labels are a task's, and the same for all methods.
type Figure struct {
	Key                   string
	Title, XLabel, YLabel string
	Note                  string
	Ideal                 float64 // what Y would be if all were right
	X, Y, Lower, Upper    []float64
}

// Recalibrator is a task whose predicted distributions can also be repaired by a map that
// leaves them no moments and no density: what Apply cannot say.
type Recalibrator interface {
	Task
	// Recalibration is what it is called.
	Recalibration() Calibrator
	// Recalibrate judges outcomes repaired by parts: metrics that are not defined then are NaN.
	Recalibrate(outcomes []float64, labels truth.Truth, parts []Repair) (*Evaluation, error)
}

// Repair is what some rows of outcomes are repaired by: what fits these outcomes.
type Repair struct {
	Outcomes []float64
	Labels   truth.Truth
	Rows     []int // nil for all
}

// Mixed is a task in which what members say together is more than their average outcome:
// a mixture of distributions.
type Mixed interface {
	Task
	// MixtureLoss is the loss that averages of Likelihoods make, in words: not the first of
	// Losses, which is of the average outcome.
	MixtureLoss() string
	// EvaluateMixture adds to an evaluation what only the members tell, as they are or with
	// their variances scaled by s where that is not nil. Each has n×Width numbers.
	EvaluateMixture(e *Evaluation, members [][]float32, weights []float64, labels truth.Truth, s *calibrate.Scaling) error
}

// Value returns the metric with the given key of a task's evaluation, or NaN.
func Value(t Task, e *Evaluation, key string) float64 {
	for i, m := range t.Metrics() {
		if m.Key == key {
			return e.Values[i]
		}
	}
	panic("task: no metric " + key)
}
