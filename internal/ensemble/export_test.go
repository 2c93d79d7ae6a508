package ensemble

import "github.com/swagwrap/swagwrap/internal/task"

// Calibrate changes averaged probabilities of classes as the ensemble says.
func (e *Ensemble) Calibrate(p []float64) {
	t, err := task.Of("classes", task.OutputSpec{Count: len(p)})
	if err != nil {
		panic(err)
	}
	e.calibration().apply(t, p)
}

// CheckCalibration fails where that is for other classes than the task's.
func (e *Ensemble) CheckCalibration(t task.Task) error { return e.calibration().check(e.Path, t) }
