package task

import "github.com/swagwrap/swagwrap/calibrate"

// Joined is a task whose members a model can average by itself: what [Task.Outcome], the
// average and [Task.Values] do, as operators of a graph in float32.
type Joined interface {
	Task
	// Say adds what a member says, whose scores are a value [batch, Count] of the graph.
	Say(g Graph, scores string) Said
	// Join adds what members say together, whose networks may end differently. weights are
	// theirs, and add up to 1; by changes their average, or is nil.
	Join(g Graph, said []Said, weights []float64, by *calibrate.Scaling) []Output
}

// Said is what one member says, as values of a graph.
type Said struct {
	Outcome string // [batch, Width], or the first numbers of it
	Logits  string // of which that is the softmax, or "" where it comes out of the network
	// Complement is 1 − Outcome with digits that the difference lacks, or "".
	Complement string
	// Variance is that of the truth about Outcome, of a network that tells it, or "".
	Variance string
}

// Output is what a model says of its members together: a value [batch, Width] of its graph.
type Output struct {
	Name, Value string
	Width       int
}

// Graph takes operators of ONNX, on values by their names. Each method returns the name of
// what it adds.
type Graph interface {
	Op(op string, inputs ...string) string
	// Rowwise adds an operator over dimension 1, which is its attribute axis.
	Rowwise(op string, inputs ...string) string
	// Sum adds the sum over dimension 1, [batch, n] → [batch, 1].
	Sum(x string) string
	Constant(values []float32, shape ...int64) string
	// Integers adds a list of int64.
	Integers(values ...int64) string
}

// tiny is about the least normal float32. Added to a probability it changes none but 0, of
// which the logarithm is then finite: 0·log 0 is to be 0.
const tiny = 1.2e-38

// joining has what tasks have in common.
type joining struct {
	Graph
	weights []float64
}

// average adds Σ w·x over the members. The sums are those of a tree: what float32 rounds
// off grows with the logarithm of their number.
func (j joining) average(values []string) string {
	terms := make([]string, len(values))
	equal := true
	for k, w := range j.weights {
		equal = equal && w == j.weights[0]
		terms[k] = values[k]
	}
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

func (j joining) number(v float32) string { return j.Constant([]float32{v}, 1, 1) }

func (j joining) scale(x string, by float32) string { return j.Op("Mul", x, j.number(by)) }

// logOf adds log x, of something that may be 0 where nothing hangs on it.
func (j joining) logOf(x string) string { return j.Op("Log", j.Op("Add", x, j.number(tiny))) }

// entropy adds −Σ p·log p of n classes, in nats, as log n − Σ p·log(n·p), in which logarithms
// near uniform probabilities are small and lose nothing. What float32 left of Σ p = 1 would
// shift it by log n times that, and is taken out.
func (j joining) entropy(p string, n int) string {
	total := j.Sum(p)
	mean := j.Op("Div", j.Sum(j.Op("Mul", p, j.logOf(j.scale(p, float32(n))))), total)
	return j.Op("Sub", j.Op("Log", j.scale(total, float32(n))), mean)
}

// mutualInformation adds Σ w·KL(p_s ‖ p) over members, which is the entropy of the average
// p less the average entropy. A difference of entropies would lose digits in float32; a
// quotient of probabilities that hardly differ does not.
func (j joining) mutualInformation(members []string, p string) string {
	return j.Op("Relu", j.divergences(members, p)) // where rounding leaves less than 0
}

// divergences adds Σ w·Σ p_s log(p_s/p).
func (j joining) divergences(members []string, p string) string {
	p = j.Op("Add", p, j.number(tiny))
	divergences := make([]string, len(members))
	for k, q := range members {
		divergences[k] = j.Sum(j.Op("Mul", q, j.logOf(j.Op("Div", q, p))))
	}
	return j.average(divergences)
}

// calibrated adds the softmax of log p / T, or of w∘log p + b. logs are finite, or −Inf where
// p is 0.
func (j joining) calibrated(logs string, by *calibrate.Scaling) string {
	if v := by.Vector; v != nil {
		n := int64(len(v.Scale))
		logs = j.Op("Mul", logs, j.Constant(float32s(v.Scale), 1, n))
		logs = j.Op("Add", logs, j.Constant(float32s(v.Bias), 1, n))
	} else {
		logs = j.Op("Div", logs, j.number(float32(by.Temperatures[0])))
	}
	return j.Rowwise("Softmax", logs)
}

// ruledOut adds what keeps classes of probability 0 there, whatever their scale: a factor
// that is 0 for them, and 1 for others.
func (j joining) ruledOut(p string) string { return j.Op("Div", p, j.Op("Add", p, j.number(tiny))) }

// logAverage adds log Σ w·exp(l) over the members' logarithms. It holds also where every
// probability is too small for float32, as a temperature may raise it.
func (j joining) logAverage(logs []string) string {
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
