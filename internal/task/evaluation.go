package task

import (
	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// Metric is a score of a set of predictions, and how tables and JSON show it.
type Metric struct {
	Key     string // in JSON
	Header  string // in tables
	Digits  int    // after the decimal point
	Percent bool   // a share, shown as a percentage
	Further bool   // only in extended tables
	Note    string // what readers must know to understand the header, or ""
	// Optional metrics are left empty if they are NaN.
	Optional bool
	// Decision marks metrics that depend on a threshold.
	Decision bool
}

// EvaluateOptions say how to score outcomes.
type EvaluateOptions struct {
	calibrate.EvaluateOptions
	// MainOnly leaves out everything that takes longer than the main metrics. Other values are NaN, and there are no
	// curves.
	MainOnly bool
	// Threshold is the threshold of a [Decided] task. 0 stands for the usual one.
	Threshold float64
}

// Uncertainty is a measure of the uncertainty of averaged outcomes, n×Width. A larger value means less certain. Of gets
// the outcomes and their expected entropies.
type Uncertainty struct {
	Key     string // in JSON
	Name    string
	Members bool // it is zero for a single network
	Of      func(outcomes, expected []float64) []float64
	// Label is its name and unit on an axis. Bins returns the edges of histogram bins that hold all values. Label is ""
	// and Bins is nil for entropies in nats, which use the bins of the paper.
	Label string
	Bins  func(values ...[]float64) []float64
}

// Loss is a loss per example. Lower is better.
type Loss struct {
	Key  string // in JSON
	Name string // in words
}

// Calibrator is a way to calibrate averaged outcomes. The first of a task fits a single number.
type Calibrator struct {
	calibrate.Scaler
	Name string // follows the name of a method, such as "Temp"
	// Words is its name in a sentence, and Symbol is the symbol of the fitted number. Only the first of a task has
	// them.
	Words, Symbol string
	// Columns are the metrics that tables show for a method with this calibration.
	Columns []Metric
}

// Evaluation is the result of scoring predictions.
type Evaluation struct {
	Values []float64   // in the order of Metrics
	Losses [][]float64 // in the order of Losses, one value per example
	// Reliability and RiskCoverage are nil for a task without a confidence.
	Reliability  []calibrate.ReliabilityBin
	RiskCoverage []calibrate.RiskPoint
	// Parts has the metrics of each target if there are several. Values then has the means over targets. Parts is nil
	// for a single target.
	Parts []Part
	// Figures show how reliable predictions are, for tasks without the Reliability of a confidence.
	Figures []Figure
	// Points are the operating points at all thresholds of a [Decided] task. They are computed from scores that have
	// the same order as the probabilities. Decided holds the decisions at the chosen threshold. Both are empty for
	// other tasks.
	Points  []calibrate.OperatingPoint
	Decided calibrate.Decisions
	// Warnings say why a score may be misleading.
	Warnings []error

	sets []calibrate.Sets // for several levels; Values has one of them
}

// Part is the evaluation of one of several targets.
type Part struct {
	Name   string
	Values []float64 // in the order of Metrics
}

// Figure is a line with 95 % intervals. The lines of several methods share one figure. The task sets the title and the
// labels, which are the same for all methods.
type Figure struct {
	Key                   string
	Title, XLabel, YLabel string
	Note                  string
	Ideal                 float64 // value of Y for perfect predictions
	X, Y, Lower, Upper    []float64
}

// Recalibrator is a task whose predicted distributions can also be recalibrated by a map. The result has no moments and
// no density, so Apply cannot return it.
type Recalibrator interface {
	Task
	// Recalibration returns the name and the columns of this calibration.
	Recalibration() Calibrator
	// Recalibrate scores outcomes that are recalibrated by parts. Metrics that are then undefined are NaN.
	Recalibrate(outcomes []float64, labels truth.Truth, parts []Repair) (*Evaluation, error)
}

// Repair is the recalibration of some rows. The map is fitted to Outcomes and Labels.
type Repair struct {
	Outcomes []float64
	Labels   truth.Truth
	Rows     []int // rows to recalibrate; nil for all
}

// Mixed is a task where the members' joint prediction, a mixture of distributions, holds more than their average
// outcome.
type Mixed interface {
	Task
	// MixtureLoss describes the loss that averages of Likelihoods give. The first of Losses is different: it belongs to
	// the average outcome.
	MixtureLoss() string
	// EvaluateMixture adds to an evaluation the metrics that need the members. It scales their variances by s if s is
	// not nil. Each member has n×Width numbers.
	EvaluateMixture(e *Evaluation, members [][]float32, weights []float64, labels truth.Truth, s *calibrate.Scaling) error
}

// Value returns the metric with the given key in an evaluation of task t. It panics if t has no such metric.
func Value(t Task, e *Evaluation, key string) float64 {
	for i, m := range t.Metrics() {
		if m.Key == key {
			return e.Values[i]
		}
	}
	panic("task: no metric " + key)
}
