package fused

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
	"github.com/swagwrap/swagwrap/weights"
)

// Field numbers of onnx.proto.
const (
	modelIR, modelProducer, modelProducerVersion, modelGraph, modelOpset, modelMetadata, modelFunction = 1, 2, 3, 7, 8, 14, 25

	opsetDomain, opsetVersion = 1, 2

	functionName, functionNode, functionDomain = 1, 7, 10

	graphNode, graphName, graphInitializer, graphDoc, graphInput, graphOutput, graphValueInfo, graphQuantization, graphMetadata = 1, 2, 5, 10, 11, 12, 13, 14, 16

	nodeInput, nodeOutput, nodeName, nodeOpType, nodeAttribute, nodeDoc, nodeDomain, nodeMetadata = 1, 2, 3, 4, 5, 6, 7, 9

	attrName, attrInt, attrTensor, attrGraph, attrInts, attrGraphs, attrType = 1, 3, 5, 6, 8, 11, 20
	attrIsInt, attrIsInts                                                    = 2, 7 // what attrType says

	tensorDims, tensorType, tensorFloat, tensorName, tensorRaw, tensorDouble, tensorDoc, tensorExternal, tensorLocation = 1, 2, 4, 8, 9, 10, 12, 13, 14

	valueName, valueType, typeTensor, tensorTypeElem, tensorTypeShape, shapeDim, dimValue, dimParam = 1, 2, 1, 1, 2, 1, 1, 2
)

// leastOpset is the first opset in which arithmetic broadcasts, which averaging needs.
const leastOpset = 7

// A Network is the common part of members that differ only in weights.
type Network struct {
	// Mean is the mean of the members' parameters, or another point near them; only
	// [Int8] needs it.
	Mean weights.Vector

	path      string
	inputs    []onnxio.Value
	output    string
	scores    onnxio.ElemType // of the output
	ir        int64
	opsets    []opset
	content   wire.Content
	nodes     []node   // nodes that the output needs
	tensors   []tensor // tensors that these nodes read
	functions []function
	entries   map[string]weights.Tensor // of the layout, except constants
	// statistics is the number of statistics of a member.
	statistics int64

	// A tensor with the elements of another one, or of its transpose, maps to the other's name.
	tied, transposed map[string]string
}

// opset is a set of operators that a graph uses.
type opset struct {
	domain  string
	version int64
}

// node is a node of the main graph.
type node struct {
	at            wire.Span // its fields
	uses, outputs []string  // names; uses include those of the graphs inside the node
	constant      bool      // holds a tensor, and is written as one
}

// tensor is an initializer of the main graph, or the tensor of a Constant node in it.
type tensor struct {
	name     string
	entry    weights.Tensor // of the layout, if each member has its own elements
	own      bool           // each member has its own elements
	elem     onnxio.ElemType
	shape    []int64
	at       wire.Span // its fields
	elements wire.Span // place in the layout of memory; empty for other ways to store them
	sum      [sha256.Size]byte
}

// function is a model-local function.
type function struct {
	domain, name string
	at           wire.Span
}

// NewNetwork reads the graph of t, which [onnxio.NewWholeTemplate] made. It keeps the nodes that the named output
// needs. l is the layout of the members' vectors, and inputs are the inputs of the network.
func NewNetwork(path string, t *onnxio.Template, l *weights.Layout, inputs []onnxio.Value, output string) (*Network, error) {
	n := &Network{path: path, content: t.Content(), inputs: inputs, output: output, statistics: l.Len(weights.Statistic), entries: make(map[string]weights.Tensor, len(l.Tensors))}
	for _, e := range l.Tensors {
		if e.Role != weights.Constant {
			n.entries[e.Name] = e
		}
	}
	r := &reader{n, wire.NewScanner(n.content)}
	if err := r.model(); err != nil {
		return nil, n.fail("", err)
	}
	n.prune()
	n.tie()
	return n, n.check()
}

func (n *Network) fail(tensor string, err error) error {
	var e *onnxio.Error
	if errors.As(err, &e) {
		e.Path = n.path
		return e
	}
	return &onnxio.Error{Path: n.path, Tensor: tensor, What: "cannot be part of one model", Err: err}
}

// check refuses networks that cannot be fused with others.
func (n *Network) check() error {
	if v := n.version(""); v < leastOpset {
		return n.fail("", &onnxio.Error{What: fmt.Sprintf("opset %d, whose arithmetic does not broadcast", v), Hint: fmt.Sprintf("export the checkpoints with opset %d or later", leastOpset)})
	}
	defined := make(map[string]bool)
	for _, v := range n.inputs {
		defined[v.Name] = true
	}
	for _, t := range n.tensors {
		defined[t.name] = true
	}
	for _, d := range n.nodes {
		for _, name := range d.outputs {
			if name != "" && !d.constant && defined[name] {
				return n.fail(name, errors.New("is computed, and stored or fed too"))
			}
		}
	}
	if !slices.ContainsFunc(n.nodes, func(d node) bool { return slices.Contains(d.outputs, n.output) }) {
		return n.fail(n.output, errors.New("no node computes it"))
	}
	return nil
}

// version returns the version of a domain's operators, or 0 if the network has none.
func (n *Network) version(domain string) int64 {
	for _, o := range n.opsets {
		if o.domain == domain {
			return o.version
		}
	}
	return 0
}

// reader walks a network's graph.
type reader struct {
	*Network
	*wire.Scanner
}

func (r *reader) model() error {
	return r.Fields(wire.Span{End: r.content.Size}, func(f wire.Field) (err error) {
		switch f.Num {
		case modelIR:
			r.ir = int64(f.Value)
		case modelOpset:
			err = r.opset(f.Body)
		case modelGraph:
			err = r.graph(f.Body)
		case modelFunction:
			err = r.function(f.Body)
		}
		return err
	})
}

func (r *reader) opset(at wire.Span) error {
	var o opset
	err := r.Fields(at, func(f wire.Field) (err error) {
		switch f.Num {
		case opsetDomain:
			o.domain, err = r.String(f)
		case opsetVersion:
			o.version = int64(f.Value)
		}
		return err
	})
	if o.domain == "ai.onnx" {
		o.domain = ""
	}
	r.opsets = append(r.opsets, o)
	return err
}

func (r *reader) function(at wire.Span) error {
	fn := function{at: at}
	err := r.Fields(at, func(f wire.Field) (err error) {
		switch f.Num {
		case functionName:
			fn.name, err = r.String(f)
		case functionDomain:
			fn.domain, err = r.String(f)
		}
		return err
	})
	if err == nil && hasHole(r.content, at) {
		err = &onnxio.Error{What: fmt.Sprintf("function %q holds weights", fn.name), Hint: "export the checkpoints without functions: onnx.inliner.inline_local_functions"}
	}
	r.functions = append(r.functions, fn)
	return err
}

// hasHole reports whether a range has a hole for a member's elements.
func hasHole(c wire.Content, at wire.Span) bool {
	var part wire.Content
	part.AddStretch(c, at)
	return slices.ContainsFunc(part.Parts, wire.Part.IsHole)
}

func (r *reader) graph(at wire.Span) error {
	return r.Fields(at, func(f wire.Field) error {
		switch f.Num {
		case graphNode:
			return r.node(f.Body)
		case graphInitializer:
			return r.tensor(f.Body, "")
		case graphOutput:
			return r.declared(f.Body)
		}
		return nil
	})
}

// declared records the type of the output, if the graph gives it.
func (r *reader) declared(at wire.Span) error {
	name, elem := "", onnxio.ElemType(0)
	err := r.Fields(at, func(f wire.Field) (err error) {
		switch f.Num {
		case valueName:
			name, err = r.String(f)
		case valueType:
			err = r.Fields(f.Body, func(f wire.Field) error {
				if f.Num != typeTensor {
					return nil
				}
				return r.Fields(f.Body, func(f wire.Field) error {
					if f.Num == tensorTypeElem {
						elem = onnxio.ElemType(f.Value)
					}
					return nil
				})
			})
		}
		return err
	})
	if name == r.output {
		r.scores = elem
	}
	return err
}

// node reads a node of the main graph.
func (r *reader) node(at wire.Span) error {
	d := node{at: at}
	op, domain := "", ""
	var value wire.Span // of a Constant
	err := r.Fields(at, func(f wire.Field) (err error) {
		switch f.Num {
		case nodeInput:
			err = r.name(&d.uses, f)
		case nodeOutput:
			err = r.name(&d.outputs, f)
		case nodeOpType:
			op, err = r.String(f)
		case nodeDomain:
			domain, err = r.String(f)
		case nodeAttribute:
			err = r.Fields(f.Body, func(f wire.Field) error {
				switch f.Num {
				case attrTensor:
					value = f.Body
				case attrGraph, attrGraphs:
					return r.nested(&d.uses, f.Body)
				}
				return nil
			})
		}
		return err
	})
	if err == nil && op == "Constant" && (domain == "" || domain == "ai.onnx") && value.Len() > 0 && len(d.outputs) == 1 {
		d.constant = true
		err = r.tensor(value, d.outputs[0])
	}
	r.nodes = append(r.nodes, d)
	return err
}

func (r *reader) name(list *[]string, f wire.Field) error {
	s, err := r.String(f)
	*list = append(*list, s)
	return err
}

// nested lists the names that a graph inside a node reads. They include names of the surrounding graph.
func (r *reader) nested(uses *[]string, at wire.Span) error {
	return r.Fields(at, func(f wire.Field) error {
		switch f.Num {
		case graphOutput:
			return r.Fields(f.Body, func(f wire.Field) error {
				if f.Num == valueName {
					return r.name(uses, f)
				}
				return nil
			})
		case graphNode:
			return r.Fields(f.Body, func(f wire.Field) error {
				switch f.Num {
				case nodeInput:
					return r.name(uses, f)
				case nodeAttribute:
					return r.Fields(f.Body, func(f wire.Field) error {
						if f.Num == attrGraph || f.Num == attrGraphs {
							return r.nested(uses, f.Body)
						}
						return nil
					})
				}
				return nil
			})
		}
		return nil
	})
}

// tensor reads a tensor; name is the name of a Constant's output, or "".
func (r *reader) tensor(at wire.Span, name string) error {
	t := tensor{name: name, at: at}
	pieces := 0
	err := r.Fields(at, func(f wire.Field) (err error) {
		switch f.Num {
		case tensorDims:
			if f.Type != wire.Varint {
				return r.Varints(f, func(v uint64) error { t.shape = append(t.shape, int64(v)); return nil })
			}
			t.shape = append(t.shape, int64(f.Value))
		case tensorType:
			t.elem = onnxio.ElemType(f.Value)
		case tensorName:
			if name == "" {
				t.name, err = r.String(f)
			}
		case tensorRaw, tensorFloat, tensorDouble:
			pieces++
			if f.Type == wire.Bytes {
				t.elements = f.Body
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	if pieces > 1 {
		t.elements = wire.Span{}
	}
	if hole := r.content.Hole(t.elements); hole != "" {
		if t.entry, t.own = r.entries[hole]; !t.own {
			return fmt.Errorf("tensor %q: has room for %q, which the layout lacks", t.name, hole)
		}
	} else {
		t.sum, err = r.sum(t)
	}
	r.tensors = append(r.tensors, t)
	return err
}

// sum returns the SHA-256 of a constant's content, without its name.
func (r *reader) sum(t tensor) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	err = r.Fields(t.at, func(f wire.Field) error {
		if f.Num == tensorName || f.Num == tensorDoc {
			return nil
		}
		var c wire.Content
		c.AddStretch(r.content, f.Span())
		for _, p := range c.Parts {
			h.Write(p.Data)
		}
		return nil
	})
	return [sha256.Size]byte(h.Sum(nil)), err
}

// prune drops nodes and tensors that the output does not need, such as other heads with their weights.
func (n *Network) prune() {
	from := make(map[string]int)
	for i, d := range n.nodes {
		for _, name := range d.outputs {
			from[name] = i
		}
	}
	needed, used := make([]bool, len(n.nodes)), make(map[string]bool)
	for todo := []string{n.output}; len(todo) > 0; {
		name := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		used[name] = true
		if i, ok := from[name]; ok && name != "" && !needed[i] {
			needed[i] = true
			todo = append(todo, n.nodes[i].uses...)
		}
	}
	var nodes []node
	for i, d := range n.nodes {
		if needed[i] {
			nodes = append(nodes, d)
		}
	}
	n.nodes = nodes
	n.tensors = slices.DeleteFunc(n.tensors, func(t tensor) bool { return !used[t.name] })
}

// tie drops the tensors that have all elements of another tensor, which replaces them.
func (n *Network) tie() {
	owner := make(map[string]tensor) // by name in the layout
	for _, t := range n.tensors {
		if t.own && t.entry.Tied == "" {
			owner[t.entry.Name] = t
		}
	}
	n.tied, n.transposed = make(map[string]string), make(map[string]string)
	n.tensors = slices.DeleteFunc(n.tensors, func(t tensor) bool {
		o, known := owner[t.entry.Tied]
		switch {
		case !t.own || t.entry.Tied == "" || !known:
			return false
		case t.entry.Transposed:
			n.transposed[t.name] = o.name
		case slices.Equal(o.shape, t.shape):
			n.tied[t.name] = o.name
		default: // of another shape, so it is written twice
			return false
		}
		return true
	})
}
