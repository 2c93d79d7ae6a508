package onnxio

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/swagwrap/swagwrap/weights"
)

// An Edit collects changes to a model's graph. Bytes that no change touches
// stay verbatim; where a change grows a message, only the length prefixes of
// the messages around it are written anew.
type Edit struct {
	m       *Model
	splices []splice
	embed   bool // elements in other files move into the model
}

// splice replaces a byte range, inside message in, by other bytes, and behind
// them a hole for a tensor of a layout.
type splice struct {
	at    span
	with  []byte
	in    *message
	hole  string // the tensor's name
	bytes int    // length of its elements; 0 where there is no hole
}

// Edit starts a set of changes to m.
func (m *Model) Edit() *Edit { return &Edit{m: m} }

// SetInt sets an integer attribute of n, replacing one of that name.
func (e *Edit) SetInt(n *Node, name string, v int64) {
	const kindInt = 2
	b := protowire.AppendVarint(protowire.AppendTag(nil, attrInt, protowire.VarintType), uint64(v))
	e.setAttribute(n, name, b, kindInt)
}

// SetFloat sets a float attribute of n, replacing one of that name.
func (e *Edit) SetFloat(n *Node, name string, v float32) {
	const kindFloat = 1
	b := protowire.AppendFixed32(protowire.AppendTag(nil, attrFloat, protowire.Fixed32Type), math.Float32bits(v))
	e.setAttribute(n, name, b, kindFloat)
}

func (e *Edit) setAttribute(n *Node, name string, value []byte, kind uint64) {
	if old := n.attribute(name); old != nil {
		e.splice(span{old.msg.tag, old.msg.end}, nil, n.msg)
	}
	body := appendString(nil, attrName, name)
	body = append(body, value...)
	body = protowire.AppendVarint(protowire.AppendTag(body, attrType, protowire.VarintType), kind)
	e.append(n.msg, appendBytes(nil, nodeAttribute, body))
}

// AppendOutput adds an output to n, after those it has.
func (e *Edit) AppendOutput(n *Node, name string) {
	e.append(n.msg, appendString(nil, nodeOutput, name))
}

// InsertAfter adds a node of the default domain to the main graph, right after
// node n: graphs are in topological order.
func (e *Edit) InsertAfter(n *Node, op, name string, inputs, outputs []string) {
	var body []byte
	for _, s := range inputs {
		body = appendString(body, nodeInput, s)
	}
	for _, s := range outputs {
		body = appendString(body, nodeOutput, s)
	}
	body = appendString(body, nodeName, name)
	body = appendString(body, nodeOpType, op)
	e.splice(span{n.msg.end, n.msg.end}, appendBytes(nil, graphNode, body), n.msg.parent)
}

// AddGraphOutput declares a tensor of the main graph as an output of the model.
// A dimension of -1 is free; without dimensions, the shape is left to
// inference.
func (e *Edit) AddGraphOutput(name string, elem ElemType, shape ...int64) {
	var dims []byte
	for _, d := range shape {
		var dim []byte
		if d >= 0 {
			dim = protowire.AppendVarint(protowire.AppendTag(nil, dimValue, protowire.VarintType), uint64(d))
		}
		dims = appendBytes(dims, shapeDim, dim)
	}
	tensor := protowire.AppendVarint(protowire.AppendTag(nil, tensorTypeElem, protowire.VarintType), uint64(elem))
	if len(shape) > 0 {
		tensor = appendBytes(tensor, tensorTypeShape, dims)
	}
	body := appendString(nil, valueName, name)
	body = appendBytes(body, valueType, appendBytes(nil, typeTensor, tensor))
	e.append(e.m.Graph.msg, appendBytes(nil, graphOutput, body))
}

// TrainBatchNorm puts a batch norm into training mode with momentum 0, so that
// its running outputs, named mean and variance, are those of its batch alone.
func (e *Edit) TrainBatchNorm(bn BatchNorm, mean, variance string) {
	n := bn.Node
	e.SetFloat(n, "momentum", 0)
	e.remove(n, n.outputs[1:])
	e.AppendOutput(n, mean)
	e.AppendOutput(n, variance)
	if bn.OldOpset {
		// Before opset 14 five outputs mean training; the last two, saved for a
		// backward pass, go nowhere.
		e.AppendOutput(n, mean+"_saved")
		e.AppendOutput(n, variance+"_saved")
		return
	}
	e.SetInt(n, "training_mode", 1)
}

// remove drops inputs or outputs of n.
func (e *Edit) remove(n *Node, fields []span) {
	for _, at := range fields {
		e.splice(at, nil, n.msg)
	}
}

// DisableDropout keeps every Dropout of the main graph that was exported in
// training mode from dropping anything: without its optional inputs, ratio and
// training_mode, it passes its input on
// (https://onnx.ai/onnx/operators/onnx__Dropout.html).
func (e *Edit) DisableDropout() {
	for i := range e.m.Graph.Nodes {
		if n := &e.m.Graph.Nodes[i]; n.OpType == "Dropout" && n.Domain == "" && len(n.Inputs) > 2 {
			e.remove(n, n.inputs[1:])
		}
	}
}

// Inference brings a model that was exported in training mode back to
// inference: no Dropout drops, and batch norm normalises by its running
// statistics. A model exported for inference stays as it is; exporters give
// only a training Dropout its third input.
func (e *Edit) Inference() error {
	bns, err := e.m.BatchNorms()
	if err != nil {
		return err
	}
	for _, bn := range bns {
		if bn.IsTraining {
			e.remove(bn.Node, bn.Node.outputs[1:])
			if !bn.OldOpset {
				e.SetInt(bn.Node, "training_mode", 0)
			}
		}
	}
	if !e.m.dropout {
		e.DisableDropout()
	}
	return nil
}

// append adds encoded fields at the end of a message.
func (e *Edit) append(to *message, with []byte) { e.splice(span{to.end, to.end}, with, to) }

func (e *Edit) splice(at span, with []byte, in *message) {
	e.splices = append(e.splices, splice{at: at, with: with, in: in})
}

func appendString(b []byte, num protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), s)
}

func appendBytes(b []byte, num protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), v)
}

// ForRuntime readies a model for a session made from memory: elements in other
// files move into the model, and initializers that are also inputs, as IR
// versions before 4 want them, become constants that ONNX Runtime can optimise.
func (e *Edit) ForRuntime() {
	e.embed = true
	if e.m.IRVersion >= 4 {
		return
	}
	e.splice(e.m.irVersion, []byte{4}, nil) // one byte for another
	initializer := make(map[string]bool)
	for _, t := range e.m.Graph.Initializers {
		initializer[t.local] = true
	}
	for _, in := range e.m.Graph.Inputs {
		if initializer[in.Name] {
			e.splice(span{in.msg.tag, in.msg.end}, nil, e.m.Graph.msg)
		}
	}
}

// RenameExternal changes the names of the data files that the model's tensors
// lie in.
func (e *Edit) RenameExternal(rename func(location string) string) {
	for _, t := range e.m.tensors {
		if x := t.external; x != nil {
			entry := appendString(appendString(nil, 1, "location"), 2, rename(x.location))
			e.splice(x.entry, appendBytes(nil, tensorExternal, entry), t.msg)
		}
	}
}

// Template returns the edited model with the parameters and statistics of l
// cut out.
func (e *Edit) Template(l *weights.Layout) (*Template, error) {
	fills := make(map[*Tensor]string) // the tensors to cut out, by their names in l
	for _, entry := range l.Tensors {
		if entry.Role == weights.Constant {
			continue
		}
		t, err := e.m.holding(entry)
		if err != nil {
			return nil, err
		}
		if twin, taken := fills[t]; taken {
			return nil, &Error{Path: e.m.Path, Tensor: t.Name, What: fmt.Sprintf("stands for both %q and %q, which differ in other checkpoints", twin, entry.Name)}
		}
		fills[t] = entry.Name
	}
	model := slices.Clone(e.splices)
	outside := make(map[string][]splice)
	for _, t := range e.m.tensors {
		name, fill := fills[t]
		if t.Len() == 0 && t.external == nil {
			continue
		}
		cut := splice{hole: name, bytes: len(e.m.elements(t))}
		switch {
		case t.inPlace:
			cut.at = t.payload
			if fill {
				model = append(model, cut)
			}
		case t.external != nil && !e.embed:
			at := int(t.external.offset)
			cut.at = span{at, at + cut.bytes}
			if !fill || cut.bytes == 0 {
				cut = splice{} // so that the file is listed
			}
			outside[t.external.location] = append(outside[t.external.location], cut)
		case t.external != nil || fill:
			if err := e.m.readable(t); err != nil {
				return nil, err
			}
			model = append(model, e.rawData(t, cut, fill)...)
		}
	}
	main, err := e.cut(filepath.Base(e.m.Path), e.m.data, slices.Concat(model, prefixes(model)))
	if err != nil {
		return nil, err
	}
	tpl := &Template{files: []templateFile{main}}
	for _, location := range slices.Sorted(maps.Keys(outside)) {
		file, err := e.cut(location, e.m.fileData(location), outside[location])
		if err != nil {
			return nil, err
		}
		tpl.files = append(tpl.files, file)
	}
	if tpl.Size() > maxFile && e.embed {
		return nil, &Error{Path: e.m.Path, What: fmt.Sprintf("%d bytes with its external data: ONNX Runtime takes at most 2 GiB from memory", tpl.Size())}
	}
	return tpl, nil
}

// rawData puts a raw_data field in the place of the fields that hold or point
// to the elements of t.
func (e *Edit) rawData(t *Tensor, cut splice, fill bool) []splice {
	cut.in = t.msg
	cut.with = protowire.AppendVarint(protowire.AppendTag(nil, tensorRaw, protowire.BytesType), uint64(cut.bytes))
	if !fill {
		cut.with, cut.bytes = append(cut.with, e.m.elements(t)...), 0
	}
	var out []splice
	for i, at := range t.fields {
		if i == 0 {
			cut.at = at
			out = append(out, cut)
		} else {
			out = append(out, splice{at: at, in: t.msg})
		}
	}
	return out
}

// cut applies the splices to a file's bytes.
func (e *Edit) cut(name string, data []byte, cuts []splice) (templateFile, error) {
	// At one place, what is appended to a node comes before what follows the node.
	slices.SortStableFunc(cuts, func(a, b splice) int {
		return cmp.Or(cmp.Compare(a.at.start, b.at.start), cmp.Compare(b.in.depth(), a.in.depth()))
	})
	file := templateFile{Name: name}
	at := 0
	for _, c := range cuts {
		if c.at.end == 0 { // nothing to do
			continue
		}
		if c.at.start < at {
			return file, &Error{Path: e.m.Path, Tensor: c.hole, What: fmt.Sprintf("shares byte %d of %s with another tensor or edit", c.at.start, name)}
		}
		file.literal = append(file.literal, data[at:c.at.start]...)
		file.literal = append(file.literal, c.with...)
		if c.bytes > 0 {
			file.Holes = append(file.Holes, Hole{Tensor: c.hole, At: int64(len(file.literal)), Bytes: int64(c.bytes)})
		}
		at = c.at.end
	}
	file.literal = append(file.literal, data[at:]...)
	file.Bytes = int64(len(file.literal))
	return file, nil
}

// prefixes returns the splices that rewrite the length prefixes around the
// given ones.
func prefixes(splices []splice) []splice {
	growth := make(map[*message]int)
	var around []*message
	for _, s := range splices {
		for m := s.in; m != nil; m = m.parent {
			if _, seen := growth[m]; !seen {
				growth[m] = 0
				around = append(around, m)
			}
		}
		growth[s.in] += len(s.with) + s.bytes - (s.at.end - s.at.start)
	}
	// Innermost first, since a longer prefix makes the message around it grow.
	slices.SortStableFunc(around, func(a, b *message) int { return cmp.Compare(b.depth(), a.depth()) })
	var out []splice
	for _, m := range around {
		if m.parent == nil || growth[m] == 0 {
			continue
		}
		prefix := protowire.AppendVarint(nil, uint64(m.end-m.start+growth[m]))
		old := span{m.length, m.start}
		growth[m.parent] += growth[m] + len(prefix) - (old.end - old.start)
		out = append(out, splice{at: old, with: prefix, in: m.parent})
	}
	return out
}

func (m *message) depth() int {
	d := 0
	for ; m != nil; m = m.parent {
		d++
	}
	return d
}
