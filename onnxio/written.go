package onnxio

import (
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
)

// WrittenBatchNorms returns the batch-norm layers that the main graph writes out in operators. In each channel they compute
// y = x·a + b, with a = κ/√(variance + ε) and b = β − mean·a. Mean and variance are stored vectors, and κ and β depend on
// neither. Operators, their order, the axis and names do not count, because the formula is evaluated at chosen numbers. The
// graph does not show whether mean and variance are running statistics or learned weights. Layers whose statistics cannot be
// recomputed are left out: those of types other than float32, and those whose statistics another part of the graph reads, too.
func (m *Model) WrittenBatchNorms() (out []BatchNorm) {
	f := m.formulas()
	for i := range f.steps {
		if w := f.batchNormAt(&f.steps[i]); w != nil {
			first, last := w.steps[0].place.Node, w.steps[len(w.steps)-1].place.Node
			out = append(out, BatchNorm{
				Node:     last,
				Written:  w,
				Input:    first.Inputs[w.steps[0].data],
				Mean:     w.mean.Name,
				Var:      w.variance.Name,
				Epsilon:  w.epsilon,
				Momentum: 0.9,
				Channels: w.mean.Len(),
				ElemType: Float,
				OldOpset: m.Opset < 14,
			})
		}
	}
	return out
}

// moves reports whether the channels must be moved to axis 1 before an operator can count over the others.
func (w *Formula) moves() bool { return w.rank == 0 || w.axis != w.rank-2 }

// Counted returns the name of a value that has the elements of the layer's input, and the channels at axis 1. That is the input,
// except in some layers that are written out. There a training pass computes it, with a name that begins with mean.
func (bn BatchNorm) Counted(mean string) string {
	if bn.Written == nil || !bn.Written.moves() {
		return bn.Input
	}
	return mean + "_counted"
}

// nodes are encoded nodes, in their order.
type nodes []byte

// add adds a node with one output and returns the output's name.
func (b *nodes) add(op, output string, inputs []string, attributes ...[]byte) string {
	*b = append(*b, wire.Node(op, output+"_node", inputs, []string{output}, attributes...)...)
	return output
}

// trainWritten makes a layer that the graph writes out in operators compute with the mean and the variance of its batch. Nodes
// that count them come first. A copy of the layer's own formula follows, which reads these instead of the stored ones.
func (e *Edit) trainWritten(bn BatchNorm, mean, variance string, count func(b *nodes, x string, rank int)) {
	w := bn.Written
	var b nodes
	x, rank := e.channelsSecond(&b, bn, mean)
	count(&b, x, rank)
	reads := make(map[*Tensor]string)
	for _, of := range []struct {
		t    *Tensor
		from string
	}{{w.mean, mean}, {w.variance, variance}} {
		reads[of.t] = of.from
		if len(of.t.Shape) != 1 {
			e.addInts(of.from+"_shape", of.t.Shape)
			reads[of.t] = b.add("Reshape", of.from+"_shaped", []string{of.from, of.from + "_shape"})
		}
	}
	renamed := make(map[string]string)
	for i, p := range w.own {
		inputs, output := slices.Clone(p.Node.Inputs), p.Node.Outputs[0]
		for k, t := range p.Tensors {
			other := reads[t]
			if t == nil {
				other = renamed[inputs[k]]
			}
			if other != "" {
				inputs[k] = other
			}
		}
		if i < len(w.own)-1 { // nothing else reads its output
			renamed[output] = mean + "_of_" + output
			output = renamed[output]
			e.splice(p.Node.msg.Span(), nil, p.Node.msg.Parent)
		}
		var attributes [][]byte
		for _, a := range p.Node.Attributes {
			attributes = append(attributes, e.m.data.Copy(a.msg.Span()))
		}
		b.add(p.Node.OpType, output, inputs, attributes...)
	}
	e.splice(bn.Node.msg.Span(), b, bn.Node.msg.Parent)
}

// channelsSecond returns the layer's input with the channels at axis 1, and its rank.
func (e *Edit) channelsSecond(b *nodes, bn BatchNorm, prefix string) (x string, rank int) {
	w := bn.Written
	if !w.moves() {
		return bn.Input, w.rank
	}
	name := func(what string) string { return prefix + "_" + what }
	if w.axis == 0 {
		e.addInts(name("rows"), []int64{0, -1, bn.Channels})
		rows := b.add("Reshape", name("by_row"), []string{bn.Input, name("rows")})
		return b.add("Transpose", bn.Counted(prefix), []string{rows}, wire.Ints("perm", []int64{0, 2, 1})), 3
	}
	e.addInts(name("first"), []int64{-1, bn.Channels})
	e.addInts(name("from"), []int64{int64(-w.axis)})
	e.addInts(name("to"), []int64{math.MaxInt64})
	shape := b.add("Shape", name("shape"), []string{bn.Input})
	behind := b.add("Slice", name("behind"), []string{shape, name("from"), name("to")})
	size := b.add("ReduceProd", name("size"), []string{behind}, wire.Int("keepdims", 1))
	shape = b.add("Concat", name("by_channel"), []string{name("first"), size}, wire.Int("axis", 0))
	return b.add("Reshape", bn.Counted(prefix), []string{bn.Input, shape}), 3
}

// normalise counts mean and variance by a batch norm in training mode.
func (e *Edit) normalise(bn BatchNorm, mean, variance string) func(b *nodes, x string, rank int) {
	return func(b *nodes, x string, _ int) {
		ones, zeros := mean+"_ones", mean+"_zeros"
		e.addInitializer(ones, Float, repeated(1, bn.Channels), bn.Channels)
		e.addInitializer(zeros, Float, repeated(0, bn.Channels), bn.Channels)
		attributes := [][]byte{wire.Float("momentum", 0)}
		outputs := []string{mean + "_unused", mean, variance}
		if bn.OldOpset { // five outputs mean training
			outputs = append(outputs, mean+"_saved", variance+"_saved")
		} else {
			attributes = append(attributes, wire.Int("training_mode", 1))
		}
		*b = append(*b, wire.Node("BatchNormalization", mean+"_node", []string{x, ones, zeros, zeros, ones}, outputs, attributes...)...)
	}
}
