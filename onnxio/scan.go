package onnxio

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/swagwrap/swagwrap/weights"
)

// Limits of what is read. Real models stay far below: the largest published
// graphs have some 100,000 nodes and nest two levels deep.
const (
	maxDepth = 32 // graphs within graphs
	maxFile  = math.MaxInt32

	// What a scan keeps may take keepBase bytes plus keepPerByte for each byte of
	// the file, by these rough costs: an empty node takes five bytes of a file and
	// two hundred of memory, twice that while its list grows.
	keepBase    = 16 << 20
	keepPerByte = 2
	itemCost    = 384 // a graph, node, attribute, value or tensor
	nameCost    = 64  // a name or a dimension
)

// Field numbers of onnx.proto.
const (
	modelIR, modelProducer, modelProducerVersion, modelGraph, modelOpset, modelTraining, modelFunction = 1, 2, 3, 7, 8, 20, 25

	opsetDomain, opsetVersion = 1, 2

	graphNode, graphName, graphInitializer, graphInput, graphOutput, graphSparse = 1, 2, 5, 11, 12, 15

	nodeInput, nodeOutput, nodeName, nodeOpType, nodeAttribute, nodeDomain = 1, 2, 3, 4, 5, 7

	attrName, attrFloat, attrInt, attrTensor, attrGraph, attrTensors, attrGraphs, attrType = 1, 2, 3, 5, 6, 10, 11, 20

	tensorDims, tensorType, tensorSegment, tensorFloat, tensorInt32, tensorString, tensorInt64 = 1, 2, 3, 4, 5, 6, 7
	tensorName, tensorRaw, tensorDouble, tensorUint64, tensorExternal, tensorLocation          = 8, 9, 10, 11, 13, 14

	valueName, valueType, typeTensor, tensorTypeElem, tensorTypeShape, shapeDim, dimValue, dimParam = 1, 2, 1, 1, 2, 1, 1, 2
)

// field is one field of a message, with absolute offsets into the file.
type field struct {
	num    protowire.Number
	typ    protowire.Type
	tag    int    // offset of the tag
	length int    // offset of the length prefix (BytesType)
	body   span   // the value's bytes
	varint uint64 // VarintType, Fixed32Type, Fixed64Type
}

// scanner walks one model.
type scanner struct {
	data []byte
	kept int
}

// keep accounts for something that the model will hold.
func (s *scanner) keep(cost int) error {
	if s.kept += cost; s.kept > keepBase+keepPerByte*len(s.data) {
		return fmt.Errorf("too many nodes, tensors and names for a file of %d bytes", len(s.data))
	}
	return nil
}

// fields calls f for each field of the message body.
func (s *scanner) fields(body span, f func(field) error) error {
	for at := body.start; at < body.end; {
		num, typ, n := protowire.ConsumeTag(s.data[at:body.end])
		if n < 0 {
			return fmt.Errorf("byte %d: %w", at, wireError(n))
		}
		fl := field{num: num, typ: typ, tag: at, length: at + n}
		at += n
		switch typ {
		case protowire.VarintType:
			fl.varint, n = protowire.ConsumeVarint(s.data[at:body.end])
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(s.data[at:body.end])
			fl.varint = uint64(v)
		case protowire.Fixed64Type:
			fl.varint, n = protowire.ConsumeFixed64(s.data[at:body.end])
		case protowire.BytesType:
			var b []byte
			b, n = protowire.ConsumeBytes(s.data[at:body.end])
			fl.body = span{at + n - len(b), at + n}
		default: // groups are not used by onnx.proto
			n = protowire.ConsumeFieldValue(num, typ, s.data[at:body.end])
		}
		if n < 0 {
			return fmt.Errorf("byte %d: field %d: %w", at, num, wireError(n))
		}
		if typ != protowire.BytesType {
			fl.body = span{at, at + n}
		}
		at += n
		if err := f(fl); err != nil {
			return err
		}
	}
	return nil
}

// wireError explains a protowire failure in words a user can act on.
func wireError(n int) error {
	err := protowire.ParseError(n)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the file ends in the middle of a field: truncated, or not protobuf")
	}
	return err
}

// want checks a field's wire type.
func (f field) want(t protowire.Type) error {
	if f.typ != t {
		return fmt.Errorf("byte %d: field %d has wire type %d, want %d", f.tag, f.num, f.typ, t)
	}
	return nil
}

// child returns the message that the field is.
func (f field) child(parent *message) (*message, error) {
	if err := f.want(protowire.BytesType); err != nil {
		return nil, err
	}
	return &message{parent: parent, tag: f.tag, length: f.length, start: f.body.start, end: f.body.end}, nil
}

func (s *scanner) str(f field) (string, error) {
	if err := f.want(protowire.BytesType); err != nil {
		return "", err
	}
	b := s.data[f.body.start:f.body.end]
	if !utf8.Valid(b) {
		return "", fmt.Errorf("byte %d: field %d: not UTF-8", f.tag, f.num)
	}
	return string(b), nil
}

func (m *Model) scan() error {
	if len(m.data) > maxFile {
		return &Error{What: fmt.Sprintf("%d bytes: protobuf stops at 2 GiB", len(m.data)),
			Hint: "export with external data, which has no such limit"}
	}
	if len(m.data) == 0 {
		return errors.New("the file is empty")
	}
	if len(m.data) >= 2 && m.data[0] == 'P' && m.data[1] == 'K' {
		return &Error{What: "a zip archive, not ONNX", Hint: "a PyTorch .pt checkpoint must be exported first: torch.onnx.export (see README.md, \"Exporting\")"}
	}
	s := &scanner{data: m.data}
	root := &message{length: -1, end: len(m.data)}
	err := s.fields(span{0, len(m.data)}, func(f field) (err error) {
		switch f.num {
		case modelIR:
			m.IRVersion = int64(f.varint)
			err = f.want(protowire.VarintType)
		case modelProducer:
			m.ProducerName, err = s.str(f)
		case modelProducerVersion:
			m.ProducerVersion, err = s.str(f)
		case modelOpset:
			err = s.opset(m, f)
		case modelGraph:
			if m.Graph != nil {
				return errors.New("several graph fields")
			}
			var msg *message
			if msg, err = f.child(root); err == nil {
				m.Graph, err = s.graph(msg, 0)
			}
		case modelTraining:
			return &Error{What: "holds training information (TrainingInfoProto)", Hint: "export the inference graph alone"}
		case modelFunction:
			m.Functions++
		}
		return err
	})
	if err != nil {
		return err
	}
	if m.Graph == nil || m.IRVersion == 0 {
		return errors.New("no graph or no IR version in it: not an ONNX model")
	}
	if len(m.Graph.Nodes) == 0 || len(m.Graph.Outputs) == 0 {
		return errors.New("its graph has no nodes or no outputs: truncated?")
	}
	if m.Opset <= 0 { // exporters write it last
		return errors.New("no opset version in it: truncated?")
	}
	seen := make(map[string]bool, len(m.Graph.Initializers))
	for _, t := range m.Graph.Initializers {
		if seen[t.Name] {
			return &Error{Tensor: t.Name, What: "two initializers have this name"}
		}
		seen[t.Name] = true
	}
	return nil
}

func (s *scanner) opset(m *Model, f field) error {
	if err := f.want(protowire.BytesType); err != nil {
		return err
	}
	var domain string
	var version int64
	err := s.fields(f.body, func(f field) (err error) {
		switch f.num {
		case opsetDomain:
			domain, err = s.str(f)
		case opsetVersion:
			version, err = int64(f.varint), f.want(protowire.VarintType)
		}
		return err
	})
	if domain == "" || domain == "ai.onnx" {
		m.Opset = version
	}
	return err
}

func (s *scanner) graph(msg *message, depth int) (*Graph, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("graphs nest deeper than %d", maxDepth)
	}
	if err := s.keep(itemCost); err != nil {
		return nil, err
	}
	g := &Graph{msg: msg}
	err := s.fields(span{msg.start, msg.end}, func(f field) (err error) {
		switch f.num {
		case graphName:
			g.Name, err = s.str(f)
		case graphNode:
			var n Node
			n, err = s.node(f, msg, depth)
			g.Nodes = append(g.Nodes, n)
		case graphInitializer:
			var t *Tensor
			if t, err = s.tensor(f, msg); err == nil {
				g.Initializers = append(g.Initializers, *t)
			}
		case graphInput, graphOutput:
			var v Value
			v, err = s.value(f, msg)
			if f.num == graphInput {
				g.Inputs = append(g.Inputs, v)
			} else {
				g.Outputs = append(g.Outputs, v)
			}
		case graphSparse:
			return &Error{What: "has sparse initializers, which cannot be part of a posterior",
				Hint: "export dense weights"}
		}
		return err
	})
	return g, err
}

func (s *scanner) node(f field, parent *message, depth int) (Node, error) {
	var n Node
	if err := s.keep(itemCost); err != nil {
		return n, err
	}
	msg, err := f.child(parent)
	if err != nil {
		return n, err
	}
	n.msg = msg
	err = s.fields(f.body, func(f field) (err error) {
		switch f.num {
		case nodeInput:
			err = s.appendStr(&n.Inputs, f)
			n.inputs = append(n.inputs, span{f.tag, f.body.end})
		case nodeOutput:
			err = s.appendStr(&n.Outputs, f)
			n.outputs = append(n.outputs, span{f.tag, f.body.end})
		case nodeName:
			n.Name, err = s.str(f)
		case nodeOpType:
			n.OpType, err = s.str(f)
		case nodeDomain:
			n.Domain, err = s.str(f)
		case nodeAttribute:
			var a Attribute
			a, err = s.attribute(f, msg, depth)
			n.Attributes = append(n.Attributes, a)
		}
		return err
	})
	if err == nil && n.OpType == "" {
		err = fmt.Errorf("byte %d: a node without an operator", f.tag)
	}
	if n.Domain == "ai.onnx" {
		n.Domain = ""
	}
	return n, err
}

func (s *scanner) appendStr(dst *[]string, f field) error {
	if err := s.keep(nameCost + f.body.end - f.body.start); err != nil {
		return err
	}
	v, err := s.str(f)
	*dst = append(*dst, v)
	return err
}

func (s *scanner) attribute(f field, parent *message, depth int) (Attribute, error) {
	var a Attribute
	if err := s.keep(itemCost); err != nil {
		return a, err
	}
	msg, err := f.child(parent)
	if err != nil {
		return a, err
	}
	a.msg = msg
	err = s.fields(f.body, func(f field) (err error) {
		switch f.num {
		case attrName:
			a.Name, err = s.str(f)
		case attrType:
			a.Type = int64(f.varint)
		case attrInt:
			a.Int, err = int64(f.varint), f.want(protowire.VarintType)
		case attrFloat:
			a.Float, err = math.Float32frombits(uint32(f.varint)), f.want(protowire.Fixed32Type)
		case attrTensor:
			a.Tensor, err = s.tensor(f, msg)
		case attrGraph, attrGraphs:
			var sub *message
			if sub, err = f.child(msg); err == nil {
				var g *Graph
				g, err = s.graph(sub, depth+1)
				a.Graphs = append(a.Graphs, g)
			}
		}
		return err
	})
	return a, err
}

func (s *scanner) value(f field, parent *message) (Value, error) {
	var v Value
	if err := s.keep(itemCost); err != nil {
		return v, err
	}
	msg, err := f.child(parent)
	if err != nil {
		return v, err
	}
	v.msg = msg
	inner := func(num protowire.Number, g func(field) error) func(field) error {
		return func(f field) error {
			if f.num != num {
				return nil
			}
			if err := f.want(protowire.BytesType); err != nil {
				return err
			}
			return s.fields(f.body, g)
		}
	}
	dim := func(f field) error {
		if f.num != shapeDim {
			return nil
		}
		if err := errors.Join(s.keep(nameCost), f.want(protowire.BytesType)); err != nil {
			return err
		}
		d, name := int64(-1), ""
		err := s.fields(f.body, func(f field) (err error) {
			switch f.num {
			case dimValue:
				d = int64(f.varint)
			case dimParam:
				name, err = s.str(f)
			}
			return err
		})
		v.Shape, v.Dims = append(v.Shape, max(d, -1)), append(v.Dims, name)
		return err
	}
	tensorType := func(f field) error {
		switch f.num {
		case tensorTypeElem:
			v.ElemType = ElemType(f.varint)
		case tensorTypeShape:
			v.Shape, v.Dims = []int64{}, nil // a scalar has a shape, and it is empty
			if err := f.want(protowire.BytesType); err != nil {
				return err
			}
			return s.fields(f.body, dim)
		}
		return nil
	}
	err = s.fields(f.body, func(f field) (err error) {
		switch f.num {
		case valueName:
			v.Name, err = s.str(f)
		case valueType:
			err = inner(valueType, inner(typeTensor, tensorType))(f)
		}
		return err
	})
	return v, err
}

// elementFields are the TensorProto fields that hold elements as they lie in
// memory, so that they can be read and replaced in place.
var elementFields = map[ElemType]int{Float: tensorFloat, Double: tensorDouble}

func (s *scanner) tensor(f field, parent *message) (*Tensor, error) {
	if err := s.keep(itemCost); err != nil {
		return nil, err
	}
	msg, err := f.child(parent)
	if err != nil {
		return nil, err
	}
	t := &Tensor{msg: msg}
	var elements []field // the fields with elements, of whatever kind
	err = s.fields(f.body, func(f field) (err error) {
		switch f.num {
		case tensorDims:
			return s.dims(t, f)
		case tensorType:
			t.ElemType, err = ElemType(f.varint), f.want(protowire.VarintType)
		case tensorName:
			t.Name, err = s.str(f)
		case tensorSegment:
			err = errors.New("tensor in segments")
		case tensorLocation:
			t.external = f.varint == 1
		case tensorRaw, tensorFloat, tensorInt32, tensorString, tensorInt64, tensorDouble, tensorUint64:
			// Unpacked elements come one a field: the first two say enough.
			if len(elements) < 2 {
				elements = append(elements, f)
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	n, err := weights.Elements(t.Shape)
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	if t.external || !t.ElemType.DType().IsFloat() || len(elements) == 0 && n == 0 {
		return t, nil
	}
	return t, t.locate(elements, n)
}

func (s *scanner) dims(t *Tensor, f field) error {
	add := func(v uint64) error {
		t.Shape = append(t.Shape, int64(v))
		return s.keep(nameCost)
	}
	if f.typ == protowire.VarintType {
		return add(f.varint)
	}
	if err := f.want(protowire.BytesType); err != nil {
		return err
	}
	for b := s.data[f.body.start:f.body.end]; len(b) > 0; {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return wireError(n)
		}
		if err := add(v); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// locate finds the n elements of a float tensor among the fields that hold
// elements, and checks their size.
func (t *Tensor) locate(elements []field, n int64) error {
	if len(elements) == 0 {
		return &Error{Tensor: t.Name, What: fmt.Sprintf("%v %v without elements", t.ElemType, t.Shape)}
	}
	f := elements[0]
	inPlace := int(f.num) == tensorRaw || int(f.num) == elementFields[t.ElemType]
	if len(elements) > 1 || f.typ != protowire.BytesType || !inPlace {
		return nil // no payload: good enough for a constant, see Tensor.readable
	}
	size := t.ElemType.DType().Size()
	if got := int64(f.body.end - f.body.start); got%size != 0 || got/size != n {
		return &Error{Tensor: t.Name, What: fmt.Sprintf("%d bytes of elements, want %d for %v %v", got, n*size, t.ElemType, t.Shape)}
	}
	t.stored, t.payload = true, f.body
	return nil
}

// Graphs returns the model's graph and every graph nested in it.
func (m *Model) Graphs() []*Graph {
	all := []*Graph{m.Graph}
	for i := 0; i < len(all); i++ {
		for _, n := range all[i].Nodes {
			for _, a := range n.Attributes {
				all = append(all, a.Graphs...)
			}
		}
	}
	return slices.Clip(all)
}
