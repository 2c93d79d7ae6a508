package task

import "github.com/swagwrap/swagwrap/calibrate"

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
}

// EvaluateOptions say how outcomes are scored.
type EvaluateOptions struct {
	calibrate.EvaluateOptions
	// MainOnly leaves out what takes longer than the main metrics: other values are
	// NaN, and there are no curves.
	MainOnly bool
}

// Uncertainty measures how uncertain averaged outcomes are, n×Width: larger is less
// certain. expected are the expected entropies.
type Uncertainty struct {
	Key     string // in JSON
	Name    string
	Members bool // is zero for a single network
	Of      func(outcomes, expected []float64) []float64
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
	// Warnings say why a score should not be taken at face value.
	Warnings []error

	sets []calibrate.Sets // of several levels, of which Values has one
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
