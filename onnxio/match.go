package onnxio

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// As returns m with its tensors known by the names that ref has for them: the
// same network may have other names in another export, since some exporters
// number what they write. Tensors are matched by their place in an identical
// sequence of nodes, or else by name, shape and type. Where neither
// works, the models are not of one network, and the error, an [*Error], lists
// up to five differences.
func (m *Model) As(ref *Model) (*Model, error) {
	if m == ref {
		return m, nil
	}
	pairs, byPlace := pairByPlace(ref, m)
	if pairs == nil {
		var byName []*Error
		if pairs, byName = pairByName(ref, m); len(byName) > 0 {
			return nil, differ(ref, m, byName)
		}
		if len(byPlace) > 0 {
			return nil, differ(ref, m, byPlace)
		}
	}
	same := *m
	same.known = make(map[string]*Tensor, len(pairs))
	for _, t := range ref.floats() {
		same.known[t.Name] = pairs[t]
	}
	return &same, nil
}

// floats returns the tensors that could be weights.
func (m *Model) floats() []*Tensor {
	var out []*Tensor
	for _, t := range m.tensors {
		if t.ElemType.DType().IsFloat() {
			out = append(out, t)
		}
	}
	return out
}

// pairByPlace pairs the tensors that stand in the same place of the same node.
// It returns no pairs where the nodes differ or the tensors do not fit, and
// why; no reason is given where only the order of the nodes may differ.
func pairByPlace(ref, m *Model) (map[*Tensor]*Tensor, []*Error) {
	a, b := ref.places(), m.places()
	if diffs := nodeDifferences(ref, a, b); len(diffs) > 0 {
		if slices.Equal(sortedOps(a), sortedOps(b)) {
			return nil, nil
		}
		return nil, diffs
	}
	var diffs differences
	pairs := make(map[*Tensor]*Tensor)
	for i := range a {
		for k, t := range a[i].tensors {
			o := b[i].tensors[k]
			if t == nil || o == nil || !t.ElemType.DType().IsFloat() {
				if (t == nil) != (o == nil) && (t == nil || t.ElemType.DType().IsFloat()) && (o == nil || o.ElemType.DType().IsFloat()) {
					diffs.add("", "input %d of node %d, %s %q, is stored in one file and computed in the other", k, i, b[i].node.OpType, b[i].node.Name)
				}
				continue
			}
			if first := pairs[t]; first != nil && first != o {
				diffs.add(o.Name, "has the place that %q has elsewhere, where %s has one tensor, %q", first.Name, ref.Path, t.Name)
			}
			diffs.compare(ref, t, o)
			pairs[t] = o
		}
	}
	diffs.pairRest(ref, m, pairs) // what no node uses has a name only
	used := make(map[*Tensor]bool, len(pairs))
	for _, o := range pairs {
		used[o] = true
	}
	for _, o := range m.floats() {
		if !used[o] {
			diffs.add(o.Name, "not in %s", ref.Path)
		}
	}
	if len(diffs) > 0 {
		return nil, diffs
	}
	return pairs, nil
}

// pairByName pairs the tensors of one name.
func pairByName(ref, m *Model) (map[*Tensor]*Tensor, []*Error) {
	var diffs differences
	pairs := make(map[*Tensor]*Tensor)
	diffs.pairRest(ref, m, pairs)
	known := make(map[string]bool)
	for _, t := range ref.floats() {
		known[t.Name] = true
	}
	for _, o := range m.floats() {
		if !known[o.Name] {
			diffs.add(o.Name, "not in %s", ref.Path)
		}
	}
	return pairs, diffs
}

// namesOf returns the float tensors by name, and by the names that Identity
// nodes give them.
func namesOf(m *Model) map[string]*Tensor {
	out := make(map[string]*Tensor)
	for _, n := range m.Graph.Nodes {
		if n.OpType == "Identity" && len(n.Inputs) == 1 && len(n.Outputs) == 1 {
			if t := out[n.Inputs[0]]; t != nil {
				out[n.Outputs[0]] = t
			} else if i := slices.IndexFunc(m.Graph.Initializers, func(t *Tensor) bool { return t.local == n.Inputs[0] }); i >= 0 {
				out[n.Outputs[0]] = m.Graph.Initializers[i]
			}
		}
	}
	for _, t := range m.floats() {
		out[t.Name] = t
	}
	return out
}

func sortedOps(places []place) []string {
	count := make(map[string]int)
	for _, p := range places {
		count[p.node.Domain+":"+p.node.OpType]++
	}
	var out []string
	for _, op := range slices.Sorted(maps.Keys(count)) {
		out = append(out, fmt.Sprint(op, count[op]))
	}
	return out
}

func nodeDifferences(ref *Model, a, b []place) []*Error {
	var diffs differences
	for i := range min(len(a), len(b)) {
		x, y := a[i].node, b[i].node
		if x.OpType != y.OpType || x.Domain != y.Domain || len(x.Inputs) != len(y.Inputs) {
			diffs.add("", "node %d is %s %q, want %s %q as in %s", i, y.OpType, y.Name, x.OpType, x.Name, ref.Path)
		}
	}
	if len(a) != len(b) {
		diffs.add("", "%d nodes, want %d as in %s", len(b), len(a), ref.Path)
	}
	return diffs
}

// differences is what keeps two models from being of one network.
type differences []*Error

func (d *differences) add(tensor, format string, args ...any) {
	*d = append(*d, &Error{Tensor: tensor, What: fmt.Sprintf(format, args...)})
}

// pairRest pairs the tensors of ref that are in no pair yet by their names.
func (d *differences) pairRest(ref, m *Model, pairs map[*Tensor]*Tensor) {
	byName := namesOf(m)
	for _, t := range ref.floats() {
		if pairs[t] != nil {
			continue
		}
		o := byName[t.Name]
		if o == nil {
			d.add(t.Name, "missing, but present in %s", ref.Path)
			continue
		}
		d.compare(ref, t, o)
		pairs[t] = o
	}
}

// compare notes where o, which stands for t of ref, has another shape or type.
func (d *differences) compare(ref *Model, t, o *Tensor) {
	as := "as in " + ref.Path
	if o.Name != t.Name {
		as = fmt.Sprintf("as %q in %s", t.Name, ref.Path)
	}
	switch {
	case !slices.Equal(t.Shape, o.Shape):
		d.add(o.Name, "shape %v, want %v %s", o.Shape, t.Shape, as)
	case t.ElemType != o.ElemType:
		d.add(o.Name, "type %v, want %v %s", o.ElemType, t.ElemType, as)
	}
}

// maxDifferences is how many differences an error lists.
const maxDifferences = 5

// differ makes one error of the differences.
func differ(ref, m *Model, diffs []*Error) error {
	e := diffs[0]
	e.Path = m.Path
	var hint strings.Builder
	fmt.Fprintf(&hint, "all checkpoints must come from one network: compare them with swagwrap inspect %s %s", ref.Path, m.Path)
	for _, d := range diffs[1:min(len(diffs), maxDifferences)] {
		if d.Tensor != "" {
			fmt.Fprintf(&hint, "\nalso tensor %q: %s", d.Tensor, d.What)
		} else {
			fmt.Fprintf(&hint, "\nalso %s", d.What)
		}
	}
	if n := len(diffs) - maxDifferences; n > 0 {
		fmt.Fprintf(&hint, "\nand %d more differences", n)
	}
	e.Hint = hint.String()
	return e
}
