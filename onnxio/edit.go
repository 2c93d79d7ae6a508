package onnxio

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
	"github.com/swagwrap/swagwrap/weights"
)

// An Edit collects changes to a model's graph. Bytes that no change touches stay verbatim. If a change makes a
// message longer, only the length prefixes of the surrounding messages are rewritten.
type Edit struct {
	m       *Model
	splices []wire.Splice
	uses    map[string]int // number of uses of each value; see dropUse
	removed map[*Node]bool // nodes that are removed or replaced
	simple  bool           // see Simplify
	tensors bool           // see tensorConstants
	move    move
	dropped map[*Tensor]bool // initializers that are removed
}

// move says which elements move to another file.
type move int

const (
	stay    move = iota
	moveIn       // elements that are in other files move into the model
	moveOut      // large elements move out of the model
)

// Edit starts a set of changes to m.
func (m *Model) Edit() *Edit { return &Edit{m: m} }

// setAttribute sets an attribute of n, given as an encoded field, and replaces an old one of that name.
func (e *Edit) setAttribute(n *Node, name string, field []byte) {
	if old := n.attribute(name); old != nil {
		e.splice(old.msg.Span(), nil, n.msg)
	}
	e.append(n.msg, field)
}

func (e *Edit) setInt(n *Node, name string, v int64) { e.setAttribute(n, name, wire.Int(name, v)) }

// appendOutput adds an output to n, after its present ones.
func (e *Edit) appendOutput(n *Node, name string) {
	e.append(n.msg, wire.AppendString(nil, wire.NodeOutput, name))
}

// InsertAfter adds a node of the default domain to the main graph, right after node n, because graphs are in
// topological order.
func (e *Edit) InsertAfter(n *Node, op, name string, inputs, outputs []string) {
	e.splice(wire.Span{Start: n.msg.Body.End, End: n.msg.Body.End}, wire.Node(op, name, inputs, outputs), n.msg.Parent)
}

// AddGraphOutput declares a tensor of the main graph as an output of the model. A dimension of -1 is free. Without
// dimensions, the runtime infers the shape.
func (e *Edit) AddGraphOutput(name string, elem ElemType, shape ...int64) {
	e.append(e.m.Graph.msg, wire.AppendBytes(nil, wire.GraphOutput, wire.Value(name, elem, shape, nil)))
}

// WithFlags returns the model with another output for each one of true and false. It has 1 for true, and a name that ends in suffix.
func WithFlags(m *Model, suffix string) (*Model, error) {
	e := m.Edit()
	for _, o := range m.Graph.Outputs {
		if n := m.Graph.Producer(o.Name); n != nil && o.ElemType == Bool {
			cast := wire.Node("Cast", o.Name+suffix, []string{o.Name}, []string{o.Name + suffix}, wire.Int("to", int64(Float)))
			e.splice(wire.Span{Start: n.msg.Body.End, End: n.msg.Body.End}, cast, n.msg.Parent)
			e.AddGraphOutput(o.Name+suffix, Float)
		}
	}
	return changed(e)
}

// changed returns the model with its own weights and the changes.
func changed(e *Edit) (*Model, error) {
	none := &weights.Layout{}
	t, err := e.Template(none)
	if err != nil {
		return nil, err
	}
	return t.Model(e.m.Path, none)
}

// TrainBatchNorm puts a batch norm into training mode with momentum 0. So its running outputs, named mean and
// variance, are those of its batch alone.
func (e *Edit) TrainBatchNorm(bn BatchNorm, mean, variance string) {
	n := bn.Node
	if bn.Written != nil {
		e.trainWritten(bn, mean, variance, e.normalise(bn, mean, variance))
		return
	}
	e.setAttribute(n, "momentum", wire.Float("momentum", 0))
	e.remove(n, n.outputs[1:])
	train(e, bn, mean, variance)
}

// train gives a batch norm of one output those of training mode.
func train(e *Edit, bn BatchNorm, mean, variance string) {
	e.appendOutput(bn.Node, mean)
	e.appendOutput(bn.Node, variance)
	if bn.OldOpset {
		// Before opset 14 five outputs mean training. Nothing uses the last two, which are for a backward pass.
		e.appendOutput(bn.Node, mean+"_saved")
		e.appendOutput(bn.Node, variance+"_saved")
		return
	}
	e.setInt(bn.Node, "training_mode", 1)
}

// remove drops inputs or outputs of n.
func (e *Edit) remove(n *Node, fields []wire.Span) {
	for _, at := range fields {
		e.splice(at, nil, n.msg)
	}
}

// DisableDropout disables every Dropout that was exported in training mode, also in bodies of functions and control flow. Without its third
// input, training_mode, Dropout passes its input on (https://onnx.ai/onnx/operators/onnx__Dropout.html). The second
// input, the ratio, stays if it is given: [DropoutTemplate] needs it.
func (e *Edit) DisableDropout() {
	for _, p := range e.m.Places() {
		n, main := p.Node, p.Graph == e.m.Graph
		if n.OpType != "Dropout" || n.Domain != "" || len(n.Inputs) < 3 || main && e.m.dropout {
			continue
		}
		keep := 2
		if n.Inputs[1] == "" {
			keep = 1
		}
		e.remove(n, n.inputs[keep:])
		if main { // names inside a function are its own
			e.dropUse(nil, n.Inputs[keep:]...)
		}
	}
}

// inference starts an edit that puts a model that was exported in training mode into inference mode: no Dropout drops,
// and batch norm normalises by its running statistics. A model exported for inference does not change, because
// exporters give only a training Dropout its third input.
func (m *Model) inference() (*Edit, error) {
	e := m.Edit()
	bns, err := m.batchNorms(true)
	for _, bn := range bns {
		e.InferBatchNorm(bn)
	}
	e.DisableDropout()
	for _, at := range m.ours { // they are true of this model alone
		e.splice(at, nil, nil)
	}
	return e, err
}

// ownMetadata begins the keys of the properties that swagwrap writes.
const ownMetadata = "swagwrap."

// AppendMetadata appends properties to the bytes of a model, in the order of their keys.
func AppendMetadata(b []byte, metadata map[string]string) []byte {
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		b = wire.AppendEntry(b, wire.ModelMetadata, key, metadata[key])
	}
	return b
}

// InferBatchNorm makes a batch norm normalise by its running statistics.
func (e *Edit) InferBatchNorm(bn BatchNorm) {
	if !bn.IsTraining {
		return
	}
	e.remove(bn.Node, bn.Node.outputs[1:])
	if !bn.OldOpset {
		e.setInt(bn.Node, "training_mode", 0)
	}
}

// append adds encoded fields at the end of a message.
func (e *Edit) append(to *wire.Message, with []byte) {
	e.splice(wire.Span{Start: to.Body.End, End: to.Body.End}, with, to)
}

func (e *Edit) splice(at wire.Span, with []byte, in *wire.Message) {
	e.splices = append(e.splices, wire.Splice{At: at, With: with, In: in})
}

// Simplify removes what keeps ONNX Runtime from its full speed, and changes no result. Initializers that are also
// inputs become constants. Convolutions lose biases that are zero by construction. Nodes lose the empty names after
// their last input. Numbers that take their type from data become constants. Nodes that nothing needs any more go.
func (e *Edit) Simplify() {
	e.simple = true
	if e.m.IRVersion < 4 { // every initializer is an input there
		e.splice(e.m.irVersion, []byte{4}, nil) // replaces one byte
	}
	initializer := make(map[string]bool)
	for _, t := range e.m.Graph.Initializers {
		initializer[t.local] = true
	}
	for _, in := range e.m.Graph.Inputs {
		if initializer[in.Name] {
			e.splice(in.msg.Span(), nil, e.m.Graph.msg)
		}
	}
}

// ForRuntime simplifies a model and prepares it for a session. A small model gets all elements in one file, which ONNX
// Runtime reads from memory. The elements of a large model move into data files, for two reasons. Protobuf stops at
// 2 GiB. ONNX Runtime copies a model that it gets from memory several times, but maps data files.
func (e *Edit) ForRuntime() {
	e.Simplify()
	e.move = moveIn
	if e.m.size() > maxInside {
		e.move = moveOut
	}
}

// maxInside is the largest size in bytes of a model that runs from memory. A session of a ResNet-18 of 47 MB opens on
// OpenVINO in a third of the time from files. For a ResNet-20 of 1 MB there is no difference.
const maxInside = 1 << 20

// renameExternal renames the data files of the model's tensors.
func (e *Edit) renameExternal(rename func(location string) string) {
	for _, t := range e.m.tensors {
		if x := t.external; x != nil {
			e.splice(x.entry, wire.AppendEntry(nil, wire.TensorExternal, "location", rename(x.location)), t.msg)
		}
	}
}

// Template returns the edited model with the parameters and statistics of l cut out.
func (e *Edit) Template(l *weights.Layout) (*Template, error) {
	fills, err := e.fills(l)
	if err != nil {
		return nil, err
	}
	if e.simple {
		e.dropZeroBiases(fills)
		e.foldCastLikes(fills)
		e.dropEmptyInputs()
	}
	if e.tensors {
		e.foldLists(fills)
		for _, f := range append([]*Graph{e.m.Graph}, e.m.Functions...) {
			if err := e.tensorConstants(f); err != nil {
				return nil, err
			}
		}
	}
	gone := make(map[*Tensor]bool)
	for n := range e.removed {
		gone[n.constant] = true
	}
	c := &cutter{m: e.m, move: e.move, model: slices.Clone(e.splices), files: make(map[string][]wire.Splice)}
	if e.move == moveOut {
		c.newName = unusedFile(e.m)
	}
	for _, t := range e.m.tensors {
		if gone[t] || e.dropped[t] {
			continue
		}
		name, fill := fills[t]
		if err := c.tensor(t, name, fill); err != nil {
			return nil, err
		}
	}
	return c.template()
}

// fills returns the tensors to cut out, with their names in l.
func (e *Edit) fills(l *weights.Layout) (map[*Tensor]string, error) {
	fills := make(map[*Tensor]string)
	for _, entry := range l.Tensors {
		if entry.Role == weights.Constant {
			continue
		}
		t, err := e.m.matching(entry)
		if err == nil {
			err = e.m.located(t)
		}
		if err != nil {
			return nil, err
		}
		if twin, taken := fills[t]; taken {
			return nil, &Error{
				Path:   e.m.Path,
				Tensor: t.Name,
				What:   fmt.Sprintf("stands for both %q and %q, which differ in other checkpoints", twin, entry.Name),
			}
		}
		fills[t] = entry.Name
	}
	return fills, nil
}

// unusedFile returns a name for a new data file of the model.
func unusedFile(m *Model) string {
	taken := map[string]bool{m.fileName(): true}
	for _, t := range m.tensors {
		if t.external != nil {
			taken[t.external.location] = true
		}
	}
	return unused("weights", taken)
}

// unused returns the given name, with a suffix if it is taken.
func unused(name string, taken map[string]bool) string {
	for taken[name] {
		name += "_"
	}
	return name
}

// MixBatchNorm is [Edit.TrainBatchNorm], but the layer normalises by a mixture of its own statistics and those of the batch
// (Schneider et al. 2020). The batch has the share w of mean and second moment. MixBatchNorm changes nothing and returns false
// if the layer does not compute in float32, or is written out in operators.
func (e *Edit) MixBatchNorm(bn BatchNorm, w float64, mean, variance string) bool {
	n := bn.Node
	if bn.Written != nil || bn.ElemType != Float {
		return false
	}
	name := func(what string) string { return mean + "_" + what }
	constant := func(what string, v float64) string {
		e.addInitializer(name(what), Float, binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(v))))
		return name(what)
	}
	share, rest, both := constant("share", w), constant("rest", 1-w), constant("both", w*(1-w))
	e.setAttribute(n, "momentum", wire.Float("momentum", 0))
	e.remove(n, n.outputs)
	e.appendOutput(n, name("unused"))
	train(e, bn, mean, variance)
	var nodes []byte
	add := func(op, output string, inputs ...string) string {
		nodes = append(nodes, wire.Node(op, output+"_node", inputs, []string{output})...)
		return output
	}
	rowFlow := add("Sub", name("apart"), mean, n.Inputs[3])
	mixedMean := add("Add", name("mixed_mean"), n.Inputs[3], add("Mul", name("moved"), rowFlow, share))
	within := add("Add", name("within"), add("Mul", name("own"), n.Inputs[4], rest), add("Mul", name("batch"), variance, share))
	between := add("Mul", name("between"), add("Mul", name("squared"), rowFlow, rowFlow), both)
	mixedVariance := add("Add", name("mixed_variance"), within, between)
	nodes = append(nodes, wire.Node("BatchNormalization", name("mixed_node"),
		[]string{n.Inputs[0], n.Inputs[1], n.Inputs[2], mixedMean, mixedVariance},
		n.Outputs[:1], wire.Float("epsilon", float32(bn.Epsilon)))...)
	e.splice(wire.Span{Start: n.msg.Body.End, End: n.msg.Body.End}, nodes, n.msg.Parent)
	return true
}
