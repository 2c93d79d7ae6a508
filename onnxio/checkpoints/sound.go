package checkpoints

import (
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// Diverged is the hint for a checkpoint with values that no training leaves behind.
const Diverged = "training diverged: leave this checkpoint out, or lower the learning rate"

// weighing are the operators whose tensors are always weights.
var weighing = []string{"Conv", "ConvTranspose", "Gemm", "MatMul", "LSTM", "GRU", "RNN", "PRelu",
	"BatchNormalization", "InstanceNormalization", "LayerNormalization", "GroupNormalization"}

// sound fails if a statistic of a model is impossible for batch norm, or a constant is no plausible weight. The set's
// parameters are checked when they are fitted. ref is a model with the names of the layout.
//
// Not every constant is a weight. A mask holds −∞ or the least float32, and a single value is often a bound. Such
// values are accepted, unless an operator of weighing reads them. NaN is accepted as a single value that only a Where chooses: JAX
// guards its variances with it.
func (s *Set) sound(ref *onnxio.Model) error {
	measures, err := quantities(ref)
	if err != nil {
		return err
	}
	weighs, guards := weighed(ref), guards(ref)
	for _, t := range s.Layout.Tensors {
		switch {
		case t.Role.Vector() == weights.Statistic:
			q := measures[t.Name]
			err = s.each(t, s.Models, q.Want(), func(v float32) bool { return q.Possible(float64(v)) })
		case t.Role == weights.Constant && t.DType.IsFloat(): // equal in all models
			err = s.each(t, s.firstWith(t.Name), "", constantOf(t.Len(), weighs[ref.Tensor(t.Name)], guards[ref.Tensor(t.Name)]))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// quantities returns the quantities of batch norm's statistics, by name. All other tensors are weights.
func quantities(m *onnxio.Model) (map[string]weights.Quantity, error) {
	bns, err := m.BatchNorms()
	measures := make(map[string]weights.Quantity)
	for _, bn := range append(bns, m.WrittenBatchNorms()...) {
		measures[bn.Mean], measures[bn.Var] = weights.BatchMean, weights.BatchVariance
	}
	return measures, err
}

// weighed returns the tensors that the operators of weighing read.
func weighed(m *onnxio.Model) map[*onnxio.Tensor]bool {
	weighs := make(map[*onnxio.Tensor]bool)
	for _, p := range m.Places() {
		if slices.Contains(weighing, p.Node.OpType) {
			for _, t := range p.Tensors {
				weighs[t] = true
			}
		}
	}
	return weighs
}

// guards returns the tensors of one element that are read only as values of Where nodes, or repeated to such values.
func guards(m *onnxio.Model) map[*onnxio.Tensor]bool {
	guards, other := make(map[*onnxio.Tensor]bool), make(map[*onnxio.Tensor]bool)
	repeats := make(map[string]*onnxio.Tensor) // what an Expand or a Cast gives, of which tensor
	for _, p := range m.Places() {
		for k, name := range p.Node.Inputs {
			t := p.Tensors[k]
			if t == nil {
				t = repeats[name]
			}
			switch op := p.Node.OpType; {
			case t == nil || t.Len() != 1:
			case op == "Where" && k > 0:
				guards[t] = true
			case k == 0 && (op == "Expand" || op == "Cast" || op == "CastLike" || op == "Reshape" || op == "Identity"):
				repeats[p.Node.Outputs[0]] = t
			default:
				other[t] = true
			}
		}
	}
	for t := range other {
		delete(guards, t)
	}
	return guards
}

// constantOf returns a function that reports whether an element of a constant is possible.
func constantOf(elements int64, weighs, guards bool) func(v float32) bool {
	return func(v float32) bool {
		return weights.Plausible(v) || v == v && !weighs && (v < 0 || elements == 1) || v != v && guards
	}
}

// Sound fails if an element of a model's tensors is one that no training leaves behind, like [New]. It is for a
// checkpoint whose tensors are copied. Errors are of type [*onnxio.Error].
func Sound(m *onnxio.Model) error {
	return weights.Guarded(func() error {
		measures, err := quantities(m)
		if err != nil {
			return err
		}
		s := &Set{Models: []*onnxio.Model{m}, Layout: &weights.Layout{}}
		for _, held := range floats(m) {
			if err := m.Readable(held); err != nil {
				return err
			}
			t := weights.Tensor{Name: held.Name, Shape: held.Shape, DType: held.ElemType.DType()}
			if _, statistic := measures[held.Name]; statistic {
				t.Role = weights.Statistic
			}
			s.Layout.Tensors = append(s.Layout.Tensors, t)
		}
		return s.sound(m)
	})()
}

// SoundStatistics fails with an [*weights.ImplausibleError] if one of the rows, flat vectors of l, has a statistic
// that is impossible for batch norm of m.
func SoundStatistics(m *onnxio.Model, l *weights.Layout, rows [][]float32) error {
	measures, err := quantities(m)
	if err != nil {
		return err
	}
	tensors := l.Role(weights.Statistic)
	for i, row := range rows {
		for _, t := range tensors {
			if err := weights.SoundAs(measures[t.Name], t, row[t.Offset:][:t.Len()]); err != nil {
				return fmt.Errorf("row %d: %w", i, err)
			}
		}
	}
	return nil
}

// firstWith returns the first model that has a tensor, alone, or none. A simplified model may lack a constant.
func (s *Set) firstWith(name string) []*onnxio.Model {
	i := slices.IndexFunc(s.Models, func(m *onnxio.Model) bool { return m.Tensor(name) != nil })
	return s.Models[max(i, 0) : i+1]
}

// each fails at the first element of a tensor that is not sound. It checks the given models. One that was simplified may lack the
// tensor.
func (s *Set) each(t weights.Tensor, models []*onnxio.Model, want string, sound func(v float32) bool) error {
	size := t.DType.Size()
	values := make([]float32, min(t.Len(), 1<<14))
	for _, m := range models {
		held := m.Tensor(t.Name)
		if held == nil {
			continue
		}
		for off := int64(0); off < t.Len(); off += int64(len(values)) {
			part := values[:min(int64(len(values)), t.Len()-off)]
			t.DType.Float32s(part, m.Stretch(held, off, int64(len(part))))
			s.read(len(part)*int(size), m)
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
