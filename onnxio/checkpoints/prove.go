package checkpoints

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// prove finds the recipe, if there is none yet. It looks for a state_dict with the graph's own elements, which shows
// which tensor fills which. It tries the given state_dicts, and those of Proof and Others.
func (t *Template) prove(states []*state) error {
	if t.recipe != nil {
		return nil
	}
	p := &proof{t: t, states: states, exported: t.model, namings: findNamings(states[0], namesOf(t.model))}
	if t.Proof != "" && !statefile.Is(t.Proof) {
		return p.template(t.Proof)
	}
	if t.Proof != "" {
		if err := p.file(t.Proof); err != nil || t.recipe != nil {
			return err
		}
	}
	if err := p.try(states); err != nil || t.recipe != nil {
		return err
	}
	for _, s := range states { // the graph may be that of the moving average in the same file
		if err := p.try(slices.DeleteFunc(t.statesOf(s.file), s.same)); err != nil || t.recipe != nil {
			return err
		}
	}
	for _, path := range t.Others {
		if statefile.Is(path) {
			if err := p.neighbour(path); err != nil || t.recipe != nil {
				return err
			}
		}
	}
	if p.nearest == nil {
		return cmp.Or(nameless(states[0]), p.unlike, error(&onnxio.Error{
			Path: t.model.Path,
			What: "has the weights of none of the state_dicts given",
		}))
	}
	if p.nearest.file != p.named {
		p.turned = t.reordered(p.nearest)
	}
	return t.unproved(p.nearest, states, p.turned)
}

// A proof is the search for the state_dict that the graph was exported from.
type proof struct {
	t        *Template
	states   []*state // the given state_dicts
	exported *onnxio.Model
	namings  []naming
	nearest  *matching
	named    *statefile.File   // that of nearest, if it is closed
	turned   *statefile.Tensor // of nearest: see reordered
	unlike   error             // the error of a state_dict with none of the graph's names
}

// file tries all state_dicts of a file.
func (p *proof) file(path string) error {
	f, err := statefile.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	err = p.try(p.t.statesOf(f))
	if err == nil && p.t.recipe == nil && p.nearest != nil && p.nearest.file == f {
		p.named, p.turned = f, p.t.reordered(p.nearest) // while its elements can be read
	}
	return err
}

// neighbour is like file, for a file that the user did not name. It may be of any kind, so its own faults are no error.
func (p *proof) neighbour(path string) error {
	nearest, unlike := p.nearest, p.unlike
	err := p.file(path)
	p.nearest, p.unlike = nearest, unlike
	var about *onnxio.Error
	if errors.As(err, &about) && (about.Path == p.exported.Path || slices.ContainsFunc(p.states, func(s *state) bool {
		return s.file.Path == about.Path
	})) {
		return err
	}
	return nil
}

// nameless returns the error for a list of tensors without names, such as the average of torch_ema, or nil. Its tensors are
// called by their places.
func nameless(s *state) error {
	if len(s.dict.Tensors) == 0 || slices.ContainsFunc(s.dict.Tensors, func(x *statefile.Tensor) bool {
		return strings.Trim(x.Short, "0123456789") != ""
	}) {
		return nil
	}
	return &onnxio.Error{
		Path: s.file.Path,
		What: fmt.Sprintf("%d tensors without names, which do not tell where they go in the graph", len(s.dict.Tensors)),
		Hint: "save them under their names. With torch_ema: with ema.average_parameters(): torch.save(model.state_dict(), path). With " +
			"EMAModel of diffusers: ema.copy_to(model.parameters()), then the same",
	}
}

// template makes the recipe by names alone, if the proof is the template itself. The template's weights are its own,
// so no bits can show which tensor goes where. A tensor without a namesake is an error, and the recipe has a warning.
func (p *proof) template(path string) error {
	m, err := onnxio.Open(path)
	if err != nil {
		return err
	}
	defer m.Close()
	sums, err := Sums(context.Background(), []*onnxio.Model{m, p.exported}, nil)
	if err != nil {
		return err
	}
	if sums[0] != sums[1] {
		return &onnxio.Error{
			Path: path,
			What: "an ONNX model that is not the template " + p.exported.Path,
			Hint: setting.Template.With("GRAPH=CHECKPOINT") + " takes the file of PyTorch that the graph was exported from. GRAPH=GRAPH " +
				"goes by the names alone",
		}
	}
	var failed error
	s := p.states[0]
	for _, names := range p.namings {
		if p.t.model, err = unmerge(p.exported, names, s.dict.Tensors); err != nil {
			return err
		}
		found, err := p.t.byName(s, names, false)
		if err != nil {
			return err
		}
		if len(found.from) == 0 {
			continue
		}
		if failed = p.t.explain(found, p.states); failed == nil {
			p.t.recipe.Named = true
			return nil
		}
	}
	return cmp.Or(failed, error(&onnxio.Error{Path: path, What: "has none of the names of " + s.file.Path}))
}

// try searches state_dicts for the graph's elements, and makes the recipe if it finds them. It fails if a given
// state_dict is of another network, or if the graph contains more than a state_dict's tensors.
func (p *proof) try(candidates []*state) error {
	for i, names := range p.namings {
		var err error
		if p.t.model, err = unmerge(p.exported, names, p.states[0].dict.Tensors); err != nil {
			return err
		}
		for _, s := range candidates {
			found, err := p.t.byName(s, names, true)
			switch {
			case err != nil && i == 0 && slices.ContainsFunc(p.states, s.same):
				return err
			case err != nil: // other state_dicts need not be of this network
			case len(found.other) == 0:
				named := len(found.from) > 0
				all := p.states
				if !slices.ContainsFunc(all, s.same) {
					all = append(slices.Clone(all), s)
				}
				err := p.t.explain(found, all)
				if err == nil || named {
					return err
				}
				p.unlike = cmp.Or(p.unlike, err)
			case p.nearest == nil || len(found.other) < len(p.nearest.other):
				p.nearest = found
			case len(found.other) == len(p.nearest.other) && p.t.reordered(found) != nil:
				p.nearest = found
			}
		}
	}
	return nil
}

// same reports whether both are the same state_dict.
func (s *state) same(o *state) bool { return s.dict == o.dict }

// A matching pairs the tensors of a graph with those of a state_dict.
type matching struct {
	*state
	from  map[*onnxio.Tensor]Source
	known map[*statefile.Tensor]bool // those that are in the graph
	other []*onnxio.Tensor           // tensors that have other elements in the graph
	names naming                     // with which they were paired
	tried int                        // comparisons of tensors without a common name
}

// maxTried bounds these comparisons: a network has a few thousand tensors.
const maxTried = 1 << 22

// byName pairs the tensors of the same name, and compares their elements if wanted.
func (t *Template) byName(s *state, names naming, compare bool) (*matching, error) {
	m := &matching{s, make(map[*onnxio.Tensor]Source), make(map[*statefile.Tensor]bool), nil, names, 0}
	graph, unreleased := namesOf(t.model), weights.Unreleased{}
	for _, x := range s.dict.Tensors {
		into := graph[names.graph(x.Short)]
		if into == nil {
			continue
		}
		if !sameShape(x.Shape, into.Shape) {
			return nil, t.shapeError(s, x, into)
		}
		m.pair(into, x, false)
		if !compare {
			continue
		}
		same, err := t.holds(into, x, s)
		if err != nil {
			return nil, err
		}
		if !same {
			m.other = append(m.other, into)
		}
		unreleased.Read(8*x.Len(), func() {
			t.model.Release()
			s.file.Release()
		})
	}
	return m, nil
}

func (m *matching) pair(into *onnxio.Tensor, x *statefile.Tensor, transposed bool) {
	source := Source{Tensor: into.Name, Transposed: transposed}
	if x.Short != into.Name {
		source.From = x.Short
	}
	m.from[into], m.known[x] = source, true
}

// holds reports whether a tensor of the graph has the elements of x.
func (t *Template) holds(into *onnxio.Tensor, x *statefile.Tensor, s *state) (bool, error) {
	if err := t.model.Readable(into); err != nil {
		return false, err
	}
	with, err := t.model.WithWeights(s.file.Path, nil, map[*onnxio.Tensor]weights.Piece{into: x.Piece})
	return err == nil && sameButForZeros(t.model, with, into), err
}

// sameButForZeros compares the elements of a tensor in two models. −0 and 0 count as equal, because exporters that
// merge equal tensors do not distinguish them.
func sameButForZeros(a, b *onnxio.Model, t *onnxio.Tensor) bool {
	return sameStretches(t.Len(), stretchesOf(a, t), stretchesOf(b, t), func(x, y []byte) bool {
		if bytes.Equal(x, y) {
			return true
		}
		size := int(t.ElemType.DType().Size())
		for i := 0; i < len(x); i += size {
			if e, f := x[i:i+size], y[i:i+size]; !bytes.Equal(e, f) && !(isZero(e) && isZero(f)) {
				return false
			}
		}
		return true
	})
}

// isZero reports whether a little-endian float is 0 or −0.
func isZero(float []byte) bool {
	last := len(float) - 1
	return float[last]&^0x80 == 0 && !slices.ContainsFunc(float[:last], func(b byte) bool { return b != 0 })
}

// unproved returns the error for a graph that has the elements of no given state_dict.
func (t *Template) unproved(nearest *matching, states []*state, turned *statefile.Tensor) error {
	what := "does not hold the weights of " + nearest.file.Path
	if len(states) > 1 {
		what = fmt.Sprintf("holds the weights of none of the %d state_dicts; nearest is %s", len(states), nearest.file.Path)
	}
	from := []string{
		"if it was exported from other weights, such as untrained ones: load a checkpoint into the model and export again, or say which " +
			"file has those weights: " + setting.Template.With("GRAPH=FILE"),
		"if the exporter has changed the weights, as where it folds batch norm into them: " + keepTensors,
	}
	if f := t.model.FoldedBatchNorm(); f != nil {
		from = []string{f.String() + ": export it again with batch norm kept: " + f.Keep}
	} else if len(nearest.other) < len(nearest.from)/2 {
		slices.Reverse(from)
	}
	if turned != nil {
		from = []string{fmt.Sprintf("%q of the file has the graph's numbers in another order: numpy's save_file of safetensors stores a "+
			"transposed or Fortran-ordered array as it lies in memory. Save again, with numpy.ascontiguousarray(x) for every array",
			turned.Name),
		}
	}
	if t.onlyStatistics(nearest.other) {
		from = []string{"only running statistics of batch norm differ: the older exporter moves them while it exports a network in " +
			"training mode. Export it in evaluation mode (model.eval()), or, for MC dropout, with dynamo=True, optimize=False; load the " +
			"checkpoint into the model before that"}
	}
	return &onnxio.Error{
		Path: t.model.Path,
		What: what + ": " + some(len(nearest.other), len(nearest.from), nearest.other),
		Hint: strings.Join(from, "\n"),
	}
}

// reordered returns a tensor of the state_dict that differs from the graph's only by the order of its axes in the file, or nil.
func (t *Template) reordered(m *matching) *statefile.Tensor {
	for _, into := range m.other {
		x := m.byName[cmp.Or(m.from[into].From, into.Name)]
		if x == nil || x.Len() == 0 || into.ElemType.DType() != x.DType || !telling(t.model, into) {
			continue
		}
		if !bytes.Equal(x.Stretch(0, 1), t.model.Stretch(into, 0, 1)) { // it is the first in every order
			continue
		}
		for as := range x.Orders() {
			if same, err := t.holds(into, as, m.state); same && err == nil {
				return x
			}
		}
	}
	return nil
}

// onlyStatistics reports whether all the tensors are running statistics of batch norm.
func (t *Template) onlyStatistics(tensors []*onnxio.Tensor) bool {
	measures, err := quantities(t.model)
	return err == nil && !slices.ContainsFunc(tensors, func(of *onnxio.Tensor) bool {
		_, statistic := measures[of.Name]
		return !statistic
	})
}

// some lists the first of the differing tensors.
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

// A naming maps the state_dict's name of a tensor to the graph's name. In either file, wrappers with unknown
// attribute names may surround the network.
type naming struct{ strip, add string }

// graph returns the graph's name of a tensor, or "" for a tensor that does not belong to the network.
func (n naming) graph(name string) string {
	rest, found := strings.CutPrefix(name, n.strip)
	if !found {
		return ""
	}
	return n.add + rest
}

// maxVoters is the number of tensors whose names are used to find a naming.
const maxVoters = 200

// maxNear is how many names on each side of a voter's place are compared with it. The graph's names are sorted from
// their ends.
const maxNear = 250

// maxNamings is the number of namings that are tried.
const maxNamings = 4

// findNamings returns the namings that find the most tensors of the state_dict in the graph, best first. There are
// several if the state_dict holds several networks, such as a student and a teacher.
func findNamings(s *state, graph map[string]*onnxio.Tensor) []naming {
	names := slices.SortedFunc(maps.Keys(graph), compareEnds)
	votes := map[naming]int{{}: 1}
	step := len(s.dict.Tensors)/maxVoters + 1
	for i := 0; i < len(s.dict.Tensors); i += step {
		x := s.dict.Tensors[i]
		at, _ := slices.BinarySearchFunc(names, x.Short, compareEnds)
		for _, name := range names[max(0, at-maxNear):min(len(names), at+maxNear)] {
			if end := commonEnd(x.Short, name); end != "" && sameShape(x.Shape, graph[name].Shape) {
				votes[naming{strings.TrimSuffix(x.Short, end), strings.TrimSuffix(name, end)}]++
			}
		}
	}
	all := slices.SortedFunc(maps.Keys(votes), func(a, b naming) int {
		return cmp.Or(votes[b]-votes[a], strings.Compare(a.strip, b.strip), strings.Compare(a.add, b.add))
	})
	all = all[:min(len(all), 2*maxNamings)]
	fits := make(map[naming]int)
	for _, n := range all {
		fits[n] = fitting(n, s, graph)
	}
	slices.SortStableFunc(all, func(a, b naming) int { return fits[b] - fits[a] })
	best := fits[all[0]]
	return slices.DeleteFunc(all[:min(len(all), maxNamings)], func(n naming) bool {
		return fits[n] < best/2 || fits[n] == 0 && n != naming{}
	})
}

// fitting returns how many tensors a naming finds in the graph.
func fitting(n naming, s *state, graph map[string]*onnxio.Tensor) (found int) {
	for _, x := range s.dict.Tensors {
		if t := graph[n.graph(x.Short)]; t != nil && sameShape(x.Shape, t.Shape) {
			found++
		}
	}
	return found
}

// compareEnds orders names by their last byte, then by the one before it, and so on. Names with a long common end are
// neighbours.
func compareEnds(a, b string) int {
	i, j := len(a), len(b)
	for i > 0 && j > 0 && a[i-1] == b[j-1] {
		i, j = i-1, j-1
	}
	if i == 0 || j == 0 {
		return cmp.Compare(i, j)
	}
	return cmp.Compare(a[i-1], b[j-1])
}

// commonEnd returns the whole attributes at the end of both names, such as "conv1.weight".
func commonEnd(a, b string) string {
	i, j := len(a), len(b)
	for i > 0 && j > 0 && a[i-1] == b[j-1] {
		i, j = i-1, j-1
	}
	if (i == 0 || a[i-1] == '.') && (j == 0 || b[j-1] == '.') {
		return a[i:]
	}
	_, end, found := strings.Cut(a[i:], ".")
	if !found {
		return ""
	}
	return end
}

// unmerge returns m with separate tensors for those of the state_dict that the exporter merged with others.
func unmerge(m *onnxio.Model, n naming, tensors []*statefile.Tensor) (*onnxio.Model, error) {
	merged := m.Merged()
	var names []string
	for _, x := range tensors {
		name := n.graph(x.Short)
		if t := merged[name]; t != nil && t.IsFloat() && sameShape(x.Shape, t.Shape) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return m, nil
	}
	return m.Unmerge(names)
}

// statesOf returns all readable state_dicts in a file, and before each the networks that it holds under names of their own.
func (t *Template) statesOf(f *statefile.File) (out []*state) {
	for _, sd := range f.StateDicts() {
		if sd.Err() != nil {
			continue
		}
		for _, part := range append(t.networks(f, sd), sd) {
			out = append(out, newState(f, part))
		}
	}
	return out
}

// sameShape reports whether shapes are equal except for dimensions of 1, which exporters insert where a vector is
// broadcast. The order of the elements is the same.
func sameShape(a, b []int64) bool {
	one := func(d int64) bool { return d == 1 }
	return slices.Equal(slices.DeleteFunc(slices.Clone(a), one), slices.DeleteFunc(slices.Clone(b), one))
}
