package onnxio

// Unread lists the inputs of which no node reads more than the shape: their values have no
// say in what comes out. Exporters leave such ones where a network was given one tensor for
// two of its arguments.
func (m *Model) Unread() (names []string) {
	read := map[string]bool{}
	for _, o := range m.Graph.Outputs {
		read[o.Name] = true
	}
	var visit func(g *Graph)
	visit = func(g *Graph) {
		for i := range g.Nodes {
			n := &g.Nodes[i]
			for _, name := range n.Inputs {
				if n.Domain != "" || n.OpType != "Shape" && n.OpType != "Size" {
					read[name] = true
				}
			}
			for _, a := range n.Attributes {
				for _, body := range a.Graphs {
					visit(body)
				}
			}
		}
	}
	visit(m.Graph)
	for _, v := range m.FeedInputs() {
		if !read[v.Name] {
			names = append(names, v.Name)
		}
	}
	return names
}
