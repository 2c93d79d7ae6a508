package fused

import (
	"io"
	"math"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// Each row of a matrix has its own step. Rows are as short as possible with at least goodRow elements, since a step
// takes four bytes. Matrices are stored whole if their rows are shorter than fewestRow, or too long to be held.
const (
	goodRow    = 64
	fewestRow  = 8
	longestRow = 1 << 20
)

// steps returns the shape of a tensor's steps, which broadcasts, and the number of elements that share a step. The
// shape is nil for a tensor that is stored whole.
func (t tensor) steps() (shape []int64, row int64) {
	n := t.entry.Len()
	if len(t.shape) < 2 || n == 0 {
		return nil, 0
	}
	axes := len(t.shape) - 1 // axes with their own steps
	row = t.shape[axes]
	for axes > 1 && row < goodRow {
		axes--
		row *= t.shape[axes]
	}
	if row < fewestRow || row > longestRow {
		return nil, 0
	}
	for i := range t.shape {
		if i < axes {
			shape = append(shape, t.shape[i])
		} else {
			shape = append(shape, 1)
		}
	}
	return shape, row
}

// quantised reports whether a member's tensor is stored as a deviation from the mean.
func (m *Model) quantised(t tensor) bool {
	if m.opts.Storage != Int8 || t.entry.Role != weights.Parameter || t.entry.Transposed {
		return false
	}
	shape, _ := t.steps()
	return shape != nil
}

// means writes the means of network i, in float32.
func (m *Model) means(s *sink, i int) error {
	n := m.networks[i]
	for _, t := range n.tensors {
		if !t.own || !m.quantised(t) {
			continue
		}
		entry := t.entry
		entry.DType = weights.F32
		err := s.initializer(m.opts.External, sharedName("mean", i, t.name), onnxio.Float, t.shape, 4*entry.Len(), func(w io.Writer) error {
			return weights.WriteTensor(w, entry, n.Mean)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// deviations writes a member's deviations from the mean, and the nodes that compute mean + step·deviation.
func (m *Model) deviations(s *sink, network int, prefix string, t tensor, parameters weights.Vector) error {
	shape, row := t.steps()
	rows := t.entry.Len() / row
	steps := make([]float32, rows)
	name := prefix + t.name
	q, step, wide, scaled := name+"/deviation", name+"/step", name+"/wide", name+"/scaled"
	err := s.initializer(m.opts.External, q, onnxio.Int8, t.shape, t.entry.Len(), func(w io.Writer) error {
		return quantise(w, steps, t.entry, parameters, m.networks[network].Mean)
	})
	if err != nil {
		return err
	}
	err = s.initializer(m.opts.External, step, onnxio.Float, shape, 4*rows, func(w io.Writer) error {
		b := make([]byte, 4*rows)
		weights.F32.PutFloat32s(b, steps)
		_, err := w.Write(b)
		return err
	})
	if err != nil {
		return err
	}
	sum := name
	if t.elem != onnxio.Float {
		sum = name + "/sum"
	}
	nodes := encodeNode("Cast", []string{q}, wide, Attribute{Name: "to", Int: int64(onnxio.Float)})
	nodes = append(nodes, encodeNode("Mul", []string{wide, step}, scaled)...)
	nodes = append(nodes, encodeNode("Add", []string{scaled, sharedName("mean", network, t.name)}, sum)...)
	if sum != name {
		nodes = append(nodes, encodeNode("Cast", []string{sum}, name, Attribute{Name: "to", Int: int64(t.elem)})...)
	}
	for _, value := range []string{wide, scaled, sum} {
		nodes = append(nodes, onnxio.Value{Name: value, ElemType: onnxio.Float, Shape: t.shape}.Info()...)
	}
	if sum != name {
		nodes = append(nodes, onnxio.Value{Name: name, ElemType: t.elem, Shape: t.shape}.Info()...)
	}
	return s.write(nodes)
}

// quantiseBlock is the number of weights that are read at a time.
const quantiseBlock = 1 << 18

// quantise writes the deviations of a tensor's elements from their mean as multiples of each row's step. It sets the
// steps.
func quantise(w io.Writer, steps []float32, entry weights.Tensor, from, mean weights.Vector) error {
	row := entry.Len() / int64(len(steps))
	block := min(max(1, quantiseBlock/row)*row, entry.Len()) // whole rows
	values, base, out := make([]float32, block), make([]float32, block), make([]byte, block)
	for at := int64(0); at < entry.Len(); at += block {
		n := min(block, entry.Len()-at)
		if err := from.ReadAt(values[:n], entry.Offset+at); err != nil {
			return err
		}
		if err := mean.ReadAt(base[:n], entry.Offset+at); err != nil {
			return err
		}
		for k := int64(0); k < n; k += row {
			steps[(at+k)/row] = roundRow(out[k:][:row], values[k:][:row], base[k:][:row])
		}
		if _, err := w.Write(out[:n]); err != nil {
			return err
		}
	}
	return nil
}

// roundRow stores the differences of values and base as signed bytes, in multiples of the step that it returns. It
// overwrites values.
func roundRow(out []byte, values, base []float32) (step float32) {
	var peak float32
	for i, b := range base {
		values[i] -= b
		peak = max(peak, values[i], -values[i])
	}
	step = peak / 127
	for i, v := range values {
		q := 0.0
		if step > 0 {
			q = min(max(math.RoundToEven(float64(v)/float64(step)), -127), 127)
		}
		out[i] = byte(int8(q))
	}
	return step
}
