package task

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/calibrate/multilabel"
	"github.com/swagwrap/swagwrap/internal/target"
)

// lossSum adds up a loss. It also keeps the loss of each example, unless only the mean is needed.
type lossSum struct {
	sum  float64
	n    int
	each []float64
}

func (l *lossSum) add(v float64, keep bool) {
	l.sum += v
	l.n++
	if keep {
		l.each = append(l.each, v)
	}
}

func (l *lossSum) merge(o lossSum) {
	l.sum, l.n, l.each = l.sum+o.sum, l.n+o.n, append(l.each, o.each...)
}

func (l *lossSum) mean() float64 {
	if l.each != nil {
		return stat.Mean(l.each, nil)
	}
	return l.sum / float64(l.n)
}

// classReducer implements [Reducer] for probabilities of classes.
type classReducer struct {
	t                 classes
	opts              EvaluateOptions
	nll, wrong, brier lossSum
	impossible        int                  // true classes with probability 0
	tops              []calibrate.TopLabel // 16 bytes for each example; of class 1 for the task binary
	// all has the outcomes, and units the name of each example's unit of chance. Both are empty with MainOnly.
	all   calibrate.Predictions
	units []string
}

func (t classes) NewReducer(opts EvaluateOptions) Reducer { return newClassReducer(t, opts) }

func newClassReducer(t classes, opts EvaluateOptions) *classReducer {
	e := &classReducer{t: t, opts: opts, all: calibrate.Predictions{Classes: t.count}}
	if !opts.MainOnly {
		e.all.Probs = make([]float64, 0, opts.Expected*t.count)
	}
	return e
}

func (e *classReducer) Add(outcome []float64, target target.Target, unit string) error {
	label := target.Class()
	if err := calibrate.CheckRow(outcome, label); err != nil {
		return err
	}
	e.keep(outcome, label, unit)
	e.addTop(calibrate.JudgeRow(outcome, label))
	return nil
}

// predictions returns all outcomes. Examples without the name of a unit do not depend on each other.
func (e *classReducer) predictions() calibrate.Predictions {
	if slices.ContainsFunc(e.units, func(name string) bool { return name != "" }) {
		e.all.Units = Numbered(e.units)
	}
	return e.all
}

// keep keeps the outcome for the metrics that need all of them.
func (e *classReducer) keep(outcome []float64, label int, unit string) {
	if !e.opts.MainOnly {
		e.all.Probs, e.all.Labels = append(e.all.Probs, outcome...), append(e.all.Labels, label)
		e.units = append(e.units, unit)
	}
}

func (e *classReducer) AddRow(values []float64, label int, _ []byte, _ string) bool {
	if label >= 0 {
		top := calibrate.TopLabel{Confidence: values[confidence], Correct: int(values[prediction]) == label}
		e.addTop(calibrate.Judged{TopLabel: top, NLL: values[nll], Brier: values[brier]})
	}
	return label >= 0
}

func (e *classReducer) addTop(j calibrate.Judged) {
	e.add(j)
	e.tops = append(e.tops, j.TopLabel)
}

func (e *classReducer) add(j calibrate.Judged) {
	wrong := 1.0
	if j.Correct {
		wrong = 0
	}
	each := !e.opts.NoLosses
	e.nll.add(j.NLL, each)
	e.wrong.add(wrong, each)
	e.brier.add(j.Brier, each)
	if math.IsInf(j.NLL, 1) {
		e.impossible++
	}
}

func (e *classReducer) Merge(other Reducer) { e.merge(other.(*classReducer)) }

func (e *classReducer) merge(o *classReducer) {
	e.nll.merge(o.nll)
	e.wrong.merge(o.wrong)
	e.brier.merge(o.brier)
	e.impossible += o.impossible
	e.tops = append(e.tops, o.tops...)
	e.all.Probs, e.all.Labels = append(e.all.Probs, o.all.Probs...), append(e.all.Labels, o.all.Labels...)
	e.units = append(e.units, o.units...)
}

func (e *classReducer) Metrics() []Metric { return metrics(classMeasures) }

func (e *classReducer) Losses() []Loss {
	if e.opts.NoLosses {
		return nil
	}
	return []Loss{{"nll", "NLL", e.nll.each}, {"error", "error", e.wrong.each}, {"brier", "Brier score", e.brier.each}}
}

func (e *classReducer) Evaluation() *Evaluation {
	out := &Evaluation{Losses: e.Losses()}
	r := &result{Metrics: e.main(), auroc: chance.Interval{Mean: math.NaN()}}
	if e.opts.MainOnly {
		r.ECE = calibrate.TopLabelECE(e.tops, e.opts.ECE)
		out.Warnings = e.warnings()
	} else {
		all := e.predictions()
		r.Metrics = calibrate.Evaluate(all, e.opts.EvaluateOptions)
		if e.t.count == 2 { // the AUROC is the same for both classes
			r.auroc, _ = areas(logOdds(all))
		}
		out.Reliability, out.RiskCoverage = calibrate.Reliability(all, e.opts.ECE), calibrate.RiskCoverage(all)
		out.Warnings, out.sets, r.chosen = r.Warnings, r.Sets, calibrate.SetsAbove(r.Sets, r.Accuracy)
	}
	out.Scores = e.scores(r, out.Reliability, classMeasures)
	return out
}

// scores computes the metrics. The noise of the ECE follows from the bins.
func (e *classReducer) scores(r *result, bins []calibrate.ReliabilityBin, measures []measure) []Score {
	r.diagram, r.noise = bins, sync.OnceValue(func() chance.Interval {
		if e.opts.NoIntervals {
			return chance.Interval{Mean: math.NaN(), Low: math.NaN(), High: math.NaN()}
		}
		return calibrate.NewECENoise(e.tops, e.opts.ECE, e.opts.Seed)
	})
	return r.scores(measures, e.opts.MainOnly)
}

// main returns the metrics that follow from sums.
func (e *classReducer) main() calibrate.Metrics {
	n := e.wrong.n
	return calibrate.Metrics{N: n, Accuracy: (float64(n) - e.wrong.sum) / float64(n), NLL: e.nll.mean(), Brier: e.brier.mean()}
}

func (e *classReducer) warnings() []error {
	if e.impossible == 0 {
		return nil
	}
	return []error{fmt.Errorf("NLL is infinite: %d of %d labels have probability 0, or less than a float64 holds", e.impossible, e.wrong.n)}
}

// binaryReducer implements [Reducer] for two classes with a threshold. It keeps 24 bytes for each example, and its
// losses.
type binaryReducer struct {
	*classReducer
	in, out []float64 // log-odds of class 1, for examples of class 0 and of class 1
	decided detect.Decisions
}

func (t binary) NewReducer(opts EvaluateOptions) Reducer {
	return &binaryReducer{classReducer: newClassReducer(t.classes, opts)}
}

func (e *binaryReducer) Add(outcome []float64, target target.Target, unit string) error {
	label := target.Class()
	if err := calibrate.CheckRow(outcome, label); err != nil {
		return err
	}
	e.keep(outcome, label, unit)
	j := calibrate.JudgeRow(outcome, label)
	j.Correct = byThreshold(outcome[1], e.opts.Threshold) == label
	e.add(j, outcome[1], outcome[0], label)
	return nil
}

func (e *binaryReducer) AddRow(values []float64, label int, _ []byte, _ string) bool {
	if label >= 0 {
		p := values[len(values)-2:]
		e.add(calibrate.Judged{
			TopLabel: calibrate.TopLabel{Correct: int(values[prediction]) == label},
			NLL:      values[nll],
			Brier:    values[brier],
		}, p[0], p[1], label)
	}
	return label >= 0
}

// add adds an example with the probabilities p of class 1 and q of class 0. j.Correct is by the threshold.
func (e *binaryReducer) add(j calibrate.Judged, p, q float64, label int) {
	e.classReducer.add(j)
	e.tops = append(e.tops, calibrate.TopLabel{Confidence: p, Correct: label == 1})
	odds := multilabel.LogOdds([]float64{p}, []float64{q})[0]
	switch {
	case label == 1 && j.Correct:
		e.decided.TruePositives++
	case label == 1:
		e.decided.FalseNegatives++
	case j.Correct:
		e.decided.TrueNegatives++
	default:
		e.decided.FalsePositives++
	}
	if label == 1 {
		e.out = append(e.out, odds)
	} else {
		e.in = append(e.in, odds)
	}
}

func (e *binaryReducer) Merge(other Reducer) {
	o := other.(*binaryReducer)
	e.merge(o.classReducer)
	e.in, e.out = append(e.in, o.in...), append(e.out, o.out...)
	e.decided = e.decided.Add(o.decided)
}

func (e *binaryReducer) Metrics() []Metric { return metrics(binaryMeasures) }

var errOneClass = errors.New("all labels are of one class: there is no AUROC, and no average precision")

func (e *binaryReducer) Evaluation() *Evaluation {
	ece := func(opts calibrate.ECEOptions) float64 { return calibrate.TopLabelECE(e.tops, opts) }
	out := &Evaluation{Losses: e.Losses()}
	r := &result{Metrics: e.main(), threshold: orDefault(e.opts.Threshold), decided: e.decided}
	r.auroc, r.precision = areas(e.in, e.out)
	r.ECE = ece(e.opts.ECE)
	if !e.opts.MainOnly {
		r.ECEEqualWidth, r.ECE15 = ece(calibrate.ECEOptions{Binning: calibrate.EqualWidth, Bins: e.opts.ECE.Bins}), ece(calibrate.GuoBins())
		all := e.predictions()
		r.AURC, r.SelectiveRisk = calibrate.AURC(all), calibrate.SelectiveRisk(all, 0.9)
		r.Entropy = stat.Mean(calibrate.PredictiveEntropy(nil, all.Probs, e.t.count), nil)
		r.Refinement, r.SmoothECE = calibrate.Refinement(all, e.opts.Seed), calibrate.SmoothECE(e.tops)
		out.Decided, out.RiskCoverage = e.decided, calibrate.RiskCoverage(all)
		out.Reliability, out.Warnings = calibrate.TopLabelReliability(e.tops, e.opts.ECE)
	}
	if len(e.in) == 0 || len(e.out) == 0 {
		out.Warnings = append(out.Warnings, errOneClass)
	} else if !e.opts.MainOnly {
		out.Points = detect.OperatingPoints(e.in, e.out)
	}
	out.Warnings = append(out.Warnings, e.warnings()...)
	out.Scores = e.scores(r, out.Reliability, binaryMeasures)
	return out
}

// logOdds returns the log-odds of class 1 of two, for the examples of class 0 and of class 1. They also order
// probabilities that round to 1.
func logOdds(p calibrate.Predictions) (in, out []float64) {
	for i, label := range p.Labels {
		odds := multilabel.LogOdds(p.Row(i)[1:], p.Row(i)[:1])
		if label == 1 {
			out = append(out, odds...)
		} else {
			in = append(in, odds...)
		}
	}
	return in, out
}

// areas returns the AUROC with its interval, and the average precision. Both are NaN if all examples are of one class.
func areas(in, out []float64) (auroc chance.Interval, precision float64) {
	if nan := math.NaN(); len(in) == 0 || len(out) == 0 {
		return chance.Interval{Mean: nan, Low: nan, High: nan}, nan
	}
	return detect.AUROCInterval(in, out), detect.AUPR(in, out)
}

// ECEOf says whose probabilities the calibration errors of a task are about, or "" if it has none. Of two classes it is that of class 1,
// while papers often take the more probable one.
func ECEOf(t Task) string {
	switch t.(type) {
	case classes:
		return "top label"
	case binary:
		return "class 1"
	}
	return ""
}
