package fused

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
)

// Attribute is an attribute of an operator: an integer, a list of integers, or a number.
type Attribute struct {
	Name  string
	Int   int64
	Ints  []int64  // used instead of Int, if not nil
	Float *float32 // used instead of Int, if not nil
}

// Op adds an operator of the default domain without attributes, and returns the name of its output. The operator
// comes after the members, or before them inside [Model.Takes].
func (m *Model) Op(op string, inputs ...string) string { return m.Node(op, inputs) }

// Rowwise is Op with the attribute axis set to 1.
func (m *Model) Rowwise(op string, inputs ...string) string {
	return m.Node(op, inputs, Attribute{Name: "axis", Int: 1})
}

// Node is Op for an operator with attributes.
func (m *Model) Node(op string, inputs []string, attributes ...Attribute) string {
	name := m.unused(op)
	m.building.nodes = append(m.building.nodes, node{op, inputs, []string{name}, encodeAttributes(attributes)})
	return name
}

// Pair is Op for an operator with two outputs.
func (m *Model) Pair(op string, inputs ...string) (first, second string) {
	first, second = m.unused(op), m.unused(op)
	m.building.nodes = append(m.building.nodes, node{op, inputs, []string{first, second}, nil})
	return first, second
}

// Sum adds the sum over the last of two dimensions, [batch, n] → [batch, 1], and Largest the largest number. ONNX changed the form
// of these operators.
func (m *Model) Sum(x string) string { return reduced(m, "ReduceSum", x, 13) }

// Largest is described at Sum.
func (m *Model) Largest(x string) string { return reduced(m, "ReduceMax", x, 18) }

// reduced reduces dimension 1. The axes are an input since an opset.
func reduced(m *Model, op, x string, axesAreInput int64) string {
	if m.Opset() >= axesAreInput {
		return m.Op(op, x, m.Integers(1))
	}
	return m.Node(op, []string{x}, Attribute{Name: "axes", Ints: []int64{1}})
}

// Sign adds −1, 0 or 1. Before opset 9 it takes two comparisons.
func (m *Model) Sign(x string) string {
	const hasSign = 9
	if m.Opset() >= hasSign {
		return m.Op("Sign", x)
	}
	zero := m.Constant([]float32{0}, 1, 1)
	return m.Op("Sub", m.Floats(m.Op("Greater", x, zero)), m.Floats(m.Op("Less", x, zero)))
}

// AtLeast adds the larger one of x and a bound, and AtMost the smaller one. Max and Min take one bound for all rows since opset 8.
func (m *Model) AtLeast(x string, bound float32) string { return within(m, "Max", "min", x, bound) }

// AtMost is described at AtLeast.
func (m *Model) AtMost(x string, bound float32) string { return within(m, "Min", "max", x, bound) }

func within(m *Model, op, attribute, x string, bound float32) string {
	const spreads = 8
	if m.Opset() < spreads {
		return m.Node("Clip", []string{x}, Attribute{Name: attribute, Float: &bound})
	}
	return m.Op(op, x, m.Constant([]float32{bound}, 1, 1))
}

// Floats adds the conversion to float32, in which true is 1.
func (m *Model) Floats(x string) string { return cast(m, x, onnxio.Float) }

// Integral adds the conversion to int64.
func (m *Model) Integral(x string) string { return cast(m, x, onnxio.Int64) }

func cast(m *Model, x string, to onnxio.ElemType) string {
	return m.Node("Cast", []string{x}, Attribute{Name: "to", Int: int64(to)})
}

// Constant adds a tensor, and returns its name.
func (m *Model) Constant(values []float32, shape ...int64) string {
	raw := make([]byte, 0, 4*len(values))
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	return m.constant(onnxio.Float, raw, shape)
}

// Integers adds a list of int64, and returns its name.
func (m *Model) Integers(values ...int64) string {
	var raw []byte
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
	}
	return m.constant(onnxio.Int64, raw, []int64{int64(len(values))})
}

// Integer adds a single int64 without dimensions.
func (m *Model) Integer(v int64) string {
	return m.constant(onnxio.Int64, binary.LittleEndian.AppendUint64(nil, uint64(v)), nil)
}

func (m *Model) constant(elem onnxio.ElemType, raw []byte, shape []int64) string {
	name := m.unused("Constant")
	m.building.constants = append(m.building.constants, wire.Initializer(name, elem, shape, raw)...)
	return name
}

// unused returns a new name for a value.
func (m *Model) unused(op string) string {
	where := "average"
	if m.building == &m.before {
		where = "input"
	}
	for {
		m.building.count++
		name := fmt.Sprintf("%s/%s_%d", where, op, m.building.count)
		if !slices.ContainsFunc(m.inputs, func(v onnxio.Value) bool { return v.Name == name }) {
			return name
		}
	}
}

// encodeNode encodes an operator, which has the name of its output, as a field of a graph.
func encodeNode(op string, inputs []string, output string, attributes ...Attribute) []byte {
	return wire.Node(op, output, inputs, []string{output}, encodeAttributes(attributes)...)
}

func encodeAttributes(attributes []Attribute) (fields [][]byte) {
	for _, a := range attributes {
		switch {
		case a.Ints != nil:
			fields = append(fields, wire.Ints(a.Name, a.Ints))
		case a.Float != nil:
			fields = append(fields, wire.Float(a.Name, *a.Float))
		default:
			fields = append(fields, wire.Int(a.Name, a.Int))
		}
	}
	return fields
}
