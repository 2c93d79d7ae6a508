package calibration

import (
	"errors"
	"fmt"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// openStored opens predictions of pixels or tokens. It returns nil if the file has one position for an example.
func openStored(path, of string, opts predictions.ReadOptions) (*Predictions, error) {
	p, err := predictions.OpenPositions(path, of, opts)
	if p == nil || err != nil {
		return nil, err
	}
	saved := &Saved{Task: p.Task}
	for i := range p.Len {
		saved.Rows = append(saved.Rows, i)
	}
	return &Predictions{Path: path, SHA256: p.SHA256, From: p.From, Saved: saved, stored: p}, nil
}

// Each calls f with the outcome and the label of each example that has predictions, and counts the others. The outcome is valid
// until f returns.
func (p *Predictions) Each(f func(k int, outcome []float64, label target.Target) error) error {
	if p.stored == nil {
		width := p.Task.About().Width
		for k := range p.Rows {
			if err := f(k, p.Outcomes[k*width:][:width], p.Known.At(k)); err != nil {
				return err
			}
		}
		return nil
	}
	p.Rows = p.Rows[:0]
	skipped, err := p.stored.Each(func(i int, outcome []float64, label target.Target) error {
		p.Rows = append(p.Rows, i)
		return f(len(p.Rows)-1, outcome, label)
	})
	if p.LeftOut = skipped; err == nil && len(p.Rows) == 0 {
		err = errors.New("no row has predictions")
	}
	return err
}

// runStored is Run for pixels and tokens. A temperature is fitted to all labelled positions. Folds are of whole examples, or
// blocks of a text, because their positions depend on each other.
func (s *Study) runStored(producer string) (*Result, error) {
	rows, err := baseline.NewLogits(s.Fit.Len())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	if err := s.Fit.Each(func(_ int, outcome []float64, label target.Target) error {
		return rows.Add(s.Fit.Task, outcome, label)
	}); err != nil {
		return nil, err
	}
	var of []int // the unit of each row
	units := 0
	for k, row := range s.Fit.Rows {
		if k == 0 || s.Fit.stored.Unit(row) != s.Fit.stored.Unit(s.Fit.Rows[k-1]) {
			units++
		}
		of = append(of, units-1)
	}
	fitted, err := rows.Fit(func(int) bool { return true })
	if err != nil {
		return nil, err
	}
	k := &Result{Fitted: fitted, study: s, producer: producer}
	for _, w := range fitted.Doubts() {
		k.warn("%v", w)
	}
	without, err := k.without(units, func(others []int) (*task.Calibration, error) {
		in := make([]bool, units)
		for _, i := range others {
			in[i] = true
		}
		return rows.Fit(func(k int) bool { return in[of[k]] })
	})
	if err != nil {
		return nil, err
	}
	same := func(c *task.Calibration) func(int) *task.Calibration {
		return func(int) *task.Calibration { return c }
	}
	on, err := s.scoreStored(s.Fit, same(nil), func(k int) *task.Calibration { return without[of[k]] }, same(fitted))
	if err != nil {
		return nil, err
	}
	k.add("fitted on, as saved", "fitted on, cross-fitted", on[0], on[1])
	k.before, k.crossed, k.after = on[0].values["nll"], on[1].values["nll"], on[2].values["nll"]
	if s.Test != nil {
		test, err := s.scoreStored(s.Test, same(nil), same(fitted))
		if err != nil {
			return nil, fmt.Errorf("test %s: %w", s.Test.Path, err)
		}
		k.add("test, as saved", k.marked("test, calibrated"), test[0], test[1])
	}
	k.align()
	return k, nil
}

// scoreStored scores predictions of pixels or tokens once with each calibration. with returns that of an example, or nil for
// none.
func (s *Study) scoreStored(p *Predictions, with ...func(example int) *task.Calibration) ([]row, error) {
	all := make([]*task.Evaluator, len(with))
	for k := range with {
		all[k] = task.NewEvaluator(p.Task, task.EvaluateOptions{EvaluateOptions: calibrate.EvaluateOptions{Seed: s.Seed}})
	}
	var scaled []float64
	err := p.Each(func(i int, outcome []float64, label target.Target) error {
		for k, e := range all {
			now := outcome
			if c := with[k](i); c != nil {
				scaled = p.Task.Apply(scaled, c, outcome)
				now = scaled
			}
			if err := e.Add(now, label); err != nil {
				return fmt.Errorf("row %d: %w", p.Rows[i], err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	rows := make([]row, len(all))
	for k, e := range all {
		rows[k] = scoredRow(e.Evaluation())
	}
	return rows, nil
}
