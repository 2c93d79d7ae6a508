package task

import (
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/target"
)

// ByVennAbers is a step function of the log-odds of two classes: see [calibrate.VennAbers].
const ByVennAbers Method = "venn-abers"

var vennAbers = &method{
	Calibrator: Calibrator{Method: ByVennAbers, Name: "VennAbers", Words: "Venn–Abers", Unlisted: true},
	pair:       true,
	classes: func(_ classes, logs []float64, labels target.Target) (*Calibration, error) {
		v, err := calibrate.FitVennAbers(onGrid(nil, logs), labels.Classes)
		return &Calibration{Method: ByVennAbers, VennAbers: &v, Undetermined: v.Undetermined()}, err
	},
	program: func(c *Calibration) program { return program{steps: []step{grid{c.VennAbers}}} },
	text:    func(c *Calibration) string { return fmt.Sprintf("map of %d knots", len(c.VennAbers.Knots)) },
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

func (s grid) check() error {
	v := s.VennAbers
	if v == nil || len(v.Knots) == 0 || len(v.Zero) != len(v.Knots) || len(v.One) != len(v.Knots) {
		return bad("knots", v, "as many knots as probabilities of both classes")
	}
	ascending := func(x []float64, low, high float64) bool {
		return x[0] >= low && x[len(x)-1] <= high && slices.IsSorted(x) && !slices.ContainsFunc(x, math.IsNaN)
	}
	peak := calibrate.MaxLogOdds + 1
	for i, k := range v.Knots {
		if k*gridSteps != math.Trunc(k*gridSteps) || i > 0 && k <= v.Knots[i-1] || !(math.Abs(k) <= peak) {
			return bad("knot", k, fmt.Sprintf("ascending multiples of 1/%d up to %.0f", gridSteps, peak))
		}
		if !(v.Zero[i] < 1 && v.One[i] > 0 && v.Zero[i] <= v.One[i]) {
			return bad("probabilities", []float64{v.Zero[i], v.One[i]}, "an ascending pair below 1 and above 0")
		}
	}
	if !ascending(v.Zero, 0, 1) || !ascending(v.One, 0, 1) {
		return bad("probabilities", "of knots", "ascending numbers from 0 to 1")
	}
	return nil
}

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
