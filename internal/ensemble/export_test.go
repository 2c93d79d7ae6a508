package ensemble

import "github.com/swagwrap/swagwrap/internal/task"

// CalibrateClasses changes averaged probabilities of classes as the ensemble says.
func (e *Ensemble) CalibrateClasses(p []float64) {
	t, err := task.New("classes", task.OutputSpec{Count: len(p)})
	if err != nil {
		panic(err)
	}
	e.Calibrated(t, p)
}
