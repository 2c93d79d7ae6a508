package onnxio

import "slices"

// A view is a tensor as a node sees it, after operators that only change its shape.
type view struct {
	tensor *Tensor
	shape  []int64 // after these operators; nil if the graph does not give it
	perm   []int64 // of the one Transpose among them, or nil
}

// viewing are operators whose output has the elements of their first input.
var viewing = []string{"Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}

// maxView is the largest number of such operators in a row that are followed.
const maxView = 16

func (v *viewer) isView(p Place) bool { return slices.Contains(viewing, p.Node.OpType) }

// viewer finds patterns in the main graph. It knows the nodes of the default domain that compute something.
type viewer struct {
	places []Place
	nodes  map[string]Place   // by the names of their first outputs
	lists  map[string][]int64 // short lists of int64, by name
}

func (m *Model) viewer() *viewer {
	v := &viewer{nodes: make(map[string]Place), lists: m.lists()}
	for _, p := range m.Places() {
		if p.Graph == m.Graph && p.Node.Domain == "" && len(p.Node.Outputs) > 0 {
			v.places = append(v.places, p)
			v.nodes[p.Node.Outputs[0]] = p
		}
	}
	return v
}

// producer returns the node that computes input k of p, if it is in the main graph.
func (v *viewer) producer(p Place, k int) (Place, bool) {
	if k >= len(p.Node.Inputs) || p.Tensors[k] != nil {
		return Place{}, false
	}
	of, ok := v.nodes[p.Node.Inputs[k]]
	return of, ok
}

// view returns the tensor that input k of p is a view of, or nil.
func (v *viewer) view(p Place, k int) *view { return v.viewWithin(p, k, maxView) }

func (v *viewer) viewWithin(p Place, k, limit int) *view {
	if k < len(p.Tensors) && p.Tensors[k] != nil {
		t := p.Tensors[k]
		return &view{tensor: t, shape: t.Shape}
	}
	of, ok := v.producer(p, k)
	if !ok || limit == 0 || !v.isView(of) {
		return nil
	}
	w := v.viewWithin(of, 0, limit-1)
	if w == nil {
		return nil
	}
	switch of.Node.OpType {
	case "Transpose":
		if w.perm != nil {
			return nil
		}
		if w.perm = of.Node.list("perm"); w.perm == nil {
			for axis := len(w.tensor.Shape) - 1; axis >= 0; axis-- {
				w.perm = append(w.perm, int64(axis))
			}
		}
		w.shape = nil
	case "Reshape":
		w.shape = v.reshaped(w, of)
	case "Unsqueeze":
		w.shape = v.unsqueezed(w.shape, of)
	case "Flatten", "Squeeze":
		w.shape = nil
	}
	return w
}

// reshaped returns the shape that a Reshape gives a view, or nil if it is not stored.
func (v *viewer) reshaped(w *view, p Place) []int64 {
	list := v.list(p)
	if list == nil {
		return nil
	}
	shape, known, open := slices.Clone(list), int64(1), -1
	for i, d := range shape {
		switch {
		case d == 0 && i < len(w.shape):
			shape[i] = w.shape[i]
		case d == -1 && open < 0:
			open = i
			continue
		case d <= 0:
			return nil
		}
		known *= shape[i]
	}
	if n := w.tensor.Len(); open >= 0 && known > 0 && n%known == 0 {
		shape[open] = n / known
	} else if open >= 0 || known != n {
		return nil
	}
	return shape
}

// unsqueezed returns a shape with the dimensions of 1 that an Unsqueeze inserts.
func (v *viewer) unsqueezed(shape []int64, p Place) []int64 {
	axes := v.axes(p)
	rank := int64(len(shape) + len(axes))
	if shape == nil || axes == nil || rank > shortList {
		return nil
	}
	axes = slices.Clone(axes)
	for i, axis := range axes {
		if axis < 0 {
			axes[i] = axis + rank
		}
	}
	slices.Sort(axes)
	out := slices.Clone(shape)
	for _, axis := range axes {
		if axis < 0 || axis > int64(len(out)) {
			return nil
		}
		out = slices.Insert(out, int(axis), 1)
	}
	return out
}

// axes returns the axes of an operator: an attribute, and since opset 13 an input.
func (v *viewer) axes(p Place) []int64 {
	if axes := p.Node.list("axes"); axes != nil {
		return axes
	}
	return v.list(p)
}

// list returns the short list of integers at the second input. It is stored, or joined by a Concat, as in PyTorch's exporter.
func (v *viewer) list(p Place) []int64 {
	if len(p.Node.Inputs) < 2 {
		return nil
	}
	if list := v.lists[p.Node.Inputs[1]]; list != nil {
		return list
	}
	of, ok := v.nodes[p.Node.Inputs[1]]
	if !ok || of.Node.OpType != "Concat" {
		return nil
	}
	var all []int64
	for _, name := range of.Node.Inputs {
		part := v.lists[name]
		if part == nil || len(all)+len(part) > shortList {
			return nil
		}
		all = append(all, part...)
	}
	return all
}
