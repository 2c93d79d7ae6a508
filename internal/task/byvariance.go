package task

import (
	"fmt"

	"github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/internal/target"
)

// The methods with factors of variances.
const (
	ByVariance  Method = "variance"  // one factor for the variances of all targets
	ByVariances Method = "variances" // a factor for the variances of each target
)

var varianceScaling = &method{
	Calibrator: Calibrator{
		Method: ByVariance, Name: "Scaled", Words: "variance scaling", Symbol: "s²", Squared: true,
		Columns: []Metric{{Key: "nll", Header: "NLL at s²", Digits: 4}, {Key: "ence", Header: "ENCE at s²", Digits: 4}},
	},
	numbers: func(t regressionTask, outcomes []float64, known target.Target) (*Calibration, error) {
		s, err := t.fitFactor(outcomes, known, func(int) bool { return true })
		return &Calibration{Method: ByVariance, Factors: []float64{s.Factor}, Undetermined: s.Undetermined(known.Len())}, err
	},
	program: factors,
	number: func(_ *Calibration, v float64) *Calibration {
		return &Calibration{Method: ByVariance, Factors: []float64{v}}
	},
	least: regression.MinFactor,
	most:  regression.MaxFactor,
}

var varianceEach = &method{
	Calibrator: Calibrator{
		Method: ByVariances, Name: "Scaled each", Words: "variance scaling of each target", Symbol: "s²", Unlisted: true,
	},
	numbers: func(t regressionTask, outcomes []float64, known target.Target) (*Calibration, error) {
		out := &Calibration{Method: ByVariances}
		for k := range t.targets {
			s, err := t.fitFactor(outcomes, known, func(target int) bool { return target == k })
			if err != nil {
				return nil, fmt.Errorf("target %d: %w", k, err)
			}
			if why := s.Undetermined(known.Len()); why != "" && out.Undetermined == "" {
				out.Undetermined = fmt.Sprintf("target %d: %s", k, why)
			}
			out.Factors = append(out.Factors, s.Factor)
		}
		return out, nil
	},
	program: factors,
	least:   regression.MinFactor,
	most:    regression.MaxFactor,
}

func factors(c *Calibration) program { return program{factors: c.Factors} }

func (t regressionTask) fitFactor(outcomes []float64, known target.Target, of func(target int) bool) (regression.VarianceScaling, error) {
	var y, means, variances []float64
	for i, v := range known.Values {
		if k := i % t.targets; of(k) {
			m := t.Moments(outcomes[i/t.targets*t.width():], k)
			y, means, variances = append(y, v), append(means, m.Mean), append(variances, m.Variance())
		}
	}
	return regression.FitVarianceScaling(y, means, variances)
}
