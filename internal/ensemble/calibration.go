package ensemble

import (
	"fmt"

	"github.com/swagwrap/swagwrap/internal/task"
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
	if c.Method == task.ByNoise {
		return e.SetNoise(c.NoiseStd)
	}
	e.Calibration = c
	return nil
}

// calibrate calibrates an averaged outcome of the task in place.
func (e *Ensemble) calibrate(t task.Task, outcome []float64) {
	if e.Calibration != nil && !e.Calibration.Identity() {
		t.Apply(outcome, e.Calibration, outcome)
	}
}
