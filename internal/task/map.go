package task

import (
	"fmt"

	"github.com/swagwrap/swagwrap/calibrate"
)

// Maps are the calibrations of classes that need more than one scale and one bias for each: structured scaling, and the maps of the
// log-odds of two classes. They are fitted, applied, stored, exported and written as PyTorch here.

// mapCalibrators returns their calibrators, with a name and words.
func (t classes) mapCalibrators() []Calibrator {
	list := []Calibrator{{Method: ByStructured, Name: "SVS", Words: "structured vector scaling"}, {Method: ByMatrix, Name: "SMS", Words: "structured matrix scaling"}}
	if t.count == 2 {
		list = append(list, Calibrator{Method: ByQuadratic, Name: "Quadratic", Words: "quadratic scaling"}, Calibrator{Method: ByVennAbers, Name: "VennAbers", Words: "Venn–Abers"})
	}
	return list
}

func (c *Calibration) mapped() bool {
	return c.Method == ByStructured || c.Method == ByMatrix || c.Method == ByQuadratic || c.Method == ByVennAbers
}

// fitMap returns the fit of a map to logits, or nil for another method.
func (t classes) fitMap(by Method, logs []float64, labels []int) func() (*Calibration, error) {
	fit := map[Method]func([]float64, int, []int) (calibrate.StructuredScaling, error){ByStructured: calibrate.FitStructuredScaling, ByMatrix: calibrate.FitMatrixScaling}[by]
	switch by {
	case ByStructured, ByMatrix:
		return func() (*Calibration, error) {
			s, err := fit(logs, t.count, labels)
			return &Calibration{Method: by, Temperature: s.Temperature, Uniform: s.Uniform, Scale: s.Scale, Matrix: s.Matrix, Bias: s.Bias, Undetermined: s.Undetermined(), Contradicted: s.Fitted.Contradicted()}, err
		}
	case ByQuadratic:
		return func() (*Calibration, error) {
			q, err := calibrate.FitQuadraticScaling(logs, labels)
			return &Calibration{Method: by, Coefficients: q.Coefficients[:], Undetermined: q.Undetermined()}, err
		}
	case ByVennAbers:
		return func() (*Calibration, error) { return fitVennAbers(logs, labels) }
	}
	return nil
}

// size returns the number of classes, labels or targets that the numbers are for.
func (c *Calibration) size() int {
	switch c.Method {
	case ByMatrix:
		return len(c.Bias)
	case ByQuadratic, ByVennAbers:
		return 2
	}
	return len(c.Scale) + len(c.Factors)
}

// soundMap is [Calibration.Sound] of a map.
func (c *Calibration) soundMap(fail func(what string, v any, want string) error) error {
	numbers := map[string][]float64{"number": c.Scale, "element": c.Matrix, "bias": c.Bias, "coefficient": c.Coefficients}
	for what, values := range numbers {
		for _, v := range values {
			if v-v != 0 {
				return fail(what, v, "a finite number")
			}
		}
	}
	n := len(c.Bias)
	switch {
	case c.Method == ByVennAbers:
		return soundVennAbers(c.VennAbers, fail)
	case c.Method == ByQuadratic && len(c.Coefficients) != 3:
		return fail("coefficients", len(c.Coefficients), "three")
	case c.Method == ByQuadratic:
		return nil
	case n == 0 || n > calibrate.MatrixClasses && c.Method == ByMatrix:
		return fail("biases", n, fmt.Sprintf("one for each class, and at most %d with a matrix", calibrate.MatrixClasses))
	case c.Method == ByStructured && len(c.Scale) != n:
		return fail("scales", len(c.Scale), fmt.Sprintf("as many as biases, %d", n))
	case c.Method == ByMatrix && len(c.Matrix) != n*n:
		return fail("matrix", len(c.Matrix), fmt.Sprintf("a row of %d elements for each bias", n))
	case !(c.Temperature > 0) || c.Temperature-c.Temperature != 0:
		return fail("temperature", c.Temperature, "a finite number above 0")
	case !(c.Uniform > 0 && c.Uniform <= 1):
		return fail("uniform", c.Uniform, "a share above 0 and at most 1")
	}
	return nil
}

// program returns what the calibration does to the scores of classes or labels.
func (c *Calibration) program() program {
	switch c.Method {
	case ByTemperature:
		return program{temperature: c.Temperature}
	case ByStructured:
		return program{steps: []step{mix{c.Temperature, c.Uniform, len(c.Bias)}, affine{c.Scale, c.Bias}}}
	case ByMatrix:
		return program{steps: []step{mix{c.Temperature, c.Uniform, len(c.Bias)}, matrix{c.Matrix, c.Bias}}}
	case ByQuadratic:
		return program{steps: []step{polynomial(c.Coefficients)}}
	case ByVennAbers:
		return program{steps: []step{grid{c.VennAbers}}}
	}
	return program{steps: []step{affine{c.Scale, c.Bias}}, absolute: true}
}
