package checkpoints

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
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
	stated, err := parsePatterns(t.Unused)
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
		case stated.match(x):
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

// An adapter of PEFT is a checkpoint with few tensors. The graph has the base network's tensors, which stay as they are.

// PEFT leaves the adapter's name out of a file: "lora_A.default.weight" is saved as "lora_A.weight".
var (
	ofAdapter = regexp.MustCompile(`^(.+\.(?:lora_A|lora_B|lora_embedding_A|lora_embedding_B|ia3_l))\.[^.]+(\.weight|\.bias)?$`)
	magnitude = regexp.MustCompile(`^(.+\.lora_magnitude_vector)\.[^.]+(?:\.weight)?$`)
	savedToo  = regexp.MustCompile(`^(.+)\.modules_to_save\.[^.]+\.(.+)$`)
)

// savedName returns the name that a tensor of a graph has in the file of an adapter.
func savedName(name string) string {
	name = ofAdapter.ReplaceAllString(name, "$1$2")
	name = magnitude.ReplaceAllString(name, "$1")
	return savedToo.ReplaceAllString(name, "$1.$2")
}

// isAdapter reports whether a tensor's name is one of an adapter.
func isAdapter(name string) bool {
	return strings.Contains(name, ".lora_") || strings.Contains(name, ".ia3_l")
}

const exportAdapter = "these are the weights of an adapter: export the network with its adapter, and not merged: " +
	"PeftModel.from_pretrained(base, folder).eval()"

// inGraph are the entries of adapter_config.json that the graph depends on. No weight shows them: an adapter's matrices
// are multiplied by lora_alpha / r, or by lora_alpha / √r with use_rslora.
var inGraph = []string{"peft_type", "r", "lora_alpha", "use_rslora", "use_dora", "rank_pattern", "alpha_pattern", "fan_in_fan_out",
	"layer_replication"}

// sameAdapters checks that adapters with an adapter_config.json next to their weights have the same settings.
func sameAdapters(states []*state) error {
	var first map[string]json.RawMessage
	var of string
	for _, s := range states {
		if !slices.ContainsFunc(s.dict.Tensors, func(x *statefile.Tensor) bool { return isAdapter(x.Name) }) {
			continue
		}
		folder := s.file.Path
		if !statefile.IsFolder(folder) {
			folder = filepath.Dir(folder)
		}
		path := filepath.Join(folder, "adapter_config.json")
		own, err := readConfig(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		if first == nil {
			first, of = own, s.file.Path
		}
		for _, key := range inGraph {
			if a, b := plainJSON(own[key]), plainJSON(first[key]); a != b {
				return &onnxio.Error{
					Path: s.file.Path,
					What: fmt.Sprintf("adapter_config.json: %s is %s, want %s as in %s: the graph has one value for all adapters",
						key, a, b, of),
					Hint: "take adapters of one training run",
				}
			}
		}
	}
	return nil
}

func readConfig(path string) (config map[string]json.RawMessage, err error) {
	m, err := weights.Map(path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if len(m.Data) > 1<<20 {
		return nil, &onnxio.Error{Path: path, What: fmt.Sprintf("%d bytes, want at most a MiB", len(m.Data))}
	}
	if err := json.Unmarshal(m.Data, &config); err != nil {
		return nil, &onnxio.Error{Path: path, What: "not the configuration of an adapter", Err: err}
	}
	return config, nil
}

// plainJSON returns a value without white space. For an unused setting, versions of PEFT write no entry, null or {}.
func plainJSON(v json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, v) != nil || b.String() == "null" || b.String() == "{}" || b.String() == "false" {
		return "not set"
	}
	return b.String()
}

// sampled is the number of elements of a constant that are searched among the weights. distinct is the number of
// different elements that are needed for a decision.
const (
	sampled  = 64
	distinct = 16
)

// derivedFrom returns a tensor of the state_dict whose elements are in a constant of the graph, or nil. Exporters that
// fold constants reorder the gates of a recurrent layer, or pick the rows of a table, without changing the numbers. A
// constant is no constant if nearly all its sampled elements are weights.
func (t *Template) derivedFrom(into *onnxio.Tensor, m *matching) *statefile.Tensor {
	if into.Len() < distinct {
		return nil
	}
	dtype := into.ElemType.DType()
	wanted := make(map[float32]bool)
	value := make([]float32, 1)
	for k := int64(0); k < 4*sampled && len(wanted) < sampled; k++ {
		dtype.Float32s(value, t.model.Stretch(into, k*(into.Len()-1)/(4*sampled-1), 1))
		if value[0] == value[0] && value[0] != 0 {
			wanted[value[0]] = true
		}
	}
	if len(wanted) < distinct {
		return nil
	}
	var maybe [1 << 16]bool // by the upper half of the bits: false for most weights
	for v := range wanted {
		maybe[math.Float32bits(v)>>16] = true
	}
	var first *statefile.Tensor
	found := 0
	buffer := make([]float32, 1<<14)
	for _, x := range m.dict.Tensors {
		for off := int64(0); off < x.Len(); {
			part := buffer[:min(int64(len(buffer)), x.Len()-off)]
			x.DType.Float32s(part, x.Stretch(off, int64(len(part))))
			off += int64(len(part))
			for _, v := range part {
				if maybe[math.Float32bits(v)>>16] && wanted[v] {
					delete(wanted, v)
					if found++; first == nil {
						first = x
					}
				}
			}
		}
	}
	if found < 9*(found+len(wanted))/10 {
		return nil
	}
	return first
}

// A MissingError is about tensors that differ between the checkpoints and that the graph does not have. If the network
// uses them, the exporter has computed constants from them, which stay the same in every average and member. The tensors
// of an auxiliary head, of a loss, or of a second network are not used.
type MissingError struct {
	Fault *onnxio.Error
	// Asked says that the files do not tell whether the network uses them.
	Asked bool
	// Unused are patterns of [Template.Unused] which say that it does not. There are none if the graph shows that it does.
	Unused []string
}

func (e *MissingError) Error() string { return e.Fault.Error() }
func (e *MissingError) Unwrap() error { return e.Fault }

// asked returns the error with the patterns that answer it.
func asked(e *onnxio.Error, patterns []string) *MissingError {
	if e.Hint != "" {
		e.Hint = "if the network uses it, " + e.Hint + "\n"
	}
	e.Hint += fmt.Sprintf("if the network does not use it, as an auxiliary head or the weights of a loss: %s",
		setting.Unused.With(quote(patterns)))
	return &MissingError{Fault: e, Unused: patterns}
}

// quote returns a list of patterns as a shell takes it.
func quote(patterns []string) string {
	list := strings.Join(patterns, ",")
	if strings.Contains(list, "*") {
		return "'" + list + "'"
	}
	return list
}

// patterns match names of tensors.
type patterns []*regexp.Regexp

// parsePatterns reads names, in which * stands for any text. The name of a module stands for all tensors in it.
func parsePatterns(list []string) (p patterns, err error) {
	for _, text := range list {
		match, err := nameMatching(text)
		if err != nil {
			return nil, err
		}
		p = append(p, match)
	}
	return p, nil
}

// nameMatching returns an expression for a pattern of names, in which * stands for any text.
func nameMatching(pattern string) (*regexp.Regexp, error) {
	return regexp.Compile("(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$")
}

func (p patterns) match(x *statefile.Tensor) bool {
	return slices.ContainsFunc(p, func(of *regexp.Regexp) bool { return matches(of, x) })
}

func matches(of *regexp.Regexp, x *statefile.Tensor) bool {
	for _, name := range []string{x.Short, x.Name} {
		if of.MatchString(name) {
			return true
		}
		for i, c := range name {
			if c == '.' && of.MatchString(name[:i]) {
				return true
			}
		}
	}
	return false
}

// An UnusedError is about a pattern of [Template.Unused] that says something wrong.
type UnusedError struct {
	Err  error
	Hint string
}

func (e *UnusedError) Error() string { return e.Err.Error() }
func (e *UnusedError) Unwrap() error { return e.Err }

// missing decides about the tensors that are not in the graph. It fails if the graph was computed from one of them, or if
// nothing tells and the user has not stated that they are unused.
func (t *Template) missing(m *matching, r *Recipe, lacking []*statefile.Tensor, left []*onnxio.Tensor, states []*state) error {
	if len(lacking) == 0 {
		return nil
	}
	stated, err := t.unused()
	if err != nil {
		return err
	}
	if len(states) > 1 {
		if u := t.use(m, lacking, left, states); u != nil {
			return t.used(u)
		}
	}
	unsaid := slices.DeleteFunc(slices.Clone(lacking), stated.match)
	array := slices.IndexFunc(left, func(into *onnxio.Tensor) bool { return into.Len() > 1 })
	weight := slices.IndexFunc(left, func(into *onnxio.Tensor) bool { return !plain(t.model, into) })
	scalar := func(x *statefile.Tensor) bool { return x.Len() == 1 }
	if len(states) == 1 && array < 0 && (weight < 0 || !slices.ContainsFunc(unsaid, scalar)) {
		for _, x := range unsaid { // nothing shows yet whether they change
			r.Fixed[x.Short] = digest(x)
		}
		unsaid = nil
	}
	for _, x := range lacking {
		if stated.match(x) {
			r.Unused = append(r.Unused, x.Short)
		}
	}
	switch {
	case len(unsaid) == 0:
		return nil
	case array >= 0:
		return t.ask(m, unsaid, left, left[array])
	case weight >= 0:
		return t.ask(m, unsaid, left, left[weight])
	}
	return t.ask(m, unsaid, left, nil)
}

// used returns the error for a tensor that the graph was computed from.
func (t *Template) used(u *use) error {
	e := &onnxio.Error{
		Path:   t.model.Path,
		Tensor: u.of.Name,
		Hint:   "export the graph again so that it keeps the tensor: " + onnxio.KeepTorchScript + "\n" + asTensor,
	}
	if u.how == "" {
		e.What = fmt.Sprintf("of shape %v, is not in the graph: the exporter says that it has computed %s from it. That constant would "+
			"stay the same in all averages and members", u.of.Shape, u.constant)
	} else {
		e.What = fmt.Sprintf("of shape %v, is not in the graph, which has %s of %s as a constant: %s. That constant would stay the same "+
			"in all averages and members", u.of.Shape, u.how, u.path, u.constant)
	}
	return &MissingError{Fault: e}
}

// asTensor is for code that takes a number out of a tensor. The older exporter loses the tensor then, whatever its options.
const asTensor = "in the network's code, take elements as tensors (gain[0]), not as Python's numbers: .item(), float(), .tolist() and " +
	".numpy() leave only the number"

// ask asks whether the network uses tensors that change and that the graph lacks. A constant may have been computed from them:
// that is instead, or nil.
func (t *Template) ask(m *matching, lacking []*statefile.Tensor, left []*onnxio.Tensor, instead *onnxio.Tensor) error {
	e := t.lacks(m, lacking, instead)
	constants := t.constants(left)
	if instead == nil {
		e.What = fmt.Sprintf("of %s, changes from checkpoint to checkpoint and is not in the graph", m.file.Path)
		if n := len(lacking) - 1; n > 0 {
			e.What = fmt.Sprintf("of %s, and %d more change from checkpoint to checkpoint and are not in the graph", m.file.Path, n)
		}
	}
	var names, numbers []string
	for _, x := range lacking {
		names = append(names, fmt.Sprintf("%s %v", x.Short, x.Shape))
	}
	for _, c := range constants {
		numbers = append(numbers, c.String())
	}
	e.What += ". Missing: " + firstOf(names)
	if len(numbers) > 0 {
		e.What += ". In no checkpoint: " + firstOf(numbers)
	}
	question := asked(e, m.patternsOf(lacking))
	question.Asked = instead == nil || instead.Len() == 1
	return question
}

// firstOf lists the first of some names in their order, and the number of the others.
func firstOf(names []string) string {
	if n := len(names) - maxDifferences; n > 0 {
		return strings.Join(names[:maxDifferences], ", ") + fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ")
}

// patternsOf returns patterns for tensors that are not in the graph. A pattern stands for the outermost module without a
// tensor in the graph.
func (m *matching) patternsOf(lacking []*statefile.Tensor) (list []string) {
	module := func(name string) string {
		for i, c := range name {
			if c == '.' && !slices.ContainsFunc(m.dict.Tensors, func(x *statefile.Tensor) bool {
				return m.known[x] && strings.HasPrefix(x.Short, name[:i+1])
			}) {
				return name[:i+1] + "*"
			}
		}
		return name
	}
	of := make(map[string]int)
	for _, x := range lacking {
		of[module(x.Short)]++
	}
	for _, x := range lacking {
		name := module(x.Short)
		if of[name] == 1 {
			name = x.Short
		}
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// copies returns the tensors of other networks in the state_dict that have the same tensors as the graph, such as a moving
// average or a teacher. Such a network has at least half of the graph's tensors under other names, in several modules.
func (m *matching) copies() map[*statefile.Tensor]bool {
	prefix, first := "", true
	for _, x := range m.dict.Tensors {
		if !m.known[x] {
			continue
		}
		module := x.Short[:strings.LastIndex(x.Short, ".")+1]
		for ; !first && !strings.HasPrefix(module, prefix); prefix = prefix[:strings.LastIndex(strings.TrimSuffix(prefix, "."), ".")+1] {
		}
		if first {
			prefix, first = module, false
		}
	}
	// Some averages keep names without their dots.
	plainName := func(name string) string { return strings.ReplaceAll(name, ".", "") }
	known, modules := make(map[string]*statefile.Tensor), make(map[string]bool)
	for _, x := range m.dict.Tensors {
		if rest, ok := strings.CutPrefix(x.Short, prefix); ok && m.known[x] {
			known[plainName(rest)] = x
			modules[rest[:strings.LastIndex(rest, ".")+1]] = true
		}
	}
	if len(modules) < 2 {
		return nil
	}
	of := make(map[string][]*statefile.Tensor)
	for _, x := range m.dict.Tensors {
		for i, c := range x.Short {
			if o := known[plainName(x.Short[i+1:])]; c == '.' && !m.known[x] && o != nil && slices.Equal(o.Shape, x.Shape) {
				of[x.Short[:i+1]] = append(of[x.Short[:i+1]], x)
			}
		}
	}
	found := make(map[*statefile.Tensor]bool)
	for _, tensors := range of {
		if 2*len(tensors) >= len(known) {
			for _, x := range tensors {
				found[x] = true
			}
		}
	}
	return found
}

// Question returns the error of a template about which the user is asked, or nil.
func Question(err error) *MissingError {
	if e := (*MissingError)(nil); errors.As(err, &e) && e.Asked {
		return e
	}
	return nil
}

func digest(x *statefile.Tensor) string {
	h := sha256.New()
	for off, n := range stretches(x.Len()) {
		h.Write(x.Stretch(off, n))
	}
	return hex.EncodeToString(h.Sum(nil))
}
