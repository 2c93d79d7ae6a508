package onnxio

import (
	"slices"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"

	"github.com/swagwrap/swagwrap/weights"
)

// FloatValues lists the values that operators of the main graph compute in float32, without masks that a softmax reads. What those are
// added to is in the list.
func FloatValues(m *Model) (names []string) {
	hidden := masks(m)
	is := make(map[string]bool)
	for _, v := range m.FeedInputs() {
		is[v.Name] = v.ElemType == Float
	}
	for _, t := range m.Graph.Initializers {
		is[t.local] = t.ElemType == Float
	}
	for i := range m.Graph.Nodes {
		n := &m.Graph.Nodes[i]
		if n.Domain != "" && n.Domain != "ai.onnx" || len(n.Outputs) == 0 {
			continue
		}
		of := 0 // the input whose type the output has
		switch {
		case n.givesFloat():
			is[n.Outputs[0]] = true
			continue
		case n.OpType == "Cast":
			to := n.attribute("to")
			is[n.Outputs[0]] = to != nil && ElemType(to.Int) == Float
			continue
		case slices.Contains(otherTypes, n.OpType):
			continue
		case n.OpType == "Where":
			of = 1
		}
		if of >= len(n.Inputs) || !is[n.Inputs[of]] {
			continue
		}
		outputs := n.Outputs[:1]
		if n.OpType == "Split" {
			outputs = n.Outputs
		}
		for _, name := range outputs {
			if is[name] = true; !hidden[name] {
				names = append(names, name)
			}
		}
	}
	return names
}

// otherTypes are operators whose output does not have the type of their first input.
var otherTypes = []string{"And", "ArgMax", "ArgMin", "Constant", "ConstantOfShape", "DynamicQuantizeLinear", "Equal", "Greater",
	"GreaterOrEqual", "If", "IsInf", "IsNaN", "Less", "LessOrEqual", "Loop", "NonZero", "Not", "OneHot", "Or", "QuantizeLinear", "Scan",
	"SequenceAt", "SequenceConstruct", "Shape", "Size", "SplitToSequence", "Unique", "Xor"}

// WithRanges returns a template with two more outputs for each of the values: their least and largest element. It returns the
// outputs' names in this order.
func (t *Template) WithRanges(l *weights.Layout, values []string) (*Template, []string, error) {
	m, err := t.Model(t.files[0].name, l)
	if err != nil || len(values) == 0 {
		return t, nil, err
	}
	e := m.Edit()
	taken := e.names()
	var names []string
	var nodes []byte
	one := unused("swagwrap_one", taken)
	taken[one] = true
	e.addInts(one, []int64{1})
	for _, value := range values {
		for _, op := range []string{"ReduceMin", "ReduceMax"} {
			name := unused("swagwrap_"+op+"_"+value, taken)
			taken[name] = true
			nodes = append(nodes, wire.Node(op, name+"_all", []string{value}, []string{name + "_all"}, wire.Int("keepdims", 0))...)
			nodes = append(nodes, wire.Node("Reshape", name, []string{name + "_all", one}, []string{name})...)
			e.AddGraphOutput(name, Float, 1)
			names = append(names, name)
		}
	}
	last := &m.Graph.Nodes[len(m.Graph.Nodes)-1]
	e.splice(wire.Span{Start: last.msg.Body.End, End: last.msg.Body.End}, nodes, last.msg.Parent)
	out, err := e.Template(l)
	return out, names, err
}
