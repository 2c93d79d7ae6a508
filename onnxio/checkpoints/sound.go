package checkpoints

import (
	"slices"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// Diverged is what to do about a checkpoint with values that no training leaves.
const Diverged = "training diverged: leave this checkpoint out, or lower the learning rate"

// maxVariance is 2¹⁰⁴, about 2e31: sums of more than 2²⁴ squares of such a
// variance are beyond float32.
const maxVariance = 0x1p104

// weighing are the operators whose tensors are weights, whatever their values.
var weighing = []string{"Conv", "ConvTranspose", "Gemm", "MatMul", "LSTM", "GRU", "RNN", "PRelu",
	"BatchNormalization", "InstanceNormalization", "LayerNormalization", "GroupNormalization"}

// sound fails if a statistic of a model is none that batch norm can have, or a
// constant no weight. The set's parameters are looked at when they are fitted.
// ref is a model with the names of the layout.
//
// Not every constant is a weight: a mask holds −∞, or the least float32, and a
// single value is often a bound. These pass, unless an operator weighs with them;
// NaN never does.
func (s *Set) sound(ref *onnxio.Model) error {
	bns, err := ref.BatchNorms()
	if err != nil {
		return err
	}
	variance := make(map[string]bool)
	for _, bn := range bns {
		variance[bn.Var] = true
	}
	weighs := make(map[*onnxio.Tensor]bool)
	for _, p := range ref.Places() {
		if slices.Contains(weighing, p.Node.OpType) {
			for _, t := range p.Tensors {
				weighs[t] = true
			}
		}
	}
	for _, t := range s.Layout.Tensors {
		switch {
		case t.Role == weights.Statistic && variance[t.Name]:
			err = s.each(t, len(s.Models), "finite batch-norm variances of 0 to 2e+31", func(v float32) bool { return v >= 0 && v < maxVariance })
		case t.Role == weights.Statistic:
			err = s.each(t, len(s.Models), "finite batch-norm statistics of less than 1.8e+19", weights.Plausible)
		case t.Role == weights.Constant && t.DType.IsFloat(): // equal in all
			bound := len(t.Shape) == 0 || t.Len() == 1
			strict := weighs[ref.Tensor(t.Name)]
			err = s.each(t, min(1, len(s.Models)), "", func(v float32) bool {
				return weights.Plausible(v) || v == v && !strict && (v < 0 || bound)
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// each fails at the first element of a tensor, in the first so many models, that
// is not sound.
func (s *Set) each(t weights.Tensor, models int, want string, sound func(v float32) bool) error {
	size := t.DType.Size()
	values := make([]float32, min(t.Len(), 1<<14))
	for k := range models {
		m := s.Models[k]
		held := m.Tensor(t.Name)
		for off := int64(0); off < t.Len(); off += int64(len(values)) {
			part := values[:min(int64(len(values)), t.Len()-off)]
			t.DType.Float32s(part, m.Stretch(held, off, int64(len(part))))
			s.read(len(part) * int(size))
			for i, v := range part {
				if sound(v) {
					continue
				}
				why := weights.ImplausibleError{Tensor: t, Index: off + int64(i), Value: v, Want: want}
				return &onnxio.Error{Path: m.Path, Tensor: held.Name, What: why.What(), Hint: Diverged}
			}
		}
	}
	return nil
}
