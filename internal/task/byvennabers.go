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
		v, err := calibrate.FitVennAbers(logs, labels.Classes)
		v = v.Tied(tie)
		return &Calibration{Method: ByVennAbers, VennAbers: &v, Undetermined: v.Undetermined()}, err
	},
	program: func(c *Calibration) program { return program{steps: []step{stairs{c.VennAbers}}} },
	text:    func(c *Calibration) string { return fmt.Sprintf("map of %d knots", len(c.VennAbers.Knots)) },
}

// tie makes an example that was in the fit one again where its log-odds are rounded in another way, as in float32. So a model gives
// what score gives. oldTie is that of files without one, whose knots are multiples of 1/256.
const (
	tie    = 1.0 / (1 << 16)
	oldTie = 1.0 / 512
)

// stairs gives log(1 − p0) and log p1, where p0 and p1 are step functions of the log-odds of class 1 of two. It comes last.
type stairs struct{ *calibrate.VennAbers }

// tied returns the predictor with its tie.
func (s stairs) tied() calibrate.VennAbers {
	v := *s.VennAbers
	if v.Tie == 0 {
		v.Tie = oldTie
	}
	return v
}

func (s stairs) check() error {
	v := s.VennAbers
	if v == nil || len(v.Knots) == 0 || len(v.Zero) != len(v.Knots) || len(v.One) != len(v.Knots) {
		return bad("knots", v, "as many knots as probabilities of both classes")
	}
	ascending := func(x []float64, low, high float64) bool {
		return x[0] >= low && x[len(x)-1] <= high && slices.IsSorted(x) && !slices.ContainsFunc(x, math.IsNaN)
	}
	peak := calibrate.MaxLogOdds + 1
	if !(v.Tie >= 0 && v.Tie < 1) {
		return bad("tie", v.Tie, "a distance of log-odds from 0 to 1")
	}
	for i, k := range v.Knots {
		if i > 0 && k <= v.Knots[i-1] || !(math.Abs(k) <= peak) {
			return bad("knot", k, fmt.Sprintf("ascending numbers up to %.0f", peak))
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

func (s stairs) apply(dst, logits []float64, _ bool) []float64 {
	dst = s.tied().Apply(dst, logits)
	return calibrate.LogProbs(dst, dst)
}

// tables returns 1 − p0 and p1 by the number of steps below a score.
func (s stairs) tables() (notZero, one []float64) {
	notZero = []float64{1}
	for _, p := range s.Zero {
		notZero = append(notZero, 1-p)
	}
	return notZero, append(slices.Clone(s.One), 1)
}

func (s stairs) graph(j fusing, logits string) string {
	n := int64(len(s.Knots))
	z := j.logOdds(logits)
	// at has the element of a table whose number is that of the steps below the score.
	at := func(table, steps []float64) string {
		below := j.Sum(j.Floats(j.Op("Greater", z, j.row(steps))))
		return j.Op("Gather", j.Constant(float32s(table), n+1), j.Integral(below))
	}
	notZero, one := s.tables()
	zeroAt, oneAt := s.tied().Steps()
	return j.Op("Log", j.Rowwise("Concat", at(notZero, zeroAt), at(one, oneAt)))
}

func (s stairs) torch(p *pytorch) {
	p.odds()
	_, one := s.tables()
	zeroAt, oneAt := s.tied().Steps()
	p.add("z = z.contiguous()")
	p.add("p0 = torch.tensor(%s)[torch.searchsorted(torch.tensor(%s), z, right=True)]", list(append([]float64{0}, s.Zero...)), list(zeroAt))
	p.add("p1 = torch.tensor(%s)[torch.searchsorted(torch.tensor(%s), z)]", list(one), list(oneAt))
	p.result = "p1 / (1 - p0 + p1)  # of class 1"
}
