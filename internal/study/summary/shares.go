package summary

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate/shares"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Shares says for which class shares predictions are corrected.
type Shares struct {
	// Correction is that of the rows. It is nil if they stay as they are.
	Correction *task.Shares     `json:"correction"`
	Estimate   *shares.Estimate `json:"estimate,omitempty"` // nil of known shares
	// Accuracy is to expect after a correction with known shares, with its interval; it was Validation on the labelled examples.
	Accuracy   [3]float64 `json:"accuracy,omitzero"`
	Validation float64    `json:"validation,omitempty"`
	// Labelled are the examples that an estimate needs. Only parts have them.
	Labelled *shares.Labelled `json:"labelled,omitempty"`
}

// NewShares returns what an ensemble says about the shares of so many examples. With estimate they are to be estimated.
func NewShares(e *ensemble.Ensemble, estimate bool, examples int) *Shares {
	if estimate {
		return &Shares{Labelled: e.Labelled}
	}
	if e.Calibration == nil || e.Calibration.Shares == nil {
		return nil
	}
	s := &Shares{Correction: e.Calibration.Shares}
	if l := e.Labelled; l != nil && l.Classes == len(s.Correction.Now) {
		s.Accuracy, s.Validation = l.Expect(s.Correction.Now, examples)
	}
	return s
}

// Each calls its argument with every row, in the same order each time.
type Each func(func(*predictions.Row) error) error

// Corrected estimates the shares from all rows, and returns rows with corrected numbers. The rows stay as they are if that is better, and
// for known shares, whose rows are corrected already. threshold is that of the rows.
func (s *Summary) Corrected(of *Shares, t task.Task, schema *predictions.Schema, threshold float64, each Each) (Each, error) {
	if of == nil {
		return each, nil
	}
	own := *of
	s.shares, own.Labelled = &own, nil
	if of.Labelled != nil {
		p, err := schema.Keep(each)
		if err != nil {
			return nil, err
		}
		defer p.Close()
		if own.Estimate, err = of.Labelled.Estimate(p.Each); err != nil {
			return nil, err
		}
		if own.Estimate.Verdict != shares.Moved {
			return each, nil
		}
		own.Correction = &task.Shares{Training: own.Estimate.Training, Now: own.Estimate.Shares}
	}
	s.drift, s.expected = nil, nil // they compare predictions with those of the shares of training
	if of.Correction != nil {
		return each, nil
	}
	with := own.Correction.With(nil)
	return func(f func(*predictions.Row) error) error {
		return each(func(r *predictions.Row) error {
			if r.Error != "" {
				return f(r)
			}
			corrected := *r
			corrected.Values = task.Corrected(t, schema.Want, with, threshold, r.Values, r.Label)
			return f(&corrected)
		})
	}, nil
}

// SharesLines says what was found about the shares, and what accuracy to expect with them.
func (s *Summary) SharesLines() (lines []string) {
	of := s.shares
	if of == nil {
		return nil
	}
	e := of.Estimate
	if e != nil {
		lines = append(lines, "class shares: "+verdict(e))
	}
	if of.Correction == nil {
		return lines
	}
	accuracy, validation := of.Accuracy, of.Validation
	if e != nil {
		lines = append(lines, table(e, s.classNames)...)
		accuracy, validation = e.Accuracy, e.Validation
	}
	if accuracy != [3]float64{} && s.Labelled < s.Rows-s.Failed {
		lines = append(lines, fmt.Sprintf("accuracy to expect with these class shares: %s [%s, %s] (%s on the validation data)",
			report.Percent(accuracy[0], 1), report.Percent(accuracy[1], 1), report.Percent(accuracy[2], 1), report.Percent(validation, 1)))
	}
	return lines
}

// leastP is the least p-value that is printed.
const leastP = 0.001

// verdict says a verdict in words.
func verdict(e *shares.Estimate) string {
	const stay = "Predictions stay as they are"
	nats := func(v float64) string { return report.Significant(v, 2) }
	p := fmt.Sprintf("p = %.2g", e.P)
	if e.P < leastP {
		p = fmt.Sprintf("p < %g", leastP)
	}
	switch e.Verdict {
	case shares.Moved:
		return fmt.Sprintf("they have moved (%s). Predictions are corrected, with an estimated gain of %s nats", p, nats(e.Gain))
	case shares.Same:
		return fmt.Sprintf("no sign that they have moved (%s). %s", p, stay)
	case shares.Few:
		return fmt.Sprintf("%s, want at least %d. %s", report.Plural(e.Examples, "example"), shares.LeastExamples, stay)
	case shares.Alike:
		return fmt.Sprintf("not estimated: the network distinguishes the classes too little. An error of the shares would cost %s nats, "+
			"and they gain %s. %s. More examples help", nats(e.Cost), nats(e.Gain), stay)
	case shares.Uncalibrated:
		return fmt.Sprintf("not corrected: on the labelled examples, weighted to the new shares, the correction gains %s ± %s nats. %s. "+
			"A better calibration or more labelled examples may help", nats(e.Checked[0]), nats(e.Checked[1]), stay)
	}
	return fmt.Sprintf("not corrected: the mean confidence is off by %s ± %s points from what class shares can explain, so the examples "+
		"themselves have changed. %s", report.Significant(100*e.Unexplained[0], 2), report.Significant(100*e.Unexplained[1], 2), stay)
}

// table has a line for each class, or for the few that have moved most.
func table(e *shares.Estimate, classNames []string) (lines []string) {
	order := make([]int, len(e.Shares))
	for c := range order {
		order[c] = c
	}
	if len(order) > fewLines {
		slices.SortStableFunc(order, func(a, b int) int {
			da, db := e.Shares[a]-e.Training[a], e.Shares[b]-e.Training[b]
			return cmp.Compare(db*db, da*da)
		})
		order = order[:fewLines]
	}
	for _, c := range order {
		lines = append(lines, fmt.Sprintf("  %s: %s [%s, %s], and %s in training", names.Class(classNames, c),
			report.Percent(e.Shares[c], 1), report.Percent(e.Low[c], 1), report.Percent(e.High[c], 1), report.Percent(e.Training[c], 1)))
	}
	return lines
}
