package onnxio

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// A Number is a float in an attribute of a node, such as the slope of a LeakyRelu. Exporters write a number there that
// the network's code has taken out of a tensor.
type Number struct {
	Node      string // "LeakyRelu "act"", for messages
	Operator  string // its type
	Attribute string
	Value     float32
}

// Numbers returns the floats in attributes of the nodes of all graphs and functions, in file order. The tensors of
// Constant nodes are not among them: see [Model.Tensors]. Those that change nothing in a network that is not trained are
// left out, such as the momentum of batch norm.
func Numbers(m *Model) (numbers []Number) {
	for _, p := range m.Places() {
		n := p.Node
		for _, a := range n.Attributes {
			if n.OpType == "BatchNormalization" && a.Name == "momentum" || n.OpType == "Dropout" {
				continue
			}
			node := fmt.Sprintf("%s %q", n.OpType, cmp.Or(n.Name, strings.Join(n.Outputs, ", ")))
			for _, at := range a.floats {
				content, _ := m.data.Bytes(at)
				for ; len(content) >= 4; content = content[4:] {
					numbers = append(numbers, Number{node, n.OpType, a.Name, math.Float32frombits(binary.LittleEndian.Uint32(content))})
				}
			}
		}
	}
	return numbers
}
