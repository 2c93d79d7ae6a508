package fused

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// Range is the least and the largest element of a value inside a member.
type Range struct{ Low, High float32 }

// NewQDQ is [NewNetwork] of a network that computes in 8 bits. Its members have [Member.Ranges].
func NewQDQ(path string, t *onnxio.Template, l *weights.Layout, inputs []onnxio.Value, output string) (*Network, error) {
	q, how, err := t.QDQ(l)
	if err != nil {
		return nil, (&Network{path: path}).fail("", err)
	}
	n, err := NewNetwork(path, q, l, inputs, output)
	if err != nil {
		return nil, err
	}
	fill := make(map[string]func(vectors) ([]byte, error))
	for _, a := range how.Activations {
		fill[a.Step] = func(v vectors) ([]byte, error) {
			step, _ := v.steps(a.Value)
			return weightBytes(step), nil
		}
		fill[a.Zero] = func(v vectors) ([]byte, error) {
			_, zero := v.steps(a.Value)
			return []byte{zero}, nil
		}
	}
	for i := range how.Layers {
		layer := &how.Layers[i]
		of := func(pick func(*eightBits) []byte) func(vectors) ([]byte, error) {
			return func(v vectors) ([]byte, error) {
				e, err := v.layer(n, layer)
				if err != nil {
					return nil, err
				}
				return pick(e), nil
			}
		}
		fill[layer.Int8] = of(func(e *eightBits) []byte { return e.weights })
		fill[layer.Step] = of(func(e *eightBits) []byte { return weightBytes(e.steps...) })
		if layer.Int32 != "" {
			fill[layer.Int32] = of(func(e *eightBits) []byte { return e.bias })
			fill[layer.Steps] = of(func(e *eightBits) []byte { return weightBytes(e.biasSteps...) })
		}
	}
	for i := range n.tensors {
		t := &n.tensors[i]
		if t.fill = fill[t.name]; t.fill != nil {
			t.own = true
		}
	}
	return n, nil
}

// vectors are what the elements of a member's tensors are computed from.
type vectors struct {
	from   map[weights.Role]weights.Vector
	ranges map[string]Range
	last   *computed // what was computed last
}

type computed struct {
	of    *onnxio.QDQLayer
	found *eightBits
}

// steps returns the step and the zero of a value.
func (v vectors) steps(value string) (step float32, zero byte) {
	r := v.ranges[value]
	return onnxio.QDQActivation{}.Steps(r.Low, r.High)
}

// eightBits are the elements of a layer.
type eightBits struct {
	weights, bias    []byte
	steps, biasSteps []float32
}

// layer computes the elements of a layer. Its four tensors follow each other, so the last one is kept.
func (v vectors) layer(n *Network, l *onnxio.QDQLayer) (*eightBits, error) {
	if v.last.of == l {
		return v.last.found, nil
	}
	w, err := v.read(n, l.Weight)
	if err != nil {
		return nil, err
	}
	channels := int(l.Shape[l.Axis])
	if l.Transpose {
		w = turned(w, channels)
	}
	inner := len(w) / channels // elements of a channel, which lie together if it is the first axis
	at := func(c, k int) int { return c*inner + k }
	if l.Axis == 1 {
		at = func(c, k int) int { return k*channels + c }
	}
	bias := make([]float64, channels)
	if l.Bias != nil {
		b, err := v.read(n, *l.Bias)
		if err != nil {
			return nil, err
		}
		for c := range bias {
			bias[c] = float64(b[c])
		}
	}
	if l.Norm != nil {
		if err := v.fold(n, l, w, bias, inner); err != nil {
			return nil, err
		}
	}
	e := &eightBits{weights: make([]byte, len(w)), steps: make([]float32, channels), biasSteps: make([]float32, channels)}
	in, _ := v.steps(l.In)
	for c := range channels {
		peak := float32(0)
		for k := range inner {
			peak = max(peak, w[at(c, k)], -w[at(c, k)])
		}
		step := max(peak/mostInt8, float32(math.Abs(bias[c])/float64(in)/mostBias))
		if step == 0 {
			step = 1
		}
		e.steps[c], e.biasSteps[c] = step, in*step
		for k := range inner {
			e.weights[at(c, k)] = byte(int8(math.RoundToEven(float64(w[at(c, k)] / step))))
		}
		e.bias = binary.LittleEndian.AppendUint32(e.bias, uint32(int32(math.RoundToEven(bias[c]/float64(e.biasSteps[c])))))
	}
	v.last.of, v.last.found = l, e
	return e, nil
}

const (
	// mostInt8 is the largest weight. Processors with AVX2 and without VNNI add two products of bytes in 16 bits, so
	// that more than 7 bits would overflow there, in silence.
	mostInt8 = 64
	// mostBias is the largest bias in int32.
	mostBias = 1 << 30
)

// fold makes a batch norm a part of the weights and the bias of a convolution.
func (v vectors) fold(n *Network, l *onnxio.QDQLayer, w []float32, bias []float64, inner int) error {
	var norm [][]float32
	for _, s := range l.Norm {
		values, err := v.read(n, s)
		if err != nil {
			return err
		}
		norm = append(norm, values)
	}
	for c := range bias {
		factor := float64(norm[0][c]) / math.Sqrt(float64(norm[3][c])+l.Epsilon)
		for k := range inner {
			w[c*inner+k] = float32(float64(w[c*inner+k]) * factor)
		}
		bias[c] = float64(norm[1][c]) + factor*(bias[c]-float64(norm[2][c]))
	}
	return nil
}

// read returns the elements of a tensor of a layer, in memory of their own.
func (v vectors) read(n *Network, s onnxio.QDQSource) ([]float32, error) {
	if s.Entry == "" {
		return slices.Clone(s.Values), nil
	}
	entry := n.entries[s.Entry]
	if entry.DType != weights.F32 {
		return nil, n.fail(s.Entry, fmt.Errorf("%v, want F32 for int8", entry.DType))
	}
	var b bytes.Buffer
	if err := weights.WriteTensor(&b, entry, v.from[entry.Role.Vector()]); err != nil {
		return nil, err
	}
	out := make([]float32, entry.Len())
	weights.F32.Float32s(out, b.Bytes())
	return out, nil
}

// turned returns the transpose of a matrix with so many rows.
func turned(w []float32, rows int) []float32 {
	columns := len(w) / rows
	out := make([]float32, 0, len(w))
	for c := range columns {
		for r := range rows {
			out = append(out, w[r*columns+c])
		}
	}
	return out
}

func weightBytes(values ...float32) []byte {
	b := make([]byte, 4*len(values))
	weights.F32.PutFloat32s(b, values)
	return b
}
