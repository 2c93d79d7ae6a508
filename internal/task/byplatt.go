package task

import (
	"github.com/swagwrap/swagwrap/calibrate/multilabel"
	"github.com/swagwrap/swagwrap/internal/target"
)

// The methods with numbers for each label.
const (
	ByTemperatures Method = "temperatures" // a T for the log-odds of each label: the scale is 1/T
	ByPlatt        Method = "platt"        // a scale and a bias for the log-odds of each label
)

var temperatures = &method{
	Calibrator: Calibrator{Method: ByTemperatures, Name: "Temps", Words: "a temperature for each label", Symbol: "T"},
	header:     ", T each",
	labels:     fitScaler(multilabel.ByTemperatures),
	program:    scales,
	text: func(c *Calibration) string {
		var all []float64
		for _, v := range c.Scale {
			all = append(all, 1/v)
		}
		return numbered("T", all...)
	},
}

var platt = &method{
	Calibrator: Calibrator{Method: ByPlatt, Name: "Platt", Words: "Platt scaling", Symbol: "T"},
	header:     ", Platt",
	labels:     fitScaler(multilabel.ByPlatt),
	program:    scales,
	text:       func(c *Calibration) string { return numbered("a", c.Scale...) + ", " + numbered("b", c.Bias...) },
}

func fitScaler(by multilabel.Scaler) func(t labels, logOdds []float64, of target.Target) (*Calibration, error) {
	return func(t labels, logOdds []float64, of target.Target) (*Calibration, error) {
		s, err := by.Fit(logOdds, t.Count, known(of))
		if err != nil {
			return nil, err
		}
		return &Calibration{Method: Method(by), Scale: s.A, Bias: s.B, Undetermined: s.Undetermined, Warnings: s.Warnings}, nil
	}
}
