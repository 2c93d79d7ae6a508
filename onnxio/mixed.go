package onnxio

import (
	"encoding/binary"
	"math"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
)

// MixBatchNorm is [Edit.TrainBatchNorm], but the layer normalises by a mixture of its own statistics and those of the batch
// (Schneider et al. 2020). The batch has the share w of mean and second moment. MixBatchNorm changes nothing and returns false
// if the layer does not compute in float32, or is written out in operators.
func (e *Edit) MixBatchNorm(bn BatchNorm, w float64, mean, variance string) bool {
	n := bn.Node
	if bn.Written != nil || bn.ElemType != Float {
		return false
	}
	name := func(what string) string { return mean + "_" + what }
	constant := func(what string, v float64) string {
		e.addInitializer(name(what), Float, binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(v))))
		return name(what)
	}
	share, rest, both := constant("share", w), constant("rest", 1-w), constant("both", w*(1-w))
	e.setAttribute(n, "momentum", wire.Float("momentum", 0))
	e.remove(n, n.outputs)
	e.appendOutput(n, name("unused"))
	e.train(bn, mean, variance)
	var nodes []byte
	add := func(op, output string, inputs ...string) string {
		nodes = append(nodes, wire.Node(op, output+"_node", inputs, []string{output})...)
		return output
	}
	rowFlow := add("Sub", name("apart"), mean, n.Inputs[3])
	mixedMean := add("Add", name("mixed_mean"), n.Inputs[3], add("Mul", name("moved"), rowFlow, share))
	within := add("Add", name("within"), add("Mul", name("own"), n.Inputs[4], rest), add("Mul", name("batch"), variance, share))
	between := add("Mul", name("between"), add("Mul", name("squared"), rowFlow, rowFlow), both)
	mixedVariance := add("Add", name("mixed_variance"), within, between)
	nodes = append(nodes, wire.Node("BatchNormalization", name("mixed_node"),
		[]string{n.Inputs[0], n.Inputs[1], n.Inputs[2], mixedMean, mixedVariance},
		n.Outputs[:1], wire.Float("epsilon", float32(bn.Epsilon)))...)
	e.splice(wire.Span{Start: n.msg.Body.End, End: n.msg.Body.End}, nodes, n.msg.Parent)
	return true
}
