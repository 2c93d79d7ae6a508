// Package calibration calibrates saved predictions and measures the effect.
//
// # Invariants
//
// Scores on the fitting rows are cross-fitted: each row is scored by a fit without it.
package calibration

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/task"
)

// None is the method that does not change predictions and only chooses a threshold.
const None task.Method = "none"

// Study describes a fit to saved predictions.
type Study struct {
	Method    task.Method
	Folds     int
	Seed      uint64
	Fit, Test *Predictions // Test may be nil
	// Weights holds the weights of a regression's saved members; nil means equal weights.
	Weights []float64
	// Criterion chooses a threshold of two classes on calibrated probabilities, unless Threshold is set. Zero means no
	// threshold.
	Criterion detect.Criterion
	Threshold float64
	// Guarantee is a coverage to choose thresholds for. Its Amount is zero for none.
	Guarantee Guarantee
}

// Methods returns the methods that fit the predictions. The first is the default.
func (p *Predictions) Methods() (list []task.Method) {
	if by := task.Missing(p.Task); by != nil {
		return []task.Method{by.Method}
	}
	if p.stored != nil {
		return []task.Method{p.Task.Calibrators()[0].Method}
	}
	for _, by := range p.Task.Calibrators() {
		list = append(list, by.Method)
	}
	return list
}

// CheckMethod returns an error if the method does not fit the predictions.
func (s *Study) CheckMethod() error {
	methods := s.Fit.Methods()
	_, decided := s.Fit.Task.(task.Decided)
	if decided || s.Guarantees() {
		methods = append(methods, None)
	}
	if !slices.Contains(methods, s.Method) {
		names := make([]string, len(methods))
		for i, m := range methods {
			names[i] = string(m)
		}
		lacks := ""
		if _, may := s.Fit.Task.(task.Incomplete); may {
			lacks = map[bool]string{
				true:  " with standard deviations",
				false: " without standard deviations",
			}[task.Missing(s.Fit.Task) == nil]
		}
		return fmt.Errorf("method %q: %s has predictions of %s%s; want %s", s.Method, s.Fit.Path, s.Fit.Task.About().Size, lacks,
			strings.Join(names, " or "))
	}
	return nil
}

// Check returns an error if the predictions do not fit together.
func (s *Study) Check() error {
	if t := s.Test; t != nil {
		if s.Fit.Task.About().Size != t.Task.About().Size {
			return fmt.Errorf("%s: %s, want %s as in %s", t.Path, t.Task.About().Size, s.Fit.Task.About().Size, s.Fit.Path)
		}
		if (task.Missing(t.Task) != nil) != (task.Missing(s.Fit.Task) != nil) {
			return fmt.Errorf("%s: standard deviations in one of the files only, the other being %s", t.Path, s.Fit.Path)
		}
	}
	for _, p := range []*Predictions{s.Fit, s.Test} {
		if p == nil || p.Members == 0 {
			continue
		}
		if s.Weights != nil && len(s.Weights) != p.Members {
			return fmt.Errorf("%s: %d members, want %d as in the ensemble", p.Path, p.Members, len(s.Weights))
		}
		if i, stated, mean := p.FirstWeighted(s.Weights); i >= 0 {
			return fmt.Errorf("%s: row %d: the mean is %v, and that of the members %v: they have weights, which %s knows", p.Path,
				p.Rows[i], stated, mean, setting.Ensemble)
		}
	}
	return nil
}

// by returns the calibrator of the method, or one without anything for [None].
func (s *Study) by() task.Calibrator { return s.of(s.Fit.Saved) }

// of returns the calibrator for some predictions.
func (s *Study) of(p *Saved) task.Calibrator {
	if missing := task.Missing(p.Task); missing != nil && s.Method != None {
		return *missing
	}
	by, _ := task.Find(p.Task, s.Method) // CheckMethod has found it
	return by
}

// fit fits the method to some predictions. The result is nil with [None].
func (s *Study) fit(p *Saved) (*task.Calibration, error) {
	if s.Method == None {
		return nil, nil
	}
	return p.Fit(s.of(p), s.Weights)
}

// fits returns the fit to some rows of the fitting set, or to all for nil.
func (s *Study) fits() (func(rows []int) (*task.Calibration, error), error) {
	if s.Method != None && task.Missing(s.Fit.Task) == nil {
		all := make([]int, s.Fit.Len())
		for i := range all {
			all[i] = i
		}
		if parts, err := s.Fit.fitParts(s.Method); parts != nil || err != nil {
			return func(rows []int) (*task.Calibration, error) {
				if rows == nil {
					rows = all
				}
				return parts(rows), nil
			}, err
		}
	}
	return func(rows []int) (*task.Calibration, error) {
		if rows == nil {
			return s.fit(s.Fit.Saved)
		}
		return s.fit(s.Fit.Part(rows))
	}, nil
}

// applied holds predictions after a calibration, by example and target. Fields that do not apply are nil.
type applied struct {
	outcomes []float64        // n×Width
	logs     func() []float64 // see [Saved.Logs]; nil without logits
	mixture  []float64        // −log density of the mixture of members at the target
	pits     []float64        // probability integral transforms under the distribution
	low      []float64        // lower ends of its 95 % interval
	high     []float64
}

// add appends the predictions of further examples.
func (a *applied) add(of *applied) {
	a.outcomes = append(a.outcomes, of.outcomes...)
	a.mixture, a.pits = append(a.mixture, of.mixture...), append(a.pits, of.pits...)
	a.low, a.high = append(a.low, of.low...), append(a.high, of.high...)
}

// apply applies a calibration to predictions. nil changes nothing.
func (s *Study) apply(c *task.Calibration, p *Saved) *applied {
	if s.by().Intervals {
		a := &applied{outcomes: p.Outcomes}
		s.intervals(a, c, p)
		return a
	}
	a := &applied{outcomes: p.Apply(c)}
	if p.Logs != nil {
		a.logs = func() []float64 { return p.scaled(c) }
	}
	if p.Members > 0 && (p.Stds != nil || c != nil) {
		p.EachTarget(func(i, k int, y float64) {
			a.mixture = append(a.mixture, -p.Mixture(i, k, s.Weights, c).LogDensity(y))
		})
	}
	return a
}

// intervals computes the intervals of the distributions, recalibrated if there is a map.
func (s *Study) intervals(a *applied, c *task.Calibration, p *Saved) {
	p.EachTarget(func(i, k int, y float64) {
		d := p.Distribution(i, k, s.Weights)
		low, high, pit := d.Quantile((1-regression.Level)/2), d.Quantile((1+regression.Level)/2), d.CDF(y)
		if c != nil {
			low, high = c.Maps[k].Interval(d, regression.Level)
			pit = c.Maps[k].CDF(d, y)
		}
		a.pits, a.low, a.high = append(a.pits, pit), append(a.low, low), append(a.high, high)
	})
}

// without splits n rows, or other units, into folds. It returns for each the calibration that fit gives on the other folds, or nil
// if these do not determine it. Noise has no such default.
func (k *Result) without(n int, fit func(others []int) (*task.Calibration, error)) ([]*task.Calibration, error) {
	s := k.study
	if err := calibrate.CheckFolds(n, nil, s.Folds); err != nil {
		return nil, err
	}
	all, loose := make([]*task.Calibration, n), 0
	err := calibrate.CrossFit(calibrate.Folds(n, s.Folds, s.Seed), fit, func(c *task.Calibration, fold []int) {
		if c != nil && c.Undetermined != "" && !s.by().Completes {
			c = nil
			loose++
		}
		for _, i := range fold {
			all[i] = c
		}
	})
	if err != nil {
		return nil, fmt.Errorf("without one of %d folds: %w", s.Folds, err)
	}
	if loose > 0 {
		k.warn("cross-fitted: in %d of %d folds the fit is not determined, and changes nothing", loose, s.Folds)
	}
	return all, nil
}

// crossFit applies to each row the fit without it.
func (k *Result) crossFit(fit func(rows []int) (*task.Calibration, error)) (*applied, error) {
	s := k.study
	without, err := k.without(s.Fit.Len(), fit)
	all := &applied{outcomes: make([]float64, 0, len(s.Fit.Outcomes))}
	for i, c := range without {
		all.add(s.apply(c, s.Fit.Part([]int{i})))
	}
	if s.Fit.Logs != nil {
		all.logs = func() (logs []float64) {
			for i, c := range without {
				logs = append(logs, s.Fit.Part([]int{i}).scaled(c)...)
			}
			return logs
		}
	}
	return all, err
}

// choose finds the threshold on the calibrated outcomes of the fitting rows.
func (k *Result) choose(outcomes []float64) error {
	s := k.study
	if s.Threshold == 0 && s.Criterion == (detect.Criterion{}) {
		return nil
	}
	t, ok := s.Fit.Task.(task.Decided)
	if !ok {
		return &NoThreshold{s.Fit.Task.About().Size}
	}
	if k.Undetermined() != "" {
		k.warn("no threshold: it is for calibrated predictions, and the fit is not determined (%s chooses one without)",
			setting.Method.With("none"))
		return nil
	}
	if s.Threshold > 0 {
		k.Threshold = &Threshold{Value: s.Threshold}
		return nil
	}
	chosen, err := t.Decide(outcomes, s.Fit.Known, s.Criterion)
	if err != nil {
		return err
	}
	k.Threshold = &Threshold{chosen.Threshold, s.Criterion.String()}
	return nil
}

// crossDecide replaces the decisions on the fitting rows: each fold is decided by the threshold that the other folds
// choose. It needs cross-fitted outcomes.
func (k *Result) crossDecide(outcomes []float64) error {
	if k.Threshold == nil || k.Threshold.Criterion == "" {
		return nil
	}
	s, row := k.study, &k.rows[1]
	t := s.Fit.Task.(task.Decided)
	var total detect.Decisions
	err := calibrate.CrossFit(calibrate.Folds(s.Fit.Len(), s.Folds, s.Seed), func(rows []int) (float64, error) {
		on, labels := task.Pick(t, outcomes, s.Fit.Known, rows)
		chosen, err := t.Decide(on, labels, s.Criterion)
		return chosen.Threshold, err
	}, func(threshold float64, rows []int) {
		of, labels := task.Pick(t, outcomes, s.Fit.Known, rows)
		e, failed := task.Evaluate(t, of, labels, task.EvaluateOptions{Threshold: threshold, NoLosses: true})
		if failed != nil {
			panic(failed) // all rows were evaluated before
		}
		total = total.Add(e.Decided)
	})
	for _, m := range metrics(t) {
		if m.Decision {
			row.values[m.Key] = nan
		}
	}
	row.values["accuracy"] = nan
	if err != nil {
		return fmt.Errorf("without one of %d folds: %w", s.Folds, err)
	}
	row.values["accuracy"], row.values["sensitivity"], row.values["specificity"] = total.Accuracy(), total.Sensitivity(),
		total.Specificity()
	row.values["precision"], row.values["f1"] = total.Precision(), total.F1()
	return nil
}

// Run fits and scores. The argument producer is the program and its version.
func (s *Study) Run(producer string) (*Result, error) {
	if s.Guarantees() {
		return s.guarantee(producer)
	}
	if s.Criterion.Name == detect.ByRisk {
		return s.answer(producer)
	}
	if s.Fit.stored != nil {
		return s.runStored(producer)
	}
	fit, err := s.fits()
	if err != nil {
		return nil, err
	}
	fitted, err := fit(nil)
	if err != nil {
		return nil, err
	}
	k := &Result{Fitted: fitted, study: s, producer: producer}
	if fitted != nil {
		for _, w := range fitted.Doubts() {
			k.warn("%v", w)
		}
	}
	on := s.apply(fitted, s.Fit.Saved)
	if err := k.choose(on.outcomes); err != nil {
		return nil, err
	}
	crossed, err := k.crossFit(fit)
	if err != nil {
		return nil, err
	}
	names := [4]string{"fitted on, as saved", "fitted on, cross-fitted", "test, as saved", "test, calibrated"}
	if s.Method == None {
		names = [4]string{"chosen on, at 0.5", "chosen on, cross-fitted", "test, at 0.5", "test, by the threshold"}
	}
	if err := k.compare(names[0], names[1], s.Fit, crossed); err != nil {
		return nil, err
	}
	if err := k.crossDecide(crossed.outcomes); err != nil {
		k.warn("no cross-fitted threshold: %v", err)
	}
	after, err := k.judge(s.Fit, on, task.EvaluateOptions{MainOnly: true}, false)
	if err != nil {
		return nil, err
	}
	k.before, k.crossed, k.after = k.rows[0].values[k.worth()], k.rows[1].values[k.worth()], after.values[k.worth()]
	if s.Test != nil {
		if err := k.compare(names[2], k.marked(names[3]), s.Test, s.apply(fitted, s.Test.Saved)); err != nil {
			return nil, err
		}
	}
	k.align()
	return k, nil
}

func (k *Result) warn(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(k.warnings, text) {
		k.warnings = append(k.warnings, text)
	}
}

// compare adds two rows to the table: predictions as saved, and calibrated.
func (k *Result) compare(saved, calibrated string, p *Predictions, after *applied) error {
	was, err := k.judge(p, k.study.apply(nil, p.Saved), task.EvaluateOptions{}, k.study.by().Completes)
	if err != nil {
		return err
	}
	is, err := k.judge(p, after, task.EvaluateOptions{Threshold: k.threshold()}, false)
	if err != nil {
		return err
	}
	k.add(saved, calibrated, was, is)
	return nil
}

// judge scores predictions. If they lack noise, it only computes the errors of their means.
func (k *Result) judge(p *Predictions, a *applied, opts task.EvaluateOptions, lacking bool) (row row, err error) {
	row.values = map[string]float64{}
	if k.study.by().Intervals {
		judgeIntervals(row.values, p, a)
		return row, nil
	}
	outcomes := a.outcomes
	if lacking { // the value of the noise does not matter
		outcomes = p.Task.Apply(nil, task.UnitNoise(p.Known.Width), outcomes)
	}
	opts.NoIntervals, opts.Short, opts.Seed = true, true, k.study.Seed // what no column shows
	e, err := task.Evaluate(p.Task, outcomes, p.Known, opts)
	if err != nil {
		return row, err
	}
	row = scoredRow(e)
	if a.logs != nil && math.IsInf(row.values["nll"], 1) {
		row.fromLogits(p.Task.(task.Logged).LogLosses(a.logs(), p.Known))
	}
	for key := range row.values {
		if lacking && key != "rmse" && key != "mae" {
			row.values[key] = nan
		}
	}
	row.values[mixtureNLL] = nan
	if a.mixture != nil {
		row.values[mixtureNLL] = stat.Mean(a.mixture, nil)
	}
	if lacking {
		row.evaluation, row.losses, row.warnings = nil, nil, nil
	}
	return row, nil
}

func scoredRow(e *task.Evaluation) row {
	row := row{values: map[string]float64{}, evaluation: e, losses: e.Losses[0].Values, warnings: e.Warnings}
	for _, s := range e.Scores {
		row.values[s.Key] = s.Value
	}
	return row
}

// fromLogits takes the losses from logits. Where the probability of the target is 0 in float64, its logarithm may be
// finite.
func (r *row) fromLogits(losses []float64) {
	r.losses, r.values["nll"] = losses, stat.Mean(losses, nil)
	if math.IsInf(r.values["nll"], 1) {
		return
	}
	r.warnings = slices.DeleteFunc(slices.Clone(r.warnings), func(w error) bool { return errors.Is(w, calibrate.ErrInfinite) })
}

// judgeIntervals stores means over the targets.
func judgeIntervals(found map[string]float64, p *Predictions, a *applied) {
	targets, n := p.Known.Width, float64(len(a.pits))
	for k := range targets {
		var pits []float64
		for i := k; i < len(a.pits); i += targets {
			pits = append(pits, a.pits[i])
		}
		found["mace"] += regression.MACE(pits) / float64(targets)
	}
	found["coverage"], found["width"] = 0, 0
	for i, y := range p.Known.Values {
		if a.low[i] <= y && y <= a.high[i] {
			found["coverage"] += 1 / n
		}
		found["width"] += (a.high[i] - a.low[i]) / n
	}
}
