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
	"sync"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"

	"github.com/swagwrap/swagwrap/weights"
)

// Model is a scanned ONNX file. Its strings are copies, and its tensors are ranges of the file.
type Model struct {
	Path            string // path for error messages
	IRVersion       int64
	ProducerName    string
	ProducerVersion string
	Opset           int64 // of the default domain
	Opsets          []Opset
	Graph           *Graph
	Metadata        map[string]string // the properties of the model (metadata_props); nil for none
	// Functions are the bodies of model-local functions.
	Functions []*Graph

	name      string // name of the file with the graph; "" if Path ends in it
	data      wire.Content
	files     map[string]wire.Content // external data, by location
	mappings  []*weights.Mapping      // the mappings of all these files
	irVersion wire.Span
	ours      []wire.Span // properties that swagwrap wrote
	dropout   bool        // see DropoutTemplate
	nodes     int64       // see Signature
	loops     bool
	tensors   []*Tensor                 // of all graphs, in file order: see Tensors
	known     map[string]*Tensor        // by their names in layouts
	held      map[*Tensor]weights.Piece // elements that lie in other files: see WithWeights
}

// Opset is a set of operators that a model uses.
type Opset struct {
	Domain  string // "" for the default one
	Version int64
}

// Graph is a GraphProto: the model's own or the body of an If, Loop or Scan. The body of a function has only a name
// and nodes.
type Graph struct {
	Name, Domain string // only a function has a domain
	Nodes        []Node
	Initializers []*Tensor
	Inputs       []Value // including initializers, which IR < 4 repeats here
	Outputs      []Value

	inferred []wire.Span // the fields of value_info: shapes of computed values
	msg      *wire.Message

	index     sync.Once
	producers map[string]*Node // by output: see Producer
}

// Producer returns the node of g that computes the value, or nil. The first call builds an index of all nodes, so
// that the time for a long chain stays linear. Several goroutines may call it.
func (g *Graph) Producer(value string) *Node {
	g.index.Do(func() {
		g.producers = make(map[string]*Node, len(g.Nodes))
		for i := range g.Nodes {
			for _, out := range g.Nodes[i].Outputs {
				if g.producers[out] == nil { // if two nodes have the same output, the first
					g.producers[out] = &g.Nodes[i]
				}
			}
		}
	})
	return g.producers[value]
}

// Node is a NodeProto.
type Node struct {
	Name, OpType, Domain string
	Inputs, Outputs      []string
	Attributes           []Attribute

	name            wire.Span   // the field of Name
	inputs, outputs []wire.Span // the fields of Inputs and Outputs
	constant        *Tensor     // the tensor of a Constant node
	foldsBatchNorm  bool        // its metadata says that batch norm was folded into it
	msg             *wire.Message
}

// Attribute is an AttributeProto. Only the field that Type names is set, and only the kinds that this program reads
// are kept.
type Attribute struct {
	Name   string
	Type   int64 // onnx.AttributeProto.AttributeType
	Int    int64
	Float  float32
	Tensor *Tensor
	Graphs []*Graph

	text   string      // a short one
	floats []wire.Span // the fields of floats
	ints   *[]int64    // the first of ints, as many as a shape needs; nil if there are none, as usual
	msg    *wire.Message
}

// Value is a ValueInfoProto of a tensor.
type Value struct {
	Name     string
	ElemType ElemType
	// Shape holds -1 for a dimension that is symbolic or unknown. It is nil if the model gives no shape.
	Shape []int64
	// Dims holds the symbolic names, or "".
	Dims []string
	// NoTensor says that the value is a sequence, a map or an optional value.
	NoTensor bool

	msg *wire.Message
}

// FormatShape prints a shape as [batch 3]. A free dimension, below 0, is printed as its name in dims, or as ? without
// one.
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

// Tensor is a TensorProto that a graph holds as an initializer or in a Constant node. It has the header and the place
// of the elements.
type Tensor struct {
	// Name is unique in the model. It is an initializer's own name, or that of a Constant node's output. If that name
	// is taken, a number is added.
	Name     string
	Shape    []int64
	ElemType ElemType

	elements
	local string // the name in its graph
	msg   *wire.Message
}

// ElemType is onnx.TensorProto.DataType.
type ElemType int32

// The element types that this program needs (onnx.proto, TensorProto.DataType).
const (
	Float    ElemType = 1
	Uint8    ElemType = 2
	Int8     ElemType = 3
	Int32    ElemType = 6
	Int64    ElemType = 7
	Bool     ElemType = 9
	String   ElemType = 8
	boolean  ElemType = 9
	Float16  ElemType = 10
	Double   ElemType = 11
	BFloat16 ElemType = 16
)

// elemTypes are ONNX's names of the types, and the bytes of an element. The size is 0 for strings, and for types
// smaller than a byte.
var elemTypes = map[ElemType]struct {
	name string
	size int64
}{
	1:  {"float", 4},
	2:  {"uint8", 1},
	3:  {"int8", 1},
	4:  {"uint16", 2},
	5:  {"int16", 2},
	6:  {"int32", 4},
	7:  {"int64", 8},
	8:  {"string", 0},
	9:  {"bool", 1},
	10: {"float16", 2},
	11: {"double", 8},
	12: {"uint32", 4},
	13: {"uint64", 8},
	14: {"complex64", 8},
	15: {"complex128", 16},
	16: {"bfloat16", 2},
	17: {"float8e4m3fn", 1},
	18: {"float8e4m3fnuz", 1},
	19: {"float8e5m2", 1},
	20: {"float8e5m2fnuz", 1},
	21: {"uint4", 0},
	22: {"int4", 0},
	23: {"float4e2m1", 0},
	24: {"float8e8m0", 1},
	25: {"uint2", 0},
	26: {"int2", 0},
}

// IsNarrow reports whether the elements are numbers of less than a byte, or floats of one.
func (e ElemType) IsNarrow() bool { return e >= 17 && elemTypes[e].name != "" }

// String returns ONNX's name of the type, such as "float16".
func (e ElemType) String() string {
	if e == 0 {
		return "unknown type"
	}
	if t, ok := elemTypes[e]; ok {
		return t.name
	}
	return fmt.Sprintf("type %d", int32(e))
}

// DType returns the storage type, or weights.Invalid if a flat vector cannot hold the elements.
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

// An Error describes a fault of a model: see [weights.Error].
type Error = weights.Error

// Open maps and scans the ONNX file at path. It also maps the data files that the model names, which must lie in the
// same folder. A file that is not a whole ONNX model gives an [*Error].
func Open(path string) (*Model, error) {
	mapping, err := weights.Map(path)
	if err != nil {
		return nil, err
	}
	return OpenMapped(mapping)
}

// OpenMapped is [Open] for a file that is mapped already. Close unmaps it, and so does OpenMapped if it fails.
func OpenMapped(mapping *weights.Mapping) (*Model, error) {
	m := &Model{Path: mapping.Path, data: wire.ContentOf(mapping.Data), mappings: []*weights.Mapping{mapping}}
	err := m.scan()
	if err == nil {
		err = m.openExternal()
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// Peek is [Open] for a file that is looked at and not used: see [weights.Peek]. Elements in data files cannot be read.
func Peek(path string) (*Model, error) {
	mapping, err := weights.Peek(path)
	if err != nil {
		return nil, err
	}
	m := &Model{Path: path, data: wire.ContentOf(mapping.Data), mappings: []*weights.Mapping{mapping}}
	if err := m.scan(); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// Parse scans a model in memory, which must not change while the result is in use. path is for error messages.
// Tensors in other files cannot be read.
func Parse(path string, data []byte) (*Model, error) {
	m := &Model{Path: path, data: wire.ContentOf(data)}
	if err := m.scan(); err != nil {
		return nil, err
	}
	return m, nil
}

// Bytes returns the whole file. It is valid until Close. It returns nil for a model without weights: see
// [Template.Model].
func (m *Model) Bytes() []byte {
	return m.data.All()
}

// Files returns the content of the model's file, then those of its data files in the order of their names. See Bytes.
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
		out = append(out, m.files[name].All())
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

// size returns the size of the files that the graph came in.
func (m *Model) size() int64 {
	n := int64(m.data.Size)
	for _, f := range m.files {
		n += int64(f.Size)
	}
	return n
}

func (m *Model) fileName() string { return cmp.Or(m.name, filepath.Base(m.Path)) }

// Release gives the memory taken by reading the mapped files back to the system. Pages that are read again come back
// from its cache. Readers may continue meanwhile.
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

// Tensors returns the tensors of the model, in file order. They are the initializers of its graph and of nested
// graphs, and the tensors of Constant nodes, also in functions.
func (m *Model) Tensors() []*Tensor { return m.tensors }

// Len returns the number of elements.
func (t *Tensor) Len() int64 {
	n, _ := weights.Elements(t.Shape) // checked by the scan
	return n
}

// Tensor returns the tensor with this name in layouts, or nil.
func (m *Model) Tensor(name string) *Tensor { return m.known[name] }

// Known returns the model with the given names of its tensors in layouts.
func (m *Model) Known(byName map[string]*Tensor) *Model {
	c := *m
	c.known = byName
	return &c
}

// FeedInputs returns the graph inputs that a caller must feed. They are not initializers, which IR < 4 lists among
// the inputs.
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

// Nested reports whether graphs stand inside the node, as in control flow.
func (n *Node) Nested() bool {
	return slices.ContainsFunc(n.Attributes, func(a Attribute) bool { return len(a.Graphs) > 0 })
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
