package onnxio

import (
	"math"
	"slices"
)

// Rules of [apart] for operators that join, cut and pick, and for lists of sizes.

func shapeOf(_ *apart, n *Node, in []flow) (flow, bool) {
	dims := in[0].dims
	start, end := axisAt(n.Int("start", 0), len(dims)), axisAt(n.Int("end", int64(len(dims))), len(dims))
	if dims == nil || start < 0 || end > len(dims) || start > end {
		return flow{}, false
	}
	list := slices.Clone(dims[start:end])
	return flow{dims: []int64{int64(len(list))}, ints: list}, true
}

// constant is the rule of values that depend on sizes only. All elements of a ConstantOfShape are equal.
func constant(_ *apart, n *Node, in []flow) (flow, bool) {
	if !rest(in, 0) {
		return flow{}, false
	}
	switch {
	case n.OpType == "ConstantOfShape" && in[0].ints != nil:
		return flow{dims: slices.Clone(in[0].ints)}, true
	case n.OpType == "Range" && !slices.ContainsFunc(in, func(f flow) bool { return slices.Contains(f.ints, batchSize) }):
		return flow{dims: []int64{anySize}}, true // as many numbers as examples would tell their places
	}
	return flow{}, false
}

// literal is the rule of a Constant node.
func literal(n *Node) (flow, bool) {
	if value := n.attribute("value"); value != nil && value.Tensor != nil {
		return stored(value.Tensor), true
	}
	if list := n.list("value_ints"); list != nil {
		return flow{dims: []int64{int64(len(list))}, ints: list}, true
	}
	if one := n.attribute("value_int"); one != nil {
		return flow{dims: []int64{}, ints: []int64{one.Int}}, true
	}
	return flow{dims: []int64{}}, n.attribute("value_float") != nil
}

func concat(_ *apart, n *Node, in []flow) (out flow, ok bool) {
	data := slices.IndexFunc(in, func(f flow) bool { return f.data })
	if data < 0 {
		out.ints = []int64{}
		for _, f := range in {
			if f.ints == nil {
				return flow{dims: slices.Repeat([]int64{anySize}, len(in[0].dims))}, !slices.ContainsFunc(in, func(f flow) bool {
					return f.dims == nil || slices.Contains(f.dims, batchSize)
				})
			}
			out.ints = append(out.ints, f.ints...)
		}
		out.dims = []int64{int64(len(out.ints))}
		return out, true
	}
	x := in[data]
	axis := axisAt(n.Int("axis", 0), len(x.dims))
	if x.dims == nil || axis == x.axis || axis < 0 || axis >= len(x.dims) {
		return out, false
	}
	out = flow{data: true, axis: x.axis, dims: slices.Clone(x.dims)}
	out.dims[axis] = 0
	for _, f := range in {
		if len(f.dims) != len(x.dims) || f.data && f.axis != x.axis || !f.data && f.dims[x.axis] != batchSize {
			return out, false
		}
		if d := f.dims[axis]; d < 0 || out.dims[axis] < 0 {
			out.dims[axis] = anySize
		} else {
			out.dims[axis] += d
		}
	}
	return out, true
}

func gather(_ *apart, n *Node, in []flow) (out flow, ok bool) {
	x, idx := in[0], in[1]
	if x.dims == nil || idx.dims == nil {
		return out, false
	}
	axis := axisAt(n.Int("axis", 0), len(x.dims))
	if axis < 0 || axis >= len(x.dims) {
		return out, false
	}
	out.dims = append([]int64{}, slices.Concat(x.dims[:axis], idx.dims, x.dims[axis+1:])...)
	switch {
	case x.data && idx.data, x.data && axis == x.axis:
		return out, false
	case x.data:
		out.data, out.axis = true, x.axis
		if x.axis > axis {
			out.axis += len(idx.dims) - 1
		}
	case idx.data && slices.Contains(x.dims, batchSize):
		return out, false
	case idx.data: // a row of a table for each element
		out.data, out.axis = true, axis+idx.axis
	case x.ints != nil && idx.ints != nil:
		out.ints = []int64{}
		for _, k := range idx.ints {
			if k = int64(axisAt(k, len(x.ints))); k < 0 || int(k) >= len(x.ints) {
				return out, false
			}
			out.ints = append(out.ints, x.ints[k])
		}
	default: // of a constant
		return out, !slices.Contains(x.dims, batchSize)
	}
	return out, true
}

func slice(a *apart, n *Node, in []flow) (out flow, ok bool) {
	x := in[0]
	if x.dims == nil || !rest(in, 1) {
		return out, false
	}
	starts, ends, axes, steps := n.list("starts"), n.list("ends"), n.list("axes"), []int64(nil)
	if len(in) > 2 {
		starts, ends = in[1].ints, in[2].ints
		if len(in) > 3 && n.Inputs[3] != "" {
			axes = in[3].ints
			if axes == nil {
				return out, false
			}
		}
		if len(in) > 4 {
			steps = in[4].ints
			if steps == nil {
				return out, false
			}
		}
	}
	if axes == nil {
		if starts == nil {
			return out, false
		}
		for k := range starts {
			axes = append(axes, int64(k))
		}
	}
	out = flow{data: x.data, axis: x.axis, dims: slices.Clone(x.dims)}
	for i, axis := range axes {
		k := axisAt(axis, len(x.dims))
		if k < 0 || k >= len(x.dims) {
			return out, false
		}
		if whole := i < len(starts) && i < len(ends) && starts[i] == 0 && ends[i] >= math.MaxInt32 &&
			(steps == nil || i < len(steps) && steps[i] == 1); whole {
			continue
		}
		if x.dims[k] == batchSize {
			return out, false
		}
		out.dims[k] = anySize
	}
	if x.ints != nil && len(starts) == 1 && len(ends) == 1 && (steps == nil || steps[0] == 1) && starts[0] >= 0 {
		from, to := min(starts[0], int64(len(x.ints))), min(ends[0], int64(len(x.ints)))
		if to < 0 {
			to += int64(len(x.ints))
		}
		out.ints = slices.Clone(x.ints[from:max(from, to)])
		out.dims = []int64{int64(len(out.ints))}
	}
	return out, true
}

func pad(_ *apart, n *Node, in []flow) (flow, bool) {
	pads := n.list("pads")
	if len(in) > 1 {
		pads = in[1].ints
	}
	if !first(in) || len(in) > 3 || len(pads) != 2*len(in[0].dims) || pads[0] != 0 || pads[len(pads)/2] != 0 {
		return flow{}, false
	}
	out := unknown(in[0])
	for k, d := range in[0].dims {
		if d > 0 {
			out.dims[k] = d + pads[k] + pads[k+len(in[0].dims)]
		}
	}
	return out, true
}

// resize leaves the first two axes as they are.
func resize(a *apart, _ *Node, in []flow) (flow, bool) {
	if !first(in) || len(in) < 3 {
		return flow{}, false
	}
	if len(in) > 3 && len(in[3].ints) == len(in[0].dims) {
		return flow{data: true, dims: append([]int64{batchSize}, in[3].ints[1:]...)}, a.isBatch(in[3].ints[0])
	}
	return flow{}, false
}

func expand(a *apart, _ *Node, in []flow) (out flow, ok bool) {
	x, to := in[0], in[1].ints
	if x.dims == nil || to == nil || in[1].data {
		return out, false
	}
	if !x.data && len(x.dims) < 2 && len(to) == 1 && to[0] == 1 {
		return x, true
	}
	rank := max(len(x.dims), len(to))
	out = flow{data: x.data, axis: x.axis + rank - len(x.dims), dims: slices.Repeat([]int64{1}, rank)}
	copy(out.dims[rank-len(to):], to)
	for k, d := range x.dims {
		to := &out.dims[k+rank-len(x.dims)]
		switch {
		case *to == 1:
			*to = d
		case *to == batchSize && d != 1 && d != batchSize:
			return out, false
		case d != 1 && *to != batchSize:
			*to = d
		}
	}
	return out, !x.data || a.isBatch(out.dims[out.axis])
}

// recurrent goes over the first axis; the examples are on the second.
func recurrent(_ *apart, n *Node, in []flow) ([]flow, bool) {
	if len(in) < 3 || !in[0].data || in[0].axis != 1 || len(in[0].dims) != 3 || n.Int("layout", 0) != 0 {
		return nil, false
	}
	for k, f := range in[1:] {
		switch {
		case f.data && (k+1 < 4 || k+1 > 6), f.data && k+1 == 4 && f.axis != 0, f.data && k+1 > 4 && f.axis != 1:
			return nil, false
		case !f.data && k+1 == 4 && n.Inputs[k+1] != "" && !f.uniform(1),
			!f.data && (k+1 == 5 || k+1 == 6) && n.Inputs[k+1] != "" && !f.uniform(2):
			return nil, false
		}
	}
	state := flow{data: true, axis: 1, dims: []int64{anySize, batchSize, anySize}}
	return []flow{{
		data: true,
		axis: 2,
		dims: []int64{in[0].dims[0], anySize, batchSize, n.Int("hidden_size", anySize)},
	}, state, state}, true
}

func split(_ *apart, n *Node, in []flow) (out []flow, ok bool) {
	x := in[0]
	axis := axisAt(n.Int("axis", 0), len(x.dims))
	if x.dims == nil || !rest(in, 1) || axis < 0 || axis >= len(x.dims) || x.dims[axis] == batchSize {
		return nil, false
	}
	sizes := n.list("split")
	if len(in) > 1 {
		sizes = in[1].ints
	}
	for k := range n.Outputs {
		part := flow{data: x.data, axis: x.axis, dims: slices.Clone(x.dims)}
		part.dims[axis] = anySize
		if k < len(sizes) {
			part.dims[axis] = sizes[k]
		}
		out = append(out, part)
	}
	return out, true
}
