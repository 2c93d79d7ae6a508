package calibrate

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
)

// A fitted temperature lies between MinTemperature and MaxTemperature, while what
// networks need is of order 1. At 0.001, logits that differ by 1 give odds of
// e^1000, which is certainty in float64; at 1000, logits that differ by 10 give
// equal probabilities to within 1 %. An optimum beyond is one at 0 or infinity.
const (
	MinTemperature = 1e-3
	MaxTemperature = 1e3
)

const (
	// betaTolerance is the relative error of 1/T that is left. It raises the NLL
	// by far less than rounding does.
	betaTolerance = 1e-10

	// maxSteps is a safety net. Logits of one scale take about 6 steps; among
	// 100,000 mixtures of scales from 1e-100 to 1e5 the worst took 24.
	maxSteps = 100
)

const badLabels = "calibrate: number of logits is not labels × classes"

// Temperature is the result of temperature scaling on a fitting set.
type Temperature struct {
	// T is the temperature to pass to [Softmax], always positive.
	T float64

	// NLLBefore and NLLAfter are the mean NLL per image of the fitting set at
	// temperature 1 and at T, in nats. NLLAfter is never the larger.
	NLLBefore, NLLAfter float64

	Evaluations int // passes over the data

	// AtBound says that the NLL falls all the way to T = [MinTemperature] or
	// [MaxTemperature], so T only tells the direction. The first happens when
	// every image is classified right, the second when the logits tell nothing
	// about the labels, or the opposite. Fit on more images.
	AtBound bool
}

// FitTemperature returns the temperature T that minimises the mean NLL of
// softmax(z/T) over the rows z of logits, n×classes in row-major order, given
// the n labels (Guo et al. 2017, section 4.2). Scaling does not change which
// class is the most probable.
//
// The NLL is convex in β = 1/T and is minimised by Newton's method in β within
// an interval that brackets the minimum. Where T has no effect it is 1.
//
// Log-probabilities serve as logits; see [LogProbs] for averaged predictions. A
// logit of −Inf rules a class out at every temperature.
//
// It is an error, which names the first row at fault, if there is no row, a
// logit is NaN or +Inf, a label is not in [0, classes), or a true class is ruled
// out, for then the NLL is infinite at every temperature. FitTemperature panics
// if the number of logits is not labels × classes.
func FitTemperature(logits []float64, classes int, labels []int) (Temperature, error) {
	s, err := newScored(logits, classes, labels)
	if err != nil {
		return Temperature{}, err
	}
	return s.fit(allRows(len(labels))), nil
}

// scored are logits that have been checked, with their labels.
type scored struct {
	logits  []float64 // n×classes
	classes int
	labels  []int
}

func newScored(logits []float64, classes int, labels []int) (scored, error) {
	if classes < 1 || !isMatrix(logits, len(labels), classes) {
		panic(badLabels)
	}
	if len(labels) == 0 {
		return scored{}, errors.New("no rows to fit on")
	}
	s := scored{logits, classes, labels}
	for i, label := range labels {
		if err := checkLabel(i, label, classes); err != nil {
			return scored{}, err
		}
		row := s.row(i)
		for c, z := range row {
			if math.IsNaN(z) || math.IsInf(z, 1) {
				return scored{}, fmt.Errorf("row %d: class %d: logit %v, want a finite number or -Inf", i, c, z)
			}
		}
		// The difference also catches finite logits too far apart for float64.
		if math.IsInf(row[label]-floats.Max(row), -1) || math.IsInf(row[label], -1) {
			return scored{}, fmt.Errorf("row %d: true class %d has probability 0 at every temperature", i, label)
		}
	}
	return s, nil
}

func (s scored) row(i int) []float64 {
	return s.logits[i*s.classes : (i+1)*s.classes]
}

// allRows returns the numbers of n rows.
func allRows(n int) []int {
	rows := make([]int, n)
	for i := range rows {
		rows[i] = i
	}
	return rows
}

// fit returns the best temperature for the given rows.
func (s scored) fit(rows []int) Temperature {
	t := Temperature{T: 1}
	loss := func(beta float64) (nll, slope, curvature float64) {
		t.Evaluations++
		return s.loss(rows, beta)
	}
	beta := 1.0
	nll, slope, curvature := loss(beta)
	t.NLLBefore, t.NLLAfter = nll, nll
	if slope == 0 {
		return t
	}

	// By convexity the slope at 1 says on which side the minimum is, and the
	// slope at the bound on that side says whether it is within.
	lo, hi := 1.0, 1/MinTemperature
	bound := hi
	if slope > 0 {
		lo, hi = 1/MaxTemperature, 1.0
		bound = lo
	}
	boundNLL, boundSlope, _ := loss(bound)
	atBound := (boundSlope > 0) == (slope > 0)
	if atBound {
		beta, nll = bound, boundNLL
	}

	last := math.Inf(1) // |slope| one step before
	for step := 0; !atBound && step < maxSteps; step++ {
		newton := slope / curvature
		if math.Abs(newton) <= betaTolerance*beta || hi-lo <= betaTolerance*beta {
			break
		}
		// A Newton step is safe if it stays in the interval. It is slow on the
		// exponential tail of nearly separable data, where it divides the slope
		// by e. In either case halve the logarithm of the interval instead.
		next := beta - newton
		if !(lo < next && next < hi) || math.Abs(slope) > last/3 {
			next = math.Sqrt(lo * hi)
		}
		last, beta = math.Abs(slope), next
		nll, slope, curvature = loss(beta)
		if slope < 0 {
			lo = beta
		} else {
			hi = beta
		}
	}
	if nll <= t.NLLBefore { // else they differ by rounding, and T = 1 is as good
		t.T, t.NLLAfter, t.AtBound = 1/beta, nll, atBound
	}
	return t
}

// loss returns the mean NLL of the rows at inverse temperature beta, in nats, and
// its first two derivatives in beta.
//
// With u_c = z_c − max z and p = softmax(βz), a row with label y has the NLL
// log Σ exp(βu) − βu_y, the slope E_p[u] − u_y and the curvature Var_p[u].
func (s scored) loss(rows []int, beta float64) (nll, slope, curvature float64) {
	n := float64(len(rows))
	for _, i := range rows {
		row := s.row(i)
		best, peak := top(row)
		var e0, e1, e2 float64 // Σ e, Σ e·u, Σ e·u² but for the class best, where e = 1 and u = 0
		for c, z := range row {
			u := z - peak
			e := math.Exp(beta * u)
			if c == best || e == 0 { // without e == 0, u = −Inf would give 0·Inf
				continue
			}
			e0 += e
			e1 += e * u
			e2 += e * u * u
		}
		mean := e1 / (1 + e0)
		uy := row[s.labels[i]] - peak
		nll += (math.Log1p(e0) - beta*uy) / n
		slope += (mean - uy) / n
		curvature += (e2/(1+e0) - mean*mean) / n
	}
	return nll, slope, curvature
}
