package checkpoints

import (
	"bytes"
	"cmp"
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

// A Template is the one exported graph that PyTorch's checkpoint files are read against. Tensors of a state_dict and
// of the graph are matched by their names if these agree, and otherwise by their elements. Bits prove the result: one
// state_dict must give the graph's own elements.
type Template struct {
	// StateDict is the key of the state_dict in every file; "" means the only one.
	StateDict string
	// Proof is a file with the state_dict that the graph was exported from, if none of the checkpoints is that file;
	// or "".
	Proof string
	// Others are further files that may prove it, such as checkpoints of the run that are not read.
	Others []string
	// Unused are patterns of names of tensors that the network does not use, such as "aux.*". Without one, a tensor that differs
	// between the checkpoints and is not in the graph is an error: see [MissingError].
	Unused    []string
	inherited []string // the same, of an older posterior
	// Trial says that files are only tried: tensors that fill nothing do not matter.
	Trial bool
	// Opened are open files by path. [Open] takes such a file, and removes it here, instead of opening the path.
	Opened map[string]*statefile.File

	model  *onnxio.Model
	recipe *Recipe           // nil until it is proved
	counts map[string]Counts // by the paths of what was read
	types  map[string]string // of most weights, by the paths of what was read
}

// NewTemplate returns m as a template. If m was cut out of an earlier template, r is its recipe, and nothing is left
// to prove. Otherwise r is nil. m must stay open.
func NewTemplate(m *onnxio.Model, r *Recipe) *Template {
	t := &Template{model: m, recipe: r}
	if r != nil {
		t.StateDict = r.StateDict
	}
	return t
}

// Recipe says how the tensors of state_dicts fill a graph. Results keep it, so that the state_dicts can be read
// again.
type Recipe struct {
	Template  string `json:"template"` // name of the graph's file
	StateDict string `json:"state_dict,omitempty"`
	// Tensors are the tensors that are filled, in the order of the graph.
	Tensors []Source `json:"tensors"`
	// Aliases maps names to the name of the tensor that must always have the same elements. The graph holds tied
	// tensors once.
	Aliases map[string]string `json:"aliases,omitempty"`
	// Fixed are tensors that are not in the graph, with the SHA-256 of their elements. They were the same in all
	// checkpoints, and the exporter may have used them.
	Fixed map[string]string `json:"fixed,omitempty"`
	// Kept are tensors of the graph that may be weights by their names, but that no state_dict has.
	Kept []string `json:"kept,omitempty"`
	// Mixed are the types of the weights, if the checkpoints have several.
	Mixed []string `json:"mixed,omitempty"`
	// Named says that only names show which tensor goes where, because no file was given with the template's own
	// weights.
	Named  bool     `json:"named,omitempty"`
	legacy []string // files without checksums
	plain  []string // files that are a state_dict themselves, and have none under StateDict
	// Unused are tensors that change, are not in the graph, and that the network does not use, as the user says.
	Unused []string `json:"unused,omitempty"`
	// Copies are such tensors of a second network with the same tensors, such as a moving average.
	Copies []string `json:"copies,omitempty"`
}

// Source is the tensor of a state_dict that fills a tensor of the graph.
type Source struct {
	Tensor     string `json:"tensor"`         // name in the graph
	From       string `json:"from,omitempty"` // name in the state_dict, without wrappers' prefixes; "" means the same name
	Transposed bool   `json:"transposed,omitempty"`
}

func (s Source) from() string {
	if s.From == "" {
		return s.Tensor
	}
	return s.From
}

// Under returns the template for state_dicts under another key. It knows which tensors are unused from its recipe.
func (t *Template) Under(key string) *Template {
	c := *t
	c.StateDict, c.Unused, c.counts, c.types = key, nil, nil, nil
	if t.recipe != nil { // reading files changes its notes
		own := *t.recipe
		c.recipe = &own
	}
	return &c
}

// Inherit takes over from an older recipe which tensors are unused. It does not matter whether files have them.
func (t *Template) Inherit(older *Recipe) {
	if older != nil {
		t.inherited = older.Unused
	}
}

// unused returns the patterns of tensors that the network does not use.
func (t *Template) unused() (patterns, error) {
	return parsePatterns(slices.Concat(t.Unused, t.inherited))
}

// Without returns the template for a network that does not use the tensors of the given names: see Unused.
func (t *Template) Without(unused []string) *Template {
	c := t.Under(t.StateDict)
	c.Unused = unused
	return c
}

// Recipe returns how state_dicts fill the template, or nil if none was read, or if t is nil.
func (t *Template) Recipe() *Recipe {
	if t == nil {
		return nil
	}
	return t.recipe
}

// Open opens checkpoints: ONNX files, and files of PyTorch, which are read against t. t may be nil if there are no
// files of PyTorch. The caller closes the checkpoints, and after them the model of t. Errors are of type
// [*onnxio.Error], or come from the system or package weights.
func Open(paths []string, t *Template) (models []*onnxio.Model, err error) {
	err = weights.Guarded(func() error {
		models, err = openAll(paths, t)
		return err
	})()
	return models, err
}

func openAll(paths []string, t *Template) (models []*onnxio.Model, err error) {
	states := make([]*state, len(paths))
	models = make([]*onnxio.Model, len(paths))
	defer func() {
		if err == nil {
			return
		}
		for i := range paths {
			if models[i] != nil {
				models[i].Close()
			} else if states[i] != nil {
				states[i].file.Close()
			}
		}
		models = nil
	}()
	var all []*state
	var plain, legacy []string
	for i, path := range paths {
		if models[i], states[i], err = openOne(path, t); err != nil {
			return models, err
		}
		if models[i] != nil {
			models[i].Release() // reading parts of a large file maps many pages around them
			continue
		}
		all = append(all, states[i])
		if states[i].file.Legacy {
			legacy = append(legacy, path)
		}
		if states[i].dict.Key != t.StateDict && t.StateDict != "" {
			plain = append(plain, path)
		}
	}
	if len(all) == 0 {
		return models, nil
	}
	if len(plain) == len(all) && t.recipe == nil {
		return models, t.noSuchKey(all[0])
	}
	if err := t.checkUnused(all); err != nil {
		return models, err
	}
	if err := t.prove(all); err != nil {
		return models, t.several(all[0], err)
	}
	if err := t.checkNotFilled(all); err != nil {
		return models, err
	}
	t.types = make(map[string]string, len(all))
	for _, s := range all {
		t.types[s.file.Path] = s.mostly()
	}
	t.recipe.Mixed, t.recipe.plain, t.recipe.legacy = t.mixed(), plain, legacy
	for i, s := range states {
		if s == nil {
			continue
		}
		if models[i], err = t.read(s); err != nil {
			return models, t.several(s, err)
		}
		models[i].Release()
	}
	return models, nil
}

// checkUnused fails for a pattern of names that no state_dict has.
func (t *Template) checkUnused(states []*state) error {
	stated, err := parsePatterns(t.Unused)
	if err != nil {
		return err
	}
	for i, of := range stated {
		if !slices.ContainsFunc(states, func(s *state) bool {
			return slices.ContainsFunc(s.dict.All(), func(x *statefile.Tensor) bool { return matches(of, x) })
		}) {
			return &UnusedError{fmt.Errorf("%s: no checkpoint has a tensor of this name", setting.Unused.With(quote(t.Unused[i:i+1]))),
				setting.Line(setting.Inspect.WithFiles(states[0].file.Path)) + " lists the tensors"}
		}
	}
	return nil
}

// checkNotFilled fails for a pattern of [Template.Unused] that matches a tensor which the graph has.
func (t *Template) checkNotFilled(states []*state) error {
	stated, err := parsePatterns(t.Unused)
	if err != nil {
		return err
	}
	for _, s := range t.recipe.Tensors {
		x := states[0].byName[s.from()]
		for i, of := range stated {
			if x != nil && matches(of, x) {
				return &UnusedError{fmt.Errorf("%s: the graph %s has tensor %q, so the network uses it",
					setting.Unused.With(quote(t.Unused[i:i+1])), t.recipe.Template, x.Name),
					"leave it out, or name the tensors that are not in the graph alone"}
			}
		}
	}
	return nil
}

// openOne opens a checkpoint: a model, or a state to be read against t. It maps a file once, and its first bytes say what it is. If a
// file begins like neither, but has the name of a file of state_dicts, the error is about these.
func openOne(path string, t *Template) (*onnxio.Model, *state, error) {
	var f *statefile.File
	if t != nil {
		f = t.Opened[path]
		delete(t.Opened, path)
	}
	var content *weights.Mapping // of a file; a folder of shards has several
	if f == nil && !statefile.Several(path) {
		var err error
		if content, err = weights.Map(path); err != nil {
			return nil, nil, err
		}
		if !statefile.Begins(content) {
			m, err := onnxio.OpenMapped(content)
			if errors.As(err, new(*onnxio.Error)) && statefile.Named(path) {
				_, why := statefile.Open(path)
				err = cmp.Or(why, err)
			}
			return m, nil, err
		}
	}
	if t == nil {
		if content != nil {
			content.Close()
		}
		return nil, nil, &onnxio.Error{Path: path, What: "a checkpoint of PyTorch, which has weights and no graph",
			Hint: "export the network once, and say where the graph is: " +
				setting.Template.With("model.onnx") + " (see docs/exporting.md)"}
	}
	var err error
	switch {
	case f != nil:
	case content != nil:
		f, err = statefile.OpenMapped(content)
	default:
		f, err = statefile.Open(path)
	}
	if err != nil {
		return nil, nil, err
	}
	s, err := openState(f, t.StateDict)
	return nil, s, err
}

// mixed returns the types that the state_dicts store most of their weights in, if there are several.
func (t *Template) mixed() []string {
	types := slices.Compact(slices.Sorted(maps.Values(t.types)))
	if len(types) < 2 {
		return nil
	}
	return types
}

// mostly returns the type that a state_dict stores most of its weights in.
func (s *state) mostly() string {
	count := make(map[weights.DType]int64)
	for _, x := range s.dict.Tensors {
		count[x.DType] += x.Len()
	}
	most := weights.F32
	for d, n := range count {
		if n > count[most] {
			most = d
		}
	}
	return most.String()
}

// A state is an open file and the state_dict to be read from it.
type state struct {
	file   *statefile.File
	dict   *statefile.StateDict
	byName map[string]*statefile.Tensor // by the names without the parts that wrappers add
}

// openState returns the state under a key of a file. After an error the file is closed.
func openState(f *statefile.File, key string) (*state, error) {
	sd, err := f.StateDict(key)
	if found := f.StateDicts(); err != nil && sd == nil && len(found) == 1 && found[0].Key == "" {
		sd, err = f.StateDict("") // the file holds only a state_dict
	}
	if err == nil && sd.MeanKey() != "" {
		err = &onnxio.Error{Path: f.Path, What: "a posterior that the code of the SWAG paper saved, want a checkpoint",
			Hint: setting.Fit.With(setting.Mean.With(f.Path)) + ", with the checkpoints of the same run, takes its mean. Without " +
				"checkpoints, " + setting.StateDict.With(sd.MeanKey()) + " takes the mean alone, as one network"}
	}
	if err == nil {
		err = sd.Verify()
		f.Release()
	}
	if err != nil {
		defer f.Close()
		var e *onnxio.Error
		if found := f.StateDicts(); sd == nil && len(found) > 1 && errors.As(err, &e) {
			var keys []string
			for _, sd := range found[:min(len(found), maxDifferences)] {
				keys = append(keys, setting.StateDict.With(sd.Key))
			}
			e.Hint += "; say which: " + strings.Join(keys, " or ") + "\n" + whichMoved(found)
		}
		return nil, err
	}
	return newState(f, sd), nil
}

// whichMoved says which of several state_dicts to take.
func whichMoved(found []*statefile.StateDict) string {
	which := "SWAG is about the weights that SGD moved, not about their moving average (EMA)"
	for _, sd := range found {
		if a := sd.Average(); a.Iterate != "" {
			which += ". " + a.Mark + ", so take " + setting.StateDict.With(a.Iterate)
		}
	}
	return which + ". " + setting.Fit.With(setting.Mean.With("FILE")) + " takes the average as the mean of SWA"
}

// noSuchKey returns the error for files that have nothing under the wanted key. Names may begin with what can be a key.
func (t *Template) noSuchKey(s *state) error {
	e := &onnxio.Error{
		Path: s.file.Path,
		What: fmt.Sprintf("no state_dict under %q, and no names that begin with it", t.StateDict),
		Hint: "it is a state_dict itself: leave out " + setting.StateDict.String(),
	}
	if ways := t.waysInto(s); ways != "" {
		e.Hint = "the names of its tensors show several networks: " + ways
	}
	return e
}

// several adds to an error that a state_dict holds several networks, and how to take one of them.
func (t *Template) several(s *state, err error) error {
	var e *onnxio.Error
	if ways := t.waysInto(s); ways != "" && errors.As(err, &e) {
		e.Hint = strings.TrimPrefix(e.Hint+"\nthe names of tensors in "+s.file.Path+" show several networks: "+
			ways+". SWAG is about the weights that SGD moved, not about their moving average (EMA)", "\n")
	}
	return err
}

// waysInto returns the settings that take one of several networks in a state_dict, or "".
func (t *Template) waysInto(s *state) string {
	var ways []string
	for _, part := range t.networks(s.file, s.dict) {
		ways = append(ways, setting.StateDict.With(part.Key))
	}
	return strings.Join(ways[:min(len(ways), maxDifferences)], " or ")
}

// networks returns the networks that a state_dict holds under names of their own. Each has the weights of the graph, in contrast
// to the halves of one network.
func (t *Template) networks(f *statefile.File, sd *statefile.StateDict) (parts []*statefile.StateDict) {
	for _, key := range sd.NetworkKeys() {
		if part, err := f.StateDict(key); err == nil && t.fits(part) {
			parts = append(parts, part)
		}
	}
	return parts
}

// Fits reports whether a state_dict of the file may fill the graph, as far as the lengths of tensors show it.
func (t *Template) Fits(f *statefile.File) bool { return slices.ContainsFunc(f.StateDicts(), t.fits) }

// fits reports whether a state_dict has tensors as long as nearly all those of the graph.
func (t *Template) fits(sd *statefile.StateDict) bool {
	lengths := make(map[int64]int)
	for _, x := range sd.Tensors {
		lengths[x.Len()]++
	}
	found, all := int64(0), int64(0)
	for _, w := range floats(t.model) {
		all += w.Len()
		if lengths[w.Len()] > 0 {
			lengths[w.Len()]--
			found += w.Len()
		}
	}
	return 10*found >= 9*all
}

func newState(f *statefile.File, sd *statefile.StateDict) *state {
	s := &state{f, sd, make(map[string]*statefile.Tensor, len(sd.Tensors))}
	for _, t := range sd.Tensors {
		s.byName[t.Short] = t
	}
	return s
}

// equal compares two tensors of a state_dict.
func equal(a, b *statefile.Tensor) bool {
	return a.Tied(b) || a.Len() == b.Len() && a.DType == b.DType &&
		sameStretches(a.Len(), a.Stretch, b.Stretch, bytes.Equal)
}

// read returns the network with the state's elements. Closing the model closes the state's file.
func (t *Template) read(s *state) (*onnxio.Model, error) {
	elements := make(map[*onnxio.Tensor]weights.Piece, len(t.recipe.Tensors))
	known := make(map[string]bool)
	s.strip(t.recipe)
	for _, source := range t.recipe.Tensors {
		into, from := t.model.Tensor(source.Tensor), s.byName[source.from()]
		switch {
		case into == nil:
			return nil, &onnxio.Error{Path: t.model.Path, Tensor: source.Tensor, What: "missing"}
		case from == nil && nameless(s) != nil:
			return nil, nameless(s)
		case from == nil:
			return nil, &onnxio.Error{
				Path:   s.file.Path,
				Tensor: source.from(),
				What:   fmt.Sprintf("missing, but the template %s takes it", t.recipe.Template),
			}
		}
		if source.Transposed && len(from.Shape) == 2 {
			from = from.Transposed()
		}
		if !sameShape(from.Shape, into.Shape) {
			return nil, t.shapeError(s, from, into)
		}
		elements[into] = from.Piece
		known[source.from()] = true
	}
	if err := t.rest(s, known); err != nil {
		return nil, err
	}
	if t.counts == nil {
		t.counts = make(map[string]Counts)
	}
	t.counts[s.file.Path] = t.count(s)
	return t.model.WithWeights(s.file.Path, s.file.Mappings(), elements)
}

// strip drops what stands before all names of the network in this file, such as "ema_model.", if the recipe takes other names. It
// does nothing if several networks of the file fit.
func (s *state) strip(r *Recipe) {
	if len(r.Tensors) == 0 || s.byName[r.Tensors[0].from()] != nil {
		return
	}
	fits := func(prefix string) bool {
		return !slices.ContainsFunc(r.Tensors, func(source Source) bool { return s.byName[prefix+source.from()] == nil })
	}
	var prefixes []string
	for name := range s.byName {
		if prefix, ok := strings.CutSuffix(name, r.Tensors[0].from()); ok && strings.HasSuffix(prefix, ".") && fits(prefix) {
			prefixes = append(prefixes, prefix)
		}
	}
	if len(prefixes) != 1 {
		return
	}
	short := make(map[string]*statefile.Tensor, len(s.byName))
	for name, x := range s.byName {
		x.Short = strings.TrimPrefix(name, prefixes[0])
		short[x.Short] = x
	}
	s.byName = short
}

// Counts are what the state_dict of a PyTorch checkpoint has counted.
type Counts struct {
	Batches int64             // of training, or −1 if they are unknown
	Layers  map[string]int64  // the same of each batch norm, by the short name of its running mean
	Average statefile.Average // what the file says of the weights as an average
	// ScheduleFree is the mode of a schedule-free optimizer that moved the weights, or "".
	ScheduleFree statefile.ScheduleFree
	// Key is where the weights are: the state_dict's key, and the beginning of their names if it holds several networks. Others
	// are where the file has other weights.
	Key    string
	Others []string
}

// count returns the counts of the state_dict under the template's key. A file may have another one.
func (t *Template) count(s *state) Counts {
	sd, err := s.file.StateDict(t.StateDict)
	if err != nil {
		return Counts{Batches: -1, Average: s.dict.Average(), ScheduleFree: s.file.ScheduleFree}
	}
	c := Counts{
		Batches:      sd.Batches(),
		Layers:       sd.Counters(),
		Average:      sd.Average(),
		ScheduleFree: s.file.ScheduleFree,
		Key:          sd.Key,
	}
	all := sd.NetworkKeys()
	for _, part := range all {
		if t.recipe.under(part[strings.LastIndexByte(part, '/')+1:]) {
			c.Key = part
		}
	}
	for _, o := range s.file.StateDicts() {
		all = append(all, o.Key)
	}
	c.Others = slices.DeleteFunc(all, func(o string) bool { return o == "" || o == c.Key })
	return c
}

// Leave forgets a file that was read and is left out, so that the notes and warnings of the recipe say nothing of it.
func (t *Template) Leave(path string) {
	if t.Recipe() == nil {
		return
	}
	left := func(p string) bool { return p == path }
	delete(t.types, path)
	t.recipe.Mixed = t.mixed()
	t.recipe.plain, t.recipe.legacy = slices.DeleteFunc(t.recipe.plain, left), slices.DeleteFunc(t.recipe.legacy, left)
}

// Counts returns the counts of a checkpoint that was read with the template. ok is false for others, such as models, and if t is nil.
func (t *Template) Counts(path string) (c Counts, ok bool) {
	if t != nil {
		c, ok = t.counts[path]
	}
	if !ok {
		c.Batches = -1
	}
	return c, ok
}

// rest checks the tensors of a state_dict that fill nothing.
func (t *Template) rest(s *state, known map[string]bool) error {
	if t.Trial {
		return nil
	}
	unused := make(map[string]bool, len(t.recipe.Unused))
	for _, name := range slices.Concat(t.recipe.Unused, t.recipe.Copies) {
		unused[name] = true
	}
	stated, err := t.unused()
	if err != nil {
		return err
	}
	for _, x := range s.dict.Tensors {
		of, alias := t.recipe.Aliases[x.Short]
		sum, fixed := t.recipe.Fixed[x.Short]
		e := &onnxio.Error{Path: s.file.Path, Tensor: x.Name}
		switch {
		case known[x.Short] || unused[x.Short]:
			continue
		case stated.match(x):
			t.recipe.Unused = append(t.recipe.Unused, x.Short)
			continue
		case alias && s.byName[of] != nil && !equal(x, s.byName[of]):
			e.What = fmt.Sprintf("differs from %q, and the template %s has one tensor for both", s.byName[of].Name, t.recipe.Template)
			e.Hint = keepTensors
		case fixed && digest(x) != sum:
			e.What = fmt.Sprintf("differs, but was the same in all checkpoints that the template %s was matched with, and is not in its "+
				"graph", t.recipe.Template)
			e.Hint = keepTensors
		case !alias && !fixed:
			e.What = fmt.Sprintf("not in the state_dicts that the template %s was matched with", t.recipe.Template)
		}
		if e.What != "" && !alias {
			return asked(e, []string{x.Short})
		}
		if e.What != "" {
			return e
		}
	}
	return nil
}

func (t *Template) shapeError(s *state, from *statefile.Tensor, into *onnxio.Tensor) error {
	return &onnxio.Error{
		Path:   s.file.Path,
		Tensor: from.Name,
		What:   fmt.Sprintf("shape %v, want %v as %q in %s", from.Shape, into.Shape, into.Name, t.model.Path),
		Hint:   "the graph must be of the network that the checkpoints are of",
	}
}

// kerasHint is for Keras 3 with the backend torch, whose weights other exporters turn into constants.
const kerasHint = "of Keras with the backend torch, only this call keeps the weights; any checkpoint may be loaded for it, also after " +
	"training: " + onnxio.KeepPreserve

// keepTensors names the export calls that keep all tensors as in the state_dict.
const keepTensors = "export the graph again with every tensor as the state_dict has it: " + onnxio.KeepTorchScript

// Fills returns the tensor of the graph that a tensor of the state_dict fills, by its name without wrappers' prefixes. The
// graph may hold the transpose. ok is false for a tensor that is not in the graph. A tensor that is tied to another one
// fills what that one fills.
func (r *Recipe) Fills(short string) (into string, transposed, ok bool) {
	if of, alias := r.Aliases[short]; alias {
		short = of
	}
	for _, s := range r.Tensors {
		if s.from() != short {
			continue
		}
		if !s.Transposed {
			return s.Tensor, false, true
		}
		into, transposed, ok = s.Tensor, true, true // another place may hold it as it is
	}
	return into, transposed, ok
}

// under reports whether all tensors that fill the graph have names that begin with a part, such as "ema_model".
func (r *Recipe) under(part string) bool {
	return len(r.Tensors) > 0 && !slices.ContainsFunc(r.Tensors, func(s Source) bool { return !strings.HasPrefix(s.from(), part+".") })
}

// Notes says, in sentences, which tensors of the state_dicts are not in the graph, and which files have no checksums.
func (r *Recipe) Notes() (notes []string) {
	if len(r.Aliases) > 0 {
		notes = append(notes, "tied to tensors of the graph: "+list(slices.Collect(maps.Keys(r.Aliases))))
	}
	if len(r.Fixed) > 0 {
		notes = append(notes, "not in the graph, and the same in all checkpoints: "+list(slices.Collect(maps.Keys(r.Fixed))))
	}
	if len(r.Unused) > 0 {
		notes = append(notes, fmt.Sprintf("not in the graph, and not used by the network, as %s says: %s", setting.Unused,
			list(slices.Clone(r.Unused))))
	}
	if len(r.Copies) > 0 {
		notes = append(notes, "not in the graph, and of a second network with the same tensors: "+list(slices.Clone(r.Copies)))
	}
	if len(r.Kept) > 0 && r.adapters() {
		notes = append(notes, fmt.Sprintf("the checkpoints are adapters: %d tensors of the network stay as %s has them",
			len(r.Kept), r.Template))
	}
	if len(r.legacy) > 0 {
		notes = append(notes, Legacy(r.legacy))
	}
	return notes
}

// Legacy says, in a sentence, what a user of files in PyTorch's legacy format must know.
func Legacy(paths []string) string {
	return "in PyTorch's format from before 1.6, which has no checksums, so damage to the weights cannot be found (torch.load and " +
		"torch.save write the new one): " + list(slices.Clone(paths))
}

// Warnings returns the warnings that a user of the result must know. If the outputs of all checkpoints are proved to be those of the
// training framework, the places of the weights are no guess.
func (r *Recipe) Warnings(proved bool) (warnings []string) {
	if r.Named && !proved {
		warnings = append(warnings, fmt.Sprintf("the names of tensors alone say where the checkpoints' weights go in %s: %s names the "+
			"graph itself as its checkpoint. The file of PyTorch that it was exported from would prove it", r.Template, setting.Template))
	}
	if len(r.Kept) > 0 && !r.adapters() && !proved {
		warnings = append(warnings, fmt.Sprintf("not in the checkpoints, and kept as %s has them: %s", r.Template,
			list(slices.Clone(r.Kept))))
	}
	if len(r.Mixed) > 0 {
		warnings = append(warnings, "of the checkpoints some store their weights in another type, which rounds them: "+
			strings.Join(r.Mixed, ", "))
	}
	if len(r.plain) > 0 && !proved {
		warnings = append(warnings, fmt.Sprintf("themselves a state_dict, with nothing under %q, and taken as they are: %s", r.StateDict,
			list(slices.Clone(r.plain))))
	}
	return warnings
}

func (r *Recipe) adapters() bool {
	return slices.ContainsFunc(r.Tensors, func(s Source) bool { return isAdapter(s.from()) })
}

// list returns the first names, and the number of the others.
func list(names []string) string {
	slices.Sort(names)
	more := ""
	if n := len(names) - maxDifferences; n > 0 {
		names, more = names[:maxDifferences], fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ") + more
}
