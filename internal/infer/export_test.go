package infer

import (
	"context"
	"slices"
	"time"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
)

// NewNamed is a network of which nothing is known but its input and its scores.
func NewNamed(path string, scores int64, inputs ...onnxio.Value) *Network {
	g := &Graph{layout: Layout{Count: int(scores), Positions: 1}}
	if err := g.readInputs(&onnxio.Model{Graph: &onnxio.Graph{Inputs: inputs}}); err != nil {
		panic(err)
	}
	return &Network{Posterior: &swag.Posterior{Path: path, ID: path}, Graph: g}
}

// ScoresOf reads what the output of a graph is taken for.
func ScoresOf(m *onnxio.Model, output string) (task.OutputSpec, error) {
	g, err := ReadGraph(m, output, swag.Card{})
	if err != nil {
		return task.OutputSpec{}, err
	}
	return g.scores, nil
}

// Opened returns the session that the model keeps open, or nil.
func (m Model) Opened() *Session { return m.kept.session }

// LayoutOf is the layout of an output of that shape.
var LayoutOf = layoutOf

// GraphOf is a graph of which nothing is known but its output.
func GraphOf(s task.OutputSpec) *Graph { return &Graph{scores: s} }

// Tune returns how many runs at the same time do most: n or half of it.
func (s *Scorer) Tune(ctx context.Context, n int) (int, error) {
	t, err := s.try(ctx, s.models.Parts()[0], 0)
	if err != nil {
		return 0, err
	}
	defer t.group.close()
	return t.tune(ctx, n)
}

// Input makes an input of the type that a session takes.
func Input(dtype string, values []float32) (ort.Tensor, error) {
	return tensor(ort.ValueInfo{Name: "x", DType: dtype}, []int64{int64(len(values))}, dataset.Floats(values))
}

// Planned returns the plan for sessions that take so many bytes and so long to open, and for runs of so long for each example.
func (s *Scorer) Planned(workers int, bytes int64, open, run time.Duration) (how string, groups, ahead int, err error) {
	p, err := s.newPlan(workers, cost{sessionBytes: bytes, runBytes: 1, open: open, run: run})
	return p.String(), len(p.groups), p.ahead, err
}

// Small makes a run of windows hold one window and one model at a time.
func (s *Scorer) Small() {
	parts, batch := s.models.Parts(), s.plan.groups[0].batch
	s.plan = plan{workers: s.plan.workers, chunk: s.stateful.Rows(), ahead: 2}
	s.plan.divide(parts, []int{batch}, 1)
}

// StateValues are the states as inputs, with their batch in front.
func (g *Graph) StateValues() (values []onnxio.Value) {
	if g.states == nil {
		return nil
	}
	for i, v := range g.states.values {
		v.Shape = slices.Clone(v.Shape)
		v.Shape = append([]int64{v.Shape[g.states.pairs[i].Axis]}, slices.Delete(v.Shape, g.states.pairs[i].Axis, g.states.pairs[i].Axis+1)...)
		values = append(values, v)
	}
	return values
}
