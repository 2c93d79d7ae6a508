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

// logits stores the mapped logits of each row in dst, which may be logs.
func (c *Calibration) logits(dst, logs []float64) []float64 {
	switch c.Method {
	case ByQuadratic:
		return calibrate.QuadraticScaling{Coefficients: [3]float64(c.Coefficients)}.Logits(dst, logs)
	case ByVennAbers:
		dst = onGrid(dst, logs)
		return calibrate.LogProbs(dst, c.VennAbers.Apply(dst, dst))
	}
	return calibrate.StructuredScaling{Temperature: c.Temperature, Uniform: c.Uniform, Scale: c.Scale, Matrix: c.Matrix, Bias: c.Bias}.Logits(dst, logs)
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

// mapped adds the mapped logits of log-probabilities.
func (j fusing) mapped(logs string, by *Calibration) string {
	n := int64(len(by.Bias))
	if by.Method == ByQuadratic || by.Method == ByVennAbers {
		peak := float32(calibrate.MaxLogOdds)
		logs = j.AtLeast(j.AtMost(logs, 0), -peak) // finite: 0·∞ is no number
		z := j.Sum(j.Op("Mul", logs, j.Constant([]float32{-1, 1}, 1, 2)))
		if by.Method == ByVennAbers {
			return j.vennAbers(z, by.VennAbers)
		}
		a, b, c := by.Coefficients[0], by.Coefficients[1], by.Coefficients[2]
		v := j.Op("Add", j.Op("Mul", z, j.Op("Add", j.scale(z, float32(c)), j.number(float32(b)))), j.number(float32(a)))
		return j.Rowwise("Concat", j.Op("Sub", v, v), v)
	}
	p := j.Rowwise("Softmax", j.Op("Div", logs, j.number(float32(by.Temperature))))
	mixed := j.Op("Add", j.scale(p, float32(1-by.Uniform)), j.number(float32(by.Uniform/float64(n))))
	logs = j.Op("Log", mixed)
	if by.Method == ByMatrix {
		across := make([]float32, n*n)
		for c := range n {
			for k := range n {
				across[k*n+c] = float32(by.Matrix[c*n+k])
			}
		}
		logs = j.Op("MatMul", logs, j.Constant(across, n, n))
	} else {
		logs = j.Op("Mul", logs, j.Constant(float32s(by.Scale), 1, n))
	}
	return j.Op("Add", logs, j.Constant(float32s(by.Bias), 1, n))
}

// mapLines returns the lines of Python after that of the scores, which are logits of classes, or that of class 1 of two.
func (c *Calibration) mapLines(single bool, axis int) []string {
	if c.Method == ByQuadratic || c.Method == ByVennAbers {
		z := "z = scores.clamp(-87.3, 87.3)"
		if !single {
			z = fmt.Sprintf("z = (scores.select(%d, 1) - scores.select(%[1]d, 0)).clamp(-87.3, 87.3)", axis)
		}
		if c.Method == ByVennAbers {
			return vennAbersLines(z, c.VennAbers)
		}
		return []string{z, fmt.Sprintf("probabilities = torch.sigmoid(%v + z * (%v + z * %v))  # of class 1", c.Coefficients[0], c.Coefficients[1], c.Coefficients[2])}
	}
	var lines []string
	if single {
		lines, axis = append(lines, "scores = torch.cat([torch.zeros_like(scores), scores], dim=-1)"), -1
	}
	lines = append(lines, fmt.Sprintf("mixed = %v * torch.softmax(scores / %v, dim=%d) + %v", 1-c.Uniform, c.Temperature, axis, c.Uniform/float64(len(c.Bias))),
		fmt.Sprintf("logs = mixed.log().movedim(%d, -1)", axis))
	scaled := fmt.Sprintf("logs * torch.tensor(%s)", list(c.Scale))
	if c.Method == ByMatrix {
		scaled = fmt.Sprintf("logs @ torch.tensor(%s).reshape(%d, %[2]d).T", list(c.Matrix), len(c.Bias))
	}
	return append(lines, fmt.Sprintf("probabilities = torch.softmax(%s + torch.tensor(%s), dim=-1).movedim(-1, %d)", scaled, list(c.Bias), axis))
}
