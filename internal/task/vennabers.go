package task

import (
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate"
)

// gridSteps is the number of steps of log-odds by 1 for Venn–Abers. A step function of log-odds is another one for each rounding of
// their last bits. So they are rounded to a grid before the fit and before each use, and a model gives what score gives. The predictor
// of rounded scores is as valid as that of others.
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

// fitVennAbers fits the predictor to rounded log-odds.
func fitVennAbers(logs []float64, labels []int) (*Calibration, error) {
	v, err := calibrate.FitVennAbers(onGrid(nil, logs), labels)
	return &Calibration{Method: ByVennAbers, VennAbers: &v, Undetermined: v.Undetermined()}, err
}

// soundVennAbers is [Calibration.Sound] of Venn–Abers.
func soundVennAbers(v *calibrate.VennAbers, fail func(what string, v any, want string) error) error {
	if v == nil || len(v.Knots) == 0 || len(v.Zero) != len(v.Knots) || len(v.One) != len(v.Knots) {
		return fail("knots", v, "as many knots as probabilities of both classes")
	}
	ascending := func(x []float64, low, high float64) bool {
		return x[0] >= low && x[len(x)-1] <= high && slices.IsSorted(x) && !slices.ContainsFunc(x, math.IsNaN)
	}
	peak := calibrate.MaxLogOdds + 1
	for i, k := range v.Knots {
		if k*gridSteps != math.Trunc(k*gridSteps) || i > 0 && k <= v.Knots[i-1] || !(math.Abs(k) <= peak) {
			return fail("knot", k, fmt.Sprintf("ascending multiples of 1/%d up to %.0f", gridSteps, peak))
		}
		if !(v.Zero[i] < 1 && v.One[i] > 0 && v.Zero[i] <= v.One[i]) {
			return fail("probabilities", []float64{v.Zero[i], v.One[i]}, "an ascending pair below 1 and above 0")
		}
	}
	if !ascending(v.Zero, 0, 1) || !ascending(v.One, 0, 1) {
		return fail("probabilities", "of knots", "ascending numbers from 0 to 1")
	}
	return nil
}

// vennAbers adds the mapped logits: the logarithms of 1 − p0 and p1, which the knots below and above the rounded log-odds have.
func (j fusing) vennAbers(z string, v *calibrate.VennAbers) string {
	n := int64(len(v.Knots))
	z = j.Op("Mul", j.Op("Floor", j.Op("Add", j.scale(z, gridSteps), j.number(0.5))), j.number(1./gridSteps))
	knots := j.Constant(float32s(v.Knots), 1, n)
	// at returns the element of a table whose number is that of the knots below a score.
	at := func(table []float64, score string) string {
		below := j.Sum(j.Floats(j.Op("Greater", score, knots)))
		return j.Op("Gather", j.Constant(float32s(table), n+1), j.Integral(below))
	}
	notZero := make([]float64, n+1)
	notZero[0] = 1
	for i, p := range v.Zero {
		notZero[i+1] = 1 - p
	}
	zero := at(notZero, j.Op("Add", z, j.number(0.5/gridSteps))) // a knot that is equal counts
	one := at(append(slices.Clone(v.One), 1), z)
	return j.Op("Log", j.Rowwise("Concat", zero, one))
}

// vennAbersLines are lines of Python that use the log-odds z.
func vennAbersLines(z string, v *calibrate.VennAbers) []string {
	return []string{
		z,
		fmt.Sprintf("z = (torch.floor(z * %d + 0.5) / %[1]d).contiguous()", gridSteps),
		fmt.Sprintf("knots = torch.tensor(%s)", list(v.Knots)),
		fmt.Sprintf("p0 = torch.tensor(%s)[torch.searchsorted(knots, z, right=True)]", list(append([]float64{0}, v.Zero...))),
		fmt.Sprintf("p1 = torch.tensor(%s)[torch.searchsorted(knots, z)]", list(append(slices.Clone(v.One), 1))),
		"probabilities = p1 / (1 - p0 + p1)  # of class 1",
	}
}
