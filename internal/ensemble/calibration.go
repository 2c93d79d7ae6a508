package ensemble

import (
	"errors"
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
)

// checkThreshold refuses a threshold for any task except binary classification.
func checkThreshold(path string, threshold float64, t task.Task) error {
	if _, ok := t.(task.Decided); threshold > 0 && !ok {
		return fmt.Errorf("%s: a threshold is on the probability of class 1 of the task binary, and the task is %s", path, t.About().Name)
	}
	return nil
}

// CheckCalibration refuses a calibration for another task, or for another number of classes, labels or targets.
func (e *Ensemble) CheckCalibration(t task.Task) error {
	if e.Calibration == nil {
		return nil
	}
	if err := e.Calibration.Check(t); err != nil {
		return fmt.Errorf("%s: %w", e.Path, err)
	}
	return nil
}

// Calibrate makes the ensemble carry a calibration. Noise becomes part of the model card.
func (e *Ensemble) Calibrate(c *task.Calibration) error {
	if c.NoiseStd != nil {
		return e.SetNoise(c.NoiseStd)
	}
	e.Calibration = c
	return nil
}

// Calibrated calibrates an averaged outcome of the task in place, if the ensemble has a calibration.
func (e *Ensemble) Calibrated(t task.Task, outcome []float64) {
	if e.Calibration != nil && !e.Calibration.Identity() {
		t.Apply(outcome, e.Calibration, outcome)
	}
}

// SetNoise adds the noise of a regression to the model card: the standard deviation of the targets around their means.
// The card must not have noise or a variance head. std is in the units of the targets, with one number for each target
// or one for all.
func (e *Ensemble) SetNoise(std []float64) error {
	t := e.Card.Targets
	switch {
	case t == nil:
		return fmt.Errorf("the model card has the task %q, and noise is a regression's", e.Card.Task)
	case t.VarianceHead != "":
		return fmt.Errorf("the networks have a variance head (%s), and noise in addition would count twice", t.VarianceHead)
	case t.NoiseStd != nil:
		return fmt.Errorf("the model card has noise already: a standard deviation of %v", t.NoiseStd)
	}
	with := *t
	with.NoiseStd = slices.Clone(std)
	e.Card.Targets = &with
	return nil
}

// addNoise copies the ensemble's noise into the card of a posterior that was fitted before the noise was known.
func (e *Ensemble) addNoise(p *swag.Posterior) {
	ours, theirs := e.Card.Targets, p.Card.Targets
	if ours == nil || theirs == nil || theirs.NoiseStd != nil {
		return
	}
	with := *theirs
	with.NoiseStd = ours.NoiseStd
	p.Card.Targets = &with
}

// checkNoise refuses to scale unknown variances. Without a calibration it only warns that they are unknown.
func (s *Scorer) checkNoise() error {
	if task.Missing(s.Task()) == nil {
		return nil
	}
	path := s.job.Ensemble.Path
	if s.job.Ensemble.Calibration != nil {
		return fmt.Errorf("%s: scales variances, and there are none: no variance head, and no noise", path)
	}
	s.Warnings = append(s.Warnings, errors.New("no variance head and no noise: rows have means and the spread of the members, but no "+
		"standard deviations, intervals and likelihoods. "+
		fmt.Sprintf("%s fits the noise, if PREDICTIONS are those of %s on validation data",
			setting.Line(setting.Calibrate.With(setting.Output.With("calibrated.safetensors"), setting.Ensemble.With(path),
				"PREDICTIONS")), setting.Score.With(setting.KeepMembers.String()))))
	return nil
}
