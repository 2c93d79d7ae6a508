package checkpoints

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

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

// openOne opens a checkpoint: a model, or a state to be read against t. If a file begins like neither, but has the name of a file of
// state_dicts, the error is about these.
func openOne(path string, t *Template) (*onnxio.Model, *state, error) {
	if !statefile.Is(path) {
		m, err := onnxio.Open(path)
		if errors.As(err, new(*onnxio.Error)) && slices.Contains(Suffixes, strings.ToLower(filepath.Ext(path))) {
			_, why := statefile.Open(path)
			return nil, nil, cmp.Or(why, err)
		}
		return m, nil, err
	}
	if t == nil {
		return nil, nil, &onnxio.Error{Path: path, What: "a checkpoint of PyTorch, which has weights and no graph",
			Hint: "export the network once, and say where the graph is: " +
				setting.Template.With("model.onnx") + " (see docs/exporting.md)"}
	}
	f := t.Opened[path]
	if f == nil {
		var err error
		if f, err = statefile.Open(path); err != nil {
			return nil, nil, err
		}
	}
	delete(t.Opened, path)
	s, err := openState(f, t.StateDict)
	return nil, s, err
}

// Suffixes are the usual endings of the names of PyTorch's checkpoints.
var Suffixes = []string{".pt", ".pth", ".ckpt", ".safetensors", ".bin", ".th", ".tar"}

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

// equal compares two tensors of a state_dict.
func equal(a, b *statefile.Tensor) bool {
	return a.Tied(b) || a.Len() == b.Len() && a.DType == b.DType &&
		sameStretches(a.Len(), a.Stretch, b.Stretch, bytes.Equal)
}
