package calibration

import (
	"fmt"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Threshold is the chosen threshold, in the form of its JSON.
type Threshold struct {
	Value     float64 `json:"value"`
	Criterion string  `json:"criterion,omitempty"` // empty if the user gave the value
}

// String names the threshold.
func (t *Threshold) String() string {
	if t.Criterion == "" {
		return "threshold " + report.Fixed(t.Value, 4)
	}
	return fmt.Sprintf("threshold %s by %s", report.Fixed(t.Value, 4), t.Criterion)
}

// threshold returns the chosen threshold, or 0 for the default.
func (k *Result) threshold() float64 {
	if k.Threshold == nil {
		return 0
	}
	return k.Threshold.Value
}

// NoThreshold is the error for a threshold on predictions of another task than two classes.
type NoThreshold struct{ Size string }

func (e *NoThreshold) Error() string {
	return fmt.Sprintf("a threshold is on the probability of class 1 of two, and there are %s", e.Size)
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
