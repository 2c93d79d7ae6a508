package onnxio

import (
	"cmp"
	"fmt"
	"math"
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
}

// splice replaces a byte range, inside message in, by other bytes.
type splice struct {
	at   span
	with []byte
	in   *message
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

// AddGraphOutput declares a tensor of the main graph as an output of the
// model, its shape left to inference.
func (e *Edit) AddGraphOutput(name string, elem ElemType) {
	elemType := protowire.AppendVarint(protowire.AppendTag(nil, tensorTypeElem, protowire.VarintType), uint64(elem))
	body := appendString(nil, valueName, name)
	body = appendBytes(body, valueType, appendBytes(nil, typeTensor, elemType))
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
	e.DisableDropout()
	return nil
}

// append adds encoded fields at the end of a message.
func (e *Edit) append(to *message, with []byte) { e.splice(span{to.end, to.end}, with, to) }

func (e *Edit) splice(at span, with []byte, in *message) {
	e.splices = append(e.splices, splice{at, with, in})
}

func appendString(b []byte, num protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), s)
}

func appendBytes(b []byte, num protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), v)
}

// Template returns the edited model with the parameters and statistics of l
// cut out.
func (e *Edit) Template(l *weights.Layout) (*Template, error) {
	cuts := slices.Concat(e.splices, prefixes(e.splices))
	holes := map[int]Hole{} // by the offset of the elements
	for _, role := range []weights.Role{weights.Parameter, weights.Statistic} {
		tensors, err := e.m.holding(l, role)
		if err != nil {
			return nil, err
		}
		for _, t := range tensors {
			if t.Len() == 0 {
				continue
			}
			cuts = append(cuts, splice{at: t.payload})
			holes[t.payload.start] = Hole{Tensor: t.Name, Bytes: int64(t.payload.end - t.payload.start)}
		}
	}
	// At one place, what is appended to a node comes before what follows the node.
	slices.SortStableFunc(cuts, func(a, b splice) int {
		return cmp.Or(cmp.Compare(a.at.start, b.at.start), cmp.Compare(b.in.depth(), a.in.depth()))
	})
	tpl := &Template{}
	at := 0
	for _, c := range cuts {
		if c.at.start < at {
			return nil, &Error{Path: e.m.Path, What: fmt.Sprintf("edits overlap at byte %d", c.at.start)}
		}
		tpl.literal = append(tpl.literal, e.m.data[at:c.at.start]...)
		tpl.literal = append(tpl.literal, c.with...)
		if h, ok := holes[c.at.start]; ok && c.in == nil {
			h.At = int64(len(tpl.literal))
			tpl.holes = append(tpl.holes, h)
		}
		at = c.at.end
	}
	tpl.literal = append(tpl.literal, e.m.data[at:]...)
	return tpl, nil
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
		growth[s.in] += len(s.with) - (s.at.end - s.at.start)
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
