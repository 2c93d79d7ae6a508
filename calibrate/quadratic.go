package calibrate

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// QuadraticScaling is the result of quadratic scaling of two classes. The probability of class 1 is
// sigmoid(Coefficients[0] + Coefficients[1]·z + Coefficients[2]·z²), where z = log p_1 − log p_0 lies within ±87.
type QuadraticScaling struct {
	Coefficients [3]float64

	Rows      int
	NLL       float64 // mean per example of the fitting set, in nats
	Converged bool
	OneLabel  bool
	Separated bool // all rows of the fitting set are right after scaling, so that nothing bounds the coefficients
}

// MaxLogOdds bounds the log-odds of [QuadraticScaling]: the logarithm of the smallest normal number in float32.
const MaxLogOdds = 87.33654475055310898657124730373

// FitQuadraticScaling returns the coefficients with the least mean NLL, given the logits of two classes, n×2, and the n labels. It
// is a logistic regression on z and z² without a penalty, as in probmetrics 1.3. The order of the probabilities may change. Newton's
// method minimises it. Errors and panics are those of [FitTemperature].
func FitQuadraticScaling(logits []float64, labels []int) (q QuadraticScaling, err error) {
	if _, err := newScored(logits, 2, labels); err != nil {
		return QuadraticScaling{}, err
	}
	q = QuadraticScaling{Rows: len(labels), OneLabel: len(absent(labels, 2)) > 0, Coefficients: [3]float64{0, 1, 0}}
	z := make([]float64, len(labels))
	for i := range z {
		z[i] = logOdds(logits[2*i:])
	}
	defer func() { q.judge(z, labels) }()
	value := q.nll(z, labels)
	for range maxSteps {
		step, decrement, ok := q.step(z, labels)
		if !ok {
			break
		}
		if decrement < decrementTolerance {
			q.Converged = true
			break
		}
		next, t := q, 1.0
		for ; ; t /= 2 {
			for k := range step {
				next.Coefficients[k] = q.Coefficients[k] + t*step[k]
			}
			if nextValue := next.nll(z, labels); nextValue <= value-1e-4*t*decrement {
				q, value = next, nextValue
				break
			}
			if t < 1e-12 { // the step is lost in rounding
				q.Converged = decrement < roundingDecrement
				q.NLL = value
				return q, nil
			}
		}
	}
	q.NLL = value
	return q, nil
}

// judge notes whether all rows are right.
func (q *QuadraticScaling) judge(z []float64, labels []int) {
	q.Separated = true
	for i, x := range z {
		q.Separated = q.Separated && (q.at(x) > 0) == (labels[i] == 1)
	}
}

// step returns Newton's step, and twice the decrease that it predicts. ok is false where the rows do not determine it.
func (q *QuadraticScaling) step(z []float64, labels []int) (step [3]float64, decrement float64, ok bool) {
	hessian, gradient := mat.NewSymDense(3, nil), mat.NewVecDense(3, nil)
	for i, x := range z {
		p, features := sigmoid(q.at(x)), [3]float64{1, x, x * x}
		for a, f := range features {
			gradient.SetVec(a, gradient.AtVec(a)+(p-float64(labels[i]))*f/float64(len(z)))
			for b := a; b < 3; b++ {
				hessian.SetSym(a, b, hessian.At(a, b)+p*(1-p)*f*features[b]/float64(len(z)))
			}
		}
	}
	var factor mat.Cholesky
	if !factor.Factorize(hessian) {
		return step, 0, false
	}
	var down mat.VecDense
	if factor.SolveVecTo(&down, gradient) != nil {
		return step, 0, false
	}
	for k := range step {
		step[k] = -down.AtVec(k)
	}
	return step, mat.Dot(gradient, &down), true
}

func (q *QuadraticScaling) at(z float64) float64 {
	return q.Coefficients[0] + z*(q.Coefficients[1]+z*q.Coefficients[2])
}

func (q *QuadraticScaling) nll(z []float64, labels []int) (sum float64) {
	for i, x := range z {
		v := q.at(x)
		if labels[i] == 1 {
			v = -v
		}
		sum += (math.Max(v, 0) + math.Log1p(math.Exp(-math.Abs(v)))) / float64(len(z))
	}
	return sum
}

// logOdds returns those of class 1 from the logits of two classes.
func logOdds(logits []float64) float64 {
	return min(max(logits[1]-logits[0], -MaxLogOdds), MaxLogOdds)
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// Logits stores (0, v) in dst for each row of two logits, where v are the log-odds after scaling. dst has the length of logits and
// may be the same slice.
func (q QuadraticScaling) Logits(dst, logits []float64) []float64 {
	if len(logits)%2 != 0 {
		panic(badVector)
	}
	dst = destination(dst, len(logits))
	for i := 0; i < len(logits); i += 2 {
		dst[i], dst[i+1] = 0, q.at(logOdds(logits[i:]))
	}
	return dst
}

// Apply stores the probabilities of both classes in dst, with the rules of Logits.
func (q QuadraticScaling) Apply(dst, logits []float64) []float64 {
	dst = q.Logits(dst, logits)
	return Softmax(dst, dst, 2, 1)
}

// Undetermined returns the reason why the rows do not determine the coefficients, or "".
func (q QuadraticScaling) Undetermined() string {
	few := TooFew(q.Rows)
	switch {
	case few != "":
		return few
	case q.OneLabel:
		return OneValue(q.Rows)
	case q.Separated, !q.Converged:
		return "nothing bounds the coefficients: the scores separate the classes of the rows, or have fewer than three values"
	}
	return ""
}
