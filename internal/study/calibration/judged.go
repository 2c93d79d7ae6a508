package calibration

import (
	"slices"

	"github.com/swagwrap/swagwrap/internal/guarantee"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Judge scores the predictions after a calibration, and counts how often guarantees hold. c and g may be nil. threshold is as in
// [task.EvaluateOptions].
func (p *Predictions) Judge(c *task.Calibration, g *guarantee.Guarantee, threshold float64) (*task.Evaluation, *guarantee.Realised, error) {
	opts := task.EvaluateOptions{Threshold: threshold, NoIntervals: true, NoLosses: true}
	e := task.NewEvaluator(p.Task, opts)
	k := &Result{Fitted: c}
	err := k.eachCalibrated(p, func(_ int, outcome []float64, label target.Target) error { return e.Add(outcome, label) })
	if err != nil {
		return nil, nil, err
	}
	figures := e.Evaluation()
	if g.Empty() {
		return figures, nil, nil
	}
	nowhere := func(int, string) string { return "" }
	d, err := guarantee.NewDecider(g, p.Task, nowhere)
	if err == nil {
		err = k.countHeld(p, d, guarantee.Made{}, nowhere)
	}
	return figures, k.realised.Finish(false), err
}

// countHeld counts how often the guarantee holds on predictions that were made in a way.
func (k *Result) countHeld(p *Predictions, d *guarantee.Decider, made guarantee.Made, groupOf func(i int, name string) string) error {
	var want task.RowOptions
	d.Want(&want)
	want.Target = true
	t := p.Task
	k.realised = guarantee.NewRealised(d.Guarantee, made, t, task.RowColumns(t, want), groupOf)
	if task.Large(t) {
		return k.countPositions(p, d, t)
	}
	var row []float64
	return k.eachCalibrated(p, func(i int, outcome []float64, label target.Target) error {
		row = t.Values(row[:0], want, task.Average{Outcome: slices.Clone(outcome)}, label)
		row = d.Values(row, outcome, i, "")
		k.realised.Add(i, "", row, label.Class())
		return nil
	})
}

func (k *Result) countPositions(p *Predictions, d *guarantee.Decider, t task.Task) error {
	at := 0
	var want task.RowOptions
	d.Want(&want)
	want.Target = true
	for _, c := range t.Columns(want) {
		at += c.Len()
	}
	row := make([]float64, at)
	return k.eachCalibrated(p, func(i int, outcome []float64, label target.Target) error {
		d.Begin(i, "")
		task.EachRow(t, outcome, label, func(row []float64, one target.Target) { d.Position(row, one) })
		k.realised.Add(i, "", d.End(row[:at], true), -1)
		return nil
	})
}
