package onnxio

import "slices"

// A traced value is one whose examples are followed through a graph.
type traced struct {
	dims []int64
	// axis has the examples. An element at the place of one depends on that example only. It is −1 if the value depends on none.
	axis int
	ints []int64 // the elements of a short list of integers, or nil
}

// tracer follows examples. Sizes that a graph leaves open are large primes here. So a list of sizes is computed as in a run, and shows
// where it has the batch.
type tracer struct {
	opset, batch, prime int64
	values              map[string]traced

	least int64 // if only sizes are wanted: those that the graph leaves open are above it; otherwise 0
}

// Independent reports whether the graph proves that the scores of an example do not depend on the other examples of its batch.
// It knows the usual operators. false means only that it has no proof.
//
// Each operator is followed with the axis that has the examples. A product over another axis, a pooling or a normalisation leaves
// them separate. What joins examples, or an unknown operator, ends the proof.
func (m *Model) Independent(output string) bool {
	t := &tracer{opset: m.Opset, prime: firstPrime, values: map[string]traced{"": {axis: -1}}}
	for _, v := range m.FeedInputs() {
		if len(v.Shape) == 0 {
			return false
		}
		t.batch = max(t.batch, v.Shape[0])
	}
	if t.batch < 1 {
		t.batch = t.open()
	}
	for _, v := range m.FeedInputs() {
		dims := slices.Clone(v.Shape)
		for i, d := range dims {
			if d < 1 {
				dims[i] = t.open()
			}
		}
		dims[0] = t.batch
		t.values[v.Name] = traced{dims: dims}
	}
	for i := range m.Graph.Nodes {
		if n := &m.Graph.Nodes[i]; n.OpType == "Constant" && n.Domain == "" && len(n.Outputs) > 0 {
			t.constant(n)
		}
	}
	for _, p := range m.Places() {
		if p.Graph == m.Graph && (p.Node.Domain == "" || p.Node.Domain == "ai.onnx") && len(p.Node.Inputs) > 0 {
			t.node(p)
		}
	}
	v, ok := t.values[output]
	return ok && v.axis == 0
}

// open returns the next prime, for a size that the graph leaves open.
func (t *tracer) open() int64 {
	for composite := true; composite; {
		t.prime, composite = t.prime+2, false
		for d := int64(3); d*d <= t.prime && !composite; d += 2 {
			composite = t.prime%d == 0
		}
	}
	return t.prime
}

func (t *tracer) constant(n *Node) {
	v := traced{axis: -1}
	if value := n.attribute("value"); value != nil && value.Tensor != nil {
		v.dims, v.ints = value.Tensor.Shape, value.Tensor.ints
	} else if list := n.list("value_ints"); len(list) > shortList { // its end was not read
		v.dims = []int64{t.open()}
	} else if list != nil {
		v.dims, v.ints = []int64{int64(len(list))}, list
	} else if one := n.attribute("value_int"); one != nil {
		v.ints = []int64{one.Int}
	} else if n.attribute("value_float") == nil {
		return
	}
	t.values[n.Outputs[0]] = v
}

// node follows the examples through a node. Without a proof its outputs have no value.
func (t *tracer) node(p Place) {
	const read = 7 // inputs that rules read; those that a node does not have are as those without a name
	s := &tracedNode{tracer: t, Node: p.Node}
	for i, name := range p.Node.Inputs {
		v, ok := t.values[name]
		if x := p.Tensors[i]; x != nil {
			v, ok = traced{dims: x.Shape, axis: -1, ints: x.ints}, true
		}
		if !ok {
			return
		}
		s.in = append(s.in, v)
	}
	for len(s.in) < read {
		s.in = append(s.in, traced{axis: -1})
	}
	for i, v := range s.follow() {
		if i < len(p.Node.Outputs) && p.Node.Outputs[i] != "" {
			t.values[p.Node.Outputs[i]] = v
		}
	}
}

// at returns an axis that may be counted from the end, or −1 if there is none.
func (v traced) at(axis int64) int {
	if axis < 0 {
		axis += int64(len(v.dims))
	}
	if axis < 0 || axis >= int64(len(v.dims)) {
		return -1
	}
	return int(axis)
}

// even reports whether a value is the same for all examples, or has its own for each. right counts the axis of the examples from the
// right, from 1.
func (v traced) even(right int) bool {
	return v.axis >= 0 || len(v.dims) < right || v.dims[len(v.dims)-right] == 1
}

// sized returns the value with other sizes.
func (v traced) sized(dims ...int64) []traced { return []traced{{dims: dims, axis: v.axis}} }

// mixed returns the value after its elements were mixed along axes, from one to the last, or no proof.
func (v traced) mixed(from, last int) []traced {
	if from < 0 || last < 0 || from <= v.axis && v.axis <= last {
		return nil
	}
	return v.sized(v.dims...)
}

// reshaped returns the value with the same elements in other sizes. The examples stay separate if as many elements as before come
// before them.
func (v traced) reshaped(to []int64) []traced {
	out := traced{dims: to, axis: -1, ints: v.ints}
	for k := range to {
		if v.axis >= 0 && out.axis < 0 && to[k] == v.dims[v.axis] && product(to[:k]) == product(v.dims[:v.axis]) {
			out.axis = k
		}
	}
	if v.axis >= 0 && out.axis < 0 {
		return nil
	}
	return []traced{out}
}

func product(dims []int64) int64 {
	all := int64(1)
	for _, d := range dims {
		all *= d
	}
	return all
}

// broadcast returns the result of an operator that computes element by element.
func broadcast(in ...traced) []traced {
	out, rank := traced{axis: -1}, 0
	for _, v := range in {
		rank = max(rank, len(v.dims))
	}
	out.dims = slices.Repeat([]int64{1}, rank)
	for _, v := range in {
		if at := v.axis + rank - len(v.dims); v.axis >= 0 {
			if out.axis >= 0 && out.axis != at {
				return nil
			}
			out.axis = at
		}
		for k, d := range v.dims {
			if to := &out.dims[k+rank-len(v.dims)]; *to == 1 {
				*to = d
			}
		}
	}
	if out.axis >= 0 && slices.ContainsFunc(in, func(v traced) bool { return !v.even(rank - out.axis) }) {
		return nil
	}
	return []traced{out}
}

// arithmetic computes with short lists of sizes. It returns nil for what it does not know.
func arithmetic(op string, x, y []int64) (out []int64) {
	if len(x) != len(y) && len(x) != 1 && len(y) != 1 || len(x)*len(y) == 0 {
		return nil
	}
	for k := range max(len(x), len(y)) {
		v, w := x[min(k, len(x)-1)], y[min(k, len(y)-1)]
		switch {
		case op == "Mul":
			out = append(out, v*w)
		case op == "Add":
			out = append(out, v+w)
		case op == "Sub":
			out = append(out, v-w)
		case op == "Div" && v >= 0 && w > 0:
			out = append(out, v/w)
		case op == "Mod" && v >= 0 && w > 0:
			out = append(out, v%w)
		default:
			return nil
		}
	}
	return out
}
