package infer

import (
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio"
)

// ranges holds the ranges of functions for any input.
var ranges = map[string]span{
	"Softmax": unit, "Sigmoid": unit, "HardSigmoid": unit, "Hardmax": unit,
	"Equal": unit, "Greater": unit, "GreaterOrEqual": unit, "Less": unit, "LessOrEqual": unit, "Not": unit, "And": unit, "Or": unit,
	"LogSoftmax": {math.Inf(-1), 0}, "Softplus": {0, math.Inf(1)},
	"Tanh": {-1, 1}, "Erf": {-1, 1}, "Softsign": {-1, 1}, "Sin": {-1, 1}, "Cos": {-1, 1},
	"ReduceL1": {0, math.Inf(1)}, "ReduceL2": {0, math.Inf(1)}, "ReduceSumSquare": {0, math.Inf(1)}, "LpNormalization": {-1, 1},
}

// growing holds monotonic functions. They map the ends of a range to the ends of the result.
var growing = map[string]func(float64) float64{
	"Exp": math.Exp, "Floor": math.Floor, "Ceil": math.Ceil, "Round": math.RoundToEven,
	"Relu": func(x float64) float64 { return max(x, 0) },
	"Log":  func(x float64) float64 { return math.Log(max(x, 0)) },
	"Sqrt": func(x float64) float64 { return math.Sqrt(max(x, 0)) },
}

// keeping lists operators whose results are among the values of their first input, or averages of them.
var keeping = []string{"Transpose", "Slice", "Gather", "GatherElements", "Expand", "Tile", "Dropout", "MaxPool", "GlobalMaxPool",
	"GlobalAveragePool",
	"ReduceMean", "ReduceMax", "ReduceMin", "Split"}

// pairs lists operators on two values.
var pairs = []string{"Add", "Sub", "Mul", "Div", "Pow"}

// node returns the range of a node's output.
func (e *outputAnalysis) node(p onnxio.Place) span {
	n := p.Node
	if s, ok := ranges[n.OpType]; ok {
		return s
	}
	if f, ok := growing[n.OpType]; ok {
		return e.in(p, 0).by(f)
	}
	if slices.Contains(passing, n.OpType) || slices.Contains(keeping, n.OpType) {
		return e.in(p, 0)
	}
	if len(n.Inputs) < 2 && slices.Contains(pairs, n.OpType) { // a graph from elsewhere
		return anything
	}
	switch n.OpType {
	case "AveragePool", "Pad": // zeros may be around
		return e.in(p, 0).union(span{0, 0})
	case "ReduceSum":
		x := e.in(p, 0)
		if x.low >= 0 {
			return span{0, math.Inf(1)}
		}
		if x.high <= 0 {
			return span{math.Inf(-1), 0}
		}
	case "Elu":
		a := n.Float("alpha", 1)
		return e.in(p, 0).by(func(x float64) float64 { return max(x, 0) + a*math.Expm1(min(x, 0)) })
	case "Neg":
		return e.in(p, 0).mul(span{-1, -1})
	case "Abs":
		x := e.in(p, 0)
		return span{0, max(-x.low, x.high)}
	case "Reciprocal":
		return e.in(p, 0).inverse()
	case "Add":
		return e.in(p, 0).add(e.in(p, 1))
	case "Sub":
		return e.difference(p)
	case "Mul":
		if n.Inputs[0] == n.Inputs[1] {
			x := e.in(p, 0)
			return span{0, max(x.low*x.low, x.high*x.high)}
		}
		return e.in(p, 0).mul(e.in(p, 1))
	case "Div":
		return e.quotient(p)
	case "Pow":
		return e.power(p)
	case "Clip":
		return e.clip(p)
	case "Min", "Max", "Concat", "Mean", "Where":
		return e.several(p)
	}
	return anything
}

// several returns the range of an operator that chooses among its inputs, or averages them.
func (e *outputAnalysis) several(p onnxio.Place) span {
	first := 0
	if p.Node.OpType == "Where" {
		first = 1 // behind the condition
	}
	s := e.in(p, first)
	// PyTorch's softplus is x where x is above a threshold.
	if q, ok := e.nodes[p.Node.Inputs[0]]; first == 1 && ok && q.Node.OpType == "Greater" && len(q.Node.Inputs) == 2 &&
		q.Node.Inputs[0] == p.Node.Inputs[1] {
		s.low = max(s.low, e.in(q, 1).low)
	}
	for k := first + 1; k < len(p.Node.Inputs); k++ {
		switch x := e.in(p, k); p.Node.OpType {
		case "Min":
			s = span{min(s.low, x.low), min(s.high, x.high)}
		case "Max":
			s = span{max(s.low, x.low), max(s.high, x.high)}
		default:
			s = s.union(x)
		}
	}
	return s
}

// clip returns the range of a Clip. Its bounds are inputs, or attributes in old graphs.
func (e *outputAnalysis) clip(p onnxio.Place) span {
	x := e.in(p, 0)
	low, high := span{p.Node.Float("min", math.Inf(-1)), 0}, span{0, p.Node.Float("max", math.Inf(1))}
	if len(p.Node.Inputs) > 1 && p.Node.Inputs[1] != "" {
		low = e.in(p, 1)
	}
	if len(p.Node.Inputs) > 2 && p.Node.Inputs[2] != "" {
		high = e.in(p, 2)
	}
	return span{min(max(x.low, low.low), high.high), max(min(x.high, high.high), low.low)}
}

// power returns the range of a power with a known exponent.
func (e *outputAnalysis) power(p onnxio.Place) span {
	x, to := e.in(p, 0), e.in(p, 1)
	switch {
	case to.low != to.high && x.low >= 0, to.low == to.high && math.Mod(to.low, 2) == 0:
		return span{0, math.Inf(1)}
	case to.low == to.high && to.low > 0 && x.low >= 0:
		return sound(math.Pow(x.low, to.low), math.Pow(x.high, to.low))
	}
	return anything
}

// difference returns the range of a subtraction. It recognizes x − max x and x − log Σ exp x, which are never above 0.
func (e *outputAnalysis) difference(p onnxio.Place) span {
	a, b := e.in(p, 0), e.in(p, 1)
	s := a.add(b.mul(span{-1, -1}))
	if q, ok := e.source(p.Node.Inputs[1]); ok && s.high > 0 && len(q.Node.Inputs) > 0 {
		if (q.Node.OpType == "ReduceMax" || q.Node.OpType == "ReduceLogSumExp") && q.Node.Inputs[0] == p.Node.Inputs[0] {
			s.high = 0
		}
	}
	return s
}

// quotient returns the range of a division. It recognizes a/(a + b) and a/Σa for a, b ≥ 0, which lie in [0, 1], and
// x/‖x‖.
func (e *outputAnalysis) quotient(p onnxio.Place) span {
	a, b := e.in(p, 0), e.in(p, 1)
	numerator := p.Node.Inputs[0]
	q, ok := e.source(p.Node.Inputs[1])
	if !ok {
		return a.mul(b.inverse())
	}
	switch {
	case len(q.Node.Inputs) == 0:
	case q.Node.OpType == "Add" && len(q.Node.Inputs) == 2 && a.low >= 0:
		for k := range 2 {
			if q.Node.Inputs[k] == numerator && e.in(q, 1-k).low >= 0 {
				return unit
			}
		}
	case q.Node.OpType == "ReduceSum" && q.Node.Inputs[0] == numerator && a.low >= 0:
		return unit
	case (q.Node.OpType == "ReduceL2" || q.Node.OpType == "ReduceL1") && q.Node.Inputs[0] == numerator:
		return span{max(-1, min(0, a.low)), 1}
	}
	return a.mul(b.inverse())
}
