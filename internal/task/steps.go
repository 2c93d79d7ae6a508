package task

import (
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate"
	judge "github.com/swagwrap/swagwrap/calibrate/labels"
)

// affine gives scale∘z + bias.
type affine struct{ scale, bias []float64 }

func (s affine) apply(dst, logits []float64, exclusive bool) []float64 {
	if exclusive {
		return calibrate.VectorScaling{Scale: s.scale, Bias: s.bias}.Logits(dst, logits)
	}
	return (&judge.Scaling{A: s.scale, B: s.bias}).LogOdds(logits)
}

func (s affine) graph(j fusing, logits string) string {
	return j.Op("Add", j.Op("Mul", logits, j.row(s.scale)), j.row(s.bias))
}

func (s affine) torch(p *pytorch) {
	p.last()
	p.logits += fmt.Sprintf(" * torch.tensor(%s) + torch.tensor(%s)", list(s.scale), list(s.bias))
}

// matrix gives M·z + bias.
type matrix struct{ rows, bias []float64 }

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

// mix gives log((1 − uniform)·softmax(z/temperature) + uniform/classes).
type mix struct {
	temperature, uniform float64
	classes              int
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

// logOdds adds the log-odds of class 1 of two, which are finite: 0·∞ is no number.
func (j fusing) logOdds(logits string) string {
	logits = j.AtLeast(j.AtMost(logits, 0), -float32(calibrate.MaxLogOdds))
	return j.Sum(j.Op("Mul", logits, j.Constant([]float32{-1, 1}, 1, 2)))
}

// polynomial gives the logits 0 and a + b·z + c·z², where z are the log-odds of class 1 of two. It comes last.
type polynomial [3]float64

func (s polynomial) apply(dst, logits []float64, _ bool) []float64 {
	return calibrate.QuadraticScaling{Coefficients: s}.Logits(dst, logits)
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

// gridSteps is the number of steps of log-odds by 1. A step function of log-odds is another one for each rounding of their last bits.
// So they are rounded to a grid before the fit and before each use, and a model gives what score gives. The predictor of rounded
// scores is as valid as that of others.
const gridSteps = 256

// onGrid stores (0, z) for each row of two logits, where z are the rounded log-odds.
func onGrid(dst, logs []float64) []float64 {
	if dst == nil {
		dst = make([]float64, len(logs))
	}
	for i := 0; i < len(logs); i += 2 {
		z := min(max(logs[i+1]-logs[i], -calibrate.MaxLogOdds), calibrate.MaxLogOdds)
		dst[i], dst[i+1] = 0, math.Floor(z*gridSteps+0.5)/gridSteps
	}
	return dst
}

// grid gives log(1 − p0) and log p1, where p0 and p1 are step functions of the rounded log-odds of class 1 of two. It comes last.
type grid struct{ *calibrate.VennAbers }

func (s grid) apply(dst, logits []float64, _ bool) []float64 {
	dst = onGrid(dst, logits)
	return calibrate.LogProbs(dst, s.Apply(dst, dst))
}

// tables returns 1 − p0 and p1 by the number of knots below a score. For p0 a knot counts that is equal.
func (s grid) tables() (notZero, one []float64) {
	notZero = []float64{1}
	for _, p := range s.Zero {
		notZero = append(notZero, 1-p)
	}
	return notZero, append(slices.Clone(s.One), 1)
}

func (s grid) graph(j fusing, logits string) string {
	n := int64(len(s.Knots))
	z := j.logOdds(logits)
	z = j.Op("Mul", j.Op("Floor", j.Op("Add", j.scale(z, gridSteps), j.number(0.5))), j.number(1./gridSteps))
	knots := j.row(s.Knots)
	// at adds the element of a table whose number is that of the knots below a score.
	at := func(table []float64, score string) string {
		below := j.Sum(j.Floats(j.Op("Greater", score, knots)))
		return j.Op("Gather", j.Constant(float32s(table), n+1), j.Integral(below))
	}
	notZero, one := s.tables()
	z0 := at(notZero, j.Op("Add", z, j.number(0.5/gridSteps)))
	return j.Op("Log", j.Rowwise("Concat", z0, at(one, z)))
}

func (s grid) torch(p *pytorch) {
	p.odds()
	_, one := s.tables()
	p.add("z = (torch.floor(z * %d + 0.5) / %[1]d).contiguous()", gridSteps)
	p.add("knots = torch.tensor(%s)", list(s.Knots))
	p.add("p0 = torch.tensor(%s)[torch.searchsorted(knots, z, right=True)]", list(append([]float64{0}, s.Zero...)))
	p.add("p1 = torch.tensor(%s)[torch.searchsorted(knots, z)]", list(one))
	p.result = "p1 / (1 - p0 + p1)  # of class 1"
}
