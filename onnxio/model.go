package onnxio

import (
	"errors"
	"fmt"

	"github.com/swagwrap/swagwrap/weights"
)

// Model is an ONNX file, scanned. Its strings are copies; its tensors are
// ranges of the file.
type Model struct {
	Path            string // for error messages
	IRVersion       int64
	ProducerName    string
	ProducerVersion string
	Opset           int64 // of the default domain
	Graph           *Graph
	Functions       int // number of model-local functions

	data    []byte
	mapping *weights.Mapping
}

// Graph is a GraphProto: the model's own or the body of an If, Loop or Scan.
type Graph struct {
	Name         string
	Nodes        []Node
	Initializers []Tensor
	Inputs       []Value // initializers that IR < 4 repeats here included
	Outputs      []Value

	msg *message
}

// Node is a NodeProto.
type Node struct {
	Name, OpType, Domain string
	Inputs, Outputs      []string
	Attributes           []Attribute

	inputs, outputs []span // the fields of Inputs and Outputs
	msg             *message
}

// Attribute is an AttributeProto. Only the field that Type names is set, and
// only kinds that this program reads are kept.
type Attribute struct {
	Name   string
	Type   int64 // onnx.AttributeProto.AttributeType
	Int    int64
	Float  float32
	Tensor *Tensor
	Graphs []*Graph

	msg *message
}

// Value is a ValueInfoProto of a tensor.
type Value struct {
	Name     string
	ElemType ElemType
	// Shape holds -1 for a dimension that is symbolic or unknown. It is nil
	// where the model gives no shape.
	Shape []int64
	// Dims holds the symbolic names, "" where there is none.
	Dims []string

	msg *message
}

// Tensor is a TensorProto: its header, and where its elements lie.
type Tensor struct {
	Name     string
	Shape    []int64
	ElemType ElemType

	// stored says that payload is the elements as they lie in memory.
	stored   bool
	payload  span
	external bool // the elements are in another file
	msg      *message
}

// span is a byte range of the file.
type span struct{ start, end int }

// message is a length-delimited field that holds other fields. Its length
// prefix must change when something inside it grows or shrinks.
type message struct {
	parent     *message
	tag        int // offset of the field's tag; for the model itself 0
	length     int // offset of the length prefix; for the model itself -1
	start, end int // the body
}

// ElemType is onnx.TensorProto.DataType.
type ElemType int32

// The element types that matter here (onnx.proto, TensorProto.DataType).
const (
	Float    ElemType = 1
	Uint8    ElemType = 2
	Int8     ElemType = 3
	Int64    ElemType = 7
	String   ElemType = 8
	Float16  ElemType = 10
	Double   ElemType = 11
	BFloat16 ElemType = 16
)

var elemTypes = map[ElemType]string{
	1: "float", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string", 9: "bool",
	10: "float16", 11: "double", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16",
	17: "float8e4m3fn", 18: "float8e4m3fnuz", 19: "float8e5m2", 20: "float8e5m2fnuz", 21: "uint4", 22: "int4", 23: "float4e2m1",
}

// String returns ONNX's word for the type, such as "float16".
func (e ElemType) String() string {
	if s, ok := elemTypes[e]; ok {
		return s
	}
	return fmt.Sprintf("type %d", int32(e))
}

// DType returns the storage type, or weights.Invalid where a flat vector
// cannot hold the elements.
func (e ElemType) DType() weights.DType {
	switch e {
	case Float:
		return weights.F32
	case Double:
		return weights.F64
	case Float16:
		return weights.F16
	case BFloat16:
		return weights.BF16
	}
	return weights.Invalid
}

// An Error says what is wrong with a model and, where there is one, the way
// out. It is a failure of the input, never of the machine.
type Error struct {
	Path   string
	Tensor string // or ""
	What   string
	Hint   string // or ""
	Err    error  // or nil
}

func (e *Error) Error() string {
	s := e.Path + ": "
	if e.Tensor != "" {
		s += fmt.Sprintf("tensor %q: ", e.Tensor)
	}
	s += e.What
	if e.Err != nil {
		if e.What != "" {
			s += ": "
		}
		s += e.Err.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Open maps and scans the ONNX file at path. A file that is not a whole ONNX
// model gives an [*Error].
func Open(path string) (*Model, error) {
	m, err := weights.Map(path)
	if err != nil {
		return nil, err
	}
	model, err := Parse(path, m.Data)
	if err != nil {
		m.Close()
		return nil, err
	}
	model.mapping = m
	return model, nil
}

// Parse scans a model in memory, which must not change while the result is in
// use; path is for error messages.
func Parse(path string, data []byte) (*Model, error) {
	m := &Model{Path: path, data: data}
	if err := m.scan(); err != nil {
		var e *Error
		if errors.As(err, &e) {
			e.Path = path
			return nil, e
		}
		return nil, &Error{Path: path, What: "not a readable ONNX model", Err: err,
			Hint: "is the file complete, and was it written by an ONNX exporter? (size: " + fmt.Sprint(len(data)) + " bytes)"}
	}
	return m, nil
}

// Bytes returns the whole file. It is valid until Close.
func (m *Model) Bytes() []byte { return m.data }

// Close unmaps the file; the model must not be used afterwards.
func (m *Model) Close() error {
	if m.mapping == nil {
		return nil
	}
	return m.mapping.Close()
}

// Len returns the number of elements.
func (t *Tensor) Len() int64 {
	n, _ := weights.Elements(t.Shape) // checked by the scan
	return n
}

// elements returns the tensor's stored bytes; see readable.
func (m *Model) elements(t *Tensor) []byte { return m.data[t.payload.start:t.payload.end] }

// readable reports, as an error, why the elements of a float tensor cannot be
// read and replaced in place.
func (m *Model) readable(t *Tensor) error {
	switch {
	case t.external:
		return &Error{Path: m.Path, Tensor: t.Name, What: "its elements are in another file (external data)",
			Hint: "export one file per checkpoint: torch.onnx.export(..., external_data=False)"}
	case t.stored || t.Len() == 0:
		return nil
	}
	return &Error{Path: m.Path, Tensor: t.Name, What: fmt.Sprintf("%v elements not stored in one piece as they lie in memory", t.ElemType),
		Hint: "save the model anew with onnx.numpy_helper.from_array, which writes raw data"}
}

// FeedInputs returns the graph inputs that a caller must feed: those that are
// not initializers (IR < 4 lists the initializers among the inputs).
func (m *Model) FeedInputs() []Value {
	init := make(map[string]bool)
	for _, t := range m.Graph.Initializers {
		init[t.Name] = true
	}
	var out []Value
	for _, v := range m.Graph.Inputs {
		if !init[v.Name] {
			out = append(out, v)
		}
	}
	return out
}

// attribute returns the node's attribute of that name, or nil.
func (n *Node) attribute(name string) *Attribute {
	for i := range n.Attributes {
		if n.Attributes[i].Name == name {
			return &n.Attributes[i]
		}
	}
	return nil
}
