package onnxio

import "slices"

// A Recurrence is one state of a recurrent operator (LSTM, GRU, RNN): the inputs of the model that it begins with, and
// the outputs that give it back. Both are empty if the graph computes the state in another way.
type Recurrence struct {
	Inputs, Outputs []string
}

// moving are operators that move the elements of their first input, or copy them.
var moving = []string{"Cast", "CastLike", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"}

// HalfRecurrence returns the name of a recurrent operator with weights in float16, or "".
func (m *Model) HalfRecurrence() (operator string) {
	for i := range m.Graph.Nodes {
		n := &m.Graph.Nodes[i]
		if !n.recurrent() || len(n.Inputs) < 2 {
			continue
		}
		m.Graph.moved(n.Inputs[1], func(value string) {
			if t := m.Tensor(value); t != nil && t.ElemType == Float16 {
				operator = n.OpType
			}
		})
	}
	return operator
}

// Recurrences lists the states of the recurrent operators in the main graph. The initial states are inputs 5 and 6 of an
// operator, and the last ones are outputs 1 and 2. Layers are cut out of one input, and joined to one output.
func (m *Model) Recurrences() (all []Recurrence) {
	g := m.Graph
	var parameterized []string
	for _, v := range m.FeedInputs() {
		parameterized = append(parameterized, v.Name)
	}
	ends := map[string][]string{} // values, to the outputs that they become
	for _, o := range g.Outputs {
		g.moved(o.Name, func(value string) {
			ends[value] = append(ends[value], o.Name)
		})
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if !n.recurrent() {
			continue
		}
		for k := range 2 {
			if len(n.Inputs) <= 5+k || n.Inputs[5+k] == "" {
				continue
			}
			var r Recurrence
			g.moved(n.Inputs[5+k], func(value string) {
				if slices.Contains(parameterized, value) && !slices.Contains(r.Inputs, value) {
					r.Inputs = append(r.Inputs, value)
				}
			})
			if len(n.Outputs) > 1+k && n.Outputs[1+k] != "" {
				r.Outputs = ends[n.Outputs[1+k]]
			}
			all = append(all, r)
		}
	}
	return all
}

func (n *Node) recurrent() bool {
	return n.Domain == "" && slices.Contains([]string{"LSTM", "GRU", "RNN"}, n.OpType)
}

// moved calls f with a value, and with all values whose elements it holds in another order or shape.
func (g *Graph) moved(value string, f func(value string)) {
	seen := map[string]bool{}
	for next := []string{value}; len(next) > 0; {
		value, next = next[len(next)-1], next[:len(next)-1]
		if value == "" || seen[value] {
			continue
		}
		seen[value] = true
		f(value)
		n := g.Producer(value)
		switch {
		case n == nil || n.Domain != "" || len(n.Inputs) == 0:
		case n.OpType == "Concat":
			next = append(next, n.Inputs...)
		case slices.Contains(moving, n.OpType):
			next = append(next, n.Inputs[0])
		}
	}
}

// TimeFirst reports whether an input [T B …] reaches a recurrent operator with its axes in the same order.
// The operator takes time first. TimeFirst returns false if no such path is found.
func (m *Model) TimeFirst(input string) bool {
	g := m.Graph
	for i := range g.Nodes {
		if !g.Nodes[i].recurrent() || len(g.Nodes[i].Inputs) == 0 {
			continue
		}
		first, value := true, g.Nodes[i].Inputs[0]
		for range len(g.Nodes) {
			if value == input {
				return first
			}
			n := g.Producer(value)
			if n == nil || len(n.Inputs) == 0 {
				break
			}
			at := 0
			switch {
			case n.OpType == "Transpose":
				first = !first
			case n.OpType == "Gather", g.Producer(n.Inputs[0]) == nil && n.Inputs[0] != input && len(n.Inputs) > 1:
				at = 1 // the first input is a stored tensor, such as a table of embeddings
			}
			value = n.Inputs[at]
		}
	}
	return false
}
