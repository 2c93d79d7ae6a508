package onnxio

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"

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
	// Functions are the bodies of model-local functions.
	Functions []*Graph

	name      string // of the file with the graph; "" where Path ends in it
	data      wire.Content
	files     map[string]wire.Content // external data, by location
	mappings  []*weights.Mapping      // of all these
	irVersion wire.Span
	dropout   bool  // see WithDropout
	nodes     int64 // see Signature
	loops     bool
	tensors   []*Tensor                 // of all graphs, in file order: see Tensors
	known     map[string]*Tensor        // by the names that layouts know them by
	held      map[*Tensor]weights.Piece // elements that lie in other files: see Holding
}

// Graph is a GraphProto: the model's own or the body of an If, Loop or Scan. The
// body of a function has a name and nodes only.
type Graph struct {
	Name         string
	Nodes        []Node
	Initializers []*Tensor
	Inputs       []Value // initializers that IR < 4 repeats here included
	Outputs      []Value

	inferred []wire.Span // the fields of value_info: shapes of what nodes compute
	domain   string      // of a function
	msg      *wire.Message
}

// Node is a NodeProto.
type Node struct {
	Name, OpType, Domain string
	Inputs, Outputs      []string
	Attributes           []Attribute

	inputs, outputs []wire.Span // the fields of Inputs and Outputs
	constant        *Tensor     // what a Constant node holds
	foldsBatchNorm  bool        // its metadata says that batch norm was folded into it
	msg             *wire.Message
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

	floats []wire.Span // the fields of floats
	ints   *[]int64    // the first of ints, no more than a shape needs; nil where there are none, as in most
	msg    *wire.Message
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

	msg *wire.Message
}

// FormatShape prints a shape as [batch 3]: a free dimension, below 0, by its name
// in dims, or as ? where it has none.
func FormatShape(shape []int64, dims []string) string {
	list := make([]string, len(shape))
	for i, d := range shape {
		switch {
		case d >= 0:
			list[i] = strconv.FormatInt(d, 10)
		case i < len(dims) && dims[i] != "":
			list[i] = dims[i]
		default:
			list[i] = "?"
		}
	}
	return "[" + strings.Join(list, " ") + "]"
}

// Tensor is a TensorProto that a graph holds as an initializer or in a Constant
// node: its header, and where its elements are.
type Tensor struct {
	// Name is unique in the model: an initializer's own, or that of a Constant
	// node's output; where that is taken, with the number of its use.
	Name     string
	Shape    []int64
	ElemType ElemType

	elements
	local string // the name in its graph
	msg   *wire.Message
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
	boolean  ElemType = 9
	Float16  ElemType = 10
	Double   ElemType = 11
	BFloat16 ElemType = 16
)

// elemTypes are ONNX's words for the types, and the bytes of an element: 0 for
// strings, and where it is less than one.
var elemTypes = map[ElemType]struct {
	name string
	size int64
}{
	1: {"float", 4}, 2: {"uint8", 1}, 3: {"int8", 1}, 4: {"uint16", 2}, 5: {"int16", 2}, 6: {"int32", 4}, 7: {"int64", 8}, 8: {"string", 0},
	9: {"bool", 1}, 10: {"float16", 2}, 11: {"double", 8}, 12: {"uint32", 4}, 13: {"uint64", 8}, 14: {"complex64", 8}, 15: {"complex128", 16},
	16: {"bfloat16", 2}, 17: {"float8e4m3fn", 1}, 18: {"float8e4m3fnuz", 1}, 19: {"float8e5m2", 1}, 20: {"float8e5m2fnuz", 1},
	21: {"uint4", 0}, 22: {"int4", 0}, 23: {"float4e2m1", 0},
}

// String returns ONNX's word for the type, such as "float16".
func (e ElemType) String() string {
	if t, ok := elemTypes[e]; ok {
		return t.name
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

// Open maps and scans the ONNX file at path, and maps the data files it names,
// which must lie in its folder. A file that is not a whole ONNX model gives an
// [*Error].
func Open(path string) (*Model, error) {
	mapping, err := weights.Map(path)
	if err != nil {
		return nil, err
	}
	m := &Model{Path: path, data: wire.ContentOf(mapping.Data), mappings: []*weights.Mapping{mapping}}
	err = m.scan()
	if err == nil {
		err = m.openExternal()
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// Parse scans a model in memory, which must not change while the result is in
// use; path is for error messages. Tensors in other files cannot be read.
func Parse(path string, data []byte) (*Model, error) {
	m := &Model{Path: path, data: wire.ContentOf(data)}
	if err := m.scan(); err != nil {
		return nil, err
	}
	return m, nil
}

// Bytes returns the whole file. It is valid until Close. A model without weights
// has none: see [Template.Model].
func (m *Model) Bytes() []byte {
	return m.data.Whole()
}

// Files returns the contents of the model's file and of its data files, these in
// the order of their names, as Bytes does.
func (m *Model) Files() [][]byte {
	if m.held != nil {
		var out [][]byte
		for _, f := range m.mappings {
			out = append(out, f.Data)
		}
		return out
	}
	out := [][]byte{m.Bytes()}
	for _, name := range slices.Sorted(maps.Keys(m.files)) {
		out = append(out, m.files[name].Whole())
	}
	return out
}

// Size returns the size of all files together, in bytes.
func (m *Model) Size() (n int64) {
	if m.held == nil {
		return m.size()
	}
	for _, f := range m.mappings {
		n += int64(len(f.Data))
	}
	return n
}

// size is that of the files that the graph came in.
func (m *Model) size() int64 {
	n := int64(m.data.Size)
	for _, f := range m.files {
		n += int64(f.Size)
	}
	return n
}

// fileName returns the name of the file that the graph is or was in.
func (m *Model) fileName() string { return cmp.Or(m.name, filepath.Base(m.Path)) }

// Release gives the memory that reading the mapped files has taken back to the
// system; what is read again comes back from its cache. Readers may go on
// meanwhile.
func (m *Model) Release() {
	for _, f := range m.mappings {
		f.Release()
	}
}

// Close unmaps the files; the model must not be used afterwards.
func (m *Model) Close() error {
	var errs []error
	for _, f := range m.mappings {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// Tensors returns the tensors that the model holds, in file order: the
// initializers of its graph and of the graphs nested in it, and what Constant
// nodes hold, in functions too.
func (m *Model) Tensors() []*Tensor { return m.tensors }

// Len returns the number of elements.
func (t *Tensor) Len() int64 {
	n, _ := weights.Elements(t.Shape) // checked by the scan
	return n
}

// WithDropout returns the model as one whose Dropout nodes stay as they were
// exported, in everything that is written from it. In a training-mode export
// they drop, anew in each run.
func (m *Model) WithDropout() *Model {
	c := *m
	c.dropout = true
	return &c
}

// Tensor returns the tensor that layouts know by this name, or nil.
func (m *Model) Tensor(name string) *Tensor { return m.known[name] }

// Known returns the model as one whose tensors layouts know by the given names.
func (m *Model) Known(byName map[string]*Tensor) *Model {
	c := *m
	c.known = byName
	return &c
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

// Int returns the node's integer attribute of that name, or the given default.
func (n *Node) Int(name string, preset int64) int64 {
	if a := n.attribute(name); a != nil {
		return a.Int
	}
	return preset
}

// Float returns the node's float attribute of that name, or the given default.
func (n *Node) Float(name string, preset float64) float64 {
	if a := n.attribute(name); a != nil {
		return float64(a.Float)
	}
	return preset
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
