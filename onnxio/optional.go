package onnxio

// dropEmptyInputs removes the last inputs of nodes as far as they are empty. An empty name stands for an optional input that
// is not given, and means nothing behind the last one that is. ONNX Runtime 1.30 has crashed over it: a LayerNormalization
// behind an Add, whose bias is left out by an empty name, ended the process while the model was optimised.
func (e *Edit) dropEmptyInputs() {
	for _, g := range e.m.Graphs() {
		for i := range g.Nodes {
			n := &g.Nodes[i]
			given := len(n.Inputs)
			for given > 0 && n.Inputs[given-1] == "" {
				given--
			}
			if n.OpType != "Dropout" { // DisableDropout knows its inputs
				e.remove(n, n.inputs[given:])
			}
		}
	}
}
