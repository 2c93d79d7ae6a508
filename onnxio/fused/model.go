package fused

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
	"github.com/swagwrap/swagwrap/weights"
)

// Storage says how weights are stored; see the package.
type Storage int

const (
	Float32 Storage = iota // float32, or the type of the networks
	Int8
)

// Options are the options of a Model. The zero value stores weights as the networks do, in one file.
type Options struct {
	Storage Storage
	// External moves tensors that fill a page of memory into a separate file. Without it the model must stay below
	// protobuf's 2 GiB.
	External bool
	// Producer and Version name the program.
	Producer, Version string
	// Metadata are the model's properties.
	Metadata map[string]string
}

// Member is a member of a Model.
type Member struct {
	Number  int // number in its name
	Network int // index of its network
	// Statistics are its batch-norm statistics, as a flat vector of the layout.
	Statistics weights.Slice
	// Ranges are those of values inside it, of a network in 8 bits: see [NewQDQ].
	Ranges map[string]Range
}

// Model is members fused into one ONNX model. Call [Model.Takes] first, if members do not take the inputs of the
// networks directly. Then [Model.Op] and [Model.Gives] define what happens to the scores.
type Model struct {
	networks []*Network
	members  []Member
	opts     Options
	ir       int64
	opsets   []onnxio.Opset

	inputs  []onnxio.Value
	feeds   []string // the values that members read, one for each input
	outputs []byte
	given   map[string]string // the name of the output that a value of an operator is
	taken   map[string]bool
	dense   bool // see Dense

	before, behind block // operators before and after the members
	building       *block

	shared    []sharedTensor
	known     []map[string]string       // of each network: the names of tensors that its members share
	common    [][]*onnxio.Node          // of each network: nodes that compute the same for all members
	computed  []map[string]string       // of each network: the names of what these nodes give
	own       [][]*onnxio.Node          // of each network: the other nodes, which each member has
	values    []map[string]onnxio.Value // of each network: what its members compute, by the names in the network
	unshaped  []string                  // see Unshaped
	infos     []byte                    // what is known of the values of both blocks
	calls     []map[[2]string]string    // new names of its functions
	functions []sharedFunction
	bySum     map[content]string // names of shared constants
	called    map[[2]string]bool // domains and names that functions already have
}

// block is operators with their constants.
type block struct {
	constants []byte // as fields of a graph
	nodes     []node
	count     int
}

// node is an operator. Its name is that of its first output.
type node struct {
	op              string
	inputs, outputs []string
	attributes      [][]byte
}

// fields encodes a block as fields of a graph. given are the outputs of the model that its values are. No operator reads an output:
// converters to float16 keep the type of outputs, and change that of what an operator reads. A value that operators read becomes an
// output by an Identity. OpenVINO calls what this joins by the first name in the alphabet, so the value has a name behind the output's.
func (b block) fields(given map[string]string) []byte {
	named, read := maps.Clone(given), map[string]bool{}
	for _, n := range b.nodes {
		for _, name := range n.inputs {
			if output := given[name]; output != "" {
				named[name], read[name] = output+"/"+name, true
			}
		}
	}
	names := func(of []string) []string {
		out := slices.Clone(of)
		for i, name := range of {
			out[i] = cmp.Or(named[name], name)
		}
		return out
	}
	fields := slices.Clone(b.constants)
	for _, n := range b.nodes {
		fields = append(fields, wire.Node(n.op, n.outputs[0], names(n.inputs), names(n.outputs), n.attributes...)...)
		for _, name := range n.outputs {
			if read[name] {
				fields = append(fields, wire.Node("Identity", name+"/"+given[name], names([]string{name}), []string{given[name]})...)
			}
		}
	}
	return fields
}

// sharedTensor is a tensor that several members read.
type sharedTensor struct {
	name    string
	network int
	tensor
}

// ownName matches names of tensors, and of what nodes of members give.
var ownName = regexp.MustCompile(`^(member|mean|shared)(-\d+)?/`)

// content identifies the content of a constant, and the type in which it is stored.
type content struct {
	sum  [sha256.Size]byte
	elem onnxio.ElemType
}

type sharedFunction struct {
	network int
	*onnxio.Graph
}

// New joins members of networks. Networks must agree in opset and inputs. If there are several inputs, they are
// compared by name.
func New(networks []*Network, members []Member, opts Options) (*Model, error) {
	m := &Model{
		networks: networks,
		members:  members,
		opts:     opts,
		ir:       4,
		taken:    make(map[string]bool),
		given:    map[string]string{},
		bySum:    make(map[content]string),
		called:   make(map[[2]string]bool),
	}
	if len(members) == 0 {
		return nil, errors.New("no members")
	}
	for _, n := range networks {
		m.ir = max(m.ir, n.ir)
		if err := m.merge(n); err != nil {
			return nil, err
		}
	}
	for _, v := range m.inputs {
		if ownName.MatchString(v.Name) {
			return nil, networks[0].fail(v.Name, &onnxio.Error{
				What: "an input whose name begins like those of members",
				Hint: "export the checkpoints with another name for this input",
			})
		}
	}
	for _, member := range members {
		if n := networks[member.Network]; int64(len(member.Statistics)) != n.statistics {
			return nil, n.fail("", fmt.Errorf("%d statistics of member %d, want %d", len(member.Statistics), member.Number, n.statistics))
		}
	}
	for i, n := range networks {
		m.share(i, n)
		shapes(m, i)
	}
	m.building = &m.before
	for _, v := range m.inputs {
		m.feeds = append(m.feeds, asTaken(m, v.Name, v.ElemType))
	}
	m.building = &m.behind
	return m, nil
}

// merge adds a network's opsets and inputs.
func (m *Model) merge(n *Network) error {
	for _, o := range n.opsets {
		i := slices.IndexFunc(m.opsets, func(have onnxio.Opset) bool { return have.Domain == o.Domain })
		if i < 0 {
			m.opsets = append(m.opsets, o)
		} else if have := m.opsets[i].Version; have != o.Version {
			return n.fail("", &onnxio.Error{What: fmt.Sprintf("opset %d of %q, and another of the networks has %d", o.Version,
				cmp.Or(o.Domain, "ai.onnx"), have),
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
			return n.fail(v.Name, &onnxio.Error{What: fmt.Sprintf("%v %s, and another of the networks takes %v %s", v.ElemType,
				onnxio.FormatShape(v.Shape, v.Dims),
				have.ElemType, onnxio.FormatShape(have.Shape, have.Dims))})
		}
	}
	return nil
}

// input returns the network's counterpart of the i-th of the model's inputs, or nil. A single input may have any
// name.
func (n *Network) input(i int, name string) *onnxio.Value {
	if len(n.inputs) > 1 {
		i = slices.IndexFunc(n.inputs, func(v onnxio.Value) bool { return v.Name == name })
	}
	if i < 0 {
		return nil
	}
	return &n.inputs[i]
}

// sharedName returns the name of a value that members of network i share.
func sharedName(kind string, i int, name string) string {
	if i > 0 {
		kind = fmt.Sprintf("%s-%d", kind, i)
	}
	return kind + "/" + name
}

// share finds the tensors that members of network i can share. Constants that two networks have in common, such as a
// frozen part, are stored once.
func (m *Model) share(i int, n *Network) {
	known := make(map[string]string)
	for _, t := range n.tensors {
		switch {
		case t.fill != nil || t.own && (t.entry.Role == weights.Parameter || !same(m.members, i, t.entry)):
			continue
		case !t.own:
			if twin, ok := m.bySum[content{t.sum, t.elem}]; ok {
				known[t.name] = twin
				continue
			}
			m.bySum[content{t.sum, t.elem}] = sharedName("shared", i, t.name)
		}
		s := sharedTensor{sharedName("shared", i, t.name), i, t}
		m.shared = append(m.shared, s)
		known[t.name] = s.name
	}
	m.known = append(m.known, known)
	shareNodes(m, i, n)

	calls := make(map[[2]string]string)
	m.calls = append(m.calls, calls)
	for _, fn := range n.functions {
		name := fn.Name
		for m.called[[2]string{fn.Domain, name}] {
			name += fmt.Sprintf("_%d", i)
		}
		calls[[2]string{fn.Domain, fn.Name}], m.called[[2]string{fn.Domain, name}] = name, true
		m.functions = append(m.functions, sharedFunction{i, fn})
	}
}

// shareNodes finds the nodes of network i that read only inputs and shared values, such as those of a frozen part. No network of a
// posterior draws numbers. onnxscript's optimiser writes an invalid model if two nodes flatten the same value.
func shareNodes(m *Model, i int, n *Network) {
	computed, inputs := make(map[string]string), feedsOf(m, i, make([]string, len(m.inputs)))
	shared := func(name string) bool {
		_, tensor := m.known[i][name]
		_, input := inputs[name]
		return tensor || input || computed[name] != "" || name == ""
	}
	var common, own []*onnxio.Node
	for _, d := range n.nodes {
		if tensorOf(d) != nil {
			continue
		}
		if d.Nested() || d.Outputs[0] == "" || slices.ContainsFunc(d.Inputs, func(in string) bool { return !shared(in) }) {
			own = append(own, d)
			continue
		}
		common = append(common, d)
		for _, out := range d.Outputs {
			computed[out] = sharedName("shared", i, out)
		}
	}
	delete(computed, "")
	m.common, m.own, m.computed = append(m.common, common), append(m.own, own), append(m.computed, computed)
}

// feedsOf maps the inputs of network i to the given values, one for each of the model's inputs.
func feedsOf(m *Model, i int, values []string) map[string]string {
	of := make(map[string]string)
	for k, v := range m.inputs {
		of[m.networks[i].input(k, v.Name).Name] = values[k]
	}
	return of
}

// same reports whether network i has several of the members, and all have the same elements of a statistic, so that it was
// frozen.
func same(members []Member, i int, entry weights.Tensor) bool {
	var first weights.Slice
	count := 0
	for _, member := range members {
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

// External puts elements into a separate file, like the field of [Options].
func (m *Model) External() { m.opts.External = true }

// Inputs returns the inputs of the model.
func (m *Model) Inputs() []onnxio.Value { return m.inputs }

// Opset returns the version of the default domain's operators.
func (m *Model) Opset() int64 { return m.networks[0].version("") }

// Takes changes the type and shape of the input of a model with a single input. The input keeps the name that the
// networks give it. make adds operators and returns the value that the members read.
func (m *Model) Takes(elem onnxio.ElemType, shape []int64, dims []string, shapeOf func(input string) string) {
	v := &m.inputs[0]
	own := v.ElemType
	v.ElemType, v.Shape, v.Dims = elem, shape, dims
	m.before = block{}
	m.building = &m.before
	m.feeds[0] = asTaken(m, shapeOf(v.Name), own)
	m.building = &m.behind
}

// asTaken returns a value of the type of a network's input as its nodes take it.
func asTaken(m *Model, value string, elem onnxio.ElemType) string {
	if m.networks[0].half && elem == onnxio.Float {
		return cast(m, value, onnxio.Float16)
	}
	return value
}

// Scores adds the operators that convert the scores of the k-th member to float32 with two dimensions, [batch, n],
// and returns their name.
func (m *Model) Scores(k int) string {
	n := m.networks[m.members[k].Network]
	x := m.Rowwise("Flatten", m.renaming(k).of(n.output))
	if n.scores != onnxio.Float {
		x = m.Node("Cast", []string{x}, Attribute{Name: "to", Int: int64(onnxio.Float)})
	}
	return x
}

// Gives declares a value as an output of the model. width is the number of elements for each example, or −1 if it is
// open. Gives fails if an input has the same name.
func (m *Model) Gives(name, value string, width int64) error {
	return m.gives(name, value, onnxio.Float, []int64{-1, width})
}

// GivesFlags is Gives for true and false.
func (m *Model) GivesFlags(name, value string, width int64) error {
	return m.gives(name, value, onnxio.Bool, []int64{-1, width})
}

func (m *Model) gives(name, value string, elem onnxio.ElemType, shape []int64) error {
	if slices.ContainsFunc(m.inputs, func(v onnxio.Value) bool { return v.Name == name }) {
		return m.networks[0].fail(name, fmt.Errorf("the network's input has the name of an output"))
	}
	made := slices.ContainsFunc(m.behind.nodes, func(n node) bool { return slices.Contains(n.outputs, value) })
	if _, twice := m.given[value]; made && !twice {
		m.given[value] = name
	} else {
		m.behind.nodes = append(m.behind.nodes, node{"Identity", []string{value}, []string{name}, nil})
	}
	m.outputs = append(m.outputs, wire.AppendBytes(nil, wire.GraphOutput, wire.Value(name, elem, shape, m.inputs[0].Dims[:1]))...)
	return nil
}

// renaming returns the names of the k-th member.
func (m *Model) renaming(k int) *renaming {
	member := m.members[k]
	r := sharedRenaming(m, member.Network)
	maps.Copy(r.known, m.computed[member.Network])
	r.prefix = fmt.Sprintf("member-%03d/", member.Number)
	return r
}

// sharedRenaming returns the names of the nodes that members of network i share.
func sharedRenaming(m *Model, i int) *renaming {
	n, known := m.networks[i], maps.Clone(m.known[i])
	maps.Copy(known, feedsOf(m, i, m.feeds))
	return &renaming{n, wire.NewScanner(n.content), sharedName("shared", i, ""), known, m.calls[i]}
}
