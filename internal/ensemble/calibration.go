package ensemble

import (
	"fmt"

	"github.com/swagwrap/swagwrap/calibrate"
)

// Vector is vector scaling that an ensemble carries: softmax(w∘log p + b) of the
// averaged probabilities p.
type Vector struct {
	Scale []float64 `json:"scale"`
	Bias  []float64 `json:"bias"`
}

// calibration is what is done to averaged probabilities: one of the two, or
// nothing.
type calibration struct {
	temperature float64 // 0 or 1 for none
	vector      *calibrate.VectorScaling
}

// calibration returns what the ensemble carries.
func (e *Ensemble) calibration() calibration {
	c := calibration{temperature: e.Temperature}
	if v := e.Vector; v != nil {
		c.vector = &calibrate.VectorScaling{Scale: v.Scale, Bias: v.Bias}
	}
	return c
}

// checkCalibration refuses what cannot be applied to any probabilities.
func (e *Ensemble) checkCalibration() error {
	if !(e.Temperature >= 0) {
		return fmt.Errorf("metadata \"temperature\": %v, want a positive number, or 0 for none", e.Temperature)
	}
	if v := e.Vector; v != nil {
		if e.Temperature > 0 {
			return fmt.Errorf("a temperature and vector scaling, want one of them")
		}
		if err := e.calibration().vector.Check(len(v.Scale)); err != nil {
			return fmt.Errorf("metadata \"vector_scaling\": %w", err)
		}
	}
	return nil
}

// apply changes the probabilities p.
func (c calibration) apply(p []float64) {
	switch {
	case c.vector != nil:
		c.vector.Apply(p, calibrate.LogProbs(p, p))
	case c.temperature != 0 && c.temperature != 1:
		calibrate.Softmax(p, calibrate.LogProbs(p, p), len(p), c.temperature)
	}
}

// check refuses vector scaling of another number of classes.
func (c calibration) check(path string, classes int) error {
	if c.vector != nil && len(c.vector.Scale) != classes {
		return fmt.Errorf("%s: vector scaling for %d classes, and its networks have %d", path, len(c.vector.Scale), classes)
	}
	return nil
}
