package calibrate

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
)

// A fitted temperature lies between MinTemperature and MaxTemperature. Networks need temperatures of order 1. At
// 0.001, logits that differ by 1 give odds of e^1000, which is certainty in float64. Networks whose inputs were not
// normalised have logits that are some 10,000 times too large. The upper bound is 100 times that. There, logits that
// differ by 10,000 give equal probabilities to within 1 %. An optimum beyond these bounds is one at 0 or infinity.
const (
	MinTemperature = 1e-3
	MaxTemperature = 1e6
)

// usualTemperature is the bound of nearly all fits. Only a fit beyond it looks as far as [MaxTemperature], because bisection in a
// short interval takes fewer steps.
const usualTemperature = 1e3

const (
	// betaTolerance is the relative error of 1/T at which the fit stops. It raises the NLL by far less than rounding
	// does.
	betaTolerance = 1e-10

	// maxSteps is a safety limit. Logits of one scale take about 6 steps. Among 100,000 mixtures of scales from
	// 1e-100 to 1e5 the worst took 24.
	maxSteps = 100
)

// ErrExcluded is the error for a true class with a logit of −Inf.
var ErrExcluded = errors.New("has probability 0 at every temperature")

const badLabels = "calibrate: number of logits is not labels × classes"

// Temperature is the result of temperature scaling on a fitting set.
type Temperature struct {
	// T is the temperature to pass to [Softmax], always positive.
	T float64

	// NLLBefore and NLLAfter are the mean NLL per example of the fitting set at temperature 1 and at T, in nats.
	// NLLAfter is never the larger.
	NLLBefore, NLLAfter float64

	// Error is the standard error of T if the rows are independent of each other: T²·√(mean slope²/n) / curvature, with the
	// derivatives of a row's NLL in 1/T (Huber 1967). It is NaN at a bound.
	Error float64

	// Rows is the number of rows of the fit, and Right the number of those that are predicted correctly, at any T. OneLabel
	// reports that all rows have the same label.
	Rows, Right int
	OneLabel    bool

	Evaluations int // passes over the data

	// AtBound reports that the NLL decreases up to T = [MinTemperature] or [MaxTemperature], so T only shows the
	// direction. The minimum is reached if every example is classified correctly. The maximum is reached if the logits
	// do not depend on the labels, or contradict them. Fit on more examples.
	AtBound bool
}

// FitTemperature returns the temperature T that minimises the mean NLL of softmax(z/T) over the rows z of logits (Guo
// et al. 2017, section 4.2). The logits are n×classes in row-major order, and there are n labels. Scaling does not
// change the most probable class.
//
// The NLL is convex in β = 1/T. Newton's method in β minimises it within an interval that contains the minimum. If T
// has no effect, it is 1.
//
// Log-probabilities can be used as logits; see [LogProbs] for averaged predictions. A logit of −Inf excludes a class
// at every temperature.
//
// It is an error if there is no row, a logit is NaN or +Inf, or a label is not in [0, classes). A true class must not
// be excluded, because then the NLL is infinite at every temperature. The error names the first bad row.
// FitTemperature panics if the number of logits is not labels × classes.
func FitTemperature(logits []float64, classes int, labels []int) (Temperature, error) {
	s, err := newScored(logits, classes, labels)
	if err != nil {
		return Temperature{}, err
	}
	return s.fit(allRows(len(labels))), nil
}

// TemperatureFits fits temperatures to parts of the same rows. It takes less time than calls of [FitTemperature], with the same
// bits.
type TemperatureFits struct{ of scored }

// NewTemperatureFits checks the rows. The arguments, errors and panics are those of [FitTemperature].
func NewTemperatureFits(logits []float64, classes int, labels []int) (*TemperatureFits, error) {
	s, err := newScored(logits, classes, labels)
	return &TemperatureFits{s}, err
}

// Fit returns the best temperature for the rows with the given numbers. There is at least one, and none twice. Fit is for one
// goroutine at a time.
func (f *TemperatureFits) Fit(rows []int) Temperature { return f.of.fit(rows) }

// labels notes which labels the rows of a fit have.
type labels struct {
	rows, right, first int
	several            bool
}

func (l *labels) add(logits []float64, label int) {
	if l.rows == 0 {
		l.first = label
	}
	l.rows++
	l.several = l.several || label != l.first
	if label < len(logits) && label >= 0 && logits[label] == floats.Max(logits) {
		l.right++
	}
}

// to notes the rows of the fit of t.
func (l *labels) to(t *Temperature) { t.Rows, t.Right, t.OneLabel = l.rows, l.right, !l.several }

// FitTemperatureStream is [FitTemperature] for rows that do not fit into memory. rows calls its argument with the logits
// and the label of each row in turn, and is called once for each pass. It returns errors of rows unchanged.
func FitTemperatureStream(classes int, rows func(use func(logits []float64, label int)) error) (Temperature, error) {
	var seen labels
	var bad error
	err := rows(func(logits []float64, label int) {
		if bad == nil {
			if _, err := newScored(logits, classes, []int{label}); err != nil {
				bad = fmt.Errorf("row %d: %w", seen.rows, err)
			}
		}
		seen.add(logits, label)
	})
	if err = errors.Join(err, bad); err != nil {
		return Temperature{}, err
	}
	if seen.rows == 0 {
		return Temperature{}, errors.New("no rows to fit on")
	}
	t := fit(func(beta float64) (sum rowLoss) {
		if e := rows(func(logits []float64, label int) { sum.add(lossOf(logits, logits[label], beta), seen.rows) }); e != nil {
			err = e
		}
		return sum
	})
	seen.to(&t)
	return t, err
}

// MatchTemperature returns the temperature T at which softmax(z/T) is nearest to given probabilities. It minimises the
// mean cross-entropy −Σ q·log softmax(z/T) over the rows z of logits and q of probs. Up to a constant, that is KL(q‖softmax(z/T)).
// Both are n×classes in row-major order. No label is needed. [FitTemperature] is the case where each q is a label.
//
// A class that a row of logits excludes counts as one with probability e⁻⁷⁰⁰, because q may allow it.
// MatchTemperature panics if the lengths differ or there is no row.
func MatchTemperature(logits []float64, classes int, probs []float64) Temperature {
	if classes < 1 || len(probs) == 0 || !isMatrix(logits, len(probs)/classes, classes) || len(logits) != len(probs) {
		panic(badLabels)
	}
	s := scored{logits: make([]float64, len(logits)), classes: classes, passes: &passes{}}
	for i := range len(probs) / classes {
		peak := floats.Max(logits[i*classes:][:classes])
		mean := 0.0
		for c := i * classes; c < (i+1)*classes; c++ {
			s.logits[c] = max(logits[c]-peak, leastLogit)
			mean += probs[c] * s.logits[c]
		}
		s.wanted = append(s.wanted, mean)
	}
	return s.fit(allRows(len(s.wanted)))
}

// leastLogit is near the logarithm of the smallest probability in float64.
const leastLogit = -700

// scored holds checked logits and their labels.
type scored struct {
	logits  []float64 // n×classes
	classes int
	labels  []int     // nil where probabilities are wanted instead
	wanted  []float64 // for each row the logit of its label, or the mean logit under the wanted probabilities
	passes  *passes
}

func newScored(logits []float64, classes int, labels []int) (scored, error) {
	if classes < 1 || !isMatrix(logits, len(labels), classes) {
		panic(badLabels)
	}
	if len(labels) == 0 {
		return scored{}, errors.New("no rows to fit on")
	}
	s := scored{logits: logits, classes: classes, labels: labels, passes: &passes{}}
	for i, label := range labels {
		if err := checkLabel(label, classes); err != nil {
			return scored{}, fmt.Errorf("row %d: %w", i, err)
		}
		row := s.row(i)
		for c, z := range row {
			if math.IsNaN(z) || math.IsInf(z, 1) {
				return scored{}, fmt.Errorf("row %d: class %d: logit %v, want a finite number or -Inf", i, c, z)
			}
		}
		// The difference also catches finite logits too far from each other for float64.
		if math.IsInf(row[label]-floats.Max(row), -1) || math.IsInf(row[label], -1) {
			return scored{}, fmt.Errorf("row %d: true class %d %w", i, label, ErrExcluded)
		}
		s.wanted = append(s.wanted, row[label])
	}
	return s, nil
}

func (s scored) row(i int) []float64 {
	return s.logits[i*s.classes : (i+1)*s.classes]
}

func allRows(n int) []int {
	rows := make([]int, n)
	for i := range rows {
		rows[i] = i
	}
	return rows
}

// fit returns the best temperature for the given rows.
func (s scored) fit(rows []int) Temperature {
	t := fit(func(beta float64) (sum rowLoss) {
		for _, loss := range s.losses(rows, beta) {
			sum.add(loss, len(rows))
		}
		return sum
	})
	if s.labels != nil {
		var seen labels
		for _, i := range rows {
			seen.add(s.row(i), s.labels[i])
		}
		seen.to(&t)
	}
	return t
}

// fit returns the temperature with the least loss, which is a function of 1/T.
func fit(of func(beta float64) rowLoss) Temperature {
	t := Temperature{T: 1}
	var last rowLoss
	loss := func(beta float64) (nll, slope, curvature float64) {
		t.Evaluations++
		last = of(beta)
		return last.nll, last.slope, last.curvature
	}
	beta := 1.0
	nll, slope, curvature := loss(beta)
	t.NLLBefore, t.NLLAfter, t.Error = nll, nll, last.err(beta)
	if slope == 0 {
		return t
	}

	// By convexity the sign of the slope at 1 shows the side of the minimum. The slope at that side's bound shows
	// whether the minimum lies within.
	bounds := []float64{1 / MinTemperature}
	if slope > 0 {
		bounds = []float64{1.0 / usualTemperature, 1.0 / MaxTemperature}
	}
	var lo, hi float64
	atBound := true
	for k := 0; atBound && k < len(bounds); k++ {
		lo, hi = min(beta, bounds[k]), max(beta, bounds[k])
		boundNLL, boundSlope, boundCurvature := loss(bounds[k])
		if atBound = (boundSlope > 0) == (slope > 0); atBound {
			beta, nll, slope, curvature = bounds[k], boundNLL, boundSlope, boundCurvature
		}
	}

	steep := math.Inf(1) // |slope| one step earlier
	for step := 0; !atBound && step < maxSteps; step++ {
		newton := slope / curvature
		if math.Abs(newton) <= betaTolerance*beta || hi-lo <= betaTolerance*beta {
			break
		}
		// A Newton step is safe if it stays in the interval. It is slow on the exponential tail of nearly separable
		// data, where it only divides the slope by e. In both cases bisect the interval logarithmically instead.
		next := beta - newton
		if !(lo < next && next < hi) || math.Abs(slope) > steep/3 {
			next = math.Sqrt(lo * hi)
		}
		steep, beta = math.Abs(slope), next
		nll, slope, curvature = loss(beta)
		if slope < 0 {
			lo = beta
		} else {
			hi = beta
		}
	}
	if nll <= t.NLLBefore { // otherwise they differ by rounding, and T = 1 is as good
		t.T, t.NLLAfter, t.AtBound, t.Error = 1/beta, nll, atBound, last.err(beta)
	}
	if atBound {
		t.Error = math.NaN()
	}
	return t
}

// rowLoss is the NLL of rows in nats, with its first two derivatives in 1/T. variance is that of the mean slope, where it
// is 0.
type rowLoss struct{ nll, slope, curvature, variance float64 }

// err returns the standard error of T = 1/beta.
func (l rowLoss) err(beta float64) float64 {
	if l.variance == 0 {
		return 0
	}
	return math.Sqrt(l.variance) / l.curvature / (beta * beta)
}

// add adds one of n rows to a mean.
func (l *rowLoss) add(o rowLoss, n int) {
	l.nll += o.nll / float64(n)
	l.slope += o.slope / float64(n)
	l.curvature += o.curvature / float64(n)
	l.variance += o.slope / float64(n) * o.slope / float64(n)
}

// lossOf returns the loss of a row at inverse temperature beta. wanted is the logit of its label.
//
// Let u_c = z_c − max z and p = softmax(βz). A row with label y has the NLL log Σ exp(βu) − βu_y, the slope E_p[u] −
// u_y and the curvature Var_p[u]. With wanted probabilities q, the mean E_q[u] takes the place of u_y.
func lossOf(row []float64, wanted, beta float64) rowLoss {
	best, peak := top(row)
	return lossBelow(row, best, peak, wanted, beta)
}

// lossBelow is lossOf for a row with a known largest logit.
func lossBelow(row []float64, best int, peak, wanted, beta float64) rowLoss {
	var e0, e1, e2 float64 // Σ e, Σ e·u, Σ e·u² without the class best, where e = 1 and u = 0
	for _, part := range [2][]float64{row[:best], row[best+1:]} {
		for _, z := range part {
			u := z - peak
			e := math.Exp(beta * u)
			if e == 0 { // else u = −Inf would give 0·Inf
				continue
			}
			e0 += e
			e1 += e * u
			e2 += e * u * u
		}
	}
	mean := e1 / (1 + e0)
	uy := wanted - peak
	return rowLoss{math.Log1p(e0) - beta*uy, mean - uy, e2/(1+e0) - mean*mean, 0}
}
