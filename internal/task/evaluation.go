package task

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/internal/target"
)

// Metric is a score of a set of predictions, and how texts, tables and JSON show it. Each task declares its metrics in
// one list, together with their computation: see measures.go.
type Metric struct {
	Key     string // in JSON
	Header  string // in tables
	Digits  int    // after the decimal point
	Percent bool   // a share, shown as a percentage
	Unit    string // follows the value in sentences, or ""
	Further bool   // only in extended tables
	Brief   bool   // further in tables, but among the few scores that score prints
	Note    string // what readers must know to understand the header, or ""
	// Optional metrics are left empty if they are NaN.
	Optional bool
	// Decision marks metrics that depend on a threshold, and Set those of sets of classes. Each have a table of their own.
	Decision, Set bool
}

// Shown reports whether the metric is computed. If mainOnly is set, those that only extended tables show are not.
func (m Metric) Shown(mainOnly bool) bool { return !mainOnly || !m.Further || m.Brief }

// Score is a metric with its value for some predictions. The value is NaN if it was not computed.
type Score struct {
	Metric
	Value float64
}

// Loss is a loss of each example. Lower is better.
type Loss struct {
	Key    string // in JSON
	Name   string // in words
	Values []float64
}

// EvaluateOptions say how to score outcomes.
type EvaluateOptions struct {
	calibrate.EvaluateOptions
	// MainOnly leaves out everything that takes longer than the main metrics, or more memory. There are no curves.
	MainOnly bool
	// NoIntervals leaves out the intervals of figures of several positions, and the ECE of a calibrated model.
	NoIntervals bool
	// NoLosses leaves out the losses of each example.
	NoLosses bool
	// Threshold is the threshold of a [Decided] task. 0 stands for the usual one.
	Threshold float64
	// Maps recalibrate the distributions of a regression, if their method is [ByIsotonic]. Metrics that are then
	// undefined are NaN.
	Maps *Fitted

	// Expected is the number of examples, or 0 if it is not known.
	Expected int
}

// A Reducer takes examples one at a time: outcome, label, unit of chance. It gives the values, intervals and losses of all metrics of
// a task. It keeps sums and the losses of each example. Some metrics need a few numbers of each example as
// well. An outcome is kept only for metrics that MainOnly leaves out.
type Reducer interface {
	// Add adds the averaged outcome of an example with its target. unit names its unit of chance, such as its patient. "" makes it a
	// unit of its own.
	Add(outcome []float64, target target.Target, unit string) error
	// AddRow adds a row of predictions, in the order of Columns, with its class number, −1 for none. sums is what the
	// positions of the example add: see [Reading]. It reports whether a target is known. Rows without a target do not
	// count.
	AddRow(values []float64, label int, sums []byte, unit string) bool
	// Merge adds the examples of another reducer of the same task, behind its own. Units of one name become one.
	Merge(Reducer)
	// Metrics lists the metrics of the task.
	Metrics() []Metric
	// Losses returns the losses of the examples in their order. The first loss decides verdicts.
	Losses() []Loss
	// Evaluation scores the examples. There must be at least one.
	Evaluation() *Evaluation
}

// Evaluator scores examples of any task. It knows their units of chance.
type Evaluator struct {
	Reducer
	unit  string   // of the examples that follow
	units []string // of the examples that have losses
	keeps bool
}

// NewEvaluator returns an evaluator of no examples. See also [Evaluate].
func NewEvaluator(t Task, opts EvaluateOptions) *Evaluator {
	return &Evaluator{Reducer: t.NewReducer(opts), keeps: !opts.NoLosses}
}

// Unit names the unit of chance of the examples that follow: see [Reducer].
func (e *Evaluator) Unit(name string) { e.unit = name }

// Add adds an example: see [Reducer].
func (e *Evaluator) Add(outcome []float64, target target.Target) error {
	err := e.Reducer.Add(outcome, target, e.unit)
	e.added(err == nil)
	return err
}

// AddRow adds an example: see [Reducer].
func (e *Evaluator) AddRow(values []float64, label int, sums []byte) bool {
	known := e.Reducer.AddRow(values, label, sums, e.unit)
	e.added(known)
	return known
}

func (e *Evaluator) added(one bool) {
	if one && e.keeps {
		e.units = append(e.units, e.unit)
	}
}

// Merge adds the examples of another evaluator of the same task, behind its own. Groups of one name become one.
func (e *Evaluator) Merge(o *Evaluator) {
	e.Reducer.Merge(o.Reducer)
	e.units = append(e.units, o.units...)
}

// Evaluate scores the outcomes of n examples, n×Width, against their targets. Halves of the examples do not share one of the
// targets' units of chance.
func Evaluate(t Task, outcomes []float64, targets target.Target, opts EvaluateOptions) (*Evaluation, error) {
	e, err := added(t, outcomes, targets, opts)
	if err != nil {
		return nil, err
	}
	return e.Evaluation(), nil
}

// Losses is like [Evaluate], but computes the losses only.
func Losses(t Task, outcomes []float64, targets target.Target, opts EvaluateOptions) ([]Loss, error) {
	opts.MainOnly = true
	e, err := added(t, outcomes, targets, opts)
	if err != nil {
		return nil, err
	}
	return e.Losses(), nil
}

func added(t Task, outcomes []float64, targets target.Target, opts EvaluateOptions) (*Evaluator, error) {
	width := t.About().Width
	if n := targets.Len(); n == 0 || len(outcomes) != n*width {
		return nil, fmt.Errorf("targets of %d examples for outcomes of %d", n, len(outcomes)/width)
	}
	opts.Expected = targets.Len()
	e := NewEvaluator(t, opts)
	for i := range targets.Len() {
		if targets.Units != nil {
			e.Unit(strconv.Itoa(targets.Units[i]))
		}
		if err := e.Add(outcomes[i*width:][:width], targets.At(i)); err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
	}
	return e, nil
}

// Align makes evaluations comparable if a metric depends on the best of them: prediction sets get the level just above
// the best accuracy. The evaluations must have all metrics, not only the main ones.
func Align(evaluations ...*Evaluation) {
	best := 0.0
	for _, e := range evaluations {
		if e.sets != nil {
			best = max(best, e.Value("accuracy"))
		}
	}
	for _, e := range evaluations {
		if e.sets != nil {
			r := &result{chosen: calibrate.SetsAbove(e.sets, best)}
			for _, m := range setMeasures {
				e.Scores[e.find(m.Key)].Value = m.of(r)
			}
		}
	}
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

// Evaluation is the result of scoring predictions.
type Evaluation struct {
	Scores []Score // of all metrics of the task, the main ones first
	Losses []Loss  // nil with NoLosses
	// Reliability and RiskCoverage are nil for a task without a confidence.
	Reliability  []calibrate.ReliabilityBin
	RiskCoverage []calibrate.RiskPoint
	// Parts has the metrics of each target if there are several. Scores then has the means over targets. Parts is nil
	// for a single target.
	Parts []Part
	// Figures show how reliable predictions are, for tasks without the Reliability of a confidence.
	Figures []Figure
	// Points are the operating points at all thresholds of a [Decided] task. They are computed from scores that have
	// the same order as the probabilities. Decided holds the decisions at the chosen threshold. Both are empty for
	// other tasks.
	Points  []detect.OperatingPoint
	Decided detect.Decisions
	// Warnings say why a score may be misleading.
	Warnings []error

	sets []calibrate.Sets // for several levels; Scores has one of them
}

// Part is the evaluation of one of several targets.
type Part struct {
	Name   string
	Scores []Score
}

// Evaluation returns the scores of the part as an evaluation without anything else.
func (p Part) Evaluation() *Evaluation { return &Evaluation{Scores: p.Scores} }

// find returns the index of a metric, or −1.
func (e *Evaluation) find(key string) int {
	return slices.IndexFunc(e.Scores, func(s Score) bool { return s.Key == key })
}

// Has reports whether the task has a metric.
func (e *Evaluation) Has(key string) bool { return e.find(key) >= 0 }

// Score returns a metric with its value. It panics if the task has no such metric.
func (e *Evaluation) Score(key string) Score {
	if i := e.find(key); i >= 0 {
		return e.Scores[i]
	}
	panic("task: no metric " + key)
}

// Value returns the value of a metric. It panics if the task has no such metric.
func (e *Evaluation) Value(key string) float64 { return e.Score(key).Value }

// Only returns the scores of the given metrics.
func (e *Evaluation) Only(metrics []Metric) (some []Score) {
	for _, m := range metrics {
		some = append(some, e.Score(m.Key))
	}
	return some
}

// Main returns the metrics that every table shows.
func (e *Evaluation) Main() []Score {
	return slices.DeleteFunc(slices.Clone(e.Scores), func(s Score) bool { return s.Further })
}

// Loss returns a loss of each example, or nil if the task has no such loss.
func (e *Evaluation) Loss(key string) []float64 {
	for _, l := range e.Losses {
		if l.Key == key {
			return l.Values
		}
	}
	return nil
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

// Mixed is a task where the members' joint prediction, a mixture of distributions, holds more than their average
// outcome.
type Mixed interface {
	Task
	// MixtureLoss describes the loss that averages of Likelihoods give. The first of Losses is different: it belongs to
	// the average outcome.
	MixtureLoss() string
	// EvaluateMixture adds to an evaluation the metrics that need the members. It applies c if c is not nil. Each
	// member has n×Width numbers.
	EvaluateMixture(e *Evaluation, members [][]float32, weights []float64, labels target.Target, c *Calibration) error
}
