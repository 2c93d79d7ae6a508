package onnxio

// Unread lists the inputs whose values no node reads; nodes may read their shapes. Such inputs have no effect on the
// outputs. Exporters leave them behind if a network was given one tensor for two of its arguments.
func (m *Model) Unread() (names []string) {
	read := map[string]bool{}
	for _, o := range m.Graph.Outputs {
		read[o.Name] = true
	}
	for _, g := range m.Graphs() {
		for _, n := range g.Nodes {
			for _, name := range n.Inputs {
				if n.Domain != "" || n.OpType != "Shape" && n.OpType != "Size" {
					read[name] = true
				}
			}
		}
	}
	for _, v := range m.FeedInputs() {
		if !read[v.Name] {
			names = append(names, v.Name)
		}
	}
	return names
}
