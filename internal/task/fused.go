package task

import "slices"

// Fusable is a task whose averaging can be expressed as ONNX operators. They do the work of [Task.Outcome], the average
// and [Task.Values], in float32.
type Fusable interface {
	Task
	// Say adds the outcome of a member. scores is a value [batch, Count] of the graph.
	Say(g Graph, scores string) MemberOutcome
	// Fuse adds the joint prediction of the members, whose networks may have different activations. weights are the
	// weights of the members, and add up to 1. by calibrates the average. It may be nil.
	Fuse(g Graph, outcomes []MemberOutcome, weights []float64, by *Calibration) []Output
}

// MemberOutcome is the outcome of one member, as values of a graph.
type MemberOutcome struct {
	Outcome string // [batch, Width], or its first numbers
	Logits  string // Outcome is their softmax; "" if the network gives the outcome itself
	// Complement is 1 − Outcome. It has digits that the difference would lose. It may be "".
	Complement string
	// Variance is the predicted variance of the target around Outcome, or "" if the network gives none.
	Variance string
}

// Output is an output of the fused model: a value [batch, Width] of its graph.
type Output struct {
	Name, Value string
	Width       int
}

// Visible adds finite to the outputs. It is 0, or NaN for an example with an input that is not finite. "" stands for 0.
func Visible(g Graph, outputs []Output, finite string) []Output {
	for i := range outputs {
		if finite != "" {
			outputs[i].Value = g.Op("Add", outputs[i].Value, finite)
		}
	}
	return outputs
}

// Graph adds ONNX operators to a graph. Values are given by their names. Each method returns the name of the new value.
type Graph interface {
	Op(op string, inputs ...string) string
	// Rowwise adds an operator with the attribute axis 1.
	Rowwise(op string, inputs ...string) string
	// Sum adds the sum over dimension 1, [batch, n] → [batch, 1].
	Sum(x string) string
	// AtLeast and AtMost add the larger and the smaller one of x and a bound.
	AtLeast(x string, bound float32) string
	AtMost(x string, bound float32) string
	// Floats and Integral convert to float32 and to int64. True is 1.
	Floats(x string) string
	Integral(x string) string
	Constant(values []float32, shape ...int64) string
	// Integers adds a list of int64.
	Integers(values ...int64) string
	// Dense reports whether an example has several rows, such as pixels.
	Dense() bool
}

// Other programs convert models to float16. They clip numbers to 10⁻⁷ … 10⁴, so the constants of the operators lie between.
const (
	// leastRatio bounds a quotient of probabilities before its logarithm. p·log q changes by less than 4·10⁻⁸ of the divisor.
	leastRatio = 1e-7
	// logZero stands for log 0 where a calibration needs a finite number. It is that of the smallest normal float32.
	logZero = -87.3
	// leastLog replaces a log-probability of −∞.
	leastLog = -1e4
)

// fusing adds the operators that all tasks need to fuse members.
type fusing struct {
	Graph
	weights []float64
}

// equal reports whether all members have the same weight.
func (j fusing) equal() bool { return slices.Max(j.weights) == slices.Min(j.weights) }

// average adds Σ w·x over the members. It adds values in a tree, so the rounding error grows only with the logarithm of
// their number.
func (j fusing) average(values []string) string {
	terms, equal := slices.Clone(values), j.equal()
	switch {
	case len(terms) == 1:
		return terms[0]
	case !equal:
		for k, w := range j.weights {
			terms[k] = j.scale(terms[k], float32(w))
		}
	}
	for len(terms) > 1 {
		var sums []string
		for i := 0; i < len(terms); i += 2 {
			if i+1 < len(terms) {
				sums = append(sums, j.Op("Add", terms[i], terms[i+1]))
			} else {
				sums = append(sums, terms[i])
			}
		}
		terms = sums
	}
	if equal {
		return j.Op("Div", terms[0], j.number(float32(len(values))))
	}
	return terms[0]
}

func (j fusing) number(v float32) string { return j.Constant([]float32{v}, 1, 1) }

// row adds a number for each class, label or target.
func (j fusing) row(values []float64) string {
	return j.Constant(float32s(values), 1, int64(len(values)))
}

func (j fusing) scale(x string, by float32) string { return j.Op("Mul", x, j.number(by)) }

// missing adds 1 where a probability is 0, and 0 where it is above. An average may round to a little more than 1, and rten takes 1 as the
// sign of 0.
func (j fusing) missing(x string) string {
	return j.Op("Relu", j.Op("Sub", j.number(1), j.Op("Ceil", x)))
}

// logOf adds log x, or 0 if x is 0. So 0·log 0 is 0.
func (j fusing) logOf(x string) string { return j.Op("Log", j.Op("Add", x, j.missing(x))) }

// finiteLog adds log x, or [logZero] if x is 0.
func (j fusing) finiteLog(x string) string {
	return j.Op("Add", j.logOf(x), j.scale(j.missing(x), logZero))
}

// entropy adds −Σ p·log p, in nats. It computes log(1/c) − Σ p·log(p/c) with c = Σ p². Both logarithms are small and lose no
// digits, where one class is nearly sure (c ≈ 1) and where all are equally probable (c = p). In float32 Σ p is not exactly 1, so
// entropy divides by it.
func (j fusing) entropy(p string) string {
	total := j.Sum(p)
	c := j.Op("Div", j.Sum(j.Op("Mul", p, p)), total)
	mean := j.Op("Div", j.Sum(j.Op("Mul", p, j.logOf(j.Op("Div", p, c)))), total)
	return j.Op("Sub", j.Op("Log", j.Op("Div", total, c)), mean)
}

// mostBeside is the largest number of values of an example, by all members, that stand side by side.
const mostBeside = 1 << 15

// beside adds the values [batch, width] of all members as one, [batch, members·width], and as many copies of their average. A small
// network takes little longer than some operators for each member. ncnn takes a third axis for the batch, so there are two. It returns ""
// for many values, such as those of pixels, which would take more memory than the network.
func (j fusing) beside(members []string, average string, width int) (all, copies string) {
	if n := len(members); n < 2 || n*width > mostBeside || j.Dense() {
		return "", ""
	}
	return j.Rowwise("Concat", members...), j.Rowwise("Concat", slices.Repeat([]string{average}, len(members))...)
}

// total adds Σ w·x over the members and their values side by side, [batch, 1]. ncnn sums no product with a row.
func (j fusing) total(x string, width int) string {
	if j.equal() {
		return j.Op("Div", j.Sum(x), j.number(float32(len(j.weights))))
	}
	var weights []float64
	for _, w := range j.weights {
		weights = append(weights, slices.Repeat([]float64{w}, width)...)
	}
	return j.Sum(j.Op("Mul", x, j.row(weights)))
}

// divergences adds the mutual information Σ w·KL(p_s ‖ p) over the members. It equals the entropy of the average p minus the average
// entropy. A difference of entropies would lose digits in float32. A quotient of nearly equal probabilities does not.
func (j fusing) divergences(members []string, p string, width int) string {
	p = j.Op("Add", p, j.missing(p)) // 0/1 instead of 0/0
	terms := func(q, p string) string {
		return j.Op("Mul", q, j.Op("Log", j.AtLeast(j.Op("Div", q, p), leastRatio)))
	}
	if all, copies := j.beside(members, p, width); all != "" {
		return j.total(terms(all, copies), width)
	}
	divergences := make([]string, len(members))
	for k, q := range members {
		divergences[k] = j.Sum(terms(q, p))
	}
	return j.average(divergences)
}

// logAverage adds log Σ w·exp(l) over the members' logarithms. It also works if all probabilities are too small for
// float32. A temperature may raise such probabilities.
func (j fusing) logAverage(logs []string) string {
	if len(logs) == 1 {
		return logs[0]
	}
	peak := j.Op("Max", logs...)
	parts := make([]string, len(logs))
	for k, l := range logs {
		parts[k] = j.Op("Exp", j.Op("Sub", l, peak))
	}
	return j.Op("Add", peak, j.Op("Log", j.average(parts)))
}

func float32s(values []float64) []float32 {
	out := make([]float32, len(values))
	for i, v := range values {
		out[i] = float32(v)
	}
	return out
}
