package checkpoints

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
	"github.com/swagwrap/swagwrap/weights/torch"
)

// prove finds the recipe, if there is none yet: the state_dict among the given, or
// those of Proof and Others, which has the graph's own elements says what fills what.
func (t *Template) prove(states []*state) error {
	if t.recipe != nil {
		return nil
	}
	p := &proof{t: t, states: states, exported: t.model, namings: findNamings(states[0], graphTensors(t.model))}
	if t.Proof != "" {
		if err := p.file(t.Proof); err != nil || t.recipe != nil {
			return err
		}
	}
	if err := p.try(states); err != nil || t.recipe != nil {
		return err
	}
	for _, s := range states { // the graph may be that of the moving average beside the weights
		if err := p.try(slices.DeleteFunc(statesOf(s.file), s.same)); err != nil || t.recipe != nil {
			return err
		}
	}
	for _, path := range t.Others {
		if !torch.Is(path) {
			continue
		}
		if err := p.file(path); err != nil || t.recipe != nil {
			return err
		}
	}
	if p.nearest == nil {
		return cmp.Or(p.unlike, error(&onnxio.Error{Path: t.model.Path, What: "has the weights of none of the state_dicts given"}))
	}
	return t.unproved(p.nearest, states)
}

// A proof is the search for the state_dict that the graph was exported from.
type proof struct {
	t        *Template
	states   []*state // the given ones
	exported *onnxio.Model
	namings  []naming
	nearest  *matching
	unlike   error // of a state_dict with none of the graph's names
}

// file tries all state_dicts of a file.
func (p *proof) file(path string) error {
	f, err := torch.Open(path)
	if err != nil {
		return inOurs(err)
	}
	defer f.Close()
	return p.try(statesOf(f))
}

// try looks for the graph's elements in state_dicts, and makes the recipe where they
// are. It fails if one of the given is of another network, or the graph is not
// made of a state_dict's tensors alone.
func (p *proof) try(candidates []*state) error {
	for i, names := range p.namings {
		var err error
		if p.t.model, err = unmerge(p.exported, names, p.states[0].dict.Tensors); err != nil {
			return err
		}
		for _, s := range candidates {
			found, err := p.t.byName(s, names)
			switch {
			case err != nil && i == 0 && slices.ContainsFunc(p.states, s.same):
				return err
			case err != nil: // others than the given ones need not be of this network
			case len(found.other) == 0:
				named := len(found.from) > 0
				err := p.t.explain(found, withProof(p.states, s))
				if err == nil || named {
					return err
				}
				p.unlike = cmp.Or(p.unlike, err)
			case p.nearest == nil || len(found.other) < len(p.nearest.other):
				p.nearest = found
			}
		}
	}
	return nil
}

// withProof returns the state_dicts, and the one that has the graph's elements if it is
// another.
func withProof(states []*state, proof *state) []*state {
	if slices.ContainsFunc(states, proof.same) {
		return states
	}
	return append(slices.Clone(states), proof)
}

// same reports whether both are one state_dict.
func (s *state) same(o *state) bool { return s.dict == o.dict }

// A matching pairs the tensors of a graph with those of a state_dict.
type matching struct {
	*state
	from  map[*onnxio.Tensor]Source
	known map[*torch.Tensor]bool // those that are in the graph
	other []*onnxio.Tensor       // in the graph with other elements
	tried int                    // comparisons of what has no name in common
}

// maxTried bounds them: a network has a few thousand tensors.
const maxTried = 1 << 22

// byName pairs what has one name, and compares it.
func (t *Template) byName(s *state, names naming) (*matching, error) {
	m := &matching{s, make(map[*onnxio.Tensor]Source), make(map[*torch.Tensor]bool), nil, 0}
	graph := graphTensors(t.model)
	for _, x := range s.dict.Tensors {
		into := graph[names.graph(x.Short)]
		if into == nil {
			continue
		}
		if !sameShape(x.Shape, into.Shape) {
			return nil, t.shapeError(s, x, into)
		}
		same, err := t.holds(into, x, s)
		if err != nil {
			return nil, err
		}
		if !same {
			m.other = append(m.other, into)
		}
		m.pair(into, x, false)
	}
	return m, nil
}

func (m *matching) pair(into *onnxio.Tensor, x *torch.Tensor, transposed bool) {
	source := Source{Tensor: into.Name, Transposed: transposed}
	if x.Short != into.Name {
		source.From = x.Short
	}
	m.from[into], m.known[x] = source, true
}

// holds reports whether the graph has the elements of x in a tensor.
func (t *Template) holds(into *onnxio.Tensor, x *torch.Tensor, s *state) (bool, error) {
	if err := t.model.Readable(into); err != nil {
		return false, err
	}
	with, err := t.model.Holding(s.file.Path, nil, map[*onnxio.Tensor]weights.Piece{into: x.Piece()})
	return err == nil && sameButForZeros(t.model, with, into), err
}

// sameButForZeros compares what two models hold in a tensor. Exporters that merge
// equal tensors take −0 for 0, so these count as one.
func sameButForZeros(a, b *onnxio.Model, t *onnxio.Tensor) bool {
	size := int(t.ElemType.DType().Size())
	n := int64(firstStretch) // most that differ do so at once
	for off := int64(0); off < t.Len(); n = compareStretch {
		n = min(n, t.Len()-off)
		x, y := a.Stretch(t, off, n), b.Stretch(t, off, n)
		if !bytes.Equal(x, y) {
			for i := 0; i < len(x); i += size {
				if e, f := x[i:i+size], y[i:i+size]; !bytes.Equal(e, f) && !(isZero(e) && isZero(f)) {
					return false
				}
			}
		}
		off += n
	}
	return true
}

// isZero reports whether a little-endian float is 0 or −0.
func isZero(float []byte) bool {
	last := len(float) - 1
	return float[last]&^0x80 == 0 && !slices.ContainsFunc(float[:last], func(b byte) bool { return b != 0 })
}

// explain makes the recipe of a matching in which nothing differs. The rest of the
// graph's tensors are matched by their elements; then nothing may be left that a
// state_dict could have a part in.
func (t *Template) explain(m *matching, states []*state) error {
	var left []*onnxio.Tensor // constants of the graph, as far as can be seen
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
	r := &Recipe{Template: filepath.Base(t.model.Path), StateDict: t.StateDict, Aliases: make(map[string]string), Fixed: make(map[string]string)}
	var lacking []*torch.Tensor
	var err error
	for _, x := range m.dict.Tensors {
		switch of := m.twin(x); {
		case m.known[x]:
		case of != nil:
			r.Aliases[x.Short] = of.Short
		case constant(x, states):
			r.Fixed[x.Short] = digest(x)
		default:
			lacking = append(lacking, x)
		}
	}
	for _, into := range left {
		if into.Len() > 1 && len(lacking) > 0 {
			return t.lacks(m, lacking, into)
		}
		if of := t.madeOf(into, m); of != nil {
			return t.lacks(m, []*torch.Tensor{of}, into)
		}
	}
	if r.Kept, err = t.kept(left, m); err != nil {
		return err
	}
	for _, x := range lacking {
		if one := slices.IndexFunc(left, func(into *onnxio.Tensor) bool { return x.Len() == 1 && !plain(t.model, into) }); one >= 0 {
			return t.lacks(m, []*torch.Tensor{x}, left[one])
		}
		r.Unused = append(r.Unused, x.Short)
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

// kept returns the names of tensors that only the graph has and that may be weights.
// Batch norm's statistics, and what the state_dict has as integers, are: they
// cannot be missing from it by right.
func (t *Template) kept(left []*onnxio.Tensor, m *matching) (names []string, err error) {
	bns, err := t.model.BatchNorms()
	if err != nil {
		return nil, err
	}
	statistic := make(map[string]bool)
	for _, bn := range bns {
		statistic[bn.Mean], statistic[bn.Var] = true, true
	}
	for _, into := range left {
		e := &onnxio.Error{Path: m.file.Path, Tensor: into.Name}
		for _, g := range m.dict.Ignored {
			if g.Tensor != nil && commonEnd(g.Tensor.Short, into.Name) == g.Tensor.Short && sameShape(g.Tensor.Shape, into.Shape) {
				e.What = fmt.Sprintf("%v, want floats as in %s", g.Tensor.DType, t.model.Path)
				return nil, e
			}
		}
		if statistic[into.Name] {
			e.What = fmt.Sprintf("missing, but the graph %s has it: the state_dict is of a part of the network, or of another one", t.model.Path)
			e.Hint = "save the whole network's state_dict, or take another one of the file: --state-dict KEY"
			return nil, e
		}
		if !numberedName.MatchString(into.Name) && slices.Contains(t.model.Graph.Initializers, into) {
			names = append(names, into.Name)
		}
	}
	return names, nil
}

// numberedName is one that an exporter gives to what has none.
var numberedName = regexp.MustCompile(`^(val|onnx|_|/|[0-9])`)

// find returns the tensor of the state_dict that has the elements of one in the
// graph, in the same order or transposed; rather one that is not in the graph under
// its own name. Elements that are all equal tell nothing: they may be another
// tensor's by accident.
func (t *Template) find(into *onnxio.Tensor, m *matching) (found *torch.Tensor, transposed bool, err error) {
	if !telling(t.model, into) {
		return nil, false, nil
	}
	candidates := slices.SortedStableFunc(slices.Values(m.dict.Tensors), func(a, b *torch.Tensor) int {
		return btoi(m.known[a]) - btoi(m.known[b])
	})
	for _, x := range candidates {
		for _, as := range []*torch.Tensor{x, transposeOf(x)} {
			if m.tried++; m.tried > maxTried {
				return nil, false, &onnxio.Error{Path: m.file.Path, What: "too many tensors that have no name in common with " + t.model.Path, Hint: keepTensors}
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

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// transposeOf returns the transpose of a matrix, nil for anything else.
func transposeOf(x *torch.Tensor) *torch.Tensor {
	if len(x.Shape) != 2 {
		return nil
	}
	return x.Transposed()
}

// telling reports whether a tensor's elements are not all equal; or, of a single
// one, that it is no number that graphs have anyway.
func telling(m *onnxio.Model, t *onnxio.Tensor) bool {
	if t.Len() < 2 {
		return !plain(m, t)
	}
	size := t.ElemType.DType().Size()
	first := m.Stretch(t, 0, 1)
	for off := int64(0); off < t.Len(); {
		n := min(compareStretch, t.Len()-off)
		for e := range slices.Chunk(m.Stretch(t, off, n), int(size)) {
			if string(e) != string(first) {
				return true
			}
		}
		off += n
	}
	return false
}

// plain reports whether a single number is one with few digits, such as 1, 0.5 or
// 1e-5: the constant of a formula, not the value of a weight.
func plain(m *onnxio.Model, t *onnxio.Tensor) bool {
	if t.Len() != 1 {
		return false
	}
	v := make([]float32, 1)
	t.ElemType.DType().Float32s(v, m.Stretch(t, 0, 1))
	return len(fmt.Sprintf("%g", v[0])) <= 5
}

// twin returns a tensor in the graph that x is tied to, or that is equal to it: then
// an exporter may have merged the two, and they must be equal in all checkpoints.
func (m *matching) twin(x *torch.Tensor) *torch.Tensor {
	if m.tried += len(m.known); m.known[x] || m.tried > maxTried {
		return nil
	}
	for _, same := range []func(a, b *torch.Tensor) bool{(*torch.Tensor).Tied, equal} {
		for _, o := range m.dict.Tensors {
			if m.known[o] && same(x, o) {
				return o
			}
		}
	}
	return nil
}

// constant reports whether a tensor is the same in all of several state_dicts.
func constant(x *torch.Tensor, states []*state) bool {
	return len(states) > 1 && !slices.ContainsFunc(states, func(s *state) bool {
		o := s.byName[x.Short]
		return o == nil || !equal(o, x)
	})
}

// unproved is the error of a graph that has the elements of no state_dict given.
func (t *Template) unproved(nearest *matching, states []*state) error {
	what := "does not hold the weights of " + nearest.file.Path
	if len(states) > 1 {
		what = fmt.Sprintf("holds the weights of none of the %d state_dicts; nearest is %s", len(states), nearest.file.Path)
	}
	from := []string{
		"if it was exported from other weights, such as untrained ones: load a checkpoint into the model and export again, or say which file has those weights: --template-checkpoint FILE",
		"if the exporter has changed the weights, as where it folds batch norm into them: " + keepTensors,
	}
	if f := t.model.FoldedBatchNorm(); f != nil {
		from = []string{f.String() + ": export it again with batch norm kept: " + f.Keep}
	} else if len(nearest.other) < len(nearest.from)/2 {
		slices.Reverse(from)
	}
	return &onnxio.Error{Path: t.model.Path, What: what + ": " + some(len(nearest.other), len(nearest.from), nearest.other), Hint: strings.Join(from, "\n")}
}

// some lists the first of the tensors that differ.
func some(n, of int, tensors []*onnxio.Tensor) string {
	var names []string
	for _, t := range tensors[:min(len(tensors), maxDifferences)] {
		names = append(names, fmt.Sprintf("%q", t.Name))
	}
	more := ""
	if n > len(names) {
		more = ", …"
	}
	return fmt.Sprintf("%d of %d tensors differ: %s%s", n, of, strings.Join(names, ", "), more)
}

// lacks is the error of a graph that has not what a state_dict has, but maybe in its
// place something that was computed from it.
func (t *Template) lacks(m *matching, lacking []*torch.Tensor, instead *onnxio.Tensor) error {
	e := &onnxio.Error{Path: t.model.Path, Tensor: lacking[0].Name, Hint: keepTensors}
	e.What = fmt.Sprintf("of %s, is not in the graph as it is", m.file.Path)
	if n := len(lacking) - 1; n > 0 {
		e.What = fmt.Sprintf("of %s, and %d more are not in the graph as they are", m.file.Path, n)
	}
	if instead != nil {
		e.What += fmt.Sprintf(": %q %v may have been computed from it when it was exported, and would not change with other weights", instead.Name, instead.Shape)
	}
	return e
}
