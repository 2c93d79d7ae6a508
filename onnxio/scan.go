package onnxio

import (
	"bytes"
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
	// three hundred of memory. A real graph of 100,000 nodes has 16 MB and takes
	// 110, by the costs; its weights may be elsewhere, and do not count.
	keepBase    = 40 << 20
	keepPerByte = 5
	itemCost    = 320 // a graph, node, attribute, value or tensor
	nameCost    = 112 // a name, a dimension or a field, while their list grows
)

// Field numbers of onnx.proto.
const (
	modelIR, modelProducer, modelProducerVersion, modelGraph, modelOpset, modelTraining, modelFunction = 1, 2, 3, 7, 8, 20, 25

	opsetDomain, opsetVersion = 1, 2

	functionName, functionNode = 1, 7

	graphNode, graphName, graphInitializer, graphInput, graphOutput, graphSparse = 1, 2, 5, 11, 12, 15

	nodeInput, nodeOutput, nodeName, nodeOpType, nodeAttribute, nodeDomain, nodeMetadata = 1, 2, 3, 4, 5, 7, 9

	attrName, attrFloat, attrInt, attrTensor, attrGraph, attrFloats, attrGraphs, attrType = 1, 2, 3, 5, 6, 7, 11, 20

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
	data    content
	held    int // bytes of data at hand
	kept    int
	tensors []*Tensor
}

// keep accounts for something that the model will hold.
func (s *scanner) keep(cost int) error {
	s.kept += cost
	return s.room(0)
}

// room fails if there is none left for something of the given cost.
func (s *scanner) room(cost int) error {
	if s.kept+cost > keepBase+keepPerByte*s.held {
		return fmt.Errorf("too many nodes, tensors and names for a file of %d bytes", s.held)
	}
	return nil
}

// nodes returns a list with room for the nodes among the fields of a message: a
// list that grows takes twice as much, and there may be a hundred thousand.
func (s *scanner) nodes(body span, num protowire.Number) ([]Node, error) {
	n := 0
	err := s.fields(body, func(f field) error {
		if f.num == num {
			n++
		}
		return nil
	})
	if err := errors.Join(err, s.room(n*itemCost)); err != nil {
		return nil, err
	}
	return make([]Node, 0, n), nil
}

// fields calls f for each field of the message body.
func (s *scanner) fields(body span, f func(field) error) error {
	for at := body.start; at < body.end; {
		b := s.data.from(span{at, body.end})
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("byte %d: %w", at, wireError(n))
		}
		fl := field{num: num, typ: typ, tag: at, length: at + n}
		at, b = at+n, b[n:]
		length := 0 // of what a length prefix announces, which may be a hole
		switch typ {
		case protowire.VarintType:
			fl.varint, n = protowire.ConsumeVarint(b)
		case protowire.Fixed32Type:
			if s.data.absent(span{at, at + 4}) {
				n = 4
				break
			}
			var v uint32
			v, n = protowire.ConsumeFixed32(b)
			fl.varint = uint64(v)
		case protowire.Fixed64Type:
			fl.varint, n = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			var v uint64
			if v, n = protowire.ConsumeVarint(b); n >= 0 {
				if v > uint64(body.end-at-n) {
					return fmt.Errorf("byte %d: field %d: %w", at, num, errTruncated)
				}
				at, length, n = at+n, int(v), 0
			}
		default: // groups are not used by onnx.proto
			n = protowire.ConsumeFieldValue(num, typ, b)
		}
		if n < 0 {
			return fmt.Errorf("byte %d: field %d: %w", at, num, wireError(n))
		}
		fl.body = span{at, at + n + length}
		at = fl.body.end
		if err := f(fl); err != nil {
			return err
		}
	}
	return nil
}

var errTruncated = errors.New("the file ends in the middle of a field: truncated, or not protobuf")

// wireError explains a protowire failure in words a user can act on.
func wireError(n int) error {
	err := protowire.ParseError(n)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errTruncated
	}
	return err
}

// bytes returns the body of a field.
func (s *scanner) bytes(f field) ([]byte, error) {
	b, ok := s.data.bytes(f.body)
	if !ok {
		return nil, fmt.Errorf("byte %d: field %d: has a hole for weights in it", f.tag, f.num)
	}
	return b, nil
}

// want checks a field's wire type.
func (f field) want(t protowire.Type) error {
	if f.typ != t {
		return fmt.Errorf("byte %d: field %d has wire type %d, want %d", f.tag, f.num, f.typ, t)
	}
	return nil
}

// enter returns the message that the field is, which the model will hold.
func (s *scanner) enter(f field, parent *message) (*message, error) {
	if err := s.keep(itemCost); err != nil {
		return nil, err
	}
	if err := f.want(protowire.BytesType); err != nil {
		return nil, err
	}
	return &message{parent: parent, tag: f.tag, length: f.length, start: f.body.start, end: f.body.end}, nil
}

func (s *scanner) str(f field) (string, error) {
	if err := f.want(protowire.BytesType); err != nil {
		return "", err
	}
	b, err := s.bytes(f)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(b) {
		return "", fmt.Errorf("byte %d: field %d: not UTF-8", f.tag, f.num)
	}
	return string(b), nil
}

// scan reads the model's structure. Every error is an [*Error].
func (m *Model) scan() error {
	s := &scanner{data: m.data, held: m.data.held()}
	err := s.model(m)
	if err == nil {
		err = m.check()
	}
	var e *Error
	switch {
	case errors.As(err, &e):
		e.Path = m.Path
		return e
	case err != nil:
		return &Error{Path: m.Path, What: "not a readable ONNX model", Err: err,
			Hint: fmt.Sprintf("is the file complete, and was it written by an ONNX exporter? (size: %d bytes)", m.data.size)}
	}
	m.tensors = s.tensors
	m.nameTensors()
	return nil
}

func (s *scanner) model(m *Model) error {
	switch start := s.data.from(span{0, s.data.size}); {
	case s.data.size > maxFile:
		return &Error{What: fmt.Sprintf("%d bytes: protobuf stops at 2 GiB", s.data.size),
			Hint: "export with external data, which has no such limit"}
	case s.data.size == 0:
		return errors.New("the file is empty")
	case bytes.HasPrefix(start, []byte("PK")):
		return &Error{What: "a zip archive, not ONNX", Hint: "a PyTorch .pt checkpoint must be exported first: torch.onnx.export (see README.md)"}
	}
	root := &message{length: -1, end: s.data.size}
	return s.fields(span{0, s.data.size}, func(f field) (err error) {
		switch f.num {
		case modelIR:
			m.IRVersion, m.irVersion = int64(f.varint), f.body
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
			m.Graph, err = s.graph(f, root, 0)
		case modelTraining:
			return &Error{What: "holds training information (TrainingInfoProto)", Hint: "export the inference graph alone"}
		case modelFunction:
			var g *Graph
			g, err = s.function(f, root)
			m.Functions = append(m.Functions, g)
		}
		return err
	})
}

// check looks for what every model has, since exporters write it last and a
// truncated file lacks it.
func (m *Model) check() error {
	if m.Graph == nil || m.IRVersion == 0 {
		return errors.New("no graph or no IR version in it: not an ONNX model")
	}
	if len(m.Graph.Nodes) == 0 || len(m.Graph.Outputs) == 0 {
		return errors.New("its graph has no nodes or no outputs: truncated?")
	}
	if m.Opset <= 0 {
		return errors.New("no opset version in it: truncated?")
	}
	for _, g := range m.Graphs() {
		seen := make(map[string]bool, len(g.Initializers))
		for _, t := range g.Initializers {
			if seen[t.local] {
				return &Error{Tensor: t.local, What: "two initializers have this name"}
			}
			seen[t.local] = true
		}
	}
	return nil
}

// nameTensors makes the tensors' names unique: those of the main graph's
// initializers stay, and others get a number where their name is taken.
func (m *Model) nameTensors() {
	taken := make(map[string]bool, len(m.tensors))
	own := make(map[*Tensor]bool, len(m.Graph.Initializers))
	for _, t := range m.Graph.Initializers {
		taken[t.local], own[t] = true, true
	}
	for _, t := range m.tensors {
		t.Name = t.local
		for k := 2; !own[t] && taken[t.Name]; k++ {
			t.Name = fmt.Sprintf("%s#%d", t.local, k)
		}
		taken[t.Name] = true
	}
	m.known = make(map[string]*Tensor, len(m.tensors))
	for _, t := range m.tensors {
		m.known[t.Name] = t
	}
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

func (s *scanner) graph(f field, parent *message, depth int) (*Graph, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("graphs nest deeper than %d", maxDepth)
	}
	msg, err := s.enter(f, parent)
	if err != nil {
		return nil, err
	}
	g := &Graph{msg: msg}
	if g.Nodes, err = s.nodes(f.body, graphNode); err != nil {
		return nil, err
	}
	err = s.fields(f.body, func(f field) (err error) {
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
				g.Initializers = append(g.Initializers, t)
				s.tensors = append(s.tensors, t)
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

// function reads the nodes of a FunctionProto.
func (s *scanner) function(f field, parent *message) (*Graph, error) {
	msg, err := s.enter(f, parent)
	if err != nil {
		return nil, err
	}
	g := &Graph{msg: msg}
	if g.Nodes, err = s.nodes(f.body, functionNode); err != nil {
		return nil, err
	}
	err = s.fields(f.body, func(f field) (err error) {
		switch f.num {
		case functionName:
			g.Name, err = s.str(f)
		case functionNode:
			var n Node
			n, err = s.node(f, msg, 0)
			g.Nodes = append(g.Nodes, n)
		}
		return err
	})
	return g, err
}

func (s *scanner) node(f field, parent *message, depth int) (Node, error) {
	var n Node
	msg, err := s.enter(f, parent)
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
		case nodeMetadata:
			var b []byte
			b, err = s.bytes(f)
			n.foldsBatchNorm = n.foldsBatchNorm || bytes.Contains(b, []byte(foldRule))
		case nodeAttribute:
			var a Attribute
			a, err = s.attribute(f, msg, depth)
			n.Attributes = append(n.Attributes, a)
		}
		return err
	})
	if n.Domain == "ai.onnx" {
		n.Domain = ""
	}
	if err == nil && n.OpType == "Constant" && n.Domain == "" {
		err = s.constant(&n)
	}
	if err == nil && n.OpType == "" {
		err = fmt.Errorf("byte %d: a node without an operator", f.tag)
	}
	return n, err
}

// constant notes the float tensor that a Constant node holds: exporters keep
// weights there too.
func (s *scanner) constant(n *Node) error {
	if len(n.Outputs) != 1 {
		return fmt.Errorf("node %q: a Constant with %d outputs", n.Name, len(n.Outputs))
	}
	for i := range n.Attributes {
		a := &n.Attributes[i]
		t := a.Tensor
		switch a.Name {
		case "value_float", "value_floats":
			if len(a.floats) != 1 || (a.floats[0].end-a.floats[0].start)%4 != 0 {
				continue // empty, or not in one piece: no exporter keeps weights so
			}
			t = &Tensor{ElemType: Float, msg: a.msg, elements: elements{inPlace: true, payload: a.floats[0]}}
			if a.Name == "value_floats" {
				t.Shape = []int64{int64(t.payload.end-t.payload.start) / 4}
			} else if t.payload.end-t.payload.start != 4 {
				return fmt.Errorf("node %q: a Constant with a value_float of %d bytes", n.Name, t.payload.end-t.payload.start)
			}
		}
		if t != nil {
			t.local = n.Outputs[0]
			s.tensors = append(s.tensors, t)
			n.constant = t
		}
	}
	return nil
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
	msg, err := s.enter(f, parent)
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
			a.floats = append(a.floats, f.body)
		case attrFloats:
			if f.typ != protowire.Fixed32Type { // else a list of one
				err = f.want(protowire.BytesType)
			}
			a.floats = append(a.floats, f.body)
			err = errors.Join(err, s.keep(nameCost))
		case attrTensor:
			a.Tensor, err = s.tensor(f, msg)
		case attrGraph, attrGraphs:
			var g *Graph
			g, err = s.graph(f, msg, depth+1)
			a.Graphs = append(a.Graphs, g)
		}
		return err
	})
	return a, err
}

func (s *scanner) value(f field, parent *message) (Value, error) {
	var v Value
	msg, err := s.enter(f, parent)
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

func (s *scanner) tensor(f field, parent *message) (*Tensor, error) {
	msg, err := s.enter(f, parent)
	if err != nil {
		return nil, err
	}
	t := &Tensor{msg: msg}
	x := &external{length: -1, seen: make(map[string]bool)}
	outside := false
	var fields []field // those with elements, of whatever kind
	err = s.fields(f.body, func(f field) (err error) {
		switch f.num {
		case tensorDims:
			return s.dims(t, f)
		case tensorType:
			t.ElemType, err = ElemType(f.varint), f.want(protowire.VarintType)
		case tensorName:
			t.local, err = s.str(f)
		case tensorSegment:
			err = errors.New("tensor in segments")
		case tensorExternal:
			err = s.externalEntry(x, f)
			t.replaces(span{f.tag, f.body.end})
		case tensorLocation:
			outside = f.varint == 1
			t.replaces(span{f.tag, f.body.end})
		case tensorRaw, tensorFloat, tensorInt32, tensorString, tensorInt64, tensorDouble, tensorUint64:
			fields = append(fields, f)
			err = s.keep(itemCost / 2)
		}
		return err
	})
	if err != nil {
		return nil, &Error{Tensor: t.local, Err: err}
	}
	n, err := weights.Elements(t.Shape)
	switch {
	case err != nil:
		return nil, &Error{Tensor: t.local, Err: err}
	case outside && len(fields) > 0:
		return nil, &Error{Tensor: t.local, What: "elements both in the file and outside"}
	case outside:
		t.external = x
		return t, nil
	case len(x.seen) > 0:
		return nil, &Error{Tensor: t.local, What: "external data, but its location is said to be the file itself"}
	}
	notOutside := t.fields
	t.fields = nil // an explicit "not outside" stays as it is
	if !t.ElemType.DType().IsFloat() {
		return t, nil
	}
	if err := s.locate(t, fields, n); err != nil || !t.inPlace {
		return t, err
	}
	t.fields = append(notOutside, span{fields[0].tag, t.payload.end})
	return t, nil
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
	b, err := s.bytes(f)
	if err != nil {
		return err
	}
	for len(b) > 0 {
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
