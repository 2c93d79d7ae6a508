package task

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// judged is a task with a single loss for outcomes.
type judged interface {
	Task
	// nll returns the mean of the first loss over the examples.
	nll(outcomes []float64, of truth.Truth) float64
}

// pick returns the outcomes and the true values of some examples.
func pick(t Task, outcomes []float64, of truth.Truth, rows []int) (picked []float64, known truth.Truth) {
	for _, i := range rows {
		picked = append(picked, outcomes[i*t.Width():][:t.Width()]...)
	}
	return picked, of.Pick(rows)
}

// crossFit implements [Task.CrossFit] with [Task.Fit] and [Task.Apply].
func crossFit(t judged, by calibrate.Scaler, outcomes []float64, of truth.Truth, seed uint64) ([]float64, *calibrate.Scaling, error) {
	n, width := len(outcomes)/t.Width(), t.Width()
	if of.Len() != n {
		return nil, nil, fmt.Errorf("%d rows, and the truth about %d", n, of.Len())
	}
	if err := t.CheckLabel(of.At(0)); err != nil {
		return nil, nil, err
	}
	if n < 2 {
		return nil, nil, fmt.Errorf("%d rows for 2 folds", n)
	}
	dst, all := make([]float64, len(outcomes)), &calibrate.Scaling{CrossFitted: true, NLLBefore: t.nll(outcomes, of)}
	folds := calibrate.Folds(n, 2, seed)
	for f, rows := range folds {
		on, known := pick(t, outcomes, of, folds[1-f])
		s, err := t.Fit(by, on, known)
		if err != nil {
			return nil, nil, err
		}
		picked, known := pick(t, outcomes, of, rows)
		for k, row := range rows {
			copy(dst[row*width:], t.Apply(nil, s, picked[k*width:][:width]))
		}
		all.NLLAfter += float64(len(rows)) / float64(n) * t.nll(t.Apply(nil, s, picked), known)
		all.Temperatures, all.AtBound = append(all.Temperatures, s.Temperatures...), all.AtBound || s.AtBound
		for _, w := range s.Warnings { // a warning of both folds appears once
			if !slices.ContainsFunc(all.Warnings, func(known error) bool { return known.Error() == w.Error() }) {
				all.Warnings = append(all.Warnings, w)
			}
		}
	}
	return dst, all, nil
}

// crossFits implements [Task.CrossFits] with crossFit.
func crossFits(t judged, by calibrate.Scaler, outcomes []float64, of truth.Truth, seed uint64) (calibrate.CrossFitted, error) {
	out := calibrate.CrossFitted{Splits: calibrate.Splits, Folds: 2}
	after := make([]float64, out.Splits)
	for k := range after {
		_, s, err := crossFit(t, by, outcomes, of, seed+uint64(k))
		if err != nil {
			return calibrate.CrossFitted{}, err
		}
		out.NLLBefore, after[k] = s.NLLBefore, s.NLLAfter
	}
	out.NLLAfter, out.Spread = stat.Mean(after, nil), stat.StdDev(after, nil)
	return out, nil
}
