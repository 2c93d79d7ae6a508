package onnxio

import "slices"

// Rules of [apart]. Each returns the flow of an output, and false without a proof.

// first reports whether the first input has the examples on its first axis, and others are constants.
func first(in []flow) bool {
	return len(in) > 0 && in[0].data && in[0].axis == 0 && in[0].dims != nil && rest(in, 1)
}

// unknown returns dims with the same number of sizes, of which only that of the batch is known.
func unknown(f flow) flow {
	dims := slices.Repeat([]int64{anySize}, len(f.dims))
	for i, d := range f.dims {
		if d == batchSize {
			dims[i] = d
		}
	}
	return flow{data: f.data, axis: f.axis, dims: dims}
}

// window is the rule of convolutions and poolings.
func window(a *apart, n *Node, in []flow) (flow, bool) {
	if !first(in) || len(in[0].dims) < 3 {
		return flow{}, false
	}
	out := unknown(in[0])
	kernel := n.list("kernel_shape")
	switch {
	case n.OpType == "Conv" && len(in) > 1 && len(in[1].dims) == len(out.dims):
		out.dims[1], kernel = in[1].dims[0], in[1].dims[2:]
	case n.OpType == "ConvTranspose":
		return out, true
	case n.OpType != "Conv":
		out.dims[1] = in[0].dims[1]
	}
	spatial := len(out.dims) - 2
	strides, dilations, pads := n.list("strides"), n.list("dilations"), n.list("pads")
	if len(kernel) != spatial || n.attribute("auto_pad") != nil || n.Int("ceil_mode", 0) != 0 {
		return out, true
	}
	entry := func(list []int64, k int, preset int64) int64 {
		if k < len(list) {
			return list[k]
		}
		return preset
	}
	for k := range spatial {
		stride, size := entry(strides, k, 1), in[0].dims[k+2]
		if size > 0 && stride > 0 {
			out.dims[k+2] = (size+entry(pads, k, 0)+entry(pads, k+spatial, 0)-entry(dilations, k, 1)*(kernel[k]-1)-1)/stride + 1
		}
	}
	return out, true
}

func global(_ *apart, _ *Node, in []flow) (flow, bool) {
	if !first(in) {
		return flow{}, false
	}
	out := unknown(in[0])
	for i := range out.dims {
		if i > 1 {
			out.dims[i] = 1
		} else if i == 1 {
			out.dims[i] = in[0].dims[1]
		}
	}
	return out, true
}

// inference is the rule of batch norm with running statistics. swagwrap runs it in inference mode, whatever the file says.
func inference(a *apart, n *Node, in []flow) (flow, bool) {
	if len(in) != 5 || !in[3].stored || !in[4].stored {
		return flow{}, false
	}
	return channelwise(a, n, in)
}

func channelwise(_ *apart, _ *Node, in []flow) (flow, bool) {
	if !first(in) {
		return flow{}, false
	}
	return flow{data: true, dims: in[0].dims}, true
}

// layerwise normalises over an axis and all behind it.
func layerwise(_ *apart, n *Node, in []flow) (flow, bool) {
	if len(in) == 0 || !in[0].data || in[0].dims == nil || !rest(in, 1) {
		return flow{}, false
	}
	x := in[0]
	axis := axisAt(n.Int("axis", -1), len(x.dims))
	uniform := !slices.ContainsFunc(in[1:], func(f flow) bool { return !f.uniform(len(x.dims) - x.axis) })
	return flow{data: true, axis: x.axis, dims: x.dims}, axis > x.axis && uniform
}

// axisAt returns an axis that may be counted from the end.
func axisAt(axis int64, rank int) int {
	if axis < 0 {
		axis += int64(rank)
	}
	return int(axis)
}

// softmax goes over one axis. Before opset 13 it goes over all axes behind it too.
func softmax(a *apart, n *Node, in []flow) (flow, bool) {
	x, preset := in[0], int64(-1)
	if a.m.Opset < 13 {
		preset = 1
	}
	if axis := axisAt(n.Int("axis", preset), len(x.dims)); x.dims == nil || axis == x.axis || a.m.Opset < 13 && axis < x.axis {
		return flow{}, !x.data && x.dims != nil
	}
	return flow{data: x.data, axis: x.axis, dims: x.dims}, true
}

// along is the rule of a sum along an axis that a list names.
func along(_ *apart, _ *Node, in []flow) (flow, bool) {
	x := in[0]
	ok := len(in) == 2 && len(in[1].ints) == 1 && x.data && x.dims != nil && axisAt(in[1].ints[0], len(x.dims)) != x.axis
	return flow{data: true, axis: x.axis, dims: x.dims}, ok
}

func gemm(_ *apart, n *Node, in []flow) (flow, bool) {
	if !first(in) || n.Int("transA", 0) != 0 || len(in) > 2 && !in[2].uniform(2) || len(in) < 2 || len(in[0].dims) != 2 ||
		len(in[1].dims) != 2 {
		return flow{}, false
	}
	width := in[1].dims[1]
	if n.Int("transB", 0) != 0 {
		width = in[1].dims[0]
	}
	return flow{data: true, dims: []int64{batchSize, width}}, true
}

func matMul(_ *apart, _ *Node, in []flow) (out flow, ok bool) {
	x, y := in[0], in[1]
	a, b := len(x.dims), len(y.dims)
	if a < 2 || b < 2 {
		return out, false
	}
	rank := max(a, b)
	out = flow{data: x.data || y.data, dims: slices.Repeat([]int64{anySize}, rank)}
	out.dims[rank-2], out.dims[rank-1] = x.dims[a-2], y.dims[b-1]
	for _, f := range in {
		for k, d := range f.dims[:len(f.dims)-2] {
			if to := &out.dims[k+rank-len(f.dims)]; *to == anySize || *to == 1 || d == batchSize {
				*to = d
			}
		}
	}
	switch {
	case x.data && y.data: // the examples are a batch of matrices
		out.axis = rank - a + x.axis
		return out, out.axis == rank-b+y.axis && out.axis < rank-2
	case x.data:
		out.axis = rank - a + x.axis
		return out, x.axis != a-1 && (x.axis == a-2 || y.uniform(a-x.axis))
	case y.data:
		out.axis = rank - b + y.axis
		return out, y.axis != b-2 && (y.axis == b-1 || x.uniform(b-y.axis))
	}
	return out, true
}

func flatten(_ *apart, n *Node, in []flow) (flow, bool) {
	if !first(in) || n.Int("axis", 1) != 1 {
		return flow{}, false
	}
	return flow{data: true, dims: []int64{batchSize, sizeOf(in[0].dims[1:])}}, true
}

// sizeOf returns the product of sizes, or anySize.
func sizeOf(dims []int64) int64 {
	product := int64(1)
	for _, d := range dims {
		if d < 0 {
			return anySize
		}
		product *= d
	}
	return product
}

// reshape leaves the examples apart if the sizes up to their axis stay.
func reshape(a *apart, n *Node, in []flow) (out flow, ok bool) {
	x, to := in[0], in[len(in)-1].ints
	if len(in) < 2 {
		to = n.list("shape")
	}
	if to == nil || x.dims == nil || len(in) > 1 && in[1].data {
		return out, false
	}
	if n := int64(len(x.ints)); !x.data && n > 0 && len(to) == 1 && (to[0] == -1 || to[0] == n) {
		return flow{dims: []int64{n}, ints: x.ints}, true
	}
	if !x.data {
		return flow{dims: slices.Clone(to), ints: x.ints}, !slices.ContainsFunc(to, func(d int64) bool { return d < 1 })
	}
	out = flow{data: true, axis: x.axis, dims: make([]int64, len(to))}
	for i, d := range to {
		switch {
		case d == 0 && n.Int("allowzero", 0) == 0 && i < len(x.dims):
			out.dims[i] = x.dims[i]
		default:
			out.dims[i] = d // -1 is anySize: both stand for an unknown size
		}
	}
	if x.axis >= len(to) {
		return out, false
	}
	for i := range x.axis {
		if out.dims[i] < 1 || out.dims[i] != x.dims[i] {
			return out, false
		}
	}
	whole := a.isBatch(out.dims[x.axis])
	if out.dims[x.axis] == anySize && sizeOf(x.dims[x.axis+1:]) > 0 { // -1: what is left of all elements
		whole = sizeOf(out.dims[x.axis+1:]) == sizeOf(x.dims[x.axis+1:])
	}
	out.dims[x.axis] = batchSize
	if open := slices.Index(out.dims, anySize); open > x.axis && !slices.Contains(out.dims[open+1:], anySize) {
		if all, others := sizeOf(x.dims[x.axis+1:]),
			sizeOf(slices.Delete(slices.Clone(out.dims[x.axis+1:]), open-x.axis-1, open-x.axis)); all > 0 && others > 0 {
			out.dims[open] = all / others
		}
	}
	return out, whole
}

func transpose(_ *apart, n *Node, in []flow) (out flow, ok bool) {
	x, perm := in[0], n.list("perm")
	if x.dims == nil || perm != nil && len(perm) != len(x.dims) {
		return out, false
	}
	if perm == nil {
		for k := range x.dims {
			perm = append(perm, int64(len(x.dims)-1-k))
		}
	}
	out = flow{data: x.data, dims: make([]int64, len(perm))}
	for k, from := range perm {
		if from < 0 || int(from) >= len(perm) {
			return out, false
		}
		out.dims[k] = x.dims[from]
		if x.data && int(from) == x.axis {
			out.axis = k
		}
	}
	return out, true
}

// axesOf returns the axes of a node, which are an attribute or an input.
func axesOf(n *Node, in []flow, input int) []int64 {
	if axes := n.list("axes"); axes != nil {
		return axes
	}
	if input < len(in) && !in[input].data {
		return in[input].ints
	}
	return nil
}

func squeeze(_ *apart, n *Node, in []flow) (flow, bool) {
	x, axes := in[0], axesOf(n, in, 1)
	if axes == nil && !x.data && len(n.Inputs) < 2 && !slices.Contains(x.dims, anySize) {
		for k, d := range x.dims {
			if d == 1 {
				axes = append(axes, int64(k))
			}
		}
	}
	return without(x, axes)
}

// without removes axes, of which none has the examples.
func without(x flow, axes []int64) (out flow, ok bool) {
	if axes == nil || x.dims == nil {
		return out, false
	}
	out = flow{data: x.data, axis: x.axis, ints: x.ints}
	out.dims = []int64{}
	gone := map[int]bool{}
	for _, axis := range axes {
		gone[axisAt(axis, len(x.dims))] = true
	}
	for k, d := range x.dims {
		switch {
		case !gone[k]:
			out.dims = append(out.dims, d)
		case x.data && k == x.axis:
			return out, false
		case x.data && k < x.axis:
			out.axis--
		}
	}
	return out, true
}

func unsqueeze(_ *apart, n *Node, in []flow) (out flow, ok bool) {
	x, axes := in[0], axesOf(n, in, 1)
	if axes == nil || x.dims == nil {
		return out, false
	}
	rank, fresh := len(x.dims)+len(axes), map[int]bool{}
	for _, axis := range axes {
		fresh[axisAt(axis, rank)] = true
	}
	out = flow{data: x.data, ints: x.ints, dims: []int64{}}
	from := 0
	for k := range rank {
		if fresh[k] || from >= len(x.dims) {
			out.dims = append(out.dims, 1)
			continue
		}
		if x.data && from == x.axis {
			out.axis = k
		}
		out.dims, from = append(out.dims, x.dims[from]), from+1
	}
	return out, true
}

// reduce goes over axes, of which none has the examples.
func reduce(_ *apart, n *Node, in []flow) (out flow, ok bool) {
	x, axes := in[0], axesOf(n, in, 1)
	if n.OpType == "ArgMax" || n.OpType == "ArgMin" {
		axes = []int64{n.Int("axis", 0)}
	}
	if len(axes) == 0 || x.dims == nil {
		return out, false
	}
	if n.Int("keepdims", 1) == 0 {
		x.ints = nil
		return without(x, axes)
	}
	out = flow{data: x.data, axis: x.axis, dims: slices.Clone(x.dims)}
	for _, axis := range axes {
		k := axisAt(axis, len(out.dims))
		if k < 0 || k >= len(out.dims) || x.data && k == x.axis {
			return out, false
		}
		out.dims[k] = 1
	}
	return out, true
}
