package checkpoints

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// explain makes the recipe from a matching without differences. It matches the rest of the graph's tensors by their
// elements. It fails if a tensor is left that may depend on the state_dict.
func (t *Template) explain(m *matching, states []*state) error {
	if err := sameAdapters(states); err != nil {
		return err
	}
	var left []*onnxio.Tensor // apparent constants of the graph
	for _, into := range floats(t.model) {
		if _, paired := m.from[into]; paired {
			continue
		}
		x, transposed, err := t.find(into, m)
		if err != nil {
			return err
		}
		if x != nil {
			m.pair(into, x, transposed)
		} else {
			left = append(left, into)
		}
	}
	r := &Recipe{
		Template:  filepath.Base(t.model.Path),
		StateDict: t.StateDict,
		Aliases:   make(map[string]string),
		Fixed:     make(map[string]string),
	}
	lacking, err := t.sort(m, r, states)
	if err != nil {
		return err
	}
	for _, into := range left {
		if of := t.derivedFrom(into, m); of != nil {
			return t.lacks(m, []*statefile.Tensor{of}, into)
		}
	}
	if err := t.missing(m, r, lacking, left, states); err != nil {
		return err
	}
	if r.Kept, err = t.kept(left, m); err != nil {
		return err
	}
	for _, into := range floats(t.model) {
		if source, ok := m.from[into]; ok {
			r.Tensors = append(r.Tensors, source)
		}
	}
	if len(r.Tensors) == 0 {
		return t.lacks(m, m.dict.Tensors, nil)
	}
	t.recipe = r
	return nil
}

// sort adds the tensors of the state_dict that are not in the graph to the recipe, as far as they need not be there. It
// returns the others.
func (t *Template) sort(m *matching, r *Recipe, states []*state) (lacking []*statefile.Tensor, err error) {
	said, err := parsePatterns(t.Unused)
	if err != nil {
		return nil, err
	}
	copies := m.copies()
	for _, x := range m.dict.Tensors {
		if m.known[x] {
			continue
		}
		of := m.twin(x)
		switch {
		case said.match(x):
			lacking = append(lacking, x) // unless the graph shows that it is used
		case of != nil && (!copies[x] || alike(x, of, states)):
			r.Aliases[x.Short] = of.Short
		case constantIn(x, states):
			r.Fixed[x.Short] = digest(x)
		case copies[x]:
			r.Copies = append(r.Copies, x.Short)
		default:
			lacking = append(lacking, x)
		}
	}
	return lacking, nil
}

// kept returns the names of tensors that only the graph has and that may be weights. It fails for statistics of batch
// norm, and for tensors that are integers in the state_dict, because a state_dict of the network cannot lack them.
func (t *Template) kept(left []*onnxio.Tensor, m *matching) (names []string, err error) {
	bns, err := t.model.BatchNorms()
	if err != nil {
		return nil, err
	}
	statistic := make(map[string]bool)
	for _, bn := range bns {
		statistic[bn.Mean], statistic[bn.Var] = true, true
	}
	ignored, lengths := make(map[string][]*statefile.Tensor), make(map[int]bool) // by name; lengths of these names
	for _, g := range m.dict.Ignored {
		if g.Tensor != nil {
			ignored[g.Tensor.Short] = append(ignored[g.Tensor.Short], g.Tensor)
			lengths[len(g.Tensor.Short)] = true
		}
	}
	initializer := make(map[*onnxio.Tensor]bool, len(t.model.Graph.Initializers))
	for _, into := range t.model.Graph.Initializers {
		initializer[into] = true
	}
	for _, into := range left {
		e := &onnxio.Error{Path: m.file.Path, Tensor: into.Name}
		for end, more := into.Name, true; more; _, end, more = strings.Cut(end, ".") {
			if !lengths[len(end)] {
				continue
			}
			for _, x := range ignored[end] {
				if sameShape(x.Shape, into.Shape) {
					e.What = fmt.Sprintf("%v, want floats as in %s", x.DType, t.model.Path)
					return nil, e
				}
			}
		}
		if statistic[into.Name] {
			e.What = fmt.Sprintf("missing, but the graph %s has it: the state_dict is of a part of the network, or of another one",
				t.model.Path)
			e.Hint = "save the whole network's state_dict, or take another one of the file: " + setting.StateDict.With("KEY")
			return nil, e
		}
		if !numberedName.MatchString(into.Name) && initializer[into] {
			names = append(names, into.Name)
		}
	}
	return names, nil
}

// numberedName matches the names that exporters give to unnamed tensors.
var numberedName = regexp.MustCompile(`^(val|onnx|_|/|[0-9])`)

// find returns the tensor of the state_dict that has the elements of a tensor in the graph, in the same order or
// transposed. It prefers tensors that are not in the graph under their own names. Elements that are all equal prove
// nothing, because they may be equal to another tensor's by accident.
func (t *Template) find(into *onnxio.Tensor, m *matching) (found *statefile.Tensor, transposed bool, err error) {
	if !telling(t.model, into) {
		return nil, false, nil
	}
	var unnamed, named []*statefile.Tensor
	for _, x := range m.dict.Tensors {
		if m.known[x] {
			named = append(named, x)
		} else {
			unnamed = append(unnamed, x)
		}
	}
	for _, x := range append(unnamed, named...) {
		for _, as := range []*statefile.Tensor{x, transposeOf(x)} {
			if m.tried++; m.tried > maxTried {
				return nil, false, &onnxio.Error{
					Path: m.file.Path,
					What: "too many tensors that have no name in common with " + t.model.Path,
					Hint: keepTensors,
				}
			}
			if as == nil || !sameShape(as.Shape, into.Shape) {
				continue
			}
			same, err := t.holds(into, as, m.state)
			if err != nil {
				return nil, false, err
			}
			if same {
				return x, as != x, nil
			}
		}
	}
	return nil, false, nil
}

// transposeOf returns the transpose of a matrix, nil for anything else.
func transposeOf(x *statefile.Tensor) *statefile.Tensor {
	if len(x.Shape) != 2 {
		return nil
	}
	return x.Transposed()
}

// telling reports whether a tensor's elements are not all equal. For a single element, it reports whether this is not
// a number that graphs have anyway.
func telling(m *onnxio.Model, t *onnxio.Tensor) bool {
	if t.Len() < 2 {
		return !plain(m, t)
	}
	size := t.ElemType.DType().Size()
	first := m.Stretch(t, 0, 1)
	for off, n := range stretches(t.Len()) {
		for e := range slices.Chunk(m.Stretch(t, off, n), int(size)) {
			if string(e) != string(first) {
				return true
			}
		}
	}
	return false
}

// plain reports whether a tensor is a single number with few digits, such as 1, 0.5 or 1e-5. Such a number is the
// constant of a formula, not the value of a weight.
func plain(m *onnxio.Model, t *onnxio.Tensor) bool {
	if t.Len() != 1 {
		return false
	}
	v := make([]float32, 1)
	t.ElemType.DType().Float32s(v, m.Stretch(t, 0, 1))
	return len(fmt.Sprintf("%g", v[0])) <= 5
}

// twin returns a tensor in the graph that x is tied to or equal to. An exporter may have merged the two, so they must
// be equal in all checkpoints.
func (m *matching) twin(x *statefile.Tensor) *statefile.Tensor {
	if m.tried += len(m.known); m.known[x] || m.tried > maxTried {
		return nil
	}
	for _, same := range []func(a, b *statefile.Tensor) bool{(*statefile.Tensor).Tied, equal} {
		for _, o := range m.dict.Tensors {
			if m.known[o] && same(x, o) {
				return o
			}
		}
	}
	return nil
}

// alike reports whether two tensors of a state_dict are equal in all state_dicts.
func alike(x, o *statefile.Tensor, states []*state) bool {
	return !slices.ContainsFunc(states, func(s *state) bool {
		a, b := s.byName[x.Short], s.byName[o.Short]
		return a == nil || b == nil || !equal(a, b)
	})
}

// constantIn reports whether a tensor is the same in all of several state_dicts.
func constantIn(x *statefile.Tensor, states []*state) bool {
	return len(states) > 1 && !slices.ContainsFunc(states, func(s *state) bool {
		o := s.byName[x.Short]
		return o == nil || !equal(o, x)
	})
}

// lacks returns the error for a graph without some tensors of a state_dict. The graph may hold instead something that
// was computed from them.
func (t *Template) lacks(m *matching, lacking []*statefile.Tensor, instead *onnxio.Tensor) *onnxio.Error {
	e := &onnxio.Error{Path: t.model.Path, Tensor: lacking[0].Name, Hint: keepTensors}
	if isAdapter(lacking[0].Name) {
		e.Hint = exportAdapter
	}
	if strings.Contains(lacking[0].Name, "_torch_params.") {
		e.Hint = kerasHint
	}
	e.What = fmt.Sprintf("of %s, is not in the graph as it is", m.file.Path)
	if n := len(lacking) - 1; n > 0 {
		e.What = fmt.Sprintf("of %s, and %d more are not in the graph as they are", m.file.Path, n)
	}
	if instead != nil {
		e.What += fmt.Sprintf(": %q %v may have been computed from it when it was exported, and would not change with other weights",
			instead.Name, instead.Shape)
	}
	return e
}
