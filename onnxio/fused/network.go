package fused

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
	"github.com/swagwrap/swagwrap/weights"
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
	scores    onnxio.ElemType // type of the output
	half      bool            // see [NewHalf]
	ir        int64
	opsets    []onnxio.Opset
	graph     *onnxio.Model
	content   wire.Content
	nodes     []*onnxio.Node // nodes that the output needs
	tensors   []tensor       // tensors that these nodes read
	functions []*onnxio.Graph
	entries   map[string]weights.Tensor // of the layout, except constants
	// statistics is the number of statistics of a member.
	statistics int64

	tied       map[string]string // a tensor with the elements of another one, by name
	transposed map[string]tensor // one with the elements of the other's transpose
}

// tensor is an initializer of the main graph, or the tensor of a Constant node in it.
type tensor struct {
	name     string
	entry    weights.Tensor                // of the layout, if each member has its own elements
	own      bool                          // each member has its own elements
	narrow   bool                          // its float32 elements become float16
	fill     func(vectors) ([]byte, error) // computes each member's elements; nil for others
	elem     onnxio.ElemType
	shape    []int64
	at       wire.Span // its fields
	elements wire.Span // place in the layout of memory; empty for other ways to store them
	sum      [sha256.Size]byte
}

// NewNetwork reads the graph of t, which [onnxio.NewWholeTemplate] made. It keeps the nodes that the named output
// needs. l is the layout of the members' vectors, and inputs are the inputs of the network.
func NewNetwork(path string, t *onnxio.Template, l *weights.Layout, inputs []onnxio.Value, output string) (*Network, error) {
	return newNetwork(path, t, l, inputs, output, nil)
}

// newNetwork is NewNetwork of a graph in which the stored tensors become float16.
func newNetwork(path string, t *onnxio.Template, l *weights.Layout, inputs []onnxio.Value, output string,
	stored map[string]bool) (*Network, error) {
	n := &Network{
		path:       path,
		inputs:     inputs,
		output:     output,
		statistics: l.Len(weights.Statistic),
		entries:    make(map[string]weights.Tensor, len(l.Tensors)),
	}
	for _, e := range l.Tensors {
		if e.Role != weights.Constant {
			n.entries[e.Name] = e
		}
	}
	m, err := t.Model(path, l)
	if err == nil {
		err = n.read(m)
	}
	if err != nil {
		return nil, n.fail("", err)
	}
	n.tie(stored)
	return n, n.check()
}

// NewHalf is [NewNetwork] of a network that computes in float16, with float16 weights. The model casts its float32 inputs, and its
// scores, so that the average is computed in float32.
func NewHalf(path string, t *onnxio.Template, l *weights.Layout, inputs []onnxio.Value, output string) (*Network, error) {
	half, stored, err := t.StoredHalf(l)
	if err != nil {
		return nil, (&Network{path: path}).fail("", err)
	}
	n, err := newNetwork(path, half, l, inputs, output, stored)
	if err != nil {
		return nil, err
	}
	n.half = true
	if n.scores == onnxio.Float {
		n.scores = onnxio.Float16
	}
	for i := range n.tensors {
		t := &n.tensors[i]
		if t.elem != onnxio.Float || !stored[t.name] {
			continue
		}
		if t.elem, t.narrow = onnxio.Float16, !t.own; t.own {
			t.entry.DType = weights.F16
		} else if t.elements.Len() == 0 {
			return nil, n.fail(t.name, &onnxio.Error{
				What: "elements in an old encoding, which are not converted to float16",
				Hint: "write the checkpoints again: onnx.save(onnx.load(FILE), FILE)",
			})
		}
	}
	for name, of := range n.transposed {
		if of.elem == onnxio.Float && stored[of.name] {
			of.elem = onnxio.Float16
			n.transposed[name] = of
		}
	}
	return n, nil
}

func (n *Network) fail(tensor string, err error) error {
	var e *onnxio.Error
	if errors.As(err, &e) {
		e.Path, e.Tensor = n.path, cmp.Or(e.Tensor, tensor)
		return e
	}
	return &onnxio.Error{Path: n.path, Tensor: tensor, What: "cannot be part of one model", Err: err}
}

// check refuses networks that cannot be fused with others.
func (n *Network) check() error {
	if v := n.version(""); v < leastOpset {
		return n.fail("", &onnxio.Error{
			What: fmt.Sprintf("opset %d, whose arithmetic does not broadcast", v),
			Hint: fmt.Sprintf("export the checkpoints with opset %d or later", leastOpset),
		})
	}
	defined := make(map[string]bool)
	for _, v := range n.inputs {
		defined[v.Name] = true
	}
	for _, t := range n.tensors {
		defined[t.name] = true
	}
	for _, d := range n.nodes {
		for _, name := range d.Outputs {
			if name != "" && tensorOf(d) == nil && defined[name] {
				return n.fail(name, errors.New("is computed, and stored or fed too"))
			}
		}
	}
	if !slices.ContainsFunc(n.nodes, func(d *onnxio.Node) bool { return slices.Contains(d.Outputs, n.output) }) {
		return n.fail(n.output, errors.New("no node computes it"))
	}
	return nil
}

// version returns the version of a domain's operators, or 0 if the network has none.
func (n *Network) version(domain string) int64 {
	for _, o := range n.opsets {
		if o.Domain == domain {
			return o.Version
		}
	}
	return 0
}

// read takes the parts of m that the output needs. It leaves out other heads, with their weights.
func (n *Network) read(m *onnxio.Model) error {
	n.graph, n.ir, n.opsets, n.content, n.functions = m, m.IRVersion, m.Opsets, m.Content(), m.Functions
	for _, fn := range n.functions {
		if hasHole(n.content, fn.Body()) {
			return &onnxio.Error{
				What: fmt.Sprintf("function %q holds weights", fn.Name),
				Hint: "export the checkpoints without functions: onnx.inliner.inline_local_functions",
			}
		}
	}
	for _, v := range m.Graph.Outputs {
		if v.Name == n.output {
			n.scores = v.ElemType
		}
	}
	used, needed := make(map[string]bool), make(map[*onnxio.Node]bool)
	for todo := []string{n.output}; len(todo) > 0; {
		name := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		used[name] = true
		if d := m.Graph.Producer(name); d != nil && name != "" && !needed[d] {
			needed[d] = true
			todo = append(todo, d.Reads()...)
		}
	}
	for i := range m.Graph.Nodes {
		d := &m.Graph.Nodes[i]
		if !needed[d] {
			continue
		}
		n.nodes = append(n.nodes, d)
		if t := tensorOf(d); t != nil {
			if err := n.tensor(d.Outputs[0], t, used); err != nil {
				return err
			}
		}
	}
	for _, t := range m.Graph.Initializers {
		if err := n.tensor(t.Name, t, used); err != nil {
			return err
		}
	}
	return nil
}

// tensorOf returns the tensor of a Constant node, which is written as an initializer, or nil.
func tensorOf(d *onnxio.Node) *onnxio.Tensor {
	if d.OpType == "Constant" && d.Domain == "" && len(d.Outputs) == 1 {
		for _, a := range d.Attributes {
			if a.Tensor != nil {
				return a.Tensor
			}
		}
	}
	return nil
}

// hasHole reports whether a range has a hole for a member's elements.
func hasHole(c wire.Content, at wire.Span) bool {
	var part wire.Content
	part.AddStretch(c, at)
	return slices.ContainsFunc(part.Parts, wire.Part.IsHole)
}

// tensor adds a tensor if its name is used.
func (n *Network) tensor(name string, of *onnxio.Tensor, used map[string]bool) (err error) {
	if !used[name] {
		return nil
	}
	t := tensor{name: name, elem: of.ElemType, shape: of.Shape}
	t.at, t.elements = of.Body()
	if hole := n.content.Hole(t.elements); hole != "" {
		t.entry, t.own = n.entries[hole], true
	} else {
		t.sum, err = n.sum(t)
	}
	n.tensors = append(n.tensors, t)
	return err
}

// sum returns the SHA-256 of a constant's content, without its name.
func (n *Network) sum(t tensor) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	err = wire.NewScanner(n.content).Fields(t.at, func(f wire.Field) error {
		if f.Num == wire.TensorName || f.Num == wire.TensorDoc {
			return nil
		}
		var c wire.Content
		c.AddStretch(n.content, f.Span())
		for _, p := range c.Parts {
			h.Write(p.Data)
		}
		return nil
	})
	return [sha256.Size]byte(h.Sum(nil)), err
}

// tie drops the tensors that have all elements of another tensor, which replaces them. A stored one becomes float16, and replaces only
// stored ones.
func (n *Network) tie(stored map[string]bool) {
	owner := make(map[string]tensor) // the tensor with the elements, by name in the layout
	for _, t := range n.tensors {
		if t.own && t.entry.Tied == "" {
			owner[t.entry.Name] = t
		}
	}
	n.tied, n.transposed = make(map[string]string), make(map[string]tensor)
	n.tensors = slices.DeleteFunc(n.tensors, func(t tensor) bool {
		o, known := owner[t.entry.Tied]
		switch {
		case !t.own || t.entry.Tied == "" || !known || stored[t.name] != stored[o.name]:
			return false
		case t.entry.Transposed:
			n.transposed[t.name] = o
		case slices.Equal(o.shape, t.shape):
			n.tied[t.name] = o.name
		default: // the other use has another shape, so the tensor is written twice
			return false
		}
		return true
	})
}
