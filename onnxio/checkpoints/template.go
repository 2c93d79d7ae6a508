package checkpoints

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

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

// Recipe returns how state_dicts fill the template, or nil if none was read.
func (t *Template) Recipe() *Recipe { return t.recipe }

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
	c := Counts{Batches: sd.Batches(), Average: sd.Average(), ScheduleFree: s.file.ScheduleFree, Key: sd.Key}
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
	left := func(p string) bool { return p == path }
	delete(t.types, path)
	t.recipe.Mixed = t.mixed()
	t.recipe.plain, t.recipe.legacy = slices.DeleteFunc(t.recipe.plain, left), slices.DeleteFunc(t.recipe.legacy, left)
}

// Counts returns the counts of a checkpoint that was read with the template. ok is false for others, such as models.
func (t *Template) Counts(path string) (c Counts, ok bool) {
	c, ok = t.counts[path]
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
	said, err := t.unused()
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
		case said.match(x):
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

// digest returns the SHA-256 of a tensor's elements, in hex.
func digest(x *statefile.Tensor) string {
	h := sha256.New()
	for off, n := range stretches(x.Len()) {
		h.Write(x.Stretch(off, n))
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (t *Template) shapeError(s *state, from *statefile.Tensor, into *onnxio.Tensor) error {
	return &onnxio.Error{
		Path:   s.file.Path,
		Tensor: from.Name,
		What:   fmt.Sprintf("shape %v, want %v as %q in %s", from.Shape, into.Shape, into.Name, t.model.Path),
		Hint:   "the graph must be of the network that the checkpoints are of",
	}
}

// sameShape reports whether shapes are equal except for dimensions of 1, which exporters insert where a vector is
// broadcast. The order of the elements is the same.
func sameShape(a, b []int64) bool {
	one := func(d int64) bool { return d == 1 }
	return slices.Equal(slices.DeleteFunc(slices.Clone(a), one), slices.DeleteFunc(slices.Clone(b), one))
}

// kerasHint is for Keras 3 with the backend torch, whose weights other exporters turn into constants.
const kerasHint = "of Keras with the backend torch, only this call keeps the weights; any checkpoint may be loaded for it, also after " +
	"training: " + onnxio.KeepKerasTorch

// keepTensors names the export calls that keep all tensors as in the state_dict.
const keepTensors = "export the graph again with every tensor as the state_dict has it: " + onnxio.KeepTorchScript
