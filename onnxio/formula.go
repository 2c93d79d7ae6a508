package onnxio

import (
	"math"
	"slices"
)

// A Formula is what a batch norm that is written out in operators computes.
type Formula struct {
	mean, variance *Tensor
	epsilon        float64
	axis           int // of the channels, from the last
	rank           int // of the input; 0: unknown
	steps          []*step
	own            []Place // the nodes that depend on mean or variance, in the order of the graph
}

// formulas are the values of the main graph that follow from stored vectors alone, and the values that follow from another one by
// an affine map with such a vector.
type formulas struct {
	*viewer
	m       *Model
	ranks   map[string]int
	vectors map[string]*perChannel
	steps   []step           // in the order of the graph
	made    map[string]*step // by the names of their outputs
	readers map[any][]*Node  // of tensors, and of computed values by their names; nil for an output of a graph
}

// A perChannel is a value with an element for each channel, or a number.
type perChannel struct {
	index    int     // of the node that computes it, in viewer.places; -1 for a stored tensor
	tensor   *Tensor // nil for a computed one
	number   float64 // of a stored tensor of one element
	of       []*perChannel
	shape    []int64 // nil if the graph does not give it
	channels int64   // 1 for a number
	axis     int     // of the channels, from the last
}

// A step computes one value from another, input data of its node, and a vector.
type step struct {
	index int
	place Place
	data  int
	by    *perChannel // nil for Neg and Identity
	from  *step       // that computes the data, or nil
}

// The largest numbers of steps and of nodes in a layer.
const (
	mostSteps   = 8
	mostVectors = 64
)

func (m *Model) formulas() *formulas {
	f := &formulas{viewer: m.viewer(), m: m, ranks: m.Ranks(), vectors: make(map[string]*perChannel), made: make(map[string]*step)}
	f.steps = make([]step, 0, len(f.places)) // pointers into it stay
	for i, p := range f.places {
		if len(p.Node.Outputs) != 1 || len(p.Node.Inputs) == 0 {
			continue
		}
		out := p.Node.Outputs[0]
		if v := f.computed(i, p); v != nil {
			f.vectors[out] = v
		} else if s, ok := f.step(i, p); ok {
			f.steps = append(f.steps, s)
			f.made[out] = &f.steps[len(f.steps)-1]
		}
	}
	return f
}

func (f *formulas) input(p Place, k int) *perChannel {
	t := p.Tensors[k]
	switch {
	case t == nil:
		return f.vectors[p.Node.Inputs[k]]
	case t.Len() == 1:
		if number, ok := f.m.number(t); ok {
			return &perChannel{index: -1, tensor: t, number: number, shape: append([]int64{}, t.Shape...), channels: 1}
		}
	case t.IsFloat() && t.Len() > 1 && IsVector(t.Shape):
		return (&perChannel{index: -1, tensor: t, channels: t.Len()}).shaped(t.Shape)
	}
	return nil
}

// shaped sets the shape and the axis of a vector whose other dimensions are 1.
func (v *perChannel) shaped(shape []int64) *perChannel {
	if shape == nil || !IsVector(shape) {
		return nil
	}
	v.shape, v.axis = shape, len(shape)-1-max(0, slices.Index(shape, v.channels))
	if v.channels == 1 {
		v.axis = 0
	}
	return v
}

// computed returns the vector that node p computes, or nil.
func (f *formulas) computed(index int, p Place) *perChannel {
	out := &perChannel{index: index}
	binary := false
	switch p.Node.OpType {
	case "Add", "Sub", "Mul", "Div", "Pow":
		if binary = len(p.Node.Inputs) == 2; !binary {
			return nil
		}
	case "Neg", "Sqrt", "Reciprocal", "Identity", "CastLike", "Reshape", "Unsqueeze", "Squeeze", "Flatten", "Transpose", "Expand":
	case "Cast":
		if ElemType(p.Node.Int("to", 0)) != Float {
			return nil
		}
	default:
		return nil
	}
	a := f.input(p, 0)
	if a == nil {
		return nil
	}
	out.of, out.channels, out.axis, out.shape = []*perChannel{a}, a.channels, a.axis, a.shape
	if !binary {
		return f.reshape(out, p)
	}
	b := f.input(p, 1)
	if b == nil || a.channels > 1 && b.channels > 1 && (a.channels != b.channels || a.axis != b.axis) {
		return nil
	}
	if out.of = append(out.of, b); b.channels > 1 {
		out.channels, out.axis = b.channels, b.axis
	}
	out.shape = broadcastShape(a.shape, b.shape)
	return out
}

// reshape sets the shape of a vector that node p computes from one other.
func (f *formulas) reshape(out *perChannel, p Place) *perChannel {
	shape := out.shape
	switch p.Node.OpType {
	case "Reshape":
		if shape == nil || !IsVector(shape) {
			return nil
		}
		return out.shaped(f.reshaped(&view{tensor: &Tensor{Shape: shape}, shape: shape}, p))
	case "Unsqueeze":
		return out.shaped(f.unsqueezed(shape, p))
	case "Squeeze":
		return out.shaped(f.squeezed(shape, p))
	case "Flatten":
		axis := int(p.Node.Int("axis", 1))
		if axis < 0 {
			axis += len(shape)
		}
		if shape == nil || !IsVector(shape) || axis < 0 || axis > len(shape) {
			return nil
		}
		flat := []int64{1, 1}
		for i, d := range shape {
			flat[min(1, max(0, i-axis+1))] *= d
		}
		return out.shaped(flat)
	case "Transpose":
		perm := p.Node.list("perm")
		if len(perm) != len(shape) {
			return nil
		}
		turned := make([]int64, len(shape))
		for i, axis := range perm {
			if axis < 0 || axis >= int64(len(shape)) {
				return nil
			}
			turned[i] = shape[axis]
		}
		return out.shaped(turned)
	case "Expand":
		out.shape = broadcastShape(shape, f.list(p))
	}
	return out
}

// squeezed returns a shape without the dimensions of 1 that a Squeeze removes.
func (v *viewer) squeezed(shape []int64, p Place) []int64 {
	axes := v.axes(p)
	if shape == nil || axes == nil && len(p.Node.Inputs) > 1 {
		return nil
	}
	out := []int64{}
	for i, d := range shape {
		if gone := slices.Contains(axes, int64(i)) || slices.Contains(axes, int64(i-len(shape))); !gone && (axes != nil || d != 1) {
			out = append(out, d)
		} else if d != 1 {
			return nil
		}
	}
	return out
}

// broadcastShape returns the shape of a result of two operands, or nil.
func broadcastShape(a, b []int64) []int64 {
	if a == nil || b == nil {
		return nil
	}
	if len(a) < len(b) {
		a, b = b, a
	}
	out := slices.Clone(a)
	for i, d := range b {
		if at := len(a) - len(b) + i; out[at] == 1 {
			out[at] = d
		} else if d != 1 && d != out[at] {
			return nil
		}
	}
	return out
}

// step returns p as a step.
func (f *formulas) step(index int, p Place) (s step, ok bool) {
	s = step{index: index, place: p}
	switch op := p.Node.OpType; {
	case op == "Neg" || op == "Identity":
		ok = len(p.Node.Inputs) == 1 && p.Tensors[0] == nil
	case slices.Contains([]string{"Add", "Sub", "Mul", "Div"}, op) && len(p.Node.Inputs) == 2:
		for k := range 2 {
			if p.Tensors[k] == nil && (op != "Div" || k == 0) {
				s.data, s.by = k, f.input(p, 1-k)
				if ok = s.by != nil; ok {
					break
				}
			}
		}
	}
	if ok {
		s.from = f.made[p.Node.Inputs[s.data]]
	}
	return s, ok
}

// batchNormAt returns the formula of the batch norm whose last step with mean or variance is s, or nil.
func (f *formulas) batchNormAt(s *step) *Formula {
	if s.by == nil || s.by.channels < 2 {
		return nil
	}
	var steps []*step
	for at := s; at != nil && len(steps) < mostSteps; at = at.from {
		if at.by != nil && at.by.channels > 1 && (at.by.channels != s.by.channels || at.by.axis != s.by.axis) {
			break
		}
		steps = append([]*step{at}, steps...)
	}
	all := vectorsOf(steps)
	if all == nil {
		return nil
	}
	var leaves []*Tensor
	for _, v := range all {
		if v.tensor != nil && v.channels > 1 && !slices.Contains(leaves, v.tensor) {
			leaves = append(leaves, v.tensor)
		}
	}
	ends := s.by.leaves(make(map[*perChannel]bool), nil)
	var found *Formula
	for _, variance := range leaves {
		for _, mean := range leaves {
			if mean == variance || mean.ElemType != Float || variance.ElemType != Float ||
				!slices.Contains(ends, mean) && !slices.Contains(ends, variance) {
				continue
			}
			if w := f.solve(steps, leaves, mean, variance); w != nil {
				if found != nil && len(found.steps) == len(w.steps) {
					return nil // either vector could be the mean
				}
				if found == nil || len(w.steps) < len(found.steps) { // constants are subtracted from pixels, too
					found = w
				}
			}
		}
	}
	if found == nil || !f.closed(found, all) {
		return nil
	}
	return found
}

// vectorsOf returns the vectors of steps, with those that they are computed from. It returns nil if there are too many.
func vectorsOf(steps []*step) (all []*perChannel) {
	seen := make(map[*perChannel]bool)
	var walk func(v *perChannel)
	walk = func(v *perChannel) {
		if v == nil || seen[v] || len(all) > mostVectors {
			return
		}
		seen[v] = true
		all = append(all, v)
		for _, of := range v.of {
			walk(of)
		}
	}
	for _, s := range steps {
		walk(s.by)
	}
	if len(all) > mostVectors {
		return nil
	}
	return all
}

// leaves returns the stored vectors that v is computed from.
func (v *perChannel) leaves(seen map[*perChannel]bool, out []*Tensor) []*Tensor {
	if v == nil || seen[v] {
		return out
	}
	seen[v] = true
	if v.tensor != nil && v.channels > 1 {
		out = append(out, v.tensor)
	}
	for _, of := range v.of {
		out = of.leaves(seen, out)
	}
	return out
}

// values gives numbers to stored vectors, all of whose elements are then equal.
type values map[*Tensor]float64

// at evaluates a vector.
func (n values) at(f *formulas, v *perChannel, known map[*perChannel]float64) float64 {
	if x, ok := known[v]; ok {
		return x
	}
	x := v.number
	if v.tensor != nil && v.channels > 1 {
		x = n[v.tensor]
	}
	if v.tensor == nil {
		x = n.at(f, v.of[0], known)
		switch op := f.places[v.index].Node.OpType; op {
		case "Neg":
			x = -x
		case "Sqrt":
			x = math.Sqrt(x)
		case "Reciprocal":
			x = 1 / x
		case "Pow":
			x = math.Pow(x, n.at(f, v.of[1], known))
		case "Add":
			x += n.at(f, v.of[1], known)
		case "Sub":
			x -= n.at(f, v.of[1], known)
		case "Mul":
			x *= n.at(f, v.of[1], known)
		case "Div":
			x /= n.at(f, v.of[1], known)
		}
	}
	known[v] = x
	return x
}

// affine returns a and b of y = x·a + b that steps compute.
func (n values) affine(f *formulas, steps []*step) (a, b float64) {
	a = 1
	known := make(map[*perChannel]float64)
	for _, s := range steps {
		by := 0.0
		if s.by != nil {
			by = n.at(f, s.by, known)
		}
		switch s.place.Node.OpType {
		case "Neg":
			a, b = -a, -b
		case "Add":
			b += by
		case "Mul":
			a, b = a*by, b*by
		case "Div":
			a, b = a/by, b/by
		case "Sub":
			if b -= by; s.data == 1 {
				a, b = -a, -b
			}
		}
	}
	return a, b
}

// chosen gives numbers to all leaves.
func chosen(leaves []*Tensor, shift float64) values {
	n := make(values)
	for i, t := range leaves {
		_, share := math.Modf(shift + float64(i)*math.Phi)
		n[t] = 0.5 + 1.5*share
	}
	return n
}

// solve returns the formula with these tensors as mean and variance, or nil if the steps compute another one.
func (f *formulas) solve(steps []*step, leaves []*Tensor, mean, variance *Tensor) *Formula {
	depends := func(s *step) bool {
		return slices.ContainsFunc(s.by.leaves(make(map[*perChannel]bool), nil), func(t *Tensor) bool { return t == mean || t == variance })
	}
	first := slices.IndexFunc(steps, depends)
	if first < 0 {
		return nil
	}
	w := &Formula{mean: mean, variance: variance, steps: steps[first:]}
	for _, shift := range []float64{0.1, 0.45, 0.83} {
		epsilon, ok := f.isBatchNorm(w, chosen(leaves, shift))
		if !ok || shift > 0.1 && !near(epsilon, w.epsilon, 1e-9+1e-6*w.epsilon) {
			return nil
		}
		w.epsilon = epsilon
	}
	last := steps[len(steps)-1]
	w.axis, w.rank = last.by.axis, f.ranks[w.steps[0].place.Node.Inputs[w.steps[0].data]]
	if w.rank != 0 && w.rank < max(2, w.axis+1) || f.m.Opset < 7 || w.moves() && w.axis > 0 && f.m.Opset < 10 {
		return nil
	}
	return w
}

// isBatchNorm reports whether the steps map x to (x − mean)·κ/√(variance + ε) + β for any mean and variance. All other vectors have the
// given numbers. ε may stand behind the root.
func (f *formulas) isBatchNorm(w *Formula, n values) (epsilon float64, ok bool) {
	a, b := n.affine(f, w.steps)
	beta := b + n[w.mean]*a
	for _, mean := range []float64{-1.25, 3} {
		a2, b2 := n.with(w.mean, mean).affine(f, w.steps)
		if !near(a2, a, 1e-9*math.Abs(a)) || !near(b2+mean*a, beta, 1e-9*(1+math.Abs(beta)+math.Abs(mean*a))) {
			return 0, false
		}
	}
	variances := [3]float64{0.25, 1, 4}
	var factors [3]float64
	for i, v := range variances {
		a, b := n.with(w.variance, v).affine(f, w.steps)
		if !near(b+n[w.mean]*a, beta, 1e-9*(1+math.Abs(beta)+math.Abs(n[w.mean]*a))) {
			return 0, false
		}
		factors[i] = a
	}
	if !(math.Abs(factors[2]) > 0) || !(math.Abs(factors[0]) > 1.5*math.Abs(factors[2])) {
		return 0, false
	}
	for _, outside := range []bool{false, true} {
		power := 2.0
		of := variances
		if outside {
			power = 1
			for i, v := range variances {
				of[i] = math.Sqrt(v)
			}
		}
		r := math.Pow(factors[0]/factors[2], power)
		epsilon := (of[2] - r*of[0]) / (r - 1)
		middle := math.Pow(factors[0]/factors[1], power) * (of[0] + epsilon)
		if near(middle, of[1]+epsilon, 1e-9) && epsilon > -1e-9 && epsilon < 1 {
			return max(0, epsilon), true
		}
	}
	return 0, false
}

// with returns n with another number for one vector.
func (n values) with(t *Tensor, x float64) values {
	out := make(values, len(n))
	for k, v := range n {
		out[k] = v
	}
	out[t] = x
	return out
}

func near(x, y, tolerance float64) bool { return math.Abs(x-y) <= tolerance }

// closed reports whether only the formula reads mean and variance, and what follows from them. It sets the nodes that do.
func (f *formulas) closed(w *Formula, all []*perChannel) bool {
	if f.readers == nil {
		f.read()
	}
	depends := make(map[*perChannel]bool)
	var mark func(v *perChannel) bool
	known := make(map[*perChannel]bool)
	mark = func(v *perChannel) bool {
		if !known[v] {
			known[v] = true
			depends[v] = v.tensor == w.mean || v.tensor == w.variance
			for _, of := range v.of {
				depends[v] = mark(of) || depends[v]
			}
		}
		return depends[v]
	}
	var own []int
	for _, v := range all {
		if mark(v) && v.index >= 0 {
			own = append(own, v.index)
		}
	}
	for _, s := range w.steps {
		own = append(own, s.index)
	}
	slices.Sort(own)
	inside := make(map[*Node]bool)
	for _, i := range own {
		inside[f.places[i].Node] = true
	}
	outside := func(n *Node) bool { return !inside[n] }
	if slices.ContainsFunc(f.readers[w.mean], outside) || slices.ContainsFunc(f.readers[w.variance], outside) {
		return false
	}
	last := w.steps[len(w.steps)-1].index
	for _, i := range own {
		if i != last && slices.ContainsFunc(f.readers[f.places[i].Node.Outputs[0]], outside) {
			return false
		}
		w.own = append(w.own, f.places[i])
	}
	return own[len(own)-1] == last
}

// read lists who reads what.
func (f *formulas) read() {
	f.readers = make(map[any][]*Node)
	for _, p := range f.m.Places() {
		for k, name := range p.Node.Inputs {
			if t := p.Tensors[k]; t != nil {
				f.readers[t] = append(f.readers[t], p.Node)
			} else {
				f.readers[name] = append(f.readers[name], p.Node)
			}
		}
	}
	for _, g := range f.m.Graphs() {
		for _, out := range g.Outputs {
			f.readers[out.Name] = append(f.readers[out.Name], nil)
		}
	}
}

// number returns the value of a float tensor of one element.
func (m *Model) number(t *Tensor) (float64, bool) {
	if t == nil || t.Len() != 1 {
		return 0, false
	}
	if t.ElemType == Int64 && len(t.ints) == 1 {
		return float64(t.ints[0]), true
	}
	if !t.IsFloat() || m.Readable(t) != nil {
		return 0, false
	}
	value := make([]float32, 1)
	t.ElemType.DType().Float32s(value, m.Stretch(t, 0, 1))
	return float64(value[0]), true
}
