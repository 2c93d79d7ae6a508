package calibrate

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/optimize"
)

// StructuredScaling is the result of structured vector or matrix scaling (Berta et al. 2025, arXiv 2511.03685). With
//
//	q = (1 − Uniform)·softmax(z/Temperature) + Uniform/classes
//
// the probabilities are softmax(Scale∘log q + Bias), or softmax(Matrix·log q + Bias).
type StructuredScaling struct {
	Temperature, Uniform float64
	Scale                []float64 // one for each class; nil with a matrix
	Matrix               []float64 // classes×classes; row c gives class c; nil without a matrix
	Bias                 []float64

	// Fitted is the temperature's fit. NLL is the mean NLL per example of the fitting set after scaling, in nats.
	Fitted    Temperature
	NLL       float64
	Converged bool
	Absent    []int // classes without a label in the fitting set
}

// FitStructuredScaling returns the scales v and biases b that minimise
//
//	mean NLL of softmax(v∘log q + b) + k/n · (Σ(v_c − 1)² + Σ b_c²)
//
// over n rows of k logits, with the q of [StructuredScaling]. Its temperature is that of [FitTemperature], and the share of the
// uniform distribution is 1/(n + 1). These penalties are those of probmetrics 1.3. They need no cross-validation, and shrink to the
// temperature where rows are few.
//
// The problem is strictly convex. L-BFGS minimises it with the analytic gradient. Errors and panics are those of [FitTemperature].
func FitStructuredScaling(logits []float64, classes int, labels []int) (StructuredScaling, error) {
	return fitStructured(logits, classes, labels, false)
}

// FitMatrixScaling is [FitStructuredScaling] with a matrix in the place of the scales. Its numbers off the diagonal have the
// penalty k(k − 1)/n · Σ m². Each of some ten passes takes n·k² multiplications.
func FitMatrixScaling(logits []float64, classes int, labels []int) (StructuredScaling, error) {
	return fitStructured(logits, classes, labels, true)
}

func fitStructured(logits []float64, classes int, labels []int, matrix bool) (StructuredScaling, error) {
	s, err := newScored(logits, classes, labels)
	if err != nil {
		return StructuredScaling{}, err
	}
	n, k := float64(len(labels)), float64(classes)
	out := StructuredScaling{Fitted: s.fit(allRows(len(labels))), Uniform: 1 / (n + 1)}
	out.Temperature = out.Fitted.T
	q := &structuredProblem{n: len(labels), classes: classes, labels: labels, matrix: matrix, diagonal: k / n, off: k * (k - 1) / n}
	q.logs = MixedLogs(nil, logits, classes, out.Temperature, out.Uniform)
	q.scores, q.losses = make([]float64, len(logits)), make([]float64, len(labels))
	x, converged, err := q.scaledBy().minimise()
	if err != nil {
		return StructuredScaling{}, err
	}
	out.Converged, out.NLL = converged, q.nll(x)
	weights := q.weights()
	if out.Bias = x[weights:]; matrix {
		out.Matrix = x[:weights]
	} else {
		out.Scale = x[:weights]
	}
	out.Absent = absent(labels, classes)
	return out, nil
}

// Logits stores Scale∘log q + Bias, or Matrix·log q + Bias, in dst for each row of logits. dst has the length of logits and may be
// the same slice.
func (s StructuredScaling) Logits(dst, logits []float64) []float64 {
	classes := len(s.Bias)
	if classes == 0 || len(logits)%classes != 0 || len(s.Scale) != classes && len(s.Matrix) != classes*classes {
		panic(badVector)
	}
	dst = MixedLogs(dst, logits, classes, s.Temperature, s.Uniform)
	if s.Matrix == nil {
		return VectorScaling{Scale: s.Scale, Bias: s.Bias}.Logits(dst, dst)
	}
	return MatrixLogits(dst, dst, s.Matrix, s.Bias)
}

// MatrixLogits stores matrix·z + bias in dst for each row z of logits. The matrix is classes×classes; its row c gives class c. dst has
// the length of logits and may be the same slice.
func MatrixLogits(dst, logits, matrix, bias []float64) []float64 {
	classes := len(bias)
	if classes == 0 || len(logits)%classes != 0 || len(matrix) != classes*classes {
		panic(badVector)
	}
	dst = destination(dst, len(logits))
	row := make([]float64, classes)
	for i := 0; i < len(dst); i += classes {
		copy(row, logits[i:])
		for c := range classes {
			sum := 0.0
			for j, w := range matrix[c*classes:][:classes] {
				sum += w * row[j]
			}
			dst[i+c] = sum + bias[c]
		}
	}
	return dst
}

// Apply stores the softmax of Logits in dst, with its rules.
func (s StructuredScaling) Apply(dst, logits []float64) []float64 {
	dst = s.Logits(dst, logits)
	return Softmax(dst, dst, len(s.Bias), 1)
}

// Undetermined returns the reason why the rows do not determine the numbers, or "". The reasons are those of
// [Temperature.Undetermined], classes without a label, and a fit that did not converge.
func (s StructuredScaling) Undetermined() string {
	switch why := s.Fitted.Undetermined(); {
	case why != "":
		return why
	case len(s.Absent) > 0:
		return VectorScaling{Scale: s.Bias, Absent: s.Absent, Converged: true}.Undetermined(s.Fitted.Rows)
	case !s.Converged:
		return "the fit ended before it converged"
	}
	return ""
}

// MixedLogs stores log((1 − u)·softmax(z/T) + u/classes) in dst for each row z of logits. dst has the length of logits and may be the
// same slice.
func MixedLogs(dst, logits []float64, classes int, t, u float64) []float64 {
	dst = Softmax(dst, logits, classes, t)
	for i, p := range dst {
		dst[i] = math.Log((1-u)*p + u/float64(classes))
	}
	return dst
}

// structuredProblem is the minimisation over x = (scales or matrix, biases).
type structuredProblem struct {
	n, classes    int
	labels        []int
	matrix        bool
	diagonal, off float64 // penalties
	logs          []float64
	scores        []float64 // of the last call of nll; then their probabilities
	losses        []float64
	at            []float64 // the x of scores, or nil
	// unit holds the step of each x in which the objective has about the curvature 1 at its start, so that fewer steps reach the minimum.
	unit []float64
}

// scaledBy sets the units, from the diagonal of the Hessian for independent probabilities and logs.
func (q *structuredProblem) scaledBy() *structuredProblem {
	k, w, x := q.classes, q.weights(), q.start()
	q.nll(x)
	spread, square := make([]float64, k), make([]float64, k)
	for i, p := range q.scores {
		spread[i%k] += p * (1 - p) / float64(q.n)
		square[i%k] += q.logs[i] * q.logs[i] / float64(q.n)
	}
	q.unit = x
	for c := range k {
		for j := range k {
			if q.matrix {
				q.unit[c*k+j] = 1 / math.Sqrt(2*q.off+spread[c]*square[j])
			}
		}
		q.unit[q.diagonalAt(c)] = 1 / math.Sqrt(2*q.diagonal+spread[c]*square[c])
		q.unit[w+c] = 1 / math.Sqrt(2*q.diagonal+spread[c])
	}
	return q
}

func (q *structuredProblem) weights() int {
	if q.matrix {
		return q.classes * q.classes
	}
	return q.classes
}

// start returns the x that changes nothing.
func (q *structuredProblem) start() []float64 {
	x := make([]float64, q.weights()+q.classes)
	for c := range q.classes {
		x[q.diagonalAt(c)] = 1
	}
	return x
}

func (q *structuredProblem) diagonalAt(c int) int {
	if q.matrix {
		return c * (q.classes + 1)
	}
	return c
}

func general(rows, cols int, data []float64) blas64.General {
	return blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: data}
}

// nll returns the mean NLL at x, and leaves the probabilities in scores.
func (q *structuredProblem) nll(x []float64) float64 {
	k, w := q.classes, q.weights()
	if q.matrix {
		blas64.Gemm(blas.NoTrans, blas.Trans, 1, general(q.n, k, q.logs), general(k, k, x[:w]), 0, general(q.n, k, q.scores))
	}
	scored{classes: k}.parallel(q.n, func(i int) {
		z, logs := q.scores[i*k:][:k], q.logs[i*k:][:k]
		peak := math.Inf(-1)
		for c := range z {
			if !q.matrix {
				z[c] = x[c] * logs[c]
			}
			z[c] += x[w+c]
			peak = max(peak, z[c])
		}
		wanted, sum := z[q.labels[i]]-peak, 0.0
		for c, v := range z {
			z[c] = math.Exp(v - peak)
			sum += z[c]
		}
		for c := range z {
			z[c] /= sum
		}
		q.losses[i] = math.Log(sum) - wanted
	})
	total := 0.0
	for _, l := range q.losses {
		total += l
	}
	q.at = append(q.at[:0], x...)
	return total / float64(q.n)
}

func (q *structuredProblem) value(x []float64) float64 {
	nll, squares := q.nll(x), 0.0
	for _, b := range x[q.weights():] {
		squares += b * b
	}
	all := 0.0
	for c := range q.classes {
		d := x[q.diagonalAt(c)] - 1
		squares += d * d
		all += x[q.diagonalAt(c)] * x[q.diagonalAt(c)]
	}
	if !q.matrix {
		return nll + q.diagonal*squares
	}
	sum := 0.0
	for _, v := range x[:q.weights()] {
		sum += v * v
	}
	return nll + q.diagonal*squares + q.off*max(0, sum-all)
}

// gradient stores the gradient at x in dst. With e = p − 1[label], it is the mean of e·log q for a weight, and of e for a bias.
func (q *structuredProblem) gradient(dst, x []float64) {
	if !equal(q.at, x) {
		q.nll(x)
	}
	k, w, n := q.classes, q.weights(), float64(q.n)
	q.at = q.at[:0] // scores change below
	for i := range dst {
		dst[i] = 0
	}
	for i, label := range q.labels {
		e, logs := q.scores[i*k:][:k], q.logs[i*k:][:k]
		e[label]--
		for c, v := range e {
			if dst[w+c] += v; !q.matrix {
				dst[c] += v * logs[c]
			}
		}
	}
	if q.matrix {
		blas64.Gemm(blas.Trans, blas.NoTrans, 1, general(q.n, k, q.scores), general(q.n, k, q.logs), 0, general(k, k, dst[:w]))
	}
	for i, v := range x {
		of := q.diagonal
		if q.matrix && i < w {
			of = q.off
		}
		dst[i] = dst[i]/n + 2*of*v
	}
	for c := range k {
		i := q.diagonalAt(c)
		if q.matrix {
			dst[i] += 2 * (q.diagonal - q.off) * x[i]
		}
		dst[i] -= 2 * q.diagonal
	}
}

func equal(a, b []float64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// enoughSteps bounds the steps of L-BFGS. Most fits take 20 to 60.
const enoughSteps = 500

func (q *structuredProblem) minimise() (x []float64, converged bool, err error) {
	settings := &optimize.Settings{GradientThreshold: 1e-6, MajorIterations: enoughSteps,
		Converger: &optimize.FunctionConverge{Absolute: 1e-10, Iterations: 5}}
	at := make([]float64, len(q.unit)) // in the units of the problem
	value := func(u []float64) float64 { return q.value(floats.MulTo(at, u, q.unit)) }
	gradient := func(dst, u []float64) {
		q.gradient(dst, floats.MulTo(at, u, q.unit))
		floats.Mul(dst, q.unit)
	}
	begin := q.start()
	floats.Div(begin, q.unit)
	r, err := optimize.Minimize(optimize.Problem{Func: value, Grad: gradient}, begin, settings, &optimize.LBFGS{})
	switch {
	case r == nil:
		return nil, false, err
	case errors.Is(err, optimize.ErrLinesearcherFailure), errors.Is(err, optimize.ErrNoProgress): // the step is lost in rounding
		return floats.MulTo(at, r.X, q.unit), true, nil
	case err != nil:
		return nil, false, err
	}
	return floats.MulTo(at, r.X, q.unit), r.Status != optimize.IterationLimit, nil
}

func absent(labels []int, classes int) (none []int) {
	seen := make([]bool, classes)
	for _, c := range labels {
		seen[c] = true
	}
	for c, ok := range seen {
		if !ok {
			none = append(none, c)
		}
	}
	return none
}
