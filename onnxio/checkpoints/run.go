package checkpoints

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
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
		if template == nil {
			continue
		}
		if _, ok := template.Counts(m.Path); ok {
			list[i].StateDict = template.StateDict
		}
	}
	if r.Input, err = set.Input(list); err != nil || template == nil || template.Recipe() == nil {
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
