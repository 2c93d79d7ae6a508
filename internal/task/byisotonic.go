package task

import (
	"fmt"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/internal/target"
)

// ByIsotonic is a map of the distribution function of each target.
const ByIsotonic Method = "isotonic"

var isotonic = &method{
	Calibrator: Calibrator{
		Method: ByIsotonic, Name: "Isotonic", Words: "isotonic recalibration", Unlisted: true, Intervals: true,
		Columns: []Metric{
			{Key: "coverage", Header: "isotonic coverage", Digits: 1, Percent: true},
			{Key: "width", Header: "isotonic width", Digits: 4},
			{Key: "mace", Header: "isotonic MACE", Digits: 4},
		},
		Note: "MACE, the mean absolute calibration error: mean over 100 levels of |share of true values in central intervals − level|. " +
			"coverage and width are of 95 % intervals. A map has no likelihood",
		FitMembers: func(known target.Target, mixture func(i, k int) regression.Mixture) (*Calibration, error) {
			pits := make([][]float64, known.Width)
			for at, y := range known.Values {
				k := at % known.Width
				pits[k] = append(pits[k], mixture(at/known.Width, k).CDF(y))
			}
			return fitMaps(pits)
		},
	},
	numbers: func(t regressionTask, outcomes []float64, known target.Target) (*Calibration, error) {
		scores, pits := t.scores(outcomes, known), make([][]float64, t.targets)
		for k := range pits {
			pits[k] = t.pits(scores, k)
		}
		return fitMaps(pits)
	},
	text: func(c *Calibration) string {
		knots := 0
		for _, m := range c.Maps {
			knots += len(m.Knots)
		}
		return fmt.Sprintf("map of %d knots", knots)
	},
}

// fitMaps fits an isotonic map to the PIT values of each target: see [regression.FitIsotonic].
func fitMaps(pits [][]float64) (*Calibration, error) {
	out := &Calibration{Method: ByIsotonic}
	for k := range pits {
		m, err := regression.FitIsotonic(pits[k])
		if err != nil {
			return nil, fmt.Errorf("target %d: %w", k, err)
		}
		out.Maps, out.Warnings = append(out.Maps, m), append(out.Warnings, m.Warnings...)
		out.Undetermined = calibrate.TooFew(len(pits[k]))
	}
	return out, nil
}
