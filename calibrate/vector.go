package calibrate

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
)

const badVector = "calibrate: number of logits is not a multiple of the scales"

// VectorScaling is the result of vector scaling on a fitting set. The probabilities are softmax(Scale∘z + Bias).
type VectorScaling struct {
	Scale, Bias []float64 // one value for each class

	// Temperature is that towards which the ridge pulls, and Ridge its weight: see [FitVectorScaling]. +Inf stands for the
	// temperature alone.
	Temperature, Ridge float64

	// NLLBefore and NLL are the mean NLL per example of the fitting set before and after scaling, in nats. NLL is never
	// the larger.
	NLLBefore, NLL float64

	Steps     int  // of Newton's method
	Converged bool // false if the steps ran out before the minimum

	// Unseen has the NLL of each row for the fit of the other folds, with the same ridge. It is nil without folds.
	Unseen []float64

	// Absent lists the classes without a label in the fitting set. Only the ridge keeps their probabilities above 0.
	Absent []int

	// Separated reports that all scaled predictions of the fitting set are correct. The NLL then decreases as the
	// scales grow, and only the ridge bounds them, so the result is overconfident. Fit on more examples.
	Separated bool
}

// FitVectorScaling returns the scales w and biases b that minimise
//
//	mean NLL of softmax(w∘z + b) + λ/2 · (Σ(T·w_c − 1)² + Σ b_c²)
//
// over the rows z of logits, n×classes in row-major order, given the n labels (Guo et al. 2017, section 4.2). T is the
// temperature of [FitTemperature], or 1 if that is at a bound. The ridge is not in the paper. It pulls towards that temperature
// and makes the minimum unique. The NLL of the fitting set is never above that at T.
//
// Cross-validation in [VectorFolds] folds chooses the ridge λ: the one of [VectorRidges] with the least mean NLL of the rows that
// its fit has not seen, or the temperature alone, which is λ = ∞. The search begins there, and ends after two ridges that are
// no better than the best. With many rows of each class the ridge hardly matters. With few rows it keeps 2·classes numbers from
// following chance.
//
// Unlike a temperature, vector scaling can change the most probable class. Its result also depends on a constant added to a row of
// logits. For an ensemble it must depend on the probabilities alone, so pass [LogProbs].
//
// The problem is convex. Newton's method minimises it, with conjugate gradients for the steps, so no matrix is
// formed. A logit of −Inf excludes a class for any scale.
//
// Errors and panics are those of [FitTemperature].
func FitVectorScaling(logits []float64, classes int, labels []int) (VectorScaling, error) {
	return FitVectorScalingFolds(logits, classes, labels, stratified(labels))
}

// FitVectorScalingFolds is [FitVectorScaling] with folds of the caller, such as those of [UnitFolds] for rows that depend on each
// other. Without folds it returns the temperature alone.
func FitVectorScalingFolds(logits []float64, classes int, labels []int, folds [][]int) (VectorScaling, error) {
	s, err := newScored(logits, classes, labels)
	if err != nil {
		return VectorScaling{}, err
	}
	t := s.fit(allRows(len(labels)))
	ridge, unseen := s.chooseRidge(folds, t)
	all := s.path(allRows(len(labels)), t)
	for all.ridge > ridge && all.next() {
	}
	v := all.result()
	v.Unseen = unseen
	return v, nil
}

// Apply stores softmax(Scale∘z + Bias) in dst for each row z of logits, n×classes in row-major order. dst has the
// length of logits and may be the same slice. A row contains NaN where [Softmax] gives NaN. Apply panics if the
// lengths disagree.
func (v VectorScaling) Apply(dst, logits []float64) []float64 {
	dst = v.Logits(dst, logits)
	return Softmax(dst, dst, len(v.Scale), 1)
}

// Logits stores Scale∘z + Bias in dst, with the rules of Apply.
func (v VectorScaling) Logits(dst, logits []float64) []float64 {
	classes := len(v.Scale)
	if classes == 0 || len(v.Bias) != classes || len(logits)%classes != 0 {
		panic(badVector)
	}
	dst = destination(dst, len(logits))
	for i := 0; i < len(logits); i += classes {
		v.scale(dst[i:i+classes], logits[i:i+classes])
	}
	return dst
}

// scale stores Scale∘z + Bias of one row in dst. It keeps −Inf, which a negative scale would turn into +Inf and a
// zero scale into NaN.
func (v VectorScaling) scale(dst, z []float64) {
	for c, x := range z {
		if !math.IsInf(x, -1) {
			x = v.Scale[c]*x + v.Bias[c]
		}
		dst[c] = x
	}
}

const (
	// decrementTolerance is the Newton decrement, in nats, of the last step. Convergence is quadratic there, so the
	// rest is rounding.
	decrementTolerance = 1e-14
	// roundingDecrement bounds the decrease that a step may predict but not achieve. The objective has about 16
	// digits, so smaller differences are rounding.
	roundingDecrement = 1e-9
)

// fit finds the best scales and biases for the ridge, up to a Newton decrement in nats.
func (p *ridgePath) fit(tolerance float64) {
	q := &vectorProblem{
		scored: p.of.over(p.t.T, p.rows),
		rows:   allRows(len(p.rows)),
		lambda: p.ridge,
		probs:  make([]float64, len(p.rows)*p.of.classes),
	}
	x := p.x
	value, nll := q.value(x)
	v := VectorScaling{NLLBefore: p.v.NLLBefore}
	gradient, step := make([]float64, len(x)), make([]float64, len(x))
	for ; v.Steps < maxSteps && !v.Converged; v.Steps++ {
		q.gradient(gradient, x)
		q.newtonStep(step, gradient)
		slope := floats.Dot(gradient, step) // −2 times the decrease that a quadratic model predicts
		if slope >= -tolerance {
			v.Converged = true
		}
		next, nextValue, nextNLL, ok := q.search(x, step, value, slope)
		if math.Abs(value+slope/2-nextValue) <= tolerance { // the quadratic model holds, and the step is its minimum
			v.Converged = true
		}
		if !ok { // the step is lost in rounding
			v.Converged = v.Converged || slope > -roundingDecrement
			break
		}
		x, value, nll = next, nextValue, nextNLL
	}
	v.Steps += p.v.Steps
	if v.NLL = nll; nll > p.t.NLLAfter { // they differ by rounding
		x, v.NLL = q.identity(), p.t.NLLAfter
	}
	p.x, p.v = x, v
}

// over returns some rows with logits divided by T.
func (s scored) over(t float64, rows []int) scored {
	out := scored{logits: make([]float64, len(rows)*s.classes), classes: s.classes, labels: make([]int, len(rows))}
	for k, i := range rows {
		for c, z := range s.row(i) {
			out.logits[k*s.classes+c] = z / t
		}
		out.labels[k] = s.labels[i]
	}
	return out
}

// vectorProblem is the minimisation over x = (w, b), with the scales in units of the temperature's.
type vectorProblem struct {
	scored
	rows   []int
	lambda float64
	// probs are exp(z − max z) of the rows' scaled logits at the x of the last call of value. gradient divides them by their sums.
	probs []float64
}

func (q *vectorProblem) identity() []float64 {
	x := make([]float64, 2*q.classes)
	for c := range q.classes {
		x[c] = 1
	}
	return x
}

// ridge returns coordinate i of the ridge's gradient at x, divided by λ.
func (q *vectorProblem) ridge(x []float64, i int) float64 {
	if i < q.classes {
		return x[i] - 1
	}
	return x[i]
}

// value returns the objective at x and the mean NLL in it. Its exponentials are left for gradient, because they take most of the
// time with many classes.
func (q *vectorProblem) value(x []float64) (value, nll float64) {
	v := VectorScaling{Scale: x[:q.classes], Bias: x[q.classes:]}
	for k, i := range q.rows {
		p := q.probs[k*q.classes:][:q.classes]
		v.scale(p, q.row(i))
		best, peak := top(p)
		wanted, rest := p[q.labels[i]], 0.0
		for c, z := range p {
			p[c] = 1
			if c != best {
				p[c] = exp(z - peak)
				rest += p[c]
			}
		}
		nll += (peak + math.Log1p(rest) - wanted) / float64(len(q.rows)) // as in logSumExp
	}
	var ridge float64
	for i := range x {
		d := q.ridge(x, i)
		ridge += d * d
	}
	return nll + q.lambda/2*ridge, nll
}

// logSumExp keeps full precision if the sum is barely more than its largest term.
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

// gradient stores the gradient at x, the argument of the last call of value, in dst. For class c its elements are
// the means of (p_c − 1[c is the label])·z_c and of p_c − 1[c is the label].
func (q *vectorProblem) gradient(dst, x []float64) {
	for i := range dst {
		dst[i] = q.lambda * q.ridge(x, i)
	}
	n := float64(len(q.rows))
	for k, i := range q.rows {
		p, z := q.probs[k*q.classes:][:q.classes], q.row(i)
		sum := 0.0
		for _, e := range p {
			sum += e
		}
		for c, e := range p {
			pc := e / sum
			p[c] = pc
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

// hessian stores the product of the Hessian and v in dst. With δ_c = v_c·z_c + v_{C+c} and e_c = p_c·(δ_c − Σ p·δ),
// its elements are the means of e_c·z_c and of e_c.
func (q *vectorProblem) hessian(dst, v []float64) {
	for i := range dst {
		dst[i] = q.lambda * v[i]
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

// blocks is the Hessian of the scale and the bias of each class, without those of other classes: its elements for two scales, for one
// of each, and for two biases.
type blocks struct{ scales, both, biases []float64 }

func (q *vectorProblem) blocks() blocks {
	b := blocks{make([]float64, q.classes), make([]float64, q.classes), make([]float64, q.classes)}
	for k, i := range q.rows {
		z := q.row(i)
		for c, pc := range q.probs[k*q.classes:][:q.classes] {
			if pc != 0 {
				v := pc * (1 - pc)
				b.biases[c] += v
				v *= z[c]
				b.both[c] += v
				b.scales[c] += v * z[c]
			}
		}
	}
	n := float64(len(q.rows))
	for c := range q.classes {
		b.scales[c], b.both[c], b.biases[c] = b.scales[c]/n+q.lambda, b.both[c]/n, b.biases[c]/n+q.lambda
	}
	return b
}

// solve stores the blocks' inverse times r in dst.
func (b blocks) solve(dst, r []float64) {
	for c, both := range b.both {
		w, bias := r[c], r[len(b.both)+c]
		det := b.scales[c]*b.biases[c] - both*both // positive: the ridge adds λ² to a variance
		dst[c], dst[len(b.both)+c] = (b.biases[c]*w-both*bias)/det, (b.scales[c]*bias-both*w)/det
	}
}

// newtonStep stores −H⁻¹g in dst. It uses conjugate gradients preconditioned by the blocks of H (Nocedal and Wright
// 2006, algorithm 5.3), and stops early. The ridge makes H positive definite, so the result is a descent direction
// after any number of rounds.
func (q *vectorProblem) newtonStep(dst, g []float64) {
	size := len(g)
	residual, y := make([]float64, size), make([]float64, size)
	direction, product := make([]float64, size), make([]float64, size)
	blocks := q.blocks()
	for i := range dst {
		dst[i], residual[i] = 0, -g[i]
	}
	blocks.solve(y, residual)
	copy(direction, y)
	rho := floats.Dot(residual, y)
	// Far from the minimum an exact step is wasted. Near it, the remaining error must shrink faster than the gradient
	// (Nocedal and Wright 2006, section 7.1).
	enough := rho * math.Min(0.01, rho)
	for range 2*size + 20 {
		if rho <= enough {
			break
		}
		q.hessian(product, direction)
		alpha := rho / floats.Dot(direction, product)
		floats.AddScaled(dst, alpha, direction)
		floats.AddScaled(residual, -alpha, product)
		blocks.solve(y, residual)
		next := floats.Dot(residual, y)
		floats.AddScaledTo(direction, y, next/rho, direction)
		rho = next
	}
}

// search halves the step from x until the objective decreases enough (Armijo's rule, with the constant of Nocedal and
// Wright 2006, chapter 3).
func (q *vectorProblem) search(x, step []float64, value, slope float64) (next []float64, nextValue, nll float64, ok bool) {
	next = make([]float64, len(x))
	for t := 1.0; t > 1e-20; t /= 2 { // if all is saturated, H is the ridge and the step far too long
		floats.AddScaledTo(next, x, t, step)
		nextValue, nll = q.value(next)
		if nextValue <= value+1e-4*t*slope {
			return next, nextValue, nll, true
		}
	}
	return nil, 0, 0, false
}

// judge sets the fields of v that warn the user.
func (s scored) judge(v *VectorScaling, rows []int) {
	seen := make([]bool, s.classes)
	z := make([]float64, s.classes)
	v.Separated = true
	for _, i := range rows {
		seen[s.labels[i]] = true
		v.scale(z, s.row(i))
		best, _ := top(z)
		v.Separated = v.Separated && best == s.labels[i]
	}
	for c, ok := range seen {
		if !ok {
			v.Absent = append(v.Absent, c)
		}
	}
}

// rowsPerClass is the number of rows per class below which vector scaling is hardly better than a temperature, and may be worse.
const rowsPerClass = 50

// Warnings returns the reasons not to take a fit to the given number of rows at face value. It warns with a [ScarceError] if there are
// fewer than 50 rows per class.
func (v VectorScaling) Warnings(rows int) []error {
	if want := rowsPerClass * len(v.Scale); rows < want {
		return []error{&ScarceError{2 * len(v.Scale), rows}}
	}
	return nil
}

// ScarceError says that many numbers are fitted to few rows.
type ScarceError struct{ Numbers, Rows int }

func (e *ScarceError) Error() string {
	return fmt.Sprintf("%d numbers are fitted on %d rows, fewer than %d for each class: a temperature is safer", e.Numbers, e.Rows,
		rowsPerClass)
}
