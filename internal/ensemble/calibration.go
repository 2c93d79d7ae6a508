package ensemble

import (
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
)

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
