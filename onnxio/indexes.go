package onnxio

// unchanged are operators whose output has exactly the values of their first input. The type and the shape may
// change.
var unchanged = map[string]bool{
	"Cast":      true,
	"Expand":    true,
	"Flatten":   true,
	"Identity":  true,
	"Reshape":   true,
	"Squeeze":   true,
	"Transpose": true,
	"Unsqueeze": true,
}

// Rows returns the number of rows of a table for each input whose values are row numbers of that table. Token ids of
// an embedding are such values: they go into a Gather unchanged. If an input feeds several tables, the smallest
// counts. Gather reads −1 as the last row, and frameworks refuse it in an embedding. So a reader of data must check
// the values.
func (m *Model) Rows() map[string]int64 {
	parameterized := map[string]string{} // the input that a value holds unchanged, by the value's name
	shapes := map[string][]int64{}       // the shapes of stored tables, by name
	rows := map[string]int64{}
	for _, v := range m.FeedInputs() {
		parameterized[v.Name] = v.Name
	}
	for _, t := range m.Graph.Initializers {
		shapes[t.local] = t.Shape
	}
	for _, n := range m.Graph.Nodes { // in topological order
		if n.Domain != "" || len(n.Outputs) == 0 {
			continue
		}
		out := n.Outputs[0]
		switch {
		case n.constant != nil:
			shapes[out] = n.constant.Shape
		case len(n.Inputs) == 0:
		case n.OpType == "Gather" && len(n.Inputs) > 1:
			input, have := parameterized[n.Inputs[1]], axisLen(shapes[n.Inputs[0]], n.Int("axis", 0))
			if input != "" && have > 0 && (rows[input] == 0 || have < rows[input]) {
				rows[input] = have
			}
		case n.OpType == "Cast" || n.OpType == "Identity" || n.OpType == "DequantizeLinear":
			shapes[out] = shapes[n.Inputs[0]]
		}
		if unchanged[n.OpType] && len(n.Inputs) > 0 {
			parameterized[out] = parameterized[n.Inputs[0]]
		}
	}
	return rows
}

// axisLen returns the length of an axis, which counts from the end if it is negative. It returns 0 for other axes.
func axisLen(shape []int64, axis int64) int64 {
	if axis < 0 {
		axis += int64(len(shape))
	}
	if axis < 0 || axis >= int64(len(shape)) {
		return 0
	}
	return shape[axis]
}

// EndTokens returns the pad token of networks that take the scores of the last token before it, for each input with tokens. The graph
// finds the place by ArgMax over the tokens that are not the pad token. Where it looks for a token itself, as for the end of the text, that
// is no pad token.
func EndTokens(m *Model) map[string]int64 {
	parameterized, equal, ends, searches := map[string]string{}, map[string]func(){}, map[string]int64{}, false
	for _, v := range m.FeedInputs() {
		parameterized[v.Name] = v.Name
	}
	for _, n := range m.Graph.Nodes { // in topological order
		switch {
		case n.Domain != "" || len(n.Outputs) == 0 || len(n.Inputs) == 0:
		case unchanged[n.OpType]:
			parameterized[n.Outputs[0]] = parameterized[n.Inputs[0]]
		case n.OpType == "ArgMax":
			searches = true
		case n.OpType == "Not" && equal[n.Inputs[0]] != nil:
			equal[n.Inputs[0]]()
		case n.OpType == "Equal" && len(n.Inputs) == 2:
			for i, name := range n.Inputs {
				input, end := parameterized[name], m.Tensor(n.Inputs[1-i])
				if input != "" && end != nil && end.ElemType == Int64 && len(end.ints) == 1 {
					equal[n.Outputs[0]] = func() { ends[input] = end.ints[0] }
				}
			}
		}
	}
	if !searches {
		return nil
	}
	return ends
}
