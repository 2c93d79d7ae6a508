package task

import (
	"fmt"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/target"
)

// ByQuadratic is a polynomial of the log-odds of two classes: see [calibrate.QuadraticScaling].
const ByQuadratic Method = "quadratic"

var quadraticScaling = &method{
	Calibrator: Calibrator{Method: ByQuadratic, Name: "Quadratic", Words: "quadratic scaling", Unlisted: true},
	pair:       true,
	classes: func(_ classes, logs []float64, labels target.Target) (*Calibration, error) {
		q, err := calibrate.FitQuadraticScaling(logs, labels.Classes)
		return &Calibration{Method: ByQuadratic, Coefficients: q.Coefficients[:], Undetermined: q.Undetermined()}, err
	},
	program: func(c *Calibration) program { return program{steps: []step{polynomial(c.Coefficients)}} },
	text: func(c *Calibration) string {
		return fmt.Sprintf("%.4f + %.4f·z + %.4f·z²", c.Coefficients[0], c.Coefficients[1], c.Coefficients[2])
	},
}

// polynomial gives the logits 0 and a + b·z + c·z², where z are the log-odds of class 1 of two. It comes last.
type polynomial []float64

func (s polynomial) check() error {
	if len(s) != 3 {
		return bad("coefficients", len(s), "three")
	}
	return nil
}

func (s polynomial) apply(dst, logits []float64, _ bool) []float64 {
	return calibrate.QuadraticScaling{Coefficients: [3]float64(s)}.Logits(dst, logits)
}

func (s polynomial) graph(j fusing, logits string) string {
	z := j.logOdds(logits)
	inner := j.Op("Add", j.scale(z, float32(s[2])), j.number(float32(s[1])))
	v := j.Op("Add", j.Op("Mul", z, inner), j.number(float32(s[0])))
	return j.Rowwise("Concat", j.Op("Sub", v, v), v)
}

func (s polynomial) torch(p *pytorch) {
	p.odds()
	p.result = fmt.Sprintf("torch.sigmoid(%v + z * (%v + z * %v))  # of class 1", s[0], s[1], s[2])
}
