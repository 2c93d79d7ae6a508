package task

import (
	"fmt"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/target"
)

// The methods of structured scaling: see [calibrate.StructuredScaling].
const (
	ByStructured Method = "svs" // structured vector scaling
	ByMatrix     Method = "sms" // structured matrix scaling
)

var structuredScaling = &method{
	Calibrator: Calibrator{Method: ByStructured, Name: "SVS", Words: "structured vector scaling", Unlisted: true},
	classes: func(t classes, logs []float64, labels target.Target) (*Calibration, error) {
		s, err := calibrate.FitStructuredScaling(logs, t.count, labels.Classes)
		return structured(ByStructured, s), err
	},
	program: func(c *Calibration) program { return program{steps: []step{c.mix(), affine{c.Scale, c.Bias}}} },
}

var matrixScaling = &method{
	Calibrator: Calibrator{Method: ByMatrix, Name: "SMS", Words: "structured matrix scaling", Unlisted: true},
	classes: func(t classes, logs []float64, labels target.Target) (*Calibration, error) {
		s, err := calibrate.FitMatrixScaling(logs, t.count, labels.Classes)
		return structured(ByMatrix, s), err
	},
	program: func(c *Calibration) program { return program{steps: []step{c.mix(), matrix{c.Matrix, c.Bias}}} },
}

func (c *Calibration) mix() mix { return mix{c.Temperature, c.Uniform, len(c.Bias)} }

func structured(by Method, s calibrate.StructuredScaling) *Calibration {
	return &Calibration{
		Method: by, Temperature: s.Temperature, Uniform: s.Uniform, Scale: s.Scale, Matrix: s.Matrix, Bias: s.Bias,
		Undetermined: s.Undetermined(), Contradicted: s.Fitted.Contradicted(),
	}
}

// mix gives log((1 − uniform)·softmax(z/temperature) + uniform/classes).
type mix struct {
	temperature, uniform float64
	classes              int
}

func (s mix) check() error {
	switch {
	case s.classes == 0:
		return bad("biases", 0, "one for each class")
	case !(s.uniform > 0 && s.uniform <= 1):
		return bad("uniform", s.uniform, "a share above 0 and at most 1")
	}
	return positive("temperature", s.temperature)
}

func (s mix) apply(dst, logits []float64, _ bool) []float64 {
	return calibrate.MixedLogs(dst, logits, s.classes, s.temperature, s.uniform)
}

// each is the part of each class in the uniform distribution.
func (s mix) each() float64 { return s.uniform / float64(s.classes) }

func (s mix) graph(j fusing, logits string) string {
	p := j.Rowwise("Softmax", j.Op("Div", logits, j.number(float32(s.temperature))))
	return j.Op("Log", j.Op("Add", j.scale(p, float32(1-s.uniform)), j.number(float32(s.each()))))
}

func (s mix) torch(p *pytorch) {
	p.both()
	p.add("mixed = %v * torch.softmax(scores / %v, dim=%d) + %v", 1-s.uniform, s.temperature, p.axis, s.each())
	p.add("logs = mixed.log().movedim(%d, -1)", p.axis)
	p.logits, p.back, p.axis = "logs", fmt.Sprintf(".movedim(-1, %d)", p.axis), -1
}

// matrix gives M·z + bias.
type matrix struct{ rows, bias []float64 }

func (s matrix) check() error {
	if n := len(s.bias); len(s.rows) != n*n {
		return bad("matrix", len(s.rows), fmt.Sprintf("a row of %d elements for each bias", n))
	}
	return nil
}

func (s matrix) apply(dst, logits []float64, _ bool) []float64 {
	return calibrate.MatrixLogits(dst, logits, s.rows, s.bias)
}

func (s matrix) graph(j fusing, logits string) string {
	n := len(s.bias)
	across := make([]float32, n*n)
	for c := range n {
		for k := range n {
			across[k*n+c] = float32(s.rows[c*n+k])
		}
	}
	return j.Op("Add", j.Op("MatMul", logits, j.Constant(across, int64(n), int64(n))), j.row(s.bias))
}

func (s matrix) torch(p *pytorch) {
	p.last()
	p.logits += fmt.Sprintf(" @ torch.tensor(%s).reshape(%d, %[2]d).T + torch.tensor(%s)", list(s.rows), len(s.bias), list(s.bias))
}
