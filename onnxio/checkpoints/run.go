package checkpoints

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
	"github.com/swagwrap/swagwrap/weights/statefile"
	"golang.org/x/sync/errgroup"
)

// A Run is the open checkpoints of one training run, ready for [swag.Fit]. Set its Card before the fit to keep what the
// network is for.
type Run struct {
	swag.Input
	models []*onnxio.Model
	graph  *onnxio.Model // of the template, or nil
}

// OpenRun opens the checkpoints of a run, in training order. graph is the path of the exported network. PyTorch's files
// are read against it. It is "" if all checkpoints are ONNX models. OpenRun reads every byte of the files. The caller closes the run
// after the fit. Errors are as for [Open] and [New].
func OpenRun(ctx context.Context, graph string, paths ...string) (*Run, error) {
	r := &Run{}
	if err := r.open(ctx, graph, paths); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *Run) open(ctx context.Context, graph string, paths []string) (err error) {
	if len(paths) == 0 {
		return errors.New("no checkpoints, want at least one")
	}
	var template *Template
	if graph != "" {
		if r.graph, err = onnxio.Open(graph); err != nil {
			return err
		}
		template = NewTemplate(r.graph, nil)
	}
	if r.models, err = Open(paths, template); err != nil {
		return err
	}
	set, err := New(r.models)
	if err != nil {
		return err
	}
	sums, err := Sums(ctx, r.models, func(int) {})
	if err != nil {
		return err
	}
	if twins := Twins(sums); len(twins) > 0 {
		a, b := r.models[twins[0][0]], r.models[twins[0][1]]
		return &onnxio.Error{Path: b.Path, What: "has the same content as " + a.Path, Hint: GivenOnce(a, b)}
	}
	list := make([]swag.Checkpoint, len(sums))
	for i, m := range r.models {
		list[i] = swag.Checkpoint{Path: m.Path, SHA256: sums[i]}
		if _, ok := template.Counts(m.Path); ok {
			list[i].StateDict = template.StateDict
		}
	}
	if r.Input, err = set.Input(list); err != nil || template.Recipe() == nil {
		return err
	}
	r.Template, err = json.Marshal(template.Recipe())
	return err
}

// Close closes the checkpoints. The weights of the Input are invalid afterwards.
func (r *Run) Close() error {
	var errs []error
	for _, m := range r.models {
		errs = append(errs, m.Close())
	}
	if r.graph != nil {
		errs = append(errs, r.graph.Close())
	}
	return errors.Join(errs...)
}

// Input returns the input of a fit of the set's models: their layout, weights, statistics and graph. list has the names of
// the checkpoints, in the order of the models. The caller adds what else a posterior keeps. The graph is left out if the
// set continues another one, whose graph counts.
func (s *Set) Input(list []swag.Checkpoint) (in swag.Input, err error) {
	if len(list) != len(s.Models) {
		panic(fmt.Sprintf("checkpoints: %d names of %d models", len(list), len(s.Models)))
	}
	in = swag.Input{Layout: s.Layout, Checkpoints: list, Release: func() {
		for _, m := range s.Models {
			m.Release()
		}
	}}
	for i, m := range s.Models {
		c := &list[i]
		if c.Theta, err = m.Vector(s.Layout, weights.Parameter); err != nil {
			return in, err
		}
		if c.Statistics, err = m.Vector(s.Layout, weights.Statistic); err != nil {
			return in, err
		}
	}
	if s.Reference < 0 {
		return in, nil
	}
	graph, err := onnxio.NewTemplate(s.Models[s.Reference], s.Layout)
	if err == nil {
		in.Graph, err = graph.MarshalBinary()
	}
	return in, err
}

// sumStretch is the number of bytes that are summed before their memory is given back.
const sumStretch = 16 << 20

// Sum returns the SHA-256 of the model's file followed by its data files, in hex. progress, if not nil, is called
// with the bytes read. Sum ends when ctx ends.
func Sum(ctx context.Context, m *onnxio.Model, progress func(bytes int)) (string, error) {
	h := sha256.New()
	for _, file := range m.Files() {
		for stretch := range slices.Chunk(file, sumStretch) {
			if err := ctx.Err(); err != nil {
				return "", err
			}
			h.Write(stretch)
			m.Release()
			if progress != nil {
				progress(len(stretch))
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Sums returns the SHA-256 of each model's files, in hex. progress, if not nil, is called with the bytes read, from
// several goroutines.
func Sums(ctx context.Context, models []*onnxio.Model, progress func(bytes int)) ([]string, error) {
	sums := make([]string, len(models))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, m := range models {
		g.Go(weights.Guarded(func() (err error) {
			sums[i], err = Sum(ctx, m, progress)
			return err
		}))
	}
	return sums, g.Wait()
}

// A Pair is the places of two models, the earlier one first.
type Pair [2]int

// Twins returns the pairs of models with equal content. sums has the sum of each model.
func Twins(sums []string) (out []Pair) {
	first := make(map[string]int)
	for i, sum := range sums {
		if twin, ok := first[sum]; ok {
			out = append(out, Pair{twin, i})
			continue
		}
		first[sum] = i
	}
	return out
}

// GivenOnce returns the hint for two checkpoints that are the same.
func GivenOnce(a, b *onnxio.Model) string {
	return cmp.Or(sharedData(a, b), "give every checkpoint once")
}

// SharedData reports whether two models refer to one data file, so that their weights are equal by accident.
func SharedData(a, b *onnxio.Model) bool { return sharedData(a, b) != "" }

// sharedData returns the hint for two models that refer to one data file, or "". A model of the onnx package refers to the data file
// of its first save, whatever location the next save is given.
func sharedData(a, b *onnxio.Model) string {
	if a.Path == b.Path || statefile.Is(a.Path) || statefile.Is(b.Path) || filepath.Dir(a.Path) != filepath.Dir(b.Path) {
		return ""
	}
	files := b.DataFiles()
	for _, name := range a.DataFiles() {
		if slices.Contains(files, name) {
			return fmt.Sprintf("both refer to the data file %s: after onnx.save_model with save_as_external_data, the model in memory "+
				"keeps the data file of its first save. Save each checkpoint from a copy, with a data file of its own: "+
				"onnx.save_model(copy.deepcopy(model), path, save_as_external_data=True, location=NAME)", name)
		}
	}
	return ""
}

// Continue prepares later checkpoints of the network ref for the vectors of l, a layout that was made without them.
// Tensors that are constant in l must be equal in them too, and so must tensors that are tied in l.
//
// In the result, Reference is the last model that has the names of ref and as many tensors, or −1. Such a model can
// represent the network from now on. Errors are of type [*onnxio.Error].
func Continue(ref *onnxio.Model, l *weights.Layout, models []*onnxio.Model) (*Set, error) {
	s := &Set{Layout: l, Reference: -1}
	for i, m := range models {
		same, err := Match(m, ref)
		if err != nil {
			return nil, err
		}
		names, equal := namesOf(m), len(floats(m)) == len(floats(ref))
		for _, t := range l.Tensors {
			if !t.DType.IsFloat() {
				continue
			}
			held, err := same.Lookup(t)
			if err != nil {
				return nil, err
			}
			equal = equal && names[t.Name] == held
			if what := departs(same, ref, t, l); what != "" {
				return nil, &onnxio.Error{Path: m.Path, Tensor: held.Name, What: what, Hint: "fit a new posterior from all checkpoints"}
			}
		}
		s.Models, s.ByPlace = append(s.Models, same), s.ByPlace || !equal
		if equal {
			s.Reference = i
		}
	}
	if err := s.sound(ref); err != nil {
		return nil, err
	}
	return s, nil
}

// departs describes how a tensor contradicts the layout, or returns "".
func departs(m, ref *onnxio.Model, t weights.Tensor, l *weights.Layout) string {
	switch {
	case t.Role == weights.Constant && !bytes.Equal(m.Elements(m.Tensor(t.Name)), ref.Elements(ref.Tensor(t.Name))):
		return fmt.Sprintf("differs, but was equal in all checkpoints of %s", ref.Path)
	case t.Tied != "":
		o, _ := l.Find(t.Tied)
		a, b := m.Elements(m.Tensor(o.Name)), m.Elements(m.Tensor(t.Name))
		if t.Transposed && !transposes(a, b, int(o.Shape[0]), int(o.Shape[1]), int(t.DType.Size())) || !t.Transposed && !bytes.Equal(a, b) {
			return fmt.Sprintf("differs from %q, but was one with it in all checkpoints of %s", m.Tensor(o.Name).Name, ref.Path)
		}
	}
	return ""
}
