package infer

import (
	"math"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// passing lists the operators that do not change values.
var passing = []string{"Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"}

// activation returns the activation function that computes a value, or "".
func activation(m *onnxio.Model, value string) string {
	for range m.Graph.Nodes { // a graph from elsewhere may have cycles
		n := m.Graph.Producer(value)
		switch {
		case n == nil:
			return ""
		case n.OpType == "Softmax", n.OpType == "LogSoftmax", n.OpType == "Sigmoid":
			return strings.ToLower(n.OpType)
		case slices.Contains(passing, n.OpType) && len(n.Inputs) > 0:
			value = n.Inputs[0]
		default:
			return ""
		}
	}
	return ""
}

// OutputProperties holds the properties of the scores that a graph proves without a run.
type OutputProperties struct {
	Low, High float64 // no score lies outside of these; they may be infinite
	// Affine says that a layer with stored weights computes the scores, from inputs without bounds. Such scores are
	// logits, unless other evidence contradicts that.
	Affine bool
	// Half says that the network computes in a 16-bit type somewhere.
	Half bool
	// Op is the operator that computes the scores. Operators that reshape, clip, scale or shift by a constant are
	// skipped.
	Op string
}

// OutputProperties analyses the end of the network's graph. It does not use the values of weights, because they differ between
// members.
func (n *Network) OutputProperties() OutputProperties {
	e := newOutputAnalysis(n.skeleton, n.Posterior.Layout)
	return e.properties(n.Output())
}

func (e *outputAnalysis) properties(value string) OutputProperties {
	r := e.of(value)
	return OutputProperties{Low: r.low, High: r.high, Affine: e.affine(value, 0), Half: half(e.m), Op: e.operator(value)}
}

// Undecided reports whether only a run can show the form of the scores. Then nobody named the form, and the graph ends
// neither in an activation nor in a layer that gives logits.
func (n *Network) Undecided() bool { return undecided(n.Graph, n.OutputProperties()) }

func undecided(g *Graph, e OutputProperties) bool {
	return g.Form() == "" && g.Traits().Form && !g.Scoreless() && !e.Affine
}

// Judge finds whether only a run can show the form of the scores of a graph that no posterior has. l has the roles of its tensors.
func (g *Graph) Judge(m *onnxio.Model, l *weights.Layout) {
	g.openForm(undecided(g, newOutputAnalysis(m, l).properties(g.Output())))
}

// half reports whether a model has weights or a Cast of a 16-bit type.
func half(m *onnxio.Model) bool {
	short := func(t onnxio.ElemType) bool { return t == onnxio.Float16 || t == onnxio.BFloat16 }
	return slices.ContainsFunc(m.Tensors(), func(t *onnxio.Tensor) bool { return short(t.ElemType) }) ||
		slices.ContainsFunc(m.Graph.Nodes, func(n onnxio.Node) bool {
			return n.OpType == "Cast" && short(onnxio.ElemType(n.Int("to", 0)))
		})
}

// span is a range of values.
type span struct{ low, high float64 }

var (
	anything = span{math.Inf(-1), math.Inf(1)}
	unit     = span{0, 1}
)

func (s span) union(o span) span { return span{min(s.low, o.low), max(s.high, o.high)} }

func (s span) add(o span) span { return sound(s.low+o.low, s.high+o.high) }

// mul returns the range of products, where 0·∞ is 0.
func (s span) mul(o span) span {
	p := func(a, b float64) float64 {
		if a == 0 || b == 0 {
			return 0
		}
		return a * b
	}
	all := []float64{p(s.low, o.low), p(s.low, o.high), p(s.high, o.low), p(s.high, o.high)}
	return sound(slices.Min(all), slices.Max(all))
}

func (s span) inverse() span {
	if s.low < 0 && s.high > 0 {
		return anything
	}
	if s.low >= 0 {
		return sound(1/s.high, 1/s.low)
	}
	return sound(1/s.high, 1/s.low).union(span{math.Inf(-1), 0})
}

// by returns the range of a monotonic function.
func (s span) by(f func(float64) float64) span { return sound(f(s.low), f(s.high)) }

func (s span) within(o span) bool { return s.low >= o.low && s.high <= o.high }

// sound replaces NaN bounds by infinite ones.
func sound(low, high float64) span {
	if low != low {
		low = math.Inf(-1)
	}
	if high != high {
		high = math.Inf(1)
	}
	return span{low, high}
}

// outputAnalysis computes the ranges of a graph's values.
type outputAnalysis struct {
	m      *onnxio.Model
	layout *weights.Layout
	nodes  map[string]onnxio.Place // by their outputs
	known  map[string]span
	steps  int
}

// deepest is the largest number of nodes that are followed back from the end of a graph.
const deepest = 256

func newOutputAnalysis(m *onnxio.Model, l *weights.Layout) *outputAnalysis {
	e := &outputAnalysis{m: m, layout: l, nodes: make(map[string]onnxio.Place), known: make(map[string]span)}
	for _, p := range m.Places() {
		if p.Graph == m.Graph && p.Node.Domain == "" {
			for _, out := range p.Node.Outputs {
				e.nodes[out] = p
			}
		}
	}
	return e
}

func (e *outputAnalysis) of(value string) span {
	if s, ok := e.known[value]; ok {
		return s
	}
	e.known[value] = anything // if it hangs on itself
	p, ok := e.nodes[value]
	if e.steps++; !ok || e.steps > deepest {
		return anything
	}
	s := e.node(p)
	e.known[value] = s
	return s
}

// in returns the range of input k of a node. For a constant it is the range of the elements.
func (e *outputAnalysis) in(p onnxio.Place, k int) span {
	if k >= len(p.Node.Inputs) || p.Node.Inputs[k] == "" {
		return anything
	}
	if k < len(p.Tensors) && p.Tensors[k] != nil {
		return e.constant(p.Tensors[k])
	}
	return e.of(p.Node.Inputs[k])
}

// largestConstant is the largest number of elements of a constant whose range is computed.
const largestConstant = 1 << 16

func (e *outputAnalysis) constant(t *onnxio.Tensor) span {
	if l, ok := e.layout.Find(t.Name); ok && (l.Role == weights.Parameter || l.Role == weights.Statistic) {
		return anything
	}
	b, n := e.m.Elements(t), t.Len()
	if !t.IsFloat() || b == nil || n < 1 || n > largestConstant {
		return anything
	}
	values := make([]float32, n)
	t.ElemType.DType().Float32s(values, b)
	return sound(float64(slices.Min(values)), float64(slices.Max(values)))
}

// stored reports whether an input of a node is a tensor of the file, or its transpose.
func (e *outputAnalysis) stored(p onnxio.Place, k int) bool {
	if k >= len(p.Node.Inputs) {
		return false
	}
	if p.Tensors[k] != nil {
		return true
	}
	q, ok := e.nodes[p.Node.Inputs[k]]
	return ok && slices.Contains([]string{"Transpose", "Cast", "Reshape", "Identity"}, q.Node.OpType) && e.stored(q, 0)
}

// affine reports whether a layer with stored weights and unbounded inputs computes the value. The value may be scaled,
// averaged or reshaped afterwards.
func (e *outputAnalysis) affine(value string, depth int) bool {
	p, ok := e.nodes[value]
	if !ok || depth > deepest || len(p.Node.Inputs) == 0 {
		return false
	}
	next := func(k int) bool { return e.affine(p.Node.Inputs[k], depth+1) }
	switch op := p.Node.OpType; op {
	case "Gemm", "Conv", "ConvTranspose", "BatchNormalization", "LayerNormalization", "GroupNormalization":
		return e.stored(p, 1) && !e.in(p, 0).within(unit)
	case "MatMul":
		return e.stored(p, 1) && !e.in(p, 0).within(unit) || e.stored(p, 0) && !e.in(p, 1).within(unit)
	case "Add", "Sub", "Mul", "Div":
		if len(p.Node.Inputs) < 2 {
			return false
		}
		a, b := e.stored(p, 0), e.stored(p, 1)
		if op == "Add" || op == "Sub" {
			return (a || next(0)) && (b || next(1)) && !(a && b)
		}
		return a && next(1) || b && next(0)
	case "Transpose", "Slice", "Gather", "Dropout", "ReduceMean", "GlobalAveragePool", "AveragePool", "Clip":
		return next(0)
	}
	return slices.Contains(passing, p.Node.OpType) && next(0)
}

// source skips nodes that only reshape a value or guard it against 0, and returns the node before them.
func (e *outputAnalysis) source(value string) (onnxio.Place, bool) {
	p, ok := e.nodes[value]
	for i := 0; ok && i < deepest && len(p.Node.Inputs) > 0 &&
		(slices.Contains(passing, p.Node.OpType) || slices.Contains([]string{"Expand", "Clip", "Max", "Tile"}, p.Node.OpType)); i++ {
		p, ok = e.nodes[p.Node.Inputs[0]]
	}
	return p, ok
}
