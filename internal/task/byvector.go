package task

import (
	"fmt"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/multilabel"
	"github.com/swagwrap/swagwrap/internal/target"
)

// ByVector is a scale and a bias for the log-probability of each class (Guo et al. 2017).
const ByVector Method = "vector"

var vectorScaling = &method{
	Calibrator: Calibrator{Method: ByVector, Name: "Vector", Words: "vector scaling"},
	header:     ", vector",
	reorders:   true,
	classes: func(t classes, logs []float64, labels target.Target) (*Calibration, error) {
		fit, units, n := calibrate.FitVectorScaling, labels.Units, labels.Len()
		if units != nil { // rows that depend on each other
			fit = func(logits []float64, classes int, of []int) (calibrate.VectorScaling, error) {
				var folds [][]int
				if calibrate.CheckFolds(n, units, calibrate.VectorFolds) == nil {
					folds = calibrate.UnitFolds(units, n, calibrate.VectorFolds, 1)
				}
				return calibrate.FitVectorScalingFolds(logits, classes, of, folds)
			}
		}
		f, err := fit(logs, t.count, labels.Classes)
		return &Calibration{
			Method:       ByVector,
			Scale:        f.Scale,
			Bias:         f.Bias,
			Unseen:       f.Unseen,
			Undetermined: f.Undetermined(n),
			Warnings:     f.Warnings(n),
		}, err
	},
	program: scales,
}

// scales is the program of a scale and a bias for each class or label.
func scales(c *Calibration) program {
	return program{steps: []step{affine{c.Scale, c.Bias}}, absolute: true}
}

// affine gives scale∘z + bias.
type affine struct{ scale, bias []float64 }

func (s affine) check() error {
	switch {
	case len(s.scale)+len(s.bias) == 0:
		return errMissing
	case len(s.scale) != len(s.bias):
		return bad("scales", len(s.scale), fmt.Sprintf("as many as biases, %d", len(s.bias)))
	}
	return nil
}

func (s affine) apply(dst, logits []float64, exclusive bool) []float64 {
	if exclusive {
		return calibrate.VectorScaling{Scale: s.scale, Bias: s.bias}.Logits(dst, logits)
	}
	return (&multilabel.Scaling{A: s.scale, B: s.bias}).LogOdds(logits)
}

func (s affine) graph(j fusing, logits string) string {
	return j.Op("Add", j.Op("Mul", logits, j.row(s.scale)), j.row(s.bias))
}

func (s affine) torch(p *pytorch) {
	p.last()
	p.logits += fmt.Sprintf(" * torch.tensor(%s) + torch.tensor(%s)", list(s.scale), list(s.bias))
}
