package main

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// A field is one of a protobuf message. What holds a message has fields of its own, everything else is a leaf.
type field struct {
	num    protowire.Number
	wire   protowire.Type
	number uint64 // of varints and fixed numbers
	bytes  []byte // of other leaves
	kind   string // of message, or ""
	fields []*field
}

// messages are the kinds of message of ONNX: which of their fields are messages, and of what kind.
var messages = map[string]map[protowire.Number]string{
	"model":       {7: "graph", 8: "opset", 25: "function"},
	"function":    {7: "node", 9: "opset"},
	"graph":       {1: "node", 5: "tensor", 11: "value", 12: "value", 13: "value"},
	"node":        {5: "attribute"},
	"attribute":   {5: "tensor", 6: "graph", 11: "graph"},
	"tensor":      {13: "entry"},
	"value":       {2: "type"},
	"type":        {1: "tensor type", 4: "sequence", 9: "optional"},
	"tensor type": {2: "shape"},
	"sequence":    {1: "type"},
	"optional":    {1: "type"},
	"shape":       {1: "dimension"},
	"dimension":   {}, "entry": {}, "opset": {},
}

func decodeModel(data []byte) *field {
	return &field{kind: "model", fields: parseFields("model", data)}
}

// parseFields decodes a message; what cannot be decoded is left out.
func parseFields(kind string, data []byte) []*field {
	var fields []*field
	for len(data) > 0 {
		num, wire, n := protowire.ConsumeTag(data)
		if n < 0 {
			return fields
		}
		m := protowire.ConsumeFieldValue(num, wire, data[n:])
		if m < 0 {
			return fields
		}
		f, value := &field{num: num, wire: wire}, data[n:n+m]
		switch wire {
		case protowire.VarintType:
			f.number, _ = protowire.ConsumeVarint(value)
		case protowire.Fixed32Type:
			v, _ := protowire.ConsumeFixed32(value)
			f.number = uint64(v)
		case protowire.Fixed64Type:
			f.number, _ = protowire.ConsumeFixed64(value)
		case protowire.BytesType:
			f.bytes, _ = protowire.ConsumeBytes(value)
			if f.kind = messages[kind][num]; f.kind != "" {
				f.fields, f.bytes = parseFields(f.kind, f.bytes), nil
			}
		}
		fields = append(fields, f)
		data = data[n+m:]
	}
	return fields
}

func appendFields(b []byte, fields []*field) []byte {
	for _, f := range fields {
		b = protowire.AppendTag(b, f.num, f.wire)
		switch f.wire {
		case protowire.VarintType:
			b = protowire.AppendVarint(b, f.number)
		case protowire.Fixed32Type:
			b = protowire.AppendFixed32(b, uint32(f.number))
		case protowire.Fixed64Type:
			b = protowire.AppendFixed64(b, f.number)
		case protowire.BytesType:
			if f.kind != "" {
				b = protowire.AppendBytes(b, appendFields(nil, f.fields))
			} else {
				b = protowire.AppendBytes(b, f.bytes)
			}
		}
	}
	return b
}

func (f *field) clone() *field {
	c := *f
	c.fields = make([]*field, len(f.fields))
	for i, part := range f.fields {
		c.fields[i] = part.clone()
	}
	return &c
}

// A place is a field and the message that it is in.
type place struct {
	*field
	in *field
}

// places lists all fields below one.
func places(f *field) []place {
	var all []place
	for _, c := range f.fields {
		all = append(append(all, place{c, f}), places(c)...)
	}
	return all
}

// A mutator damages models of one network alike: what it does depends on its seed and on the structure of a model,
// which checkpoints have in common, and not on the values of the weights.
type mutator struct {
	*rand.Rand
	donors []*field // models of other networks
}

func newMutator(seed uint64, donors []*field) mutator {
	return mutator{rand.New(rand.NewPCG(seed, 2)), donors}
}

// model damages a model in one to three places, by field or by byte.
func (m mutator) model(data []byte) []byte {
	if m.IntN(8) == 0 {
		return m.raw(bytes.Clone(data))
	}
	root := decodeModel(data)
	for range 1 + m.IntN(3) {
		m.one(root)
	}
	b := appendFields(nil, root.fields)
	if m.IntN(16) == 0 {
		b = m.raw(b)
	}
	return b
}

// raw cuts, flips, repeats or takes out bytes.
func (m mutator) raw(b []byte) []byte {
	if len(b) == 0 {
		return b
	}
	at := m.IntN(len(b))
	if m.IntN(2) == 0 {
		at = m.IntN(min(len(b), 512)) // weights are dull
	}
	end := min(len(b), at+1+m.IntN(16))
	switch m.IntN(5) {
	case 0:
		return b[:at]
	case 1:
		return slices.Delete(b, at, end)
	case 2:
		return slices.Insert(b, at, bytes.Clone(b[at:end])...)
	case 3:
		b[at] = []byte{0, 1, 0x7f, 0x80, 0xff}[m.IntN(5)]
	default:
		b[at] ^= 1 << m.IntN(8)
	}
	return b
}

// one damages one field.
func (m mutator) one(root *field) {
	all := places(root)
	if len(all) == 0 {
		return
	}
	p := all[m.IntN(len(all))]
	if m.IntN(2) == 0 { // graphs have more names of values than anything else
		kinds := []string{"node", "attribute", "tensor", "value", "dimension", "graph"}
		kind := kinds[m.IntN(len(kinds))]
		if of := slices.DeleteFunc(slices.Clone(all), func(q place) bool { return q.in.kind != kind }); len(of) > 0 {
			p = of[m.IntN(len(of))]
		}
	}
	at := slices.Index(p.in.fields, p.field)
	switch m.IntN(6) {
	case 0:
		p.in.fields = slices.Delete(p.in.fields, at, at+1)
	case 1:
		p.in.fields = slices.Insert(p.in.fields, at, p.field)
	case 2: // of this model or of another, in the place of its like
		m.splice(p, all)
	case 3:
		other := m.IntN(len(p.in.fields))
		p.in.fields[at], p.in.fields[other] = p.in.fields[other], p.in.fields[at]
	default:
		m.value(p, all)
	}
}

// splice puts another field of the same kind in a place.
func (m mutator) splice(p place, all []place) {
	if m.IntN(2) == 0 {
		all = places(m.donors[m.IntN(len(m.donors))])
	}
	var like []place
	for _, q := range all {
		if q.num == p.num && q.in.kind == p.in.kind {
			like = append(like, q)
		}
	}
	if len(like) > 0 {
		*p.field = *like[m.IntN(len(like))].clone() // which may be what p lies in
	}
}

var (
	odd      = []uint64{0, 1, 2, 3, 7, 16, 1 << 10, 1 << 16, 1 << 20, math.MaxInt32, 1 << 31, math.MaxUint32, 1 << 40, math.MaxInt64, 1 << 63, math.MaxUint64, math.MaxUint64 - 1}
	extremes = []float32{0, -1, 1, 0.5, 1e-45, 1e38, -1e38, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}
	// Operators that look at shapes, take memory, run bodies, or have kernels of several kinds.
	operators = strings.Fields(`Abs Add ArgMax AveragePool BatchNormalization Cast Concat ConstantOfShape Conv ConvTranspose CumSum DepthToSpace Dropout
		Einsum Expand Flatten Gather GatherElements GatherND Gemm GlobalAveragePool GRU Identity If InstanceNormalization LayerNormalization Loop LSTM
		MatMul MaxPool Mul NonZero OneHot Pad Pow Range ReduceMean ReduceSum Relu Reshape Resize Scan ScatterElements ScatterND Shape Slice Softmax
		SpaceToDepth Split Squeeze Sum Tile TopK Transpose Trilu Unsqueeze Upsample Where QuantizeLinear DequantizeLinear SequenceEmpty RandomNormal`)
	attributes = strings.Fields(`axis axes alpha auto_pad beta blocksize body dilations direction epsilon group hidden_size kernel_shape keepdims
		mode momentum output_shape pads perm shape strides then_branch to training_mode transA transB value`)
)

// value changes what a leaf says, or something in a message.
func (m mutator) value(p place, all []place) {
	f := p.field
	switch {
	case f.kind != "":
		if len(f.fields) > 0 {
			m.value(place{f.fields[m.IntN(len(f.fields))], f}, all)
		}
	case f.wire == protowire.Fixed32Type:
		f.number = uint64(math.Float32bits(extremes[m.IntN(len(extremes))]))
	case f.wire == protowire.Fixed64Type:
		f.number = math.Float64bits(float64(extremes[m.IntN(len(extremes))]))
	case f.wire == protowire.VarintType:
		switch m.IntN(3) {
		case 0:
			f.number = odd[m.IntN(len(odd))]
		case 1:
			f.number += uint64(m.IntN(5)) - 2
		default:
			f.number = uint64(m.IntN(32))
		}
	case p.in.kind == "node" && f.num == 4:
		f.bytes = []byte(operators[m.IntN(len(operators))])
	case p.in.kind == "attribute" && f.num == 1 && m.IntN(2) == 0:
		f.bytes = []byte(attributes[m.IntN(len(attributes))])
	case p.in.kind == "tensor" && f.num != 8: // elements
		if f.bytes = bytes.Clone(f.bytes); len(f.bytes) > 0 {
			f.bytes = m.raw(f.bytes)
		}
	default: // a name: another one of this model
		var names []place
		for _, q := range all {
			if q.kind == "" && q.wire == protowire.BytesType && q.in.kind != "tensor" {
				names = append(names, q)
			}
		}
		switch {
		case m.IntN(4) == 0:
			f.bytes = nil
		case len(names) > 0 && m.IntN(4) > 0:
			f.bytes = names[m.IntN(len(names))].bytes
		default:
			f.bytes = m.raw(bytes.Clone(f.bytes))
		}
	}
}
