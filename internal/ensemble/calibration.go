package ensemble

import (
	"fmt"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// VectorScaling holds the parameters of the vector scaling softmax(w∘log p + b) of the averaged probabilities p. Scale
// is w and Bias is b, one number per class.
type VectorScaling struct {
	Scale []float64 `json:"scale"`
	Bias  []float64 `json:"bias"`
}

// calibration is the calibration of the averaged probabilities. Its Scaling is nil if there is none.
type calibration struct{ *calibrate.Scaling }

// calibration returns the calibration that the ensemble file holds.
func (e *Ensemble) calibration() calibration {
	switch v := e.Vector; {
	case v != nil:
		return calibration{&calibrate.Scaling{Vector: &calibrate.VectorScaling{Scale: v.Scale, Bias: v.Bias}}}
	case e.Temperature != 0 && e.Temperature != 1:
		return calibration{&calibrate.Scaling{Temperatures: []float64{e.Temperature}}}
	}
	return calibration{}
}

// checkCalibration refuses a temperature, a threshold or a vector scaling that is invalid for every task.
func (e *Ensemble) checkCalibration() error {
	if !(e.Temperature >= 0) {
		return fmt.Errorf("metadata \"temperature\": %v, want a positive number, or 0 for none", e.Temperature)
	}
	if !(e.Threshold >= 0 && e.Threshold <= 1) {
		return fmt.Errorf("metadata \"threshold\": %v, want a number above 0 and at most 1", e.Threshold)
	}
	if v := e.Vector; v != nil {
		if e.Temperature > 0 {
			return fmt.Errorf("a temperature and vector scaling, want one of them")
		}
		if err := e.calibration().Vector.Check(len(v.Scale)); err != nil {
			return fmt.Errorf("metadata \"vector_scaling\": %w", err)
		}
	}
	return nil
}

// checkThreshold refuses a threshold for any task except binary classification.
func checkThreshold(path string, threshold float64, t task.Task) error {
	if _, ok := t.(task.Decided); threshold > 0 && !ok {
		return fmt.Errorf("%s: a threshold is on the probability of class 1 of the task binary, and the task is %s", path, t.Name())
	}
	return nil
}

// apply calibrates an averaged outcome of the task in place.
func (c calibration) apply(t task.Task, outcome []float64) {
	if c.Scaling != nil {
		t.Apply(outcome, c.Scaling, outcome)
	}
}

// check refuses vector scaling whose number of classes or targets differs from that of the task.
func (c calibration) check(path string, t task.Task) error {
	if c.Scaling == nil || c.Vector == nil {
		return nil
	}
	n := len(c.Vector.Scale)
	if classes := t.ClassNames(); classes > 0 {
		if n != classes {
			return fmt.Errorf("%s: vector scaling for %d classes, and its networks have %d", path, n, classes)
		}
		return nil
	}
	if err := t.CheckLabel(truth.Truth{Values: make([]float64, n), Width: n}); err != nil {
		return fmt.Errorf("%s: vector scaling: %w", path, err)
	}
	for k, s := range c.Vector.Scale {
		if !(s > 0) || c.Vector.Bias[k] != 0 {
			return fmt.Errorf("%s: vector scaling of target %d: scale %v and bias %v, want a factor of variances above 0 and 0", path, k, s, c.Vector.Bias[k])
		}
	}
	return nil
}
