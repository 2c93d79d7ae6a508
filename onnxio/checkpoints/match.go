package checkpoints

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/onnxio"
)

// Match returns m with its tensors known by their names in ref. The same network may have other names in another
// export, since some exporters number the tensors. Tensors are matched by their place in an identical sequence of
// nodes, or otherwise by name, shape and type. One of the models may be simplified: see [onnxio.Model.Simplified]. Then
// constants of ref that have no place in m are unknown. If nothing works, the models are not of one network. The error,
// an [*onnxio.Error], lists up to five differences.
func Match(m, ref *onnxio.Model) (*onnxio.Model, error) {
	if m == ref {
		return m, nil
	}
	pairs, byPlace := pairByPlace(ref, m)
	if len(byPlace) > 0 {
		pairs = pairSimplified(ref, m)
	}
	if pairs == nil {
		var byName differences
		if pairs, byName = pairByName(ref, m); len(byName) > 0 {
			return nil, byName.error(ref, m)
		}
		if len(byPlace) > 0 {
			return nil, byPlace.error(ref, m)
		}
	}
	if err := sameNumbers(m, ref); err != nil {
		return nil, err
	}
	known := make(map[string]*onnxio.Tensor, len(pairs))
	for t, own := range pairs {
		known[t.Name] = own
	}
	return m.Known(known), nil
}

// sameNumbers fails if an attribute of a node holds another number in m than in ref. It would have to be averaged, and there is
// no tensor to average. Graphs of other nodes are not compared.
func sameNumbers(m, ref *onnxio.Model) error {
	own, want := onnxio.Numbers(m), onnxio.Numbers(ref)
	if len(own) != len(want) {
		return nil
	}
	for i, n := range own {
		if n.Attribute != want[i].Attribute || n.Operator != want[i].Operator {
			return nil
		}
	}
	for i, n := range own {
		if math.Float32bits(n.Value) != math.Float32bits(want[i].Value) {
			return &onnxio.Error{
				Path: m.Path,
				What: fmt.Sprintf("%s of %s is %g, want %g as in %s: the number changes from checkpoint to checkpoint and is no tensor, "+
					"so it cannot be averaged", n.Attribute, n.Node, n.Value, want[i].Value, ref.Path),
				Hint: "export all checkpoints again so that they keep the tensor that the number was taken from. " + asTensor,
			}
		}
	}
	return nil
}

// floats returns the tensors that could be weights.
func floats(m *onnxio.Model) []*onnxio.Tensor {
	var out []*onnxio.Tensor
	for _, t := range m.Tensors() {
		if t.IsFloat() {
			out = append(out, t)
		}
	}
	return out
}

// pairByPlace pairs the tensors at the same input of the same node. If the nodes differ or the tensors do not fit, it
// returns no pairs, and the reasons. It gives no reason if only the order of the nodes may differ.
func pairByPlace(ref, m *onnxio.Model) (map[*onnxio.Tensor]*onnxio.Tensor, differences) {
	a, b := ref.Places(), m.Places()
	if diffs := nodeDifferences(ref, a, b); len(diffs) > 0 {
		if maps.Equal(operators(a), operators(b)) {
			return nil, nil
		}
		return nil, diffs
	}
	var diffs differences
	pairs := make(map[*onnxio.Tensor]*onnxio.Tensor)
	for i := range a {
		for k, t := range a[i].Tensors {
			o := b[i].Tensors[k]
			if t == nil || o == nil || !t.IsFloat() {
				if (t == nil) != (o == nil) && (t == nil || t.IsFloat()) && (o == nil || o.IsFloat()) {
					diffs.add("", "input %d of node %d, %s %q, is stored in one file and computed in the other", k, i, b[i].Node.OpType,
						b[i].Node.Name)
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
	diffs.pairRest(ref, m, pairs) // tensors that no node uses have only a name
	used := make(map[*onnxio.Tensor]bool, len(pairs))
	for _, o := range pairs {
		used[o] = true
	}
	for _, o := range floats(m) {
		if !used[o] {
			diffs.add(o.Name, "not in %s", ref.Path)
		}
	}
	if len(diffs) > 0 {
		return nil, diffs
	}
	return pairs, nil
}

// pairSimplified pairs the tensors that have the same place in the simplified models. Constants that simplification
// removes or adds are in no pair, but must be equal. It returns nil if the models do not fit.
func pairSimplified(ref, m *onnxio.Model) map[*onnxio.Tensor]*onnxio.Tensor {
	a, err1 := ref.Simplified()
	b, err2 := m.Simplified()
	if err1 != nil || err2 != nil {
		return nil
	}
	simple, _ := pairByPlace(a, b)
	if simple == nil {
		return nil
	}
	pairs, ofRef, ofM := make(map[*onnxio.Tensor]*onnxio.Tensor), namesOf(ref), namesOf(m)
	for x, y := range simple {
		if t, o := ofRef[x.Name], ofM[y.Name]; t != nil && o != nil {
			pairs[t] = o
		} else if string(a.Elements(x)) != string(b.Elements(y)) {
			return nil
		}
	}
	return pairs
}

func pairByName(ref, m *onnxio.Model) (map[*onnxio.Tensor]*onnxio.Tensor, differences) {
	var diffs differences
	pairs := make(map[*onnxio.Tensor]*onnxio.Tensor)
	diffs.pairRest(ref, m, pairs)
	known := make(map[string]bool)
	for _, t := range floats(ref) {
		known[t.Name] = true
	}
	for _, o := range floats(m) {
		if !known[o.Name] {
			diffs.add(o.Name, "not in %s", ref.Path)
		}
	}
	return pairs, diffs
}

// namesOf returns the float tensors by name, by the names that Identity nodes give them, and by those in files of adapters.
func namesOf(m *onnxio.Model) map[string]*onnxio.Tensor {
	out := m.Merged()
	maps.DeleteFunc(out, func(_ string, t *onnxio.Tensor) bool { return !t.IsFloat() })
	for _, t := range floats(m) {
		out[t.Name] = t
	}
	saved := make(map[string][]*onnxio.Tensor)
	for _, t := range floats(m) {
		if name := savedName(t.Name); name != t.Name {
			saved[name] = append(saved[name], t)
		}
	}
	for name, of := range saved {
		if len(of) == 1 && out[name] == nil {
			out[name] = of[0]
		}
	}
	return out
}

func operators(places []onnxio.Place) map[string]int {
	count := make(map[string]int)
	for _, p := range places {
		count[p.Node.Domain+":"+p.Node.OpType]++
	}
	return count
}

func nodeDifferences(ref *onnxio.Model, a, b []onnxio.Place) differences {
	var diffs differences
	for i := range min(len(a), len(b)) {
		x, y := a[i].Node, b[i].Node
		if x.OpType != y.OpType || x.Domain != y.Domain || len(x.Inputs) != len(y.Inputs) {
			diffs.add("", "node %d is %s %q, want %s %q as in %s", i, y.OpType, y.Name, x.OpType, x.Name, ref.Path)
		}
	}
	if len(a) != len(b) {
		diffs.add("", "%d nodes, want %d as in %s", len(b), len(a), ref.Path)
	}
	return diffs
}

// differences are the reasons why two models are not of one network.
type differences []*onnxio.Error

func (d *differences) add(tensor, format string, args ...any) {
	*d = append(*d, &onnxio.Error{Tensor: tensor, What: fmt.Sprintf(format, args...)})
}

// pairRest pairs the tensors of ref that are in no pair yet by their names.
func (d *differences) pairRest(ref, m *onnxio.Model, pairs map[*onnxio.Tensor]*onnxio.Tensor) {
	byName := namesOf(m)
	for _, t := range floats(ref) {
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

// compare notes if o, the counterpart of t of ref, has another shape or type.
func (d *differences) compare(ref *onnxio.Model, t, o *onnxio.Tensor) {
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

func (diffs differences) error(ref, m *onnxio.Model) error {
	e := diffs[0]
	e.Path = m.Path
	var hint strings.Builder
	for _, cause := range causes(ref, m) {
		hint.WriteString(cause + "\n")
	}
	fmt.Fprintf(&hint, "all checkpoints must come from one network: compare them with %s",
		setting.Line(setting.Inspect.WithFiles(ref.Path, m.Path)))
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

// causes describes differences between two exports of one network that lead to other nodes or tensors.
func causes(ref, m *onnxio.Model) (found []string) {
	if a, b := exporter(ref), exporter(m); a != b {
		found = append(found, fmt.Sprintf("%s was exported by %s, %s by %s: export all checkpoints alike", ref.Path, a, m.Path, b))
	}
	a, b := ref.FeedInputs(), m.FeedInputs()
	for i := range min(len(a), len(b)) {
		if !slices.Equal(a[i].Shape, b[i].Shape) {
			found = append(found, fmt.Sprintf("%s takes %s, %s %s: export all checkpoints with the same dynamic dimensions",
				ref.Path, onnxio.FormatShape(a[i].Shape, a[i].Dims), m.Path, onnxio.FormatShape(b[i].Shape, b[i].Dims)))
			break
		}
	}
	return found
}

func exporter(m *onnxio.Model) string {
	name := strings.TrimSpace(m.ProducerName + " " + m.ProducerVersion)
	if name == "" {
		name = "an unnamed program"
	}
	return fmt.Sprintf("%s, opset %d", name, m.Opset)
}
