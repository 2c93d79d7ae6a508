package onnxio

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
)

// WrittenBatchNorms returns the batch-norm layers that the main graph writes out in operators, like exported
// hand-written modules: (x − mean)/√(variance + ε). Mean and variance are stored and have an element for each
// channel, axis 1 of x. The graph does not show whether they are running statistics or learned weights. Layers that
// cannot be put into training mode are left out. These are layers of opsets before 14, of types other than float32,
// or with shared statistics.
func (m *Model) WrittenBatchNorms() []BatchNorm {
	if m.Opset < 14 {
		return nil
	}
	v, ranks := m.viewer(), m.Ranks()
	var out []BatchNorm
	uses := make(map[string]int)
	for _, p := range v.places {
		for k := range min(2, len(p.Node.Inputs)) {
			if bn, ok := m.written(v, ranks, p, k); ok {
				uses[bn.Mean]++
				uses[bn.Var]++
				out = append(out, bn)
			}
		}
	}
	return slices.DeleteFunc(out, func(bn BatchNorm) bool { return uses[bn.Mean] > 1 || uses[bn.Var] > 1 })
}

// written reads a layer whose last node is p, with x − mean as input k.
func (m *Model) written(v *viewer, ranks map[string]int, p Place, k int) (bn BatchNorm, ok bool) {
	var variance *Tensor
	switch {
	case len(p.Node.Inputs) != 2:
	case p.Node.OpType == "Div" && k == 0:
		variance, bn.Epsilon = m.underRoot(v, p, 1)
	case p.Node.OpType == "Mul":
		variance, bn.Epsilon = m.inverseRoot(v, p, 1-k)
	}
	centred, made := v.producer(p, k)
	if variance == nil || !made || centred.Node.OpType != "Sub" || len(centred.Node.Inputs) != 2 {
		return bn, false
	}
	mean := v.view(centred, 1)
	if mean == nil || v.view(centred, 0) != nil || mean.tensor == variance || mean.tensor.Len() != variance.Len() ||
		mean.tensor.ElemType != Float || variance.ElemType != Float || !IsVector(mean.tensor.Shape) || !IsVector(variance.Shape) {
		return bn, false
	}
	channels := variance.Len()
	bn.Node, bn.Written, bn.Input, bn.Momentum = p.Node, true, centred.Node.Inputs[0], 0.9
	bn.Mean, bn.Var, bn.Channels, bn.ElemType = mean.tensor.Name, variance.Name, channels, Float
	rank := ranks[bn.Input]
	switch shape := mean.shape; {
	case channels < 2:
		return bn, false
	case len(shape) == 1:
		return bn, rank == 2
	case len(shape) > 1:
		return bn, shape[1] == channels && (rank == 0 || rank == len(shape))
	}
	return bn, false
}

// behindViews returns the node that computes input k of p. It skips operators that only change the shape.
func (v *viewer) behindViews(p Place, k int) (Place, bool) {
	of, ok := v.producer(p, k)
	for range maxView {
		if !ok || !v.isView(of) {
			break
		}
		of, ok = v.producer(of, 0)
	}
	return of, ok
}

// underRoot returns the tensor and ε if input k of p is √(variance + ε).
func (m *Model) underRoot(v *viewer, p Place, k int) (*Tensor, float64) {
	of, ok := v.behindViews(p, k)
	switch {
	case ok && of.Node.OpType == "Sqrt":
		return m.plusEpsilon(v, of)
	case ok && of.Node.OpType == "Pow" && len(of.Node.Inputs) == 2:
		if power, ok := m.number(of.Tensors[1]); ok && power == 0.5 {
			return m.plusEpsilon(v, of)
		}
	}
	return nil, 0
}

// inverseRoot returns the tensor and ε if input k of p is 1/√(variance + ε).
func (m *Model) inverseRoot(v *viewer, p Place, k int) (*Tensor, float64) {
	of, ok := v.behindViews(p, k)
	switch {
	case ok && of.Node.OpType == "Reciprocal":
		return m.underRoot(v, of, 0)
	case ok && of.Node.OpType == "Div" && len(of.Node.Inputs) == 2:
		if one, ok := m.number(of.Tensors[0]); ok && one == 1 {
			return m.underRoot(v, of, 1)
		}
	case ok && of.Node.OpType == "Pow" && len(of.Node.Inputs) == 2:
		if power, ok := m.number(of.Tensors[1]); ok && power == -0.5 {
			return m.plusEpsilon(v, of)
		}
	}
	return nil, 0
}

// plusEpsilon returns the tensor and ε if the first input of p is their sum.
func (m *Model) plusEpsilon(v *viewer, p Place) (*Tensor, float64) {
	sum, ok := v.behindViews(p, 0)
	if !ok || sum.Node.OpType != "Add" || len(sum.Node.Inputs) != 2 {
		return nil, 0
	}
	for k := range 2 {
		epsilon, ok := m.number(sum.Tensors[1-k])
		if w := v.view(sum, k); ok && w != nil && epsilon >= 0 && epsilon < 1 {
			return w.tensor, epsilon
		}
	}
	return nil, 0
}

// number returns the value of a float tensor of one element.
func (m *Model) number(t *Tensor) (float64, bool) {
	if t == nil || !t.IsFloat() || t.Len() != 1 || m.Readable(t) != nil {
		return 0, false
	}
	value := make([]float32, 1)
	t.ElemType.DType().Float32s(value, m.Stretch(t, 0, 1))
	return float64(value[0]), true
}

// trainWritten puts a layer that the graph writes out in operators into training mode. A batch norm replaces its last
// node.
func (e *Edit) trainWritten(bn BatchNorm, mean, variance string) {
	ones, zeros := e.affine(bn, mean)
	node := wire.Node("BatchNormalization", mean+"_node", []string{bn.Input, ones, zeros, zeros, ones},
		[]string{bn.Node.Outputs[0], mean, variance},
		wire.Float("epsilon", float32(bn.Epsilon)), wire.Float("momentum", 0), wire.Int("training_mode", 1))
	e.splice(bn.Node.msg.Span(), node, bn.Node.msg.Parent)
}

// affine returns the names of scale and shift for a layer. A layer written out in operators has its own scale and
// shift after it, so these are 1 and 0.
func (e *Edit) affine(bn BatchNorm, prefix string) (scale, shift string) {
	if !bn.Written {
		return bn.Node.Inputs[1], bn.Node.Inputs[2]
	}
	var ones []byte
	for range bn.Channels {
		ones = binary.LittleEndian.AppendUint32(ones, math.Float32bits(1))
	}
	e.addInitializer(prefix+"_ones", Float, ones, bn.Channels)
	e.addInitializer(prefix+"_zeros", Float, make([]byte, len(ones)), bn.Channels)
	return prefix + "_ones", prefix + "_zeros"
}

// UnderRoots returns the names of the stored vectors that the main graph adds a small number to and takes the root of, as
// batch norm does with its variance. Those of [Model.WrittenBatchNorms] are left out.
func UnderRoots(m *Model) (names []string) {
	known := make(map[string]bool)
	for _, bn := range m.WrittenBatchNorms() {
		known[bn.Var] = true
	}
	v := m.viewer()
	for _, p := range v.places {
		root := p.Node.OpType == "Sqrt"
		if p.Node.OpType == "Pow" && len(p.Node.Inputs) == 2 {
			power, ok := m.number(p.Tensors[1])
			root = ok && (power == 0.5 || power == -0.5)
		}
		if !root {
			continue
		}
		if t, _ := m.plusEpsilon(v, p); t != nil && t.Len() > 1 && IsVector(t.Shape) && !known[t.Name] {
			known[t.Name] = true
			names = append(names, t.Name)
		}
	}
	return names
}
