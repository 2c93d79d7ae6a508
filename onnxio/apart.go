package onnxio

import "slices"

// Sizes of a dimension that are no numbers.
const (
	anySize   = -1 // unknown
	batchSize = -2 // the number of examples in the batch
)

// A flow says where the examples of a batch are in a value.
type flow struct {
	// data says that the value depends on the examples. Each depends on one example only: the one at its place on axis.
	data   bool
	axis   int
	stored bool    // a tensor of the file
	dims   []int64 // nil if their number is unknown
	ints   []int64 // the elements of a list of sizes, or nil; anySize and batchSize may be among them
}

// apart follows examples through a graph.
type apart struct {
	m      *Model
	fixed  int64 // the only batch size, or 0
	values map[string]flow
}

// Apart reports whether the graph proves that the scores of an example do not depend on the other examples of its batch.
// It knows the usual operators. false means only that it has no proof.
//
// Each operator is followed with the axis that has the examples. A product over another axis, a pooling or a
// normalisation leaves them apart. What joins examples, or an unknown operator, ends the proof.
func (m *Model) Apart(output string) bool {
	a := &apart{m: m, values: map[string]flow{"": {}}}
	for _, v := range m.FeedInputs() {
		if len(v.Shape) == 0 {
			return false
		}
		dims := slices.Clone(v.Shape)
		a.fixed = max(a.fixed, dims[0])
		for i, d := range dims {
			dims[i] = max(d, anySize)
		}
		dims[0] = batchSize
		a.values[v.Name] = flow{data: true, dims: dims}
	}
	for i := range m.Graph.Nodes {
		if n := &m.Graph.Nodes[i]; n.OpType == "Constant" && n.Domain == "" && len(n.Outputs) > 0 {
			if f, ok := literal(n); ok {
				a.values[n.Outputs[0]] = f
			}
		}
	}
	for _, p := range m.Places() {
		if p.Graph != m.Graph {
			continue
		}
		if out, ok := a.node(p); ok {
			for i, f := range out {
				if i < len(p.Node.Outputs) && p.Node.Outputs[i] != "" {
					a.values[p.Node.Outputs[i]] = f
				}
			}
		}
	}
	f, ok := a.values[output]
	return ok && f.data && f.axis == 0
}

// node returns the flows of a node's outputs. ok is false without a proof.
func (a *apart) node(p Place) (out []flow, ok bool) {
	n := p.Node
	if n.Domain != "" && n.Domain != "ai.onnx" {
		return nil, false
	}
	in := make([]flow, len(n.Inputs))
	for i, name := range n.Inputs {
		if i >= len(p.Tensors) {
			return nil, false
		}
		if t := p.Tensors[i]; t != nil {
			in[i] = stored(t)
			continue
		}
		if in[i], ok = a.values[name]; !ok {
			return nil, false
		}
	}
	if len(in) < max(leastInputs[n.OpType], 1) {
		return nil, false
	}
	if f := alone[n.OpType]; f != nil {
		one, ok := f(a, n, in)
		return []flow{one}, ok
	}
	if f := several[n.OpType]; f != nil {
		return f(a, n, in)
	}
	return nil, false
}

// stored returns the flow of a tensor of the file.
func stored(t *Tensor) flow {
	return flow{stored: true, dims: append([]int64{}, t.Shape...), ints: slices.Clone(t.ints)}
}

type (
	oneRule  func(a *apart, n *Node, in []flow) (flow, bool)
	manyRule func(a *apart, n *Node, in []flow) ([]flow, bool)
)

// leastInputs is the number of inputs that a rule reads, if more than one.
var leastInputs = map[string]int{"MatMul": 2, "Gather": 2, "Expand": 2}

// alone has the operators of which the first output counts, and several the others.
var (
	alone   map[string]oneRule
	several map[string]manyRule
)

func init() {
	alone = map[string]oneRule{
		"Conv":                  window,
		"ConvTranspose":         window,
		"MaxPool":               window,
		"AveragePool":           window,
		"LpPool":                window,
		"GlobalAveragePool":     global,
		"GlobalMaxPool":         global,
		"GlobalLpPool":          global,
		"BatchNormalization":    inference,
		"InstanceNormalization": channelwise,
		"GroupNormalization":    channelwise,
		"LRN":                   channelwise,
		"LayerNormalization":    layerwise,
		"RMSNormalization":      layerwise,
		"Softmax":               softmax,
		"LogSoftmax":            softmax,
		"Hardmax":               softmax,
		"Gemm":                  gemm,
		"MatMul":                matMul,
		"Flatten":               flatten,
		"Reshape":               reshape,
		"Transpose":             transpose,
		"Squeeze":               squeeze,
		"Unsqueeze":             unsqueeze,
		"Concat":                concat,
		"Gather":                gather,
		"Slice":                 slice,
		"Pad":                   pad,
		"Expand":                expand,
		"Shape":                 shapeOf,
		"CumSum":                along,
		"ConstantOfShape":       constant,
		"Range":                 constant,
		"ArgMax":                reduce,
		"ArgMin":                reduce,
		"Resize":                resize,
	}
	for _, op := range []string{"Abs", "Add", "And", "Cast", "CastLike", "Ceil", "Clip", "Cos", "Div", "Dropout", "Elu", "Equal", "Erf",
		"Exp", "Floor", "Gelu", "Greater", "GreaterOrEqual",
		"HardSigmoid", "HardSwish", "Identity", "IsNaN", "LeakyRelu", "Less", "LessOrEqual", "Log", "Max", "Min", "Mish", "Mod", "Mul",
		"Neg", "Not", "Or", "PRelu", "Pow", "Reciprocal", "Relu",
		"Round", "Selu", "Sigmoid", "Sign", "Sin", "Softplus", "Softsign", "Sqrt", "Sub", "Sum", "Swish", "Tanh",
		"ThresholdedRelu", "Where"} {
		alone[op] = elementwise
	}
	for _, op := range []string{"L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"} {
		alone["Reduce"+op] = reduce
	}
	several = map[string]manyRule{"LSTM": recurrent, "GRU": recurrent, "RNN": recurrent, "Split": split}
}

// isBatch reports whether a size is that of the batch.
func (a *apart) isBatch(size int64) bool { return size == batchSize || a.fixed > 0 && size == a.fixed }

// uniform reports whether a constant is the same for all examples, if the axis with the examples is so many from the right,
// 1 for the last.
func (f flow) uniform(right int) bool {
	switch {
	case f.dims == nil:
		return false
	case len(f.dims) < right:
		return true
	}
	d := f.dims[len(f.dims)-right]
	return d == 1 || d == batchSize // only an Expand gives a constant that size
}

// rest reports whether all inputs from number first on are constants.
func rest(in []flow, first int) bool {
	return !slices.ContainsFunc(in[min(first, len(in)):], func(f flow) bool { return f.data })
}

// elementwise is the rule of operators with broadcasting.
func elementwise(a *apart, n *Node, in []flow) (out flow, ok bool) {
	if n.OpType == "CastLike" {
		in = in[:1] // the other input gives its type only
	}
	if n.OpType == "Dropout" {
		in = in[:1] // swagwrap runs it in inference mode, whatever the file says
	}
	right, rank := 0, 0
	for _, f := range in {
		if f.dims == nil && len(in) > 1 {
			return out, false
		}
		rank = max(rank, len(f.dims))
		if !f.data {
			continue
		}
		if r := len(f.dims) - f.axis; right != 0 && r != right {
			return out, false
		} else {
			right = r
		}
	}
	if len(in) == 1 {
		out = in[0]
		if n.OpType != "Cast" && n.OpType != "CastLike" && n.OpType != "Identity" {
			out.ints = nil
		}
		return out, true
	}
	out.dims = make([]int64, rank)
	for k := range out.dims {
		out.dims[k] = 1
	}
	for _, f := range in {
		if right > 0 && !f.data && !f.uniform(right) {
			return out, false
		}
		for k, d := range f.dims {
			at := &out.dims[k+rank-len(f.dims)]
			switch {
			case right == 0 && *at+d == batchSize+anySize && *at != d:
				return out, false // places may hide in the unknown one
			case *at == 1 || d == batchSize:
				*at = d
			case d != 1 && *at != batchSize && *at != d:
				*at = anySize
			}
		}
	}
	if right > 0 {
		out.data, out.axis = true, rank-right
		if out.dims[out.axis] != batchSize {
			return out, false
		}
	} else if len(in) == 2 {
		out.ints = arithmetic(n.OpType, in[0].ints, in[1].ints)
	}
	return out, true
}

// arithmetic computes with short lists of sizes. It returns nil if a size is unknown.
func arithmetic(op string, x, y []int64) []int64 {
	if len(x) != len(y) && len(x) != 1 && len(y) != 1 || len(x)*len(y) == 0 {
		return nil
	}
	out := make([]int64, max(len(x), len(y)))
	for k := range out {
		v, w := x[min(k, len(x)-1)], y[min(k, len(y)-1)]
		switch {
		case op == "Mul" && v == 1:
			out[k] = w
		case (op == "Mul" || op == "Div") && w == 1:
			out[k] = v
		case v < 0 || w < 0:
			out[k] = anySize
		case op == "Mul":
			out[k] = v * w
		case op == "Add":
			out[k] = v + w
		case op == "Div" && w > 0:
			out[k] = v / w
		default:
			out[k] = anySize
		}
	}
	return out
}
