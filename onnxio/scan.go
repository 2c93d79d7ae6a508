package onnxio

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
)

// Limits of the scan. Real models stay far below: the largest published graphs have about 100,000 nodes and nest two
// levels deep.
const (
	maxDepth = 32 // graphs within graphs
	maxFile  = math.MaxInt32
)

// scanner walks one model.
type scanner struct {
	*wire.Scanner
	tensors []*Tensor
}

// scan reads the model's structure. Every error is an [*Error].
func (m *Model) scan() error {
	s := &scanner{Scanner: wire.NewScanner(m.data)}
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
			Hint: fmt.Sprintf("is the file complete, and was it written by an ONNX exporter? (size: %d bytes)", m.data.Size)}
	}
	m.tensors = s.tensors
	m.nameTensors()
	return nil
}

func (s *scanner) model(m *Model) error {
	whole := wire.Span{End: m.data.Size}
	switch {
	case m.data.Size > maxFile:
		return &Error{What: fmt.Sprintf("%d bytes: protobuf stops at 2 GiB", m.data.Size),
			Hint: "export with external data, which has no such limit"}
	case m.data.Size == 0:
		return errors.New("the file is empty")
	case bytes.HasPrefix(m.data.From(whole), []byte("PK")):
		return &Error{
			What: "a zip archive, not ONNX",
			Hint: "a PyTorch .pt checkpoint must be exported first: torch.onnx.export (see README.md)",
		}
	}
	root := &wire.Message{Length: -1, Body: whole}
	return s.Fields(whole, func(f wire.Field) (err error) {
		switch f.Num {
		case wire.ModelIR:
			m.IRVersion, m.irVersion = int64(f.Value), f.Body
			err = f.Want(wire.Varint)
		case wire.ModelProducer:
			m.ProducerName, err = s.String(f)
		case wire.ModelProducerVersion:
			m.ProducerVersion, err = s.String(f)
		case wire.ModelOpset:
			err = s.opset(m, f)
		case wire.ModelMetadata:
			err = s.metadata(m, f)
		case wire.ModelGraph:
			if m.Graph != nil {
				return errors.New("several graph fields")
			}
			m.Graph, err = s.graph(f, root, 0)
		case wire.ModelTraining:
			return &Error{What: "holds training information (TrainingInfoProto)", Hint: "export the inference graph alone"}
		case wire.ModelFunction:
			err = add(&m.Functions)(s.function(f, root))
		}
		return err
	})
}

// metadata reads a property of the model.
func (s *scanner) metadata(m *Model, f wire.Field) error {
	if err := s.Keep(64); err != nil { // an entry of the map
		return err
	}
	key, value, err := s.Entry(f)
	if err != nil {
		return err
	}
	if m.Metadata == nil {
		m.Metadata = make(map[string]string)
	}
	m.Metadata[key] = value
	if strings.HasPrefix(key, ownMetadata) {
		m.ours = append(m.ours, f.Span())
	}
	return nil
}

// check looks for the parts that every model has. Exporters write them last, so a truncated file lacks them.
func (m *Model) check() error {
	if m.Graph == nil || m.IRVersion == 0 {
		return errors.New("no graph or no IR version in it: not an ONNX model")
	}
	if len(m.Graph.Nodes) == 0 || len(m.Graph.Outputs) == 0 {
		return errors.New("its graph has no nodes or no outputs: truncated?")
	}
	ours := func(n Node) bool { return n.Domain == "" }
	if m.Opset <= 0 && (len(m.Opsets) == 0 || slices.ContainsFunc(m.Graph.Nodes, ours)) { // all nodes may be of another domain
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
	return m.inline()
}

// nameTensors makes the tensors' names unique. Those of the main graph's initializers do not change. Others get a
// number if their name is taken.
func (m *Model) nameTensors() {
	taken := make(map[string]bool, len(m.tensors))
	own := make(map[*Tensor]bool, len(m.Graph.Initializers))
	for _, t := range m.Graph.Initializers {
		taken[t.local], own[t] = true, true
	}
	last := make(map[string]int) // the last number given to a name
	for _, t := range m.tensors {
		t.Name = t.local
		for !own[t] && taken[t.Name] {
			last[t.local] = max(2, last[t.local]+1)
			t.Name = fmt.Sprintf("%s#%d", t.local, last[t.local])
		}
		taken[t.Name] = true
	}
	m.known = make(map[string]*Tensor, len(m.tensors))
	for _, t := range m.tensors {
		m.known[t.Name] = t
	}
}

// message calls do for the fields of a message that the model will keep, and sets *at to it.
func (s *scanner) message(f wire.Field, parent *wire.Message, at **wire.Message, do func(wire.Field) error) (err error) {
	if *at, err = s.Enter(f, parent); err != nil {
		return err
	}
	return s.Fields(f.Body, do)
}

// add returns a function that appends a value to a list.
func add[T any](list *[]T) func(T, error) error {
	return func(v T, err error) error {
		*list = append(*list, v)
		return err
	}
}

func (s *scanner) opset(m *Model, f wire.Field) error {
	var o Opset
	err := s.Within(f, func(f wire.Field) (err error) {
		switch f.Num {
		case wire.OpsetDomain:
			o.Domain, err = s.String(f)
		case wire.OpsetVersion:
			o.Version, err = int64(f.Value), f.Want(wire.Varint)
		}
		return err
	})
	if o.Domain == "" || o.Domain == "ai.onnx" {
		o.Domain, m.Opset = "", o.Version
	}
	m.Opsets = append(m.Opsets, o)
	return errors.Join(err, s.Keep(wire.NameCost))
}

func (s *scanner) graph(f wire.Field, parent *wire.Message, depth int) (*Graph, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("graphs nest deeper than %d", maxDepth)
	}
	return s.nodes(f, parent, depth, wire.GraphNode, func(g *Graph, f wire.Field) (err error) {
		switch f.Num {
		case wire.GraphName:
			g.Name, err = s.String(f)
		case wire.GraphInitializer:
			var t *Tensor
			if t, err = s.tensor(f, g.msg); err == nil {
				g.Initializers = append(g.Initializers, t)
				s.tensors = append(s.tensors, t)
			}
		case wire.GraphInput:
			err = add(&g.Inputs)(s.value(f, g.msg))
		case wire.GraphOutput:
			err = add(&g.Outputs)(s.value(f, g.msg))
		case wire.GraphValueInfo:
			g.inferred = append(g.inferred, f.Span())
		case wire.GraphSparse:
			return &Error{What: "has sparse initializers, which cannot be part of a posterior", Hint: "export dense weights"}
		}
		return err
	})
}

// function reads the nodes of a FunctionProto.
func (s *scanner) function(f wire.Field, parent *wire.Message) (*Graph, error) {
	return s.nodes(f, parent, 0, wire.FunctionNode, func(g *Graph, f wire.Field) (err error) {
		switch f.Num {
		case wire.FunctionName:
			g.Name, err = s.String(f)
		case wire.FunctionDomain:
			g.Domain, err = s.String(f)
		}
		return err
	})
}

// nodes reads the nodes of a graph or function, which are in fields of the given number. It calls other for the other
// fields.
func (s *scanner) nodes(f wire.Field, parent *wire.Message, depth int, num wire.Number,
	other func(g *Graph, f wire.Field) error) (*Graph, error) {
	n, err := s.Count(f, num)
	if err != nil {
		return nil, err
	}
	g := &Graph{Nodes: make([]Node, 0, n)}
	return g, s.message(f, parent, &g.msg, func(f wire.Field) error {
		if f.Num == num {
			return add(&g.Nodes)(s.node(f, g.msg, depth))
		}
		return other(g, f)
	})
}

func (s *scanner) node(f wire.Field, parent *wire.Message, depth int) (n Node, err error) {
	err = s.message(f, parent, &n.msg, func(f wire.Field) (err error) {
		switch f.Num {
		case wire.NodeInput:
			err = s.appendStr(&n.Inputs, f)
			n.inputs = append(n.inputs, f.Span())
		case wire.NodeOutput:
			err = s.appendStr(&n.Outputs, f)
			n.outputs = append(n.outputs, f.Span())
		case wire.NodeName:
			n.Name, err = s.String(f)
			n.name = f.Span()
		case wire.NodeOpType:
			n.OpType, err = s.String(f)
		case wire.NodeDomain:
			n.Domain, err = s.String(f)
		case wire.NodeMetadata:
			var b []byte
			b, err = s.Bytes(f)
			n.foldsBatchNorm = n.foldsBatchNorm || bytes.Contains(b, []byte(foldRule))
		case wire.NodeAttribute:
			err = add(&n.Attributes)(s.attribute(f, n.msg, depth))
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
		err = fmt.Errorf("byte %d: a node without an operator", f.Tag)
	}
	return n, err
}

// constant records the float tensor of a Constant node, because exporters keep weights there too.
func (s *scanner) constant(n *Node) error {
	if len(n.Outputs) != 1 {
		return fmt.Errorf("node %q: a Constant with %d outputs", n.Name, len(n.Outputs))
	}
	for i := range n.Attributes {
		a := &n.Attributes[i]
		t := a.Tensor
		switch a.Name {
		case "value_float", "value_floats":
			if len(a.floats) != 1 || a.floats[0].Len()%4 != 0 {
				continue // empty, or in several pieces: no exporter keeps weights in this form
			}
			t = &Tensor{ElemType: Float, msg: a.msg, elements: elements{inPlace: true, payload: a.floats[0]}}
			if a.Name == "value_floats" {
				t.Shape = []int64{int64(t.payload.Len()) / 4}
			} else if t.payload.Len() != 4 {
				return fmt.Errorf("node %q: a Constant with a value_float of %d bytes", n.Name, t.payload.Len())
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

func (s *scanner) appendStr(dst *[]string, f wire.Field) error {
	if err := s.Keep(wire.NameCost + f.Body.Len()); err != nil {
		return err
	}
	v, err := s.String(f)
	*dst = append(*dst, v)
	return err
}

func (s *scanner) attribute(f wire.Field, parent *wire.Message, depth int) (a Attribute, err error) {
	err = s.message(f, parent, &a.msg, func(f wire.Field) (err error) {
		switch f.Num {
		case wire.AttrName:
			a.Name, err = s.String(f)
		case wire.AttrType:
			a.Type = int64(f.Value)
		case wire.AttrInt:
			a.Int, err = int64(f.Value), f.Want(wire.Varint)
		case wire.AttrFloat:
			a.Float, err = math.Float32frombits(uint32(f.Value)), f.Want(wire.Fixed32)
			a.floats = append(a.floats, f.Body)
		case wire.AttrFloats:
			if f.Type != wire.Fixed32 { // else a single one
				err = f.Want(wire.Bytes)
			}
			a.floats = append(a.floats, f.Body)
			err = errors.Join(err, s.Keep(wire.NameCost))
		case wire.AttrInts:
			if a.ints == nil {
				a.ints = new([]int64)
			}
			err = s.Varints(f, func(v uint64) error {
				if len(*a.ints) <= shortList {
					*a.ints = append(*a.ints, int64(v))
				}
				return s.Keep(wire.ItemCost / 8)
			})
		case wire.AttrString:
			if b, err := s.Bytes(f); err == nil && len(b) <= shortText {
				a.text = string(b)
			}
		case wire.AttrTensor:
			a.Tensor, err = s.tensor(f, a.msg)
		case wire.AttrGraph, wire.AttrGraphs:
			err = add(&a.Graphs)(s.graph(f, a.msg, depth+1))
		}
		return err
	})
	return a, err
}

func (s *scanner) value(f wire.Field, parent *wire.Message) (v Value, err error) {
	err = s.message(f, parent, &v.msg, func(f wire.Field) (err error) {
		switch f.Num {
		case wire.ValueName:
			v.Name, err = s.String(f)
		case wire.ValueType:
			err = s.Within(f, func(f wire.Field) error {
				if f.Num != wire.TypeTensor {
					v.NoTensor = v.NoTensor || slices.Contains(noTensors, f.Num)
					return nil
				}
				return s.Within(f, func(f wire.Field) error { return s.tensorTypeField(&v, f) })
			})
		}
		return err
	})
	return v, err
}

// noTensors are the fields of a TypeProto for a sequence, a map, a sparse tensor and an optional value.
var noTensors = []wire.Number{wire.TypeSequence, wire.TypeMap, wire.TypeSparse, wire.TypeOptional}

// tensorTypeField reads a field of TypeProto.Tensor.
func (s *scanner) tensorTypeField(v *Value, f wire.Field) error {
	switch f.Num {
	case wire.TensorTypeElem:
		v.ElemType = ElemType(f.Value)
	case wire.TensorTypeShape:
		v.Shape, v.Dims = []int64{}, nil // a scalar has an empty shape
		return s.Within(f, func(f wire.Field) error {
			if f.Num != wire.ShapeDim {
				return nil
			}
			return s.dim(v, f)
		})
	}
	return nil
}

// dim reads one dimension of a shape.
func (s *scanner) dim(v *Value, f wire.Field) error {
	if err := s.Keep(wire.NameCost); err != nil {
		return err
	}
	d, name := int64(-1), ""
	err := s.Within(f, func(f wire.Field) (err error) {
		switch f.Num {
		case wire.DimValue:
			d = int64(f.Value)
		case wire.DimParam:
			name, err = s.String(f)
		}
		return err
	})
	v.Shape, v.Dims = append(v.Shape, max(d, -1)), append(v.Dims, name)
	return err
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
