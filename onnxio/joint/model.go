package joint

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
	"github.com/swagwrap/swagwrap/weights"
)

// Storage is how weights are stored; see the package.
type Storage int

const (
	Float32 Storage = iota // or whatever type the networks have
	Int8
)

// Options of a Model. The zero value stores weights as the networks do, in one file.
type Options struct {
	Storage Storage
	// External puts what fills a page of memory into a file of its own. Without it
	// the model must stay below protobuf's 2 GiB.
	External bool
	// Producer and Version name the program.
	Producer, Version string
	// Metadata are the model's properties.
	Metadata map[string]string
}

// Member is one of those that a Model joins.
type Member struct {
	Number  int // in its name
	Network int // which one it is of
	// Statistics are its batch-norm statistics, a flat vector of the layout.
	Statistics weights.Slice
}

// Model is members as one ONNX model. First comes [Model.Takes], where members are not
// to take what the networks take; then [Model.Op] and [Model.Gives] say what is done with
// their scores.
type Model struct {
	networks []*Network
	members  []Member
	opts     Options
	ir       int64
	opsets   []opset

	inputs  []onnxio.Value
	feeds   []string // the values that members take, one for each input
	outputs []byte
	taken   map[string]bool

	before, behind block // of the members
	building       *block

	shared    []sharedTensor
	known     []map[string]string    // of each network: the names of what its members share
	calls     []map[[2]string]string // and of its functions
	functions []sharedFunction
}

// block is operators with their constants, as fields of a graph.
type block struct {
	fields []byte
	count  int
}

// sharedTensor is one that several members read.
type sharedTensor struct {
	name    string
	network int
	tensor
}

type sharedFunction struct {
	network int
	function
}

// New joins members of networks. Networks must agree in opset and inputs: of several, by
// their names.
func New(networks []*Network, members []Member, opts Options) (*Model, error) {
	m := &Model{networks: networks, members: members, opts: opts, ir: 4, taken: make(map[string]bool)}
	if len(members) == 0 {
		return nil, errors.New("no members")
	}
	for _, n := range networks {
		m.ir = max(m.ir, n.ir)
		if err := m.merge(n); err != nil {
			return nil, err
		}
	}
	for _, member := range members {
		if n := networks[member.Network]; int64(len(member.Statistics)) != n.statistics {
			return nil, n.fail("", fmt.Errorf("%d statistics of member %d, want %d", len(member.Statistics), member.Number, n.statistics))
		}
	}
	for i, n := range networks {
		m.share(i, n)
	}
	for _, v := range m.inputs {
		m.feeds = append(m.feeds, v.Name)
	}
	m.building = &m.behind
	return m, nil
}

// merge takes in what a network is written in, and what it takes.
func (m *Model) merge(n *Network) error {
	for _, o := range n.opsets {
		i := slices.IndexFunc(m.opsets, func(have opset) bool { return have.domain == o.domain })
		if i < 0 {
			m.opsets = append(m.opsets, o)
		} else if have := m.opsets[i].version; have != o.version {
			return n.fail("", &onnxio.Error{What: fmt.Sprintf("opset %d of %q, and another of the networks has %d", o.version, cmp.Or(o.domain, "ai.onnx"), have),
				Hint: "export the checkpoints of all runs with one opset"})
		}
	}
	if n == m.networks[0] {
		for _, v := range n.inputs {
			v.Shape, v.Dims = slices.Clone(v.Shape), slices.Clone(v.Dims)
			v.Shape[0] = -1
			if v.Dims[0] == "" {
				v.Dims[0] = "batch"
			}
			m.inputs = append(m.inputs, v)
		}
		return nil
	}
	if len(n.inputs) != len(m.inputs) {
		return n.fail("", &onnxio.Error{What: fmt.Sprintf("%d inputs, and another of the networks takes %d", len(n.inputs), len(m.inputs))})
	}
	for i := range m.inputs {
		have, v := &m.inputs[i], n.input(i, m.inputs[i].Name)
		if v == nil {
			return n.fail(have.Name, &onnxio.Error{What: "another of the networks takes it, and this one does not"})
		}
		fits := v.ElemType == have.ElemType && len(v.Shape) == len(have.Shape)
		for i := 1; fits && i < len(v.Shape); i++ {
			switch a, b := &have.Shape[i], v.Shape[i]; {
			case *a < 0:
				*a = b
			case b >= 0:
				fits = *a == b
			}
		}
		if !fits {
			return n.fail(v.Name, &onnxio.Error{What: fmt.Sprintf("%v %s, and another of the networks takes %v %s", v.ElemType, onnxio.FormatShape(v.Shape, v.Dims),
				have.ElemType, onnxio.FormatShape(have.Shape, have.Dims))})
		}
	}
	return nil
}

// input returns the network's counterpart of the i-th of the model's inputs, or nil: a sole
// input may have any name.
func (n *Network) input(i int, name string) *onnxio.Value {
	if len(n.inputs) > 1 {
		i = slices.IndexFunc(n.inputs, func(v onnxio.Value) bool { return v.Name == name })
	}
	if i < 0 {
		return nil
	}
	return &n.inputs[i]
}

// sharedName names what members of network i share.
func sharedName(kind string, i int, name string) string {
	if i > 0 {
		kind = fmt.Sprintf("%s-%d", kind, i)
	}
	return kind + "/" + name
}

// share notes what the members of network i need not have each for itself. Constants
// that two networks have both, as a frozen part of theirs, are stored once.
func (m *Model) share(i int, n *Network) {
	known := make(map[string]string)
	for _, t := range n.tensors {
		switch {
		case t.own && (t.entry.Role == weights.Parameter || !m.same(i, t.entry)):
			continue
		case !t.own:
			twin := slices.IndexFunc(m.shared, func(s sharedTensor) bool { return !s.own && s.sum == t.sum })
			if twin >= 0 {
				known[t.name] = m.shared[twin].name
				continue
			}
		}
		s := sharedTensor{sharedName("shared", i, t.name), i, t}
		m.shared = append(m.shared, s)
		known[t.name] = s.name
	}
	m.known = append(m.known, known)

	calls := make(map[[2]string]string)
	m.calls = append(m.calls, calls)
	for _, fn := range n.functions {
		name := fn.name
		for slices.ContainsFunc(m.functions, func(o sharedFunction) bool {
			return o.domain == fn.domain && m.calls[o.network][[2]string{o.domain, o.name}] == name
		}) {
			name += fmt.Sprintf("_%d", i)
		}
		calls[[2]string{fn.domain, fn.name}] = name
		m.functions = append(m.functions, sharedFunction{i, fn})
	}
}

// same reports whether all members of network i, of which there are several, have the
// same elements of a statistic: it was frozen.
func (m *Model) same(i int, entry weights.Tensor) bool {
	var first weights.Slice
	count := 0
	for _, member := range m.members {
		if member.Network != i {
			continue
		}
		row := member.Statistics[entry.Offset:][:entry.Len()]
		if count++; count == 1 {
			first = row
		} else if !slices.Equal(first, row) {
			return false
		}
	}
	return count > 1
}

// External puts elements into a file of their own, as [Options] may say.
func (m *Model) External() { m.opts.External = true }

// Inputs are what the model takes.
func (m *Model) Inputs() []onnxio.Value { return m.inputs }

// Opset is the version of the default domain's operators.
func (m *Model) Opset() int64 { return m.networks[0].version("") }

// Takes has a model of a sole input take another type and shape, under the name that the
// networks have: make returns what the members take, by operators that it adds.
func (m *Model) Takes(elem onnxio.ElemType, shape []int64, dims []string, make func(input string) string) {
	v := &m.inputs[0]
	v.ElemType, v.Shape, v.Dims = elem, shape, dims
	m.building = &m.before
	m.feeds[0] = make(v.Name)
	m.building = &m.behind
}

// Scores adds what brings the scores of the k-th member to float32 and to two dimensions,
// [batch, n], and returns their name.
func (m *Model) Scores(k int) string {
	n := m.networks[m.members[k].Network]
	x := m.Rowwise("Flatten", m.renaming(k).of(n.output))
	if n.scores != onnxio.Float {
		x = m.Node("Cast", []string{x}, Attribute{Name: "to", Int: int64(onnxio.Float)})
	}
	return x
}

// Gives declares a value as an output of the model, of the given number of elements for each
// example, or −1 where that is open. It fails for a name that an input has.
func (m *Model) Gives(name, value string, width int64) error {
	if slices.ContainsFunc(m.inputs, func(v onnxio.Value) bool { return v.Name == name }) {
		return m.networks[0].fail(name, fmt.Errorf("the network's input has the name of an output"))
	}
	m.op(&m.behind, "Identity", []string{value}, name)
	m.outputs = append(m.outputs, wire.AppendBytes(nil, graphOutput, encodeValue(onnxio.Value{
		Name: name, ElemType: onnxio.Float, Shape: []int64{-1, width}, Dims: []string{m.inputs[0].Dims[0], ""}}))...)
	return nil
}

// renaming returns the names of the k-th member.
func (m *Model) renaming(k int) *renaming {
	member := m.members[k]
	n := m.networks[member.Network]
	known := maps.Clone(m.known[member.Network])
	for i, v := range m.inputs {
		known[n.input(i, v.Name).Name] = m.feeds[i]
	}
	return &renaming{n, wire.NewScanner(n.content), fmt.Sprintf("member-%03d/", member.Number), known, m.calls[member.Network]}
}

// encodeValue encodes a ValueInfoProto.
func encodeValue(v onnxio.Value) []byte {
	var dims []byte
	for i, d := range v.Shape {
		var dim []byte
		if d >= 0 {
			dim = wire.AppendVarint(nil, dimValue, uint64(d))
		} else if v.Dims[i] != "" {
			dim = wire.AppendString(nil, dimParam, v.Dims[i])
		}
		dims = wire.AppendBytes(dims, shapeDim, dim)
	}
	tensor := wire.AppendVarint(nil, tensorTypeElem, uint64(v.ElemType))
	tensor = wire.AppendBytes(tensor, tensorTypeShape, dims)
	body := wire.AppendString(nil, valueName, v.Name)
	return wire.AppendBytes(body, valueType, wire.AppendBytes(nil, typeTensor, tensor))
}
