package infer

import (
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/onnxio"
)

// Positive reports whether an operator of the graph keeps the scores at 0 or above. A layer whose output is only
// clipped does not count.
func (e OutputProperties) Positive() bool { return e.Low >= 0 && !e.Affine }

// Halves returns the properties that the graph proves of the first and of the second half of the scores. If the graph
// does not join two halves at its end, both are the properties of all scores.
func (n *Network) Halves() (first, second OutputProperties) {
	e := newOutputAnalysis(n.skeleton, n.Posterior.Layout)
	p, ok := e.halves(n.Output(), n.layout.Count == 2)
	if !ok {
		whole := e.properties(n.Output())
		return whole, whole
	}
	k := len(p.Node.Inputs)
	return e.joined(p.Node.Inputs[:k/2]), e.joined(p.Node.Inputs[k/2:])
}

// halves finds the Concat that joins an even number of values to the scores. The values must be consecutive. The last
// axis of values [batch, targets, 1] would alternate between them. So the axis must be 1, or the last one of values
// without a new axis. Two scores have one order only.
func (e *outputAnalysis) halves(value string, two bool) (onnxio.Place, bool) {
	p, ok := e.nodes[value]
	for i := 0; ok && i < deepest && len(p.Node.Inputs) > 0 && slices.Contains(passing, p.Node.OpType); i++ {
		p, ok = e.nodes[p.Node.Inputs[0]]
	}
	if !ok || p.Node.OpType != "Concat" || len(p.Node.Inputs)%2 != 0 {
		return p, false
	}
	axis := p.Node.Int("axis", 1)
	plain := axis == -1 && !slices.ContainsFunc(p.Node.Inputs, func(in string) bool {
		q, ok := e.nodes[in]
		return ok && (q.Node.OpType == "Unsqueeze" || q.Node.OpType == "Reshape")
	})
	return p, two || axis == 1 || plain
}

// Union returns the properties that hold for the scores of both.
func (e OutputProperties) Union(o OutputProperties) OutputProperties {
	e.Low, e.High, e.Affine, e.Half = min(e.Low, o.Low), max(e.High, o.High), e.Affine && o.Affine, e.Half || o.Half
	if o.Op != e.Op {
		e.Op = ""
	}
	return e
}

// joined returns the properties that hold for all values.
func (e *outputAnalysis) joined(values []string) OutputProperties {
	all := e.properties(values[0])
	for _, value := range values[1:] {
		all = all.Union(e.properties(value))
	}
	return all
}

// operator returns [OutputProperties.Op] of a value.
func (e *outputAnalysis) operator(value string) string {
	for range deepest {
		p, ok := e.source(value)
		if !ok {
			return ""
		}
		op := p.Node.OpType
		if !slices.Contains([]string{"Add", "Sub", "Mul", "Div"}, op) || len(p.Node.Inputs) < 2 {
			return e.root(p)
		}
		switch a, b := e.in(p, 0), e.in(p, 1); {
		case b.constant():
			value = p.Node.Inputs[0]
		case a.constant():
			value = p.Node.Inputs[1]
		default:
			return op
		}
	}
	return ""
}

// root returns the operator of a node, and Sqrt for exp(x/2), which is the square root of exp(x).
func (e *outputAnalysis) root(p onnxio.Place) string {
	if p.Node.OpType != "Exp" {
		return p.Node.OpType
	}
	if q, ok := e.source(p.Node.Inputs[0]); ok && len(q.Node.Inputs) == 2 {
		half := func(k int, by float64) bool { s := e.in(q, k); return s.low == by && s.high == by }
		if q.Node.OpType == "Mul" && (half(0, 0.5) || half(1, 0.5)) || q.Node.OpType == "Div" && half(1, 2) {
			return "Sqrt"
		}
	}
	return p.Node.OpType
}

// constant reports whether the range is one number.
func (s span) constant() bool { return s.low == s.high && s.high-s.low == 0 && !math.IsInf(s.low, 0) }

// checkHead fails if the graph contradicts the model card's variance head.
func (n *Network) checkHead() error {
	head := regression.VarianceHead("")
	if n.scores.Regression != nil {
		head = n.scores.Regression.Head
	}
	if head == "" || !n.Traits().Targets {
		return nil
	}
	means, variances := n.Halves()
	bad := func(hint, format string, args ...any) error {
		return &onnxio.Error{Path: n.Posterior.Path, Tensor: n.Output(), What: fmt.Sprintf(format, args...), Hint: hint}
	}
	switch {
	case !head.Plain() && variances.Positive():
		return bad("fit again with "+setting.Targets.With("head=variance")+", or with head=std if the half holds standard deviations",
			"the graph keeps the second half of the scores at 0 or above (%s), so it holds variances or standard deviations, and %s "+
				"would convert them a second time", variances.Op, setting.Targets.With("head="+string(head)))
	case head.Plain() && variances.High <= 0:
		return bad("fit again with "+setting.Targets.With("head=log-variance")+", if the half holds logarithms of variances, or with "+
			"head=log-std, if it holds those of standard deviations",
			"the graph keeps the second half of the scores at 0 or below (%s), and it must be above", variances.Op)
	case head.Plain() && means.Positive() && variances.Affine && variances.Low < 0:
		return bad("export the means first, and then the variances",
			"the graph keeps the first half of the scores at 0 or above (%s), and the second half may be negative: the variances stand "+
				"before the means", means.Op)
	}
	return nil
}
