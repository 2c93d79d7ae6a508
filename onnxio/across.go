package onnxio

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// An Across is a node that computes over the first axis of a value that depends on the inputs. That is the axis of
// the batch, unless the graph has moved it.
type Across struct {
	Node string // "BatchNormalization "bn"", for messages
	// Certain says that the axis is the batch: batch norm normalises by the batch's own mean and variance, because it
	// has no running statistics.
	Certain bool
}

// AcrossBatch lists the nodes that may make the scores of an example depend on the other examples in its batch,
// certain ones first. They are batch norm without running statistics, and reductions and softmax over the first axis.
// Other operators can do so too. Only a run shows it for sure.
func (m *Model) AcrossBatch() []Across {
	var certain, possible []Across
	lists, parameterized := m.lists(), make(map[string]bool)
	for _, v := range m.FeedInputs() {
		parameterized[v.Name] = true
	}
	for _, p := range m.Places() {
		n := p.Node
		depends := slices.ContainsFunc(n.Inputs, func(name string) bool { return parameterized[name] })
		if p.Graph != m.Graph || !depends {
			continue
		}
		for _, out := range n.Outputs {
			parameterized[out] = out != "" && n.OpType != "Shape" && n.OpType != "Size"
		}
		if n.Domain != "" || len(n.Outputs) == 0 {
			continue
		}
		across := Across{Node: fmt.Sprintf("%s %q", n.OpType, cmp.Or(n.Name, n.Outputs[0]))}
		switch {
		case n.OpType == "BatchNormalization":
			across.Certain = len(n.Inputs) == 5 && (parameterized[n.Inputs[3]] || p.Tensors[3] == nil && n.Int("training_mode", 0) == 1)
			if !across.Certain {
				continue
			}
		case strings.HasPrefix(n.OpType, "Reduce"):
			axes := n.list("axes")
			if len(n.Inputs) > 1 {
				axes = lists[n.Inputs[1]]
			}
			if !slices.Contains(axes, 0) {
				continue
			}
		case n.OpType == "Softmax" || n.OpType == "LogSoftmax":
			if n.Int("axis", -1) != 0 {
				continue
			}
		default:
			continue
		}
		if across.Certain {
			certain = append(certain, across)
		} else {
			possible = append(possible, across)
		}
	}
	return append(certain, possible...)
}

// list returns the node's attribute of that name, a short list of integers, or nil.
func (n *Node) list(name string) []int64 {
	if a := n.attribute(name); a != nil && a.ints != nil {
		return *a.ints
	}
	return nil
}
