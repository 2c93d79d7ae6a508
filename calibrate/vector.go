package calibrate

import (
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// VectorRidge is the weight of the ridge in [FitVectorScaling]. In the mean NLL of
// 1,000 images, moving all scales of 10 classes from 1 to 2 costs as much as 0.05
// nats in one of the images.
const VectorRidge = 1e-5

const badVector = "calibrate: number of logits is not a multiple of the scales"

// VectorScaling is the result of vector scaling on a fitting set. The probabilities
// are softmax(Scale∘z + Bias).
type VectorScaling struct {
	Scale, Bias []float64 // one of each for every class

	// NLLBefore and NLL are the mean NLL per image of the fitting set as it was
	// and after scaling, in nats. NLL is never the larger.
	NLLBefore, NLL float64

	Steps     int  // of Newton's method
	Converged bool // false: it ran out of steps, and NLL is not the smallest possible

	// Absent are the classes that no label of the fitting set names. Only the ridge
	// keeps their probabilities from 0.
	Absent []int

	// Separated says that the scaled predictions of the fitting set are all right.
	// Then the NLL falls as long as the scales grow, only the ridge ends it, and the
	// result is more sure than it should be. Fit on more images.
	Separated bool
}

// FitVectorScaling returns the scales w and biases b that minimise
//
//	mean NLL of softmax(w∘z + b) + VectorRidge/2 · (Σ(w_c − 1)² + Σ b_c²)
//
// over the rows z of logits, n×classes in row-major order, given the n labels
// (Guo et al. 2017, section 4.2). The ridge, which is not in the paper, makes the
// minimum one point where the paper has many or none: a constant added to b
// changes nothing, and the bias of a class without images would fall for ever. It
// draws towards the identity, so the NLL of the fitting set never rises.
//
// Unlike a temperature, this can change which class is the most probable, and it
// fits 2·classes numbers: with few images for each class, judge it by
// [Scaler.CrossFit]. Unlike temperature scaling it also depends on a constant added
// to a row of logits. To have it depend on the probabilities alone, as it must for
// an ensemble, pass [LogProbs].
//
// The problem is convex, and is minimised by Newton's method, with conjugate
// gradients for the steps; no matrix is formed. A logit of −Inf rules a class out
// whatever its scale.
//
// Errors and panics are those of [FitTemperature].
func FitVectorScaling(logits []float64, classes int, labels []int) (VectorScaling, error) {
	s, err := newScored(logits, classes, labels)
	if err != nil {
		return VectorScaling{}, err
	}
	return s.fitVector(allRows(len(labels))), nil
}

// Apply stores softmax(Scale∘z + Bias) in dst for each row z of logits, n×classes
// in row-major order. dst has the length of logits and may be the same slice. A
// row has NaN in it where [Softmax] gives NaN. Apply panics if the lengths
// disagree.
func (v VectorScaling) Apply(dst, logits []float64) []float64 {
	classes := len(v.Scale)
	if classes == 0 || len(v.Bias) != classes || len(logits)%classes != 0 {
		panic(badVector)
	}
	dst = destination(dst, len(logits))
	for i := 0; i < len(logits); i += classes {
		v.scale(dst[i:i+classes], logits[i:i+classes])
	}
	return Softmax(dst, dst, classes, 1)
}

// scale stores Scale∘z + Bias of one row in dst. −Inf times a negative scale would
// be the opposite of ruled out, and times 0 NaN.
func (v VectorScaling) scale(dst, z []float64) {
	for c, x := range z {
		if !math.IsInf(x, -1) {
			x = v.Scale[c]*x + v.Bias[c]
		}
		dst[c] = x
	}
}

// fitVector returns the best scales and biases for the given rows.
func (s scored) fitVector(rows []int) VectorScaling {
	q := &vectorProblem{scored: s, rows: rows, probs: make([]float64, len(rows)*s.classes)}
	x := q.identity()
	value, nll := q.value(x)
	v := VectorScaling{NLLBefore: nll, NLL: nll}
	gradient, step := make([]float64, len(x)), make([]float64, len(x))
	for ; v.Steps < maxSteps && !v.Converged; v.Steps++ {
		q.gradient(gradient, x)
		q.newtonStep(step, gradient)
		slope := floats.Dot(gradient, step) // −2 × what a quadratic would still fall
		if slope >= -decrementTolerance {
			v.Converged = true
		}
		next, nextValue, nextNLL, ok := q.search(x, step, value, slope)
		if !ok { // the step is lost in rounding
			v.Converged = v.Converged || slope > -roundingDecrement
			break
		}
		x, value, nll = next, nextValue, nextNLL
	}
	if nll <= v.NLLBefore {
		v.NLL = nll
	} else { // they differ by rounding
		x = q.identity()
	}
	v.Scale, v.Bias = slices.Clone(x[:s.classes]), slices.Clone(x[s.classes:])
	q.judge(&v)
	return v
}

const (
	// decrementTolerance is the Newton decrement, in nats, of the last step that is
	// taken. Convergence is quadratic there, so that what is left is rounding.
	decrementTolerance = 1e-14
	// roundingDecrement is what a step may promise and not keep: the values whose
	// difference it is have about 16 digits.
	roundingDecrement = 1e-9
)

// vectorProblem is the minimisation over x = (w, b).
type vectorProblem struct {
	scored
	rows  []int
	probs []float64 // of the rows, at the x of the last call of gradient
}

func (q *vectorProblem) identity() []float64 {
	x := make([]float64, 2*q.classes)
	for c := range q.classes {
		x[c] = 1
	}
	return x
}

// ridge returns the gradient of the ridge at x in coordinate i, over VectorRidge.
func (q *vectorProblem) ridge(x []float64, i int) float64 {
	if i < q.classes {
		return x[i] - 1
	}
	return x[i]
}

// value returns the objective at x, and the mean NLL in it.
func (q *vectorProblem) value(x []float64) (value, nll float64) {
	nll = q.vectorNLL(q.rows, VectorScaling{Scale: x[:q.classes], Bias: x[q.classes:]})
	var ridge float64
	for i := range x {
		d := q.ridge(x, i)
		ridge += d * d
	}
	return nll + VectorRidge/2*ridge, nll
}

// vectorNLL returns the mean NLL of the given rows after v, in nats.
func (s scored) vectorNLL(rows []int, v VectorScaling) (nll float64) {
	z := make([]float64, s.classes)
	for _, i := range rows {
		v.scale(z, s.row(i))
		nll += (logSumExp(z) - z[s.labels[i]]) / float64(len(rows))
	}
	return nll
}

// logSumExp keeps the digits of a sum that is barely more than its largest term.
func logSumExp(z []float64) float64 {
	best, peak := top(z)
	var rest float64
	for c, x := range z {
		if c != best {
			rest += math.Exp(x - peak)
		}
	}
	return peak + math.Log1p(rest)
}

// gradient stores the gradient at x in dst: for class c the means of
// (p_c − 1[c is the label])·z_c and of p_c − 1[c is the label].
func (q *vectorProblem) gradient(dst, x []float64) {
	v := VectorScaling{Scale: x[:q.classes], Bias: x[q.classes:]}
	for i := range dst {
		dst[i] = VectorRidge * q.ridge(x, i)
	}
	n := float64(len(q.rows))
	for k, i := range q.rows {
		p, z := q.probs[k*q.classes:][:q.classes], q.row(i)
		v.scale(p, z)
		Softmax(p, p, q.classes, 1)
		for c, pc := range p {
			if c == q.labels[i] {
				pc--
			}
			if pc != 0 { // also for z_c = −Inf
				dst[c] += pc * z[c] / n
				dst[q.classes+c] += pc / n
			}
		}
	}
}

// hessian stores the product of the Hessian and v in dst. With δ_c = v_c·z_c + v_{C+c}
// and e_c = p_c·(δ_c − Σ p·δ), its elements are the means of e_c·z_c and of e_c.
func (q *vectorProblem) hessian(dst, v []float64) {
	for i := range dst {
		dst[i] = VectorRidge * v[i]
	}
	n := float64(len(q.rows))
	delta := make([]float64, q.classes)
	for k, i := range q.rows {
		p, z := q.probs[k*q.classes:][:q.classes], q.row(i)
		var mean float64
		for c, pc := range p {
			if pc != 0 {
				delta[c] = v[c]*z[c] + v[q.classes+c]
				mean += pc * delta[c]
			}
		}
		for c, pc := range p {
			if pc != 0 {
				e := pc * (delta[c] - mean) / n
				dst[c] += e * z[c]
				dst[q.classes+c] += e
			}
		}
	}
}

// diagonal stores the diagonal of the Hessian in dst.
func (q *vectorProblem) diagonal(dst []float64) {
	for i := range dst {
		dst[i] = VectorRidge
	}
	n := float64(len(q.rows))
	for k, i := range q.rows {
		z := q.row(i)
		for c, pc := range q.probs[k*q.classes:][:q.classes] {
			if pc != 0 {
				dst[c] += pc * (1 - pc) * z[c] * z[c] / n
				dst[q.classes+c] += pc * (1 - pc) / n
			}
		}
	}
}

// newtonStep stores −H⁻¹g in dst by conjugate gradients, preconditioned by the
// diagonal of H (Nocedal and Wright 2006, algorithm 5.3), as exactly as is worth
// while. The ridge makes H positive definite, so that the result is a way down
// after any number of rounds.
func (q *vectorProblem) newtonStep(dst, g []float64) {
	size := len(g)
	diagonal, residual, y := make([]float64, size), make([]float64, size), make([]float64, size)
	direction, product := make([]float64, size), make([]float64, size)
	q.diagonal(diagonal)
	for i := range dst {
		dst[i], residual[i] = 0, -g[i]
	}
	floats.DivTo(y, residual, diagonal)
	copy(direction, y)
	rho := floats.Dot(residual, y)
	// Far from the minimum an exact step is wasted; near it, the error that is left
	// must shrink faster than the gradient (Nocedal and Wright 2006, section 7.1).
	enough := rho * math.Min(0.01, rho)
	for range 2*size + 20 {
		if rho <= enough {
			break
		}
		q.hessian(product, direction)
		alpha := rho / floats.Dot(direction, product)
		floats.AddScaled(dst, alpha, direction)
		floats.AddScaled(residual, -alpha, product)
		floats.DivTo(y, residual, diagonal)
		next := floats.Dot(residual, y)
		floats.AddScaledTo(direction, y, next/rho, direction)
		rho = next
	}
}

// search halves the step from x until the objective falls enough (Armijo's
// rule, with the constant of Nocedal and Wright 2006, chapter 3).
func (q *vectorProblem) search(x, step []float64, value, slope float64) (next []float64, nextValue, nll float64, ok bool) {
	next = make([]float64, len(x))
	for t := 1.0; t > 1e-20; t /= 2 { // where all is saturated, H is the ridge and the step far too long
		floats.AddScaledTo(next, x, t, step)
		nextValue, nll = q.value(next)
		if nextValue <= value+1e-4*t*slope {
			return next, nextValue, nll, true
		}
	}
	return nil, 0, 0, false
}

// judge says what the user should know of v.
func (q *vectorProblem) judge(v *VectorScaling) {
	seen := make([]bool, q.classes)
	z := make([]float64, q.classes)
	v.Separated = true
	for _, i := range q.rows {
		seen[q.labels[i]] = true
		v.scale(z, q.row(i))
		best, _ := top(z)
		v.Separated = v.Separated && best == q.labels[i]
	}
	for c, ok := range seen {
		if !ok {
			v.Absent = append(v.Absent, c)
		}
	}
}

// Check returns an error unless v can be applied to rows of the given number of
// classes: it is what a reader of saved scales should call.
func (v VectorScaling) Check(classes int) error {
	if len(v.Scale) != classes || len(v.Bias) != classes {
		return errors.New("number of scales or biases is not that of the classes")
	}
	for _, x := range slices.Concat(v.Scale, v.Bias) {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return errors.New("a scale or bias is not a finite number")
		}
	}
	return nil
}
