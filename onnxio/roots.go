package onnxio

// A Root is a stored tensor that the main graph takes the square root of, or adds a number to and then takes the root.
type Root struct {
	Tensor string
	Least  float64 // the smallest element that has a root
}

// Roots returns the stored tensors that the main graph takes the root of.
func (m *Model) Roots() (roots []Root) {
	known, v := make(map[*Tensor]bool), m.viewer()
	for _, p := range v.places {
		root := p.Node.OpType == "Sqrt"
		if p.Node.OpType == "Pow" && len(p.Node.Inputs) == 2 {
			power, ok := m.number(p.Tensors[1])
			root = ok && (power == 0.5 || power == -0.5)
		}
		if !root {
			continue
		}
		if t, plus := m.underRoot(v, p); t != nil && !known[t] {
			known[t] = true
			roots = append(roots, Root{Tensor: t.Name, Least: -plus})
		}
	}
	return roots
}

// underRoot returns the float tensor that node p takes the root of, and the number that is added to it before.
func (m *Model) underRoot(v *viewer, p Place) (t *Tensor, plus float64) {
	w := v.view(p, 0)
	if of, ok := v.behindViews(p, 0); ok && w == nil && of.Node.OpType == "Add" && len(of.Node.Inputs) == 2 {
		for k := range 2 {
			if number, ok := m.number(of.Tensors[1-k]); ok && w == nil {
				w, plus = v.view(of, k), number
			}
		}
	}
	if w == nil || !w.tensor.IsFloat() {
		return nil, 0
	}
	return w.tensor, plus
}

// behindViews returns the node that computes input k of p. It skips operators that only change the shape.
func (v *viewer) behindViews(p Place, k int) (Place, bool) {
	of, ok := v.producer(p, k)
	for range maxView {
		if !ok || !v.isView(of) {
			break
		}
		of, ok = v.producer(of, 0)
	}
	return of, ok
}
