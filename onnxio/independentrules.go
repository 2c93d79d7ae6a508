package onnxio

import (
	"math"
	"slices"
)

// A tracedNode is a node with the values of its inputs.
type tracedNode struct {
	*tracer
	*Node
	in []traced
}

// follow returns the outputs of a node, or nil without a proof.
func (s *tracedNode) follow() []traced {
	x, y := s.in[0], s.in[1]
	switch s.OpType {
	case "Abs", "Add", "And", "Ceil", "Clip", "Cos", "Div", "Elu", "Equal", "Erf", "Exp", "Floor", "Gelu", "Greater", "GreaterOrEqual",
		"HardSigmoid", "HardSwish", "IsNaN", "LeakyRelu", "Less", "LessOrEqual", "Log", "Max", "Min", "Mish", "Mod", "Mul", "Neg", "Not",
		"Or", "PRelu", "Pow", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Softplus", "Softsign", "Sqrt", "Sub",
		"Sum", "Swish", "Tanh", "ThresholdedRelu", "Where":
		out := broadcast(s.in...)
		if out != nil && len(s.Inputs) == 2 && !s.rounds(x.ints, y.ints) && len(out[0].dims) < 2 {
			out[0].ints = arithmetic(s.OpType, x.ints, y.ints)
		}
		return out
	case "Cast", "CastLike", "Identity", "Dropout": // other inputs give a type, or matter in training only
		if s.least > 0 && len(s.Outputs) > 1 && s.opset >= 10 {
			return append(x.sized(x.dims...), x.sized(x.dims...)...) // and what was dropped, as flags
		}
		if to := ElemType(s.Int("to", 0)); s.OpType == "Cast" && to != Int64 && to != Int32 || s.OpType == "CastLike" && y.ints == nil {
			return x.sized(x.dims...) // 7 may become 1, and 7/2 be 3.5
		}
		return s.in[:1]
	case "Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool":
		return s.window()
	case "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool":
		if s.onlyFirst(0) && len(x.dims) > 2 {
			return x.sized(append(slices.Clone(x.dims[:2]), slices.Repeat([]int64{1}, len(x.dims)-2)...)...)
		}
	case "BatchNormalization", "InstanceNormalization", "GroupNormalization", "LRN": // in inference mode, whatever the file says
		if s.onlyFirst(0) {
			return s.in[:1]
		}
	case "LayerNormalization", "RMSNormalization":
		if s.onlyFirst(x.axis) && !slices.ContainsFunc(s.in[1:], func(v traced) bool { return !v.even(len(x.dims) - x.axis) }) {
			return x.mixed(x.at(s.Int("axis", -1)), len(x.dims)-1)
		}
	case "Softmax", "LogSoftmax", "Hardmax":
		if s.opset < 13 { // over all axes from one on
			return x.mixed(x.at(s.Int("axis", 1)), len(x.dims)-1)
		}
		return x.mixed(x.at(s.Int("axis", -1)), x.at(s.Int("axis", -1)))
	case "CumSum":
		if len(y.ints) == 1 {
			return x.mixed(x.at(y.ints[0]), x.at(y.ints[0]))
		}
	case "ArgMax", "ArgMin", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
		"ReduceProd", "ReduceSum", "ReduceSumSquare":
		return s.reduce()
	case "Gemm":
		if s.onlyFirst(0) && s.Int("transA", 0) == 0 && s.in[2].even(2) && len(x.dims) == 2 && len(y.dims) == 2 {
			return x.sized(x.dims[0], y.dims[1-s.Int("transB", 0)&1])
		}
	case "MatMul":
		return s.matMul()
	case "LSTM", "GRU", "RNN":
		return s.recurrent()
	case "Flatten":
		if k := int(s.Int("axis", 1)); k >= 0 && k <= len(x.dims) {
			return x.reshaped([]int64{product(x.dims[:k]), product(x.dims[k:])})
		}
	case "Reshape", "Squeeze", "Unsqueeze":
		return s.reshape()
	case "Transpose":
		return s.transpose()
	case "Concat":
		return s.concat()
	case "Split":
		return s.split()
	case "Gather":
		return s.gather()
	case "Slice":
		return s.slice()
	case "Pad":
		pads, rank := s.ints("pads", 1), len(x.dims)
		if !s.onlyFirst(0) || len(s.Inputs) > 3 || rank == 0 || len(pads) != 2*rank || pads[0] != 0 || pads[rank] != 0 {
			return s.moreSizes()
		}
		dims := slices.Clone(x.dims)
		for k := range dims {
			dims[k] += pads[k] + pads[k+rank]
		}
		return x.sized(dims...)
	case "Resize":
		if sizes := s.in[3].ints; s.onlyFirst(0) && len(x.dims) > 0 && len(sizes) == len(x.dims) && sizes[0] == x.dims[0] {
			return x.sized(sizes...)
		}
		return s.moreSizes()
	case "Expand":
		return s.expand(x, y)
	case "ConstantOfShape": // whose elements are equal
		element := traced{axis: -1}
		if v := s.attribute("value"); v != nil && v.Tensor != nil {
			element.ints = v.Tensor.ints
		}
		return s.expand(element, x)
	case "Shape":
		rank := int64(len(x.dims))
		from := clip(s.Int("start", 0), rank)
		list := slices.Clone(x.dims[from:max(from, clip(s.Int("end", rank), rank))])
		return []traced{{dims: []int64{int64(len(list))}, axis: -1, ints: list}}
	case "Range":
		if slices.ContainsFunc(s.in, func(v traced) bool { return v.axis >= 0 }) {
			return nil
		}
		size := s.open()
		if from, to, step := x.ints, y.ints, s.in[2].ints; len(from) == 1 && len(to) == 1 && len(step) == 1 && step[0] > 0 {
			size = max(0, (to[0]-from[0]+step[0]-1)/step[0])
		}
		return []traced{{dims: []int64{size}, axis: -1}}
	default:
		return s.moreSizes()
	}
	return nil
}

// moreSizes is follow for operators whose sizes alone are known.
func (s *tracedNode) moreSizes() []traced {
	x := s.in[0]
	if s.least == 0 {
		return nil
	}
	switch s.OpType {
	case "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Celu", "Cosh", "DequantizeLinear", "IsInf", "LpNormalization",
		"MeanVarianceNormalization", "QuantizeLinear", "ScatterElements", "ScatterND", "Selu", "Shrink", "Sinh", "Tan", "Trilu":
		return x.sized(x.dims...)
	case "GatherElements":
		return s.in[1].sized(s.in[1].dims...)
	case "Size":
		return []traced{{axis: -1}}
	case "OneHot":
		x.dims = append(slices.Clone(x.dims), 1)
	case "DepthToSpace", "Pad", "Resize", "SpaceToDepth", "Tile", "Upsample":
	default:
		return nil
	}
	return x.sized(s.opens(len(x.dims))...)
}

// opens returns new sizes.
func (t *tracer) opens(n int) (sizes []int64) {
	for range n {
		sizes = append(sizes, t.open())
	}
	return sizes
}

// onlyFirst reports whether the first input has the examples on an axis, and the others depend on none. It is true of sizes alone.
func (s *tracedNode) onlyFirst(axis int) bool {
	return s.least > 0 || axis >= 0 && s.in[0].axis == axis && !slices.ContainsFunc(s.in[1:], func(v traced) bool { return v.axis >= 0 })
}

// ints returns a list that is an attribute or, in newer files, an input.
func (s *tracedNode) ints(attribute string, input int) []int64 {
	if list := s.list(attribute); list != nil {
		return list
	}
	return s.in[input].ints
}

// padded reports whether an attribute chooses the padding. Exporters write that none does.
func (s *tracedNode) padded() bool {
	a := s.attribute("auto_pad")
	return a != nil && a.text != "NOTSET"
}

// window is the rule of convolutions and poolings.
func (s *tracedNode) window() []traced {
	dims, kernel, w := slices.Clone(s.in[0].dims), s.list("kernel_shape"), s.in[1].dims
	if !s.onlyFirst(0) || len(dims) < 3 {
		return nil
	}
	if len(w) == len(dims) {
		dims[1], kernel = w[0], w[2:]
		if s.OpType == "ConvTranspose" {
			dims[1] = w[1] * s.Int("group", 1)
		}
	}
	entry := func(name string, k int, preset int64) int64 {
		if list := s.list(name); k < len(list) {
			return list[k]
		}
		return preset
	}
	for k, width := range kernel[:min(len(kernel), len(dims)-2)] {
		stride, size := max(1, entry("strides", k, 1)), &dims[k+2]
		covered := entry("dilations", k, 1)*(width-1) + 1 - entry("pads", k, 0) - entry("pads", k+len(dims)-2, 0)
		switch {
		case s.padded() || s.Int("ceil_mode", 0) != 0 || s.attribute("output_shape") != nil:
			*size = s.open()
		case s.OpType == "ConvTranspose":
			*size = (*size-1)*stride + covered + entry("output_padding", k, 0)
		default:
			*size = (*size-covered)/stride + 1
		}
	}
	return s.in[0].sized(dims...)
}

// matMul broadcasts the axes before those of the matrices. A row of the first, or a column of the second, may be an example as well.
func (s *tracedNode) matMul() []traced {
	x, y := s.in[0], s.in[1]
	a, b := len(x.dims), len(y.dims)
	switch {
	case s.least == 0 || min(a, b) == 0:
	case b == 1:
		return x.sized(x.dims[:a-1]...)
	case a == 1:
		return y.sized(append(slices.Clone(y.dims[:b-2]), y.dims[b-1])...)
	}
	if a < 2 || b < 2 || x.axis == a-1 || y.axis == b-2 {
		return nil
	}
	x.dims, y.dims = slices.Clone(x.dims), slices.Clone(y.dims)
	x.dims[a-1], y.dims[b-2] = 1, 1
	return broadcast(x, y)
}

func (s *tracedNode) reduce() []traced {
	axes, dims := s.ints("axes", 1), slices.Clone(s.in[0].dims)
	if s.OpType == "ArgMax" || s.OpType == "ArgMin" {
		axes = []int64{s.Int("axis", 0)}
	}
	if s.least > 0 && len(axes) == 0 {
		return s.reduceAll()
	}
	for _, axis := range axes {
		k := s.in[0].at(axis)
		if k < 0 || k == s.in[0].axis {
			return nil
		}
		dims[k] = 1
	}
	switch out := s.in[0].sized(dims...); {
	case len(axes) == 0:
		return nil
	case s.Int("keepdims", 1) == 0:
		return out[0].reshaped(out[0].without(axes))
	default:
		return out
	}
}

// anyOpen reports whether one of the numbers may come from a size that the graph leaves open, if only sizes are wanted. Exporters write
// the extreme integers for the ends of an axis.
func (t *tracer) anyOpen(numbers ...int64) bool {
	const far = 1 << 62
	return t.least > 0 && slices.ContainsFunc(numbers, func(d int64) bool {
		return max(d, -d) > t.least && d != math.MaxInt32 && -far < d && d < far
	})
}

// rounds reports whether a division may have another remainder for other sizes.
func (s *tracedNode) rounds(x, y []int64) bool {
	return (s.OpType == "Div" || s.OpType == "Mod") && (s.anyOpen(x...) || s.anyOpen(y...)) && !slices.Equal(x, y)
}

// reduceAll is the rule without axes, or with unknown ones.
func (s *tracedNode) reduceAll() []traced {
	x, keep, none := s.in[0], s.Int("keepdims", 1) != 0, len(s.Inputs) < 2 || s.Inputs[1] == ""
	switch {
	case none && s.Int("noop_with_empty_axes", 0) != 0:
		return x.sized(x.dims...)
	case none && keep:
		return x.sized(slices.Repeat([]int64{1}, len(x.dims))...)
	case none:
		return x.sized()
	case keep:
		return x.sized(s.opens(len(x.dims))...)
	}
	return nil
}

// without returns the sizes without those of some axes.
func (v traced) without(axes []int64) (out []int64) {
	for k, d := range v.dims {
		if !slices.ContainsFunc(axes, func(axis int64) bool { return v.at(axis) == k }) {
			out = append(out, d)
		}
	}
	return out
}

// reshape is the rule of operators that only change the sizes.
func (s *tracedNode) reshape() []traced {
	x, axes := s.in[0], s.ints("axes", 1)
	var to []int64
	switch {
	case s.in[1].axis >= 0:
		return nil
	case s.OpType == "Squeeze":
		for k, d := range x.dims {
			if d == 1 && axes == nil && len(s.Inputs) < 2 && x.axis < 0 {
				to = append(to, int64(k))
			}
		}
		if axes = append(slices.Clone(axes), to...); axes == nil || len(to) > 0 && s.anyOpen(x.dims...) {
			return nil
		}
		to = x.without(axes)
	case s.OpType == "Unsqueeze":
		fresh := traced{dims: slices.Repeat([]int64{1}, len(x.dims)+len(axes))}
		to = slices.Clone(x.dims)
		for k := range fresh.dims {
			if slices.ContainsFunc(axes, func(axis int64) bool { return fresh.at(axis) == k }) {
				to = slices.Insert(to, min(k, len(to)), 1)
			}
		}
		if axes == nil {
			return nil
		}
	default:
		if to = slices.Clone(s.ints("shape", 1)); to == nil && s.least > 0 && len(s.in[1].dims) == 1 && !s.anyOpen(s.in[1].dims...) {
			to = s.opens(int(s.in[1].dims[0]))
		}
		if to == nil {
			return nil
		}
		for i, d := range to {
			if d == 0 && s.Int("allowzero", 0) == 0 && i < len(x.dims) {
				to[i] = x.dims[i]
			}
		}
		if open := slices.Index(to, -1); open >= 0 {
			to[open] = 1
			all, others := product(x.dims), product(to)
			switch {
			case others != 0 && all%others == 0:
				to[open] = all / others
			case s.least > 0:
				to[open] = s.open()
			default:
				return nil
			}
		}
	}
	return x.reshaped(to)
}

func (s *tracedNode) transpose() []traced {
	x, perm, out := s.in[0], s.list("perm"), traced{axis: -1}
	for k := range x.dims {
		from := len(x.dims) - 1 - k
		if perm != nil {
			if k >= len(perm) || x.at(perm[k]) < 0 {
				return nil
			}
			from = x.at(perm[k])
		}
		if out.dims = append(out.dims, x.dims[from]); from == x.axis {
			out.axis = k
		}
	}
	return []traced{out}
}

// expand repeats a value. One that depends on no example and is repeated for the batch is the same for each example.
func (s *tracedNode) expand(x, shape traced) []traced {
	if shape.ints == nil || shape.axis >= 0 {
		return nil
	}
	to := traced{dims: shape.ints, axis: -1}
	if x.axis >= 0 {
		to.axis = x.axis + len(to.dims) - len(x.dims)
	}
	all := broadcast(x, to)
	if all == nil || x.axis >= 0 || s.batch == 1 {
		return all
	}
	out := &all[0]
	for k, d := range out.dims {
		if s.least == 0 && d == s.batch && x.even(len(out.dims)-k) {
			if out.axis >= 0 {
				return nil // either may be the batch
			}
			out.axis = k
		}
	}
	if n := product(out.dims); len(x.ints) == 1 && 0 <= n && n <= shortList {
		out.ints = slices.Repeat(x.ints, int(n))
	}
	return all
}

func (s *tracedNode) concat() []traced {
	out := traced{dims: slices.Clone(s.in[0].dims), axis: s.in[0].axis, ints: []int64{}}
	at := out.at(s.Int("axis", 0))
	if at < 0 || at == out.axis {
		return nil
	}
	out.dims[at] = 0
	known := len(out.dims) == 1
	for _, v := range s.in[:len(s.Inputs)] {
		if len(v.dims) != len(out.dims) || v.axis != out.axis {
			return nil
		}
		out.dims[at] += v.dims[at]
		out.ints, known = append(out.ints, v.ints...), known && v.ints != nil
	}
	if !known {
		out.ints = nil
	}
	return []traced{out}
}

func (s *tracedNode) split() (out []traced) {
	x, sizes, parts := s.in[0], s.ints("split", 1), int64(len(s.Outputs))
	at := x.at(s.Int("axis", 0))
	if at < 0 || at == x.axis || s.in[1].axis >= 0 {
		return nil
	}
	for k := range s.Outputs {
		dims := slices.Clone(x.dims)
		whole := (x.dims[at] + parts - 1) / parts
		if dims[at] = min(whole, x.dims[at]-int64(k)*whole); k < len(sizes) {
			dims[at] = sizes[k]
		}
		out = append(out, x.sized(dims...)...)
	}
	return out
}

func (s *tracedNode) gather() []traced {
	x, idx := s.in[0], s.in[1]
	at := x.at(s.Int("axis", 0))
	if at < 0 || x.axis >= 0 && (idx.axis >= 0 || at == x.axis) {
		return nil
	}
	out := traced{dims: slices.Concat(x.dims[:at], idx.dims, x.dims[at+1:]), axis: x.axis}
	switch {
	case idx.axis >= 0: // a row of a table for each element
		out.axis = at + idx.axis
	case x.axis > at:
		out.axis += len(idx.dims) - 1
	}
	for _, k := range idx.ints {
		of := (traced{dims: x.ints}).at(k)
		if of < 0 || len(x.dims) > 1 {
			out.ints = nil
			break
		}
		out.ints = append(out.ints, x.ints[of])
	}
	return []traced{out}
}

// clip returns the place of a slice's end among so many elements, as NumPy counts it.
func clip(end, size int64) int64 {
	if end < 0 {
		end += size
	}
	return min(max(end, 0), size)
}

func (s *tracedNode) slice() []traced {
	x, starts, ends, axes, steps := s.in[0], s.ints("starts", 1), s.ints("ends", 2), s.ints("axes", 3), s.in[4].ints
	if axes == nil && (len(s.Inputs) < 4 || s.Inputs[3] == "") {
		for k := range starts {
			axes = append(axes, int64(k))
		}
	}
	if steps == nil && (len(s.Inputs) < 5 || s.Inputs[4] == "") {
		steps = slices.Repeat([]int64{1}, len(axes))
	}
	if len(axes) == 0 || slices.ContainsFunc(s.in[1:], func(v traced) bool { return v.axis >= 0 }) {
		return nil
	}
	out := traced{dims: slices.Clone(x.dims), axis: x.axis}
	if len(x.dims) == 1 && x.ints != nil {
		out.ints = []int64{}
	}
	for i, axis := range axes {
		k := x.at(axis)
		known := i < min(len(starts), len(ends), len(steps)) && steps[i] > 0
		if k < 0 || !known && k == x.axis {
			return nil
		}
		if !known {
			out.dims[k], out.ints = s.open(), nil
			continue
		}
		from, to := clip(starts[i], x.dims[k]), clip(ends[i], x.dims[k])
		if s.anyOpen(starts[i], ends[i], steps[i]) || s.anyOpen(x.dims[k]) && (from > 0 || to != x.dims[k]) {
			out.dims[k], out.ints = s.open(), nil // as many as there are
			continue
		}
		if out.dims[k] = max(0, (to-from+steps[i]-1)/steps[i]); k == x.axis && (from > 0 || out.dims[k] != x.dims[k]) {
			return nil
		}
		for ; out.ints != nil && from < to; from += steps[i] {
			out.ints = append(out.ints, x.ints[from])
		}
	}
	return []traced{out}
}

// recurrent goes over the first axis; the examples are on the second. Lengths have them on their first axis, and states on the second.
func (s *tracedNode) recurrent() []traced {
	x, w, hidden := s.in[0], s.in[1], s.Int("hidden_size", 0)
	if len(x.dims) != 3 || s.Int("layout", 0) != 0 || len(w.dims) != 3 {
		return nil
	}
	steps, states := 2, 1 // the axes of the examples
	if s.least > 0 {
		steps, states = -1, -1
	} else if x.axis != 1 || !s.ownStates() {
		return nil
	}
	state := traced{dims: []int64{w.dims[0], x.dims[1], hidden}, axis: states}
	return []traced{{dims: []int64{x.dims[0], w.dims[0], x.dims[1], hidden}, axis: steps}, state, state}
}

// ownStates reports whether lengths and states of a recurrent layer are of one example each, or equal.
func (s *tracedNode) ownStates() bool {
	for k, v := range s.in {
		if axis, ok := map[int]int{0: 1, 4: 0, 5: 1, 6: 1}[k]; v.axis >= 0 && (!ok || v.axis != axis) || ok && !v.even(axis+1) {
			return false
		}
	}
	return true
}
