package onnxio

import (
	"encoding/binary"
	"math"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
)

// Names of the inputs of [AddUp.Model]. Its outputs are the sums, under the names with "_sum".
const (
	SumScores, SumWeight                = "scores", "weight"
	SumOutcome, SumEntropy, SumEvidence = "outcome", "entropy", "evidence"
)

// How outcomes follow from the C scores of a position.
const (
	AddSoftmax = "softmax" // C probabilities
	AddLabels  = "labels"  // the probabilities of C labels by sigmoids, then their complements, then their entropies
	AddPair    = "pair"    // the probabilities 1 − p and p by the sigmoid of one score
	AddMoments = "moments" // the mean, its square and the variance of each target
)

// An AddUp makes the model that adds one member's outcomes to sums over members, in float64. A score that is not finite
// gives sums that are not finite.
type AddUp struct {
	How   string
	Count int  // C, the scores of a position
	First bool // axis 1 of the scores has them, else the last axis
	Rank  int  // of the scores
	// Head turns the second half of the scores of [AddMoments] into variances. It is a name of package calibrate/regression.
	// Without it, Variances are those of all targets.
	Head      string
	Variances []float64
}

// HasEvidence reports whether the model also sums log Σ exp z and max z.
func (a AddUp) HasEvidence() bool { return a.How == AddSoftmax }

// adder collects the nodes of a model.
type adder struct{ nodes, values, constants []byte }

func (d *adder) op(op, output string, inputs []string, attributes ...[]byte) string {
	d.nodes = append(d.nodes, wire.Node(op, output+"_node", inputs, []string{output}, attributes...)...)
	return output
}

func (d *adder) ints(name string, list ...int64) string {
	var raw []byte
	for _, v := range list {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
	}
	d.constants = append(d.constants, wire.Initializer(name, Int64, []int64{int64(len(list))}, raw)...)
	return name
}

func (d *adder) numbers(name string, list ...float64) string {
	var raw []byte
	for _, v := range list {
		raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(v))
	}
	d.constants = append(d.constants, wire.Initializer(name, Double, []int64{int64(len(list))}, raw)...)
	return name
}

// over adds up the last axis of a value of rank 3.
func (d *adder) over(output, input string) string {
	return d.op("ReduceSum", output, []string{input, "last"}, wire.Int("keepdims", 0))
}

// Model returns the model. For N examples with P positions its inputs are the scores in float32, the member's weight w [1],
// and the sums so far: Σ w·outcome [N, P, …], Σ w·entropy [N, P] and, for softmax, Σ w·(log Σ exp z, max z) [N, P, 2].
func (a AddUp) Model() []byte {
	d := &adder{}
	d.ints("last", 2)
	d.numbers("one", 1)
	d.numbers("zero", 0)
	rows := SumScores
	if a.First && a.Rank > 2 {
		rows = d.op("Reshape", "flat", []string{rows, d.ints("flat_shape", 0, int64(a.Count), -1)})
		rows = d.op("Transpose", "rows", []string{rows}, wire.Ints("perm", []int64{0, 2, 1}))
	} else {
		rows = d.op("Reshape", "rows", []string{rows, d.ints("rows_shape", 0, -1, int64(a.Count))})
	}
	d.op("Cast", "z", []string{rows}, wire.Int("to", int64(Double)))
	sums := [][2]string{{SumOutcome}, {SumEntropy}}
	switch a.How {
	case AddSoftmax:
		sums[0][1], sums[1][1] = d.softmax()
		sums = append(sums, [2]string{SumEvidence, "both"})
	case AddMoments:
		sums[0][1], sums[1][1] = d.moments(a)
	default:
		sums[0][1], sums[1][1] = d.sigmoid(a.How == AddPair)
	}
	value := func(num wire.Number, name string, elem ElemType, rank int) {
		shape := make([]int64, rank)
		for i := range shape {
			shape[i] = -1
		}
		d.values = append(d.values, wire.AppendBytes(nil, num, wire.Value(name, elem, shape, make([]string, rank)))...)
	}
	value(wire.GraphInput, SumScores, Float, a.Rank)
	value(wire.GraphInput, SumWeight, Double, 1)
	for _, sum := range sums {
		name, rank := sum[0], 3
		if name == SumEntropy {
			rank = 2
		}
		d.op("Add", name+"_sum", []string{name, d.op("Mul", name+"_weighted", []string{sum[1], SumWeight})})
		value(wire.GraphInput, name, Double, rank)
		value(wire.GraphOutput, name+"_sum", Double, rank)
	}
	graph := append(d.nodes, wire.AppendString(nil, wire.GraphName, "sums")...)
	return small(append(append(graph, d.constants...), d.values...), 17)
}

// softmax gives p [N, P, C] and H(p) [N, P], and "both" [N, P, 2].
func (d *adder) softmax() (outcome, entropy string) {
	d.op("ReduceMax", "max", []string{"z"}, wire.Ints("axes", []int64{2}), wire.Int("keepdims", 1))
	d.op("Sub", "below", []string{"z", "max"})
	d.op("Exp", "odds", []string{"below"})
	d.op("ReduceSum", "total", []string{"odds", "last"}, wire.Int("keepdims", 1))
	d.op("Div", "p", []string{"odds", "total"})
	d.op("Log", "log_total", []string{"total"})
	d.op("Mul", "products", []string{"p", "below"})
	d.op("Squeeze", "log_flat", []string{"log_total", "last"})
	d.op("Sub", "h", []string{"log_flat", d.over("mean_below", "products")})
	d.op("Add", "log_sum", []string{"max", "log_total"})
	d.op("Concat", "both", []string{"log_sum", "max"}, wire.Int("axis", 2))
	return "p", "h"
}

// sigmoid gives the probabilities of labels, or those of a pair of classes, from e^−|z|.
func (d *adder) sigmoid(pair bool) (outcome, entropy string) {
	d.op("Abs", "size", []string{"z"})
	d.op("Exp", "odds", []string{d.op("Neg", "minus", []string{"size"})})
	d.op("Add", "total", []string{"odds", "one"})
	d.op("Div", "less", []string{"odds", "total"})
	d.op("Div", "more", []string{"one", "total"})
	d.op("Greater", "positive", []string{"z", "zero"})
	d.op("Where", "p", []string{"positive", "more", "less"})
	d.op("Where", "q", []string{"positive", "less", "more"})
	d.op("Log", "log_total", []string{"total"})
	d.op("Add", "h", []string{"log_total", d.op("Mul", "lost", []string{"size", "less"})})
	all := []string{"p", "q", "h"}
	if pair {
		all = []string{"q", "p"}
	}
	return d.op("Concat", "all", all, wire.Int("axis", 2)), d.over("h_sum", "h")
}

// moments gives the mean, its square and the variance of each target, and the entropy of Gaussians.
func (d *adder) moments(a AddUp) (outcome, entropy string) {
	targets := int64(a.Count)
	mean, variance := "z", ""
	if a.Head == "" {
		known, total := make([]float64, a.Count), 0.0
		for k := range known {
			if known[k] = a.Variances[k]; known[k] > 0 {
				total += (1 + math.Log(2*math.Pi*known[k])) / 2
			}
		}
		d.op("Sub", "nothing", []string{"z", "z"})
		variance = d.op("Add", "variance", []string{"nothing", d.numbers("variances", known...)})
		entropy = d.op("Add", "h", []string{d.over("no_entropy", "nothing"), d.numbers("entropy_of_all", total)})
	} else {
		targets /= 2
		half := func(name string, from, to int64) string {
			return d.op("Slice", name, []string{"z", d.ints(name+"_from", from), d.ints(name+"_to", to), "last"})
		}
		mean, variance = half("mean", 0, targets), d.head(a.Head, half("second", targets, 2*targets))
		d.op("Log", "log_variance", []string{d.op("Mul", "turned", []string{variance, d.numbers("two_pi", 2*math.Pi)})})
		d.op("Mul", "h_each", []string{d.op("Add", "h_twice", []string{"log_variance", "one"}), d.numbers("half", 0.5)})
		entropy = d.over("h", "h_each")
	}
	square := d.op("Mul", "square", []string{mean, mean})
	behind, parts := d.ints("behind", 3), []string(nil)
	for _, part := range []string{mean, square, variance} {
		parts = append(parts, d.op("Unsqueeze", part+"_each", []string{part, behind}))
	}
	d.op("Concat", "moments", parts, wire.Int("axis", 3))
	return d.op("Reshape", "all", []string{"moments", d.ints("all_shape", 0, 0, -1)}), entropy
}

// head gives variances. log(1 + e) loses the digits of a small e, which e·log(u)/(u − 1) with u = 1 + e does not.
func (d *adder) head(head, x string) string {
	switch head {
	case "log-variance":
		return d.op("Exp", "variance", []string{x})
	case "log-std":
		return d.op("Exp", "variance", []string{d.op("Add", "log_twice", []string{x, x})})
	case "std": // a negative one gives NaN
		return d.op("Mul", "variance", []string{x, d.op("Abs", "size", []string{x})})
	case "softplus", "softplus-std":
		d.op("Abs", "size", []string{x})
		d.op("Exp", "e", []string{d.op("Neg", "minus", []string{"size"})})
		d.op("Add", "u", []string{"e", "one"})
		d.op("Sub", "gained", []string{"u", "one"})
		d.op("Mul", "product", []string{"e", d.op("Log", "log_u", []string{"u"})})
		d.op("Div", "exact", []string{"product", "gained"})
		d.op("Where", "log1p", []string{d.op("Equal", "tiny", []string{"gained", "zero"}), "e", "exact"})
		d.op("Mul", "above", []string{d.op("Add", "twice", []string{x, "size"}), d.numbers("a_half", 0.5)})
		plus := d.op("Add", "softplus", []string{"above", "log1p"})
		if head == "softplus-std" {
			return d.op("Mul", "variance", []string{plus, plus})
		}
		return plus
	}
	return x
}
