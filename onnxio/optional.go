package onnxio

// dropEmptyInputs removes empty names at the end of nodes' inputs. An empty name stands for an optional input that is
// not given, and means nothing after the last given one. ONNX Runtime 1.30 crashed on such a name while it optimised
// a model: a LayerNormalization after an Add had an empty name for its bias.
func (e *Edit) dropEmptyInputs() {
	for _, g := range e.m.Graphs() {
		for i := range g.Nodes {
			n := &g.Nodes[i]
			given := len(n.Inputs)
			for given > 0 && n.Inputs[given-1] == "" {
				given--
			}
			if n.OpType != "Dropout" { // DisableDropout handles its inputs
				e.remove(n, n.inputs[given:])
			}
		}
	}
}
