package onnxio

import "slices"

// shaping are operators that make constants of a shape.
var shaping = []string{"CastLike", "Cast", "Concat", "Constant", "Expand", "Identity", "Shape", "Squeeze", "Unsqueeze"}

// dropUse counts one use less of the named values. It removes the nodes of the main graph that only made values no
// longer used. Other providers take their share of the graph before ONNX Runtime cleans up, and ONNX Runtime warns of
// constants that nothing uses. A constant that will be filled with other elements stays.
func (e *Edit) dropUse(fills map[*Tensor]string, names ...string) {
	if e.uses == nil {
		e.uses, e.removed = e.m.uses(), make(map[*Node]bool)
	}
	for len(names) > 0 {
		name := names[len(names)-1]
		names = names[:len(names)-1]
		e.uses[name]--
		n := e.m.Graph.Producer(name)
		if n != nil && name != "" && !e.removed[n] && e.uses[name] == 0 && len(n.Outputs) == 1 && n.Domain == "" &&
			slices.Contains(shaping, n.OpType) &&
			!slices.Contains(n.Inputs, "") && fills[n.constant] == "" {
			e.splice(n.msg.Span(), nil, n.msg.Parent)
			e.removed[n] = true
			names = append(names, n.Inputs...)
		}
	}
}

// uses counts the uses of each value.
func (m *Model) uses() map[string]int {
	uses := make(map[string]int)
	for _, g := range m.Graphs() {
		for i := range g.Nodes {
			for _, in := range g.Nodes[i].Inputs {
				uses[in]++
			}
		}
		for _, out := range g.Outputs {
			uses[out.Name]++
		}
	}
	return uses
}
