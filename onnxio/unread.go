package onnxio

// Unread lists the inputs whose values no node reads; nodes may read their shapes. Such inputs have no effect on the
// outputs. Exporters leave them behind if a network was given one tensor for two of its arguments.
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
