package onnxio

// unchanged are operators whose output has exactly the values of their first input. The type and the shape may
// change.
var unchanged = map[string]bool{"Cast": true, "Expand": true, "Flatten": true, "Identity": true, "Reshape": true, "Squeeze": true, "Transpose": true, "Unsqueeze": true}

// Rows returns the number of rows of a table for each input whose values are row numbers of that table. Token ids of
// an embedding are such values: they go into a Gather unchanged. If an input feeds several tables, the smallest
// counts. Gather reads −1 as the last row, and frameworks refuse it in an embedding. So a reader of data must check
// the values.
func (m *Model) Rows() map[string]int64 {
	type use struct{ node, place int }
	uses := map[string][]use{}
	from := map[string]*Node{} // by output
	nodes := m.Graph.Nodes
	for i := range nodes {
		if nodes[i].Domain != "" && nodes[i].Domain != "ai.onnx" {
			continue
		}
		for place, name := range nodes[i].Inputs {
			uses[name] = append(uses[name], use{i, place})
		}
		for _, name := range nodes[i].Outputs {
			from[name] = &nodes[i]
		}
	}
	shapes := map[string][]int64{}
	for _, t := range m.Graph.Initializers {
		shapes[t.local] = t.Shape
	}
	rows := map[string]int64{}
	for _, v := range m.FeedInputs() {
		seen, next := map[string]bool{v.Name: true}, []string{v.Name}
		for len(next) > 0 {
			name := next[0]
			next = next[1:]
			for _, u := range uses[name] {
				n := &nodes[u.node]
				if n.OpType == "Gather" && u.place == 1 {
					if have := tableRows(n, from, shapes); have > 0 && (rows[v.Name] == 0 || have < rows[v.Name]) {
						rows[v.Name] = have
					}
				}
				if unchanged[n.OpType] && u.place == 0 && len(n.Outputs) > 0 && !seen[n.Outputs[0]] {
					seen[n.Outputs[0]] = true
					next = append(next, n.Outputs[0])
				}
			}
		}
	}
	return rows
}

// longestCast bounds the conversions between a table and the Gather that reads it.
const longestCast = 16

// tableRows returns the length of the axis along which a Gather takes elements of a stored tensor. It returns 0 if
// that tensor is computed.
func tableRows(n *Node, from map[string]*Node, shapes map[string][]int64) int64 {
	table := n.Inputs[0]
	shape := shapes[table]
	for range longestCast { // an untrusted graph may have cycles
		f := from[table]
		if f == nil {
			break
		}
		if f.constant != nil {
			shape = f.constant.Shape
		}
		if f.OpType != "Cast" && f.OpType != "Identity" && f.OpType != "DequantizeLinear" || len(f.Inputs) == 0 {
			break
		}
		table = f.Inputs[0]
		shape = shapes[table]
	}
	axis := n.Int("axis", 0)
	if axis < 0 {
		axis += int64(len(shape))
	}
	if axis < 0 || axis >= int64(len(shape)) {
		return 0
	}
	return shape[axis]
}
