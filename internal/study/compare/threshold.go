package compare

import (
	"fmt"

	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/internal/task"
)

// applied returns the scaled outcomes of the validation data, or nil without such data.
func (r *Result) applied(s *task.Fitted, validation []float64) []float64 {
	if validation == nil {
		return nil
	}
	return s.Apply(r.task, validation)
}

// decide sets the threshold of the method and of its ensemble. The argument validation holds the method's outcomes on
// the validation data, scaled as the method is.
func (r *Result) decide(m *Method, validation []float64) error {
	t, ok := r.task.(task.Decided)
	switch {
	case r.Threshold == 0 && r.By == detect.Criterion{}:
		return nil
	case !ok:
		return fmt.Errorf("a threshold is on the probability of class 1 of the task binary, and the task is %s", r.task.About().Name)
	case r.Threshold > 0:
		m.Threshold = r.Threshold
	default:
		chosen, err := t.Decide(validation, r.Validation.Labels(), r.By)
		if err != nil {
			m.doubts = append(m.doubts, fmt.Errorf("the threshold is %g: validation data: %w", detect.DefaultThreshold, err))
			return nil
		}
		m.Threshold = chosen.Threshold
	}
	if m.Deploy != nil {
		m.Deploy.Threshold = m.Threshold
	}
	return nil
}
