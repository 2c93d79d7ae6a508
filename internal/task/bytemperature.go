package task

import (
	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/multilabel"
	"github.com/swagwrap/swagwrap/internal/target"
)

// ByTemperature is one T for the log-probabilities of classes, or the log-odds of labels (Guo et al. 2017).
const ByTemperature Method = "temperature"

var temperatureScaling = &method{
	Calibrator: Calibrator{Method: ByTemperature, Name: "Temp", Words: "temperature scaling", Symbol: "T"},
	header:     " at T",
	classes: func(t classes, logs []float64, labels target.Target) (*Calibration, error) {
		f, err := calibrate.FitTemperature(logs, t.count, labels.Classes)
		return OfTemperature(f), err
	},
	parts: func(t classes, logs []float64, labels target.Target) (func(rows []int) *Calibration, error) {
		f, err := calibrate.NewTemperatureFits(logs, t.count, labels.Classes)
		return func(rows []int) *Calibration { return OfTemperature(f.Fit(rows)) }, err
	},
	crossFits: func(outcomes []float64, labels target.Target, seed uint64) (calibrate.CrossFitted, error) {
		return calibrate.CrossFitTemperature(outcomes, labels.Classes, labels.Units, 2, calibrate.Splits, seed)
	},
	labels: func(t labels, logOdds []float64, of target.Target) (*Calibration, error) {
		c, err := fitScaler(multilabel.ByTemperature)(t, logOdds, of)
		if err == nil {
			c.Temperature, c.Scale, c.Bias = 1/c.Scale[0], nil, nil
		}
		return c, err
	},
	program: func(c *Calibration) program { return program{temperature: c.Temperature} },
	number: func(_ *Calibration, v float64) *Calibration {
		return &Calibration{Method: ByTemperature, Temperature: v}
	},
	least: calibrate.MinTemperature,
	most:  calibrate.MaxTemperature,
}

// OfTemperature returns the calibration of a fit.
func OfTemperature(f calibrate.Temperature) *Calibration {
	return &Calibration{Method: ByTemperature, Temperature: f.T, Undetermined: f.Undetermined(), Contradicted: f.Contradicted()}
}
