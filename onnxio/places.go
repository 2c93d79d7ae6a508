package onnxio

import (
	"slices"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
)

// Place is a computing node with the tensors that it reads.
type Place struct {
	Graph   *Graph // graph of the node
	Node    *Node
	Tensors []*Tensor // the tensor of each input; nil for computed values and inputs
}

// scope resolves the names in a graph: its own tensors, then those of the surrounding graph.
type scope struct {
	outer   *scope
	tensors map[string]*Tensor
}

func (s *scope) find(name string) *Tensor {
	for ; s != nil && name != ""; s = s.outer {
		if t := s.tensors[name]; t != nil {
			return t
		}
	}
	return nil
}

// Places lists the nodes of all graphs in file order, functions last. It skips Constant nodes, and Identity nodes of
// a tensor, and resolves their names to the tensors. Exporters merge equal tensors and leave Identity nodes behind,
// in one checkpoint but not in the next.
func (m *Model) Places() []Place {
	var out []Place
	var walk func(g *Graph, outer *scope)
	walk = func(g *Graph, outer *scope) {
		s := &scope{outer, make(map[string]*Tensor, len(g.Initializers))}
		for _, t := range g.Initializers {
			s.tensors[t.local] = t
		}
		for i := range g.Nodes {
			n := &g.Nodes[i]
			if n.OpType == "Constant" && n.Domain == "" {
				if n.constant != nil {
					s.tensors[n.Outputs[0]] = n.constant
				}
				continue
			}
			if n.OpType == "Identity" && n.Domain == "" && len(n.Inputs) == 1 && len(n.Outputs) == 1 {
				if t := s.find(n.Inputs[0]); t != nil {
					s.tensors[n.Outputs[0]] = t
					continue
				}
			}
			p := Place{Graph: g, Node: n, Tensors: make([]*Tensor, len(n.Inputs))}
			for k, name := range n.Inputs {
				p.Tensors[k] = s.find(name)
			}
			out = append(out, p)
			for _, a := range n.Attributes {
				for _, sub := range a.Graphs {
					walk(sub, s)
				}
			}
		}
	}
	walk(m.Graph, nil)
	for _, f := range m.Functions {
		walk(f, nil)
	}
	return out
}

// Reads lists the names that a node reads, also in the graphs inside it. These may read values of the surrounding graph.
func (n *Node) Reads() []string {
	names := slices.Clone(n.Inputs)
	for _, a := range n.Attributes {
		for _, g := range a.Graphs {
			for i := range g.Nodes {
				names = append(names, g.Nodes[i].Reads()...)
			}
			for _, out := range g.Outputs {
				names = append(names, out.Name)
			}
		}
	}
	return names
}

// The following methods are for package fused, which copies parts of files.

// Content returns the content of the model's file.
func (m *Model) Content() wire.Content { return m.data }

// Body returns the place of a graph's or function's fields in the file.
func (g *Graph) Body() wire.Span { return g.msg.Body }

// Body returns the place of the node's fields in the file.
func (n *Node) Body() wire.Span { return n.msg.Body }

// Body returns the place of the tensor's fields in the file, and of its elements. The second is empty unless these lie
// there in one piece, in the layout of memory.
func (t *Tensor) Body() (fields, elements wire.Span) { return t.msg.Body, t.payload }
