package ensemble

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/weights"
)

// Scoring is what a [Scorer] shall do.
type Scoring struct {
	Ensemble *Ensemble
	Networks []*Network // of the ensemble's components
	Data     dataset.Dataset
	// Output names the networks' output with the scores; empty means the first.
	Output  string
	Columns Columns
	// SkipErrors gives an example that cannot be read, or whose scores are not
	// finite, a row with an error. Else it ends the run.
	SkipErrors bool
}

// NewScorer prepares a Scorer for an ensemble. It runs a member over a batch of
// zeros, to plan memory and threads by what that takes.
func NewScorer(ctx context.Context, e *Engine, job Scoring) (*Scorer, error) {
	m, err := newDrawn(e, job)
	if err != nil {
		return nil, err
	}
	s, err := newScorer(e, m, job.Data)
	if err != nil {
		return nil, err
	}
	s.job, s.columns, s.skip = job, job.Columns, job.SkipErrors
	s.calibration = job.Ensemble.calibration()
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	if err := s.calibration.check(job.Ensemble.Path, s.classes); err != nil {
		return nil, err
	}
	// All networks have as many classes; the first one's scores stand for all.
	of := s.models.parts()[0].task
	if s.task, err = task.Of("", task.Scores{Output: of.Output, Activation: of.Activation, Count: s.scores}); err != nil {
		return nil, err
	}
	s.columns.Top = min(max(s.columns.Top, 1), s.classes)
	for _, n := range job.Networks {
		if n.Posterior.Options.Dropout {
			s.Warnings = append(s.Warnings, fmt.Errorf("%s: dropout stays on, so that numbers differ from run to run", n.Posterior.Path))
		}
	}
	return s, s.name()
}

// name checks labels and class names against the number of classes. Those of a
// few class folders of many are not the network's.
func (s *Scorer) name() error {
	names, labels := s.data.ClassNames(), s.data.Labels()
	if names != nil && len(names) != s.classes {
		s.Warnings = append(s.Warnings, fmt.Errorf("the data has %d class names and the network %d classes: names and labels are left out", len(names), s.classes))
		return nil
	}
	for i, label := range labels {
		if label >= s.classes {
			return fmt.Errorf("%s: label %d, want 0 to %d", s.data.Name(i), label, s.classes-1)
		}
	}
	s.names, s.labels = names, labels
	return nil
}

// drawn are the members of an ensemble.
type drawn struct {
	e        *Ensemble
	networks []*Network
	list     []part
	drawers  []*drawer
}

func newDrawn(e *Engine, job Scoring) (*drawn, error) {
	d := &drawn{e: job.Ensemble, networks: job.Networks}
	opts, err := d.e.Sampling.Options()
	if err != nil {
		return nil, err
	}
	opts.Workers = e.Workers
	for i, n := range d.networks {
		task, err := newTask(n.model, job.Output)
		if err != nil {
			return nil, err
		}
		d.list = append(d.list, part{count: d.e.Components[i].Members, input: n.Input, task: task})
		drawer, err := newDrawer(n.Posterior, opts, e.memory()/8)
		if err != nil {
			return nil, err
		}
		d.drawers = append(d.drawers, drawer)
	}
	return d, nil
}

func (d *drawn) parts() []part { return d.list }

func (d *drawn) each(ctx context.Context, first, count int, f func(model) error) error {
	i, place := d.e.Find(first)
	n, c := d.networks[i], d.e.Components[i]
	return d.drawers[i].each(ctx, first, count, func(k int, parameters weights.Vector) error {
		filled, err := n.Model(parameters, weights.Slice(c.Statistics[place+k-first]))
		if err != nil {
			return err
		}
		return f(model{fmt.Sprintf("%s: member %d of %s", d.e.Path, k, n.Posterior.Path), d.e.weight(i), filled})
	})
}

// Classes returns how many classes the ensemble tells apart.
func (s *Scorer) Classes() int { return s.classes }

// Plan says how the work will be done.
func (s *Scorer) Plan() string { return s.plan.String() }

// Tasks says what the outputs of the networks are taken for.
func (s *Scorer) Tasks() []string {
	var out []string
	for i, part := range s.models.parts() {
		out = append(out, s.job.Networks[i].Posterior.Path+": "+part.task.Describe(s.scores))
	}
	return out
}

// Parameters are what the rows depend on. producer is the program and its version.
func (s *Scorer) Parameters(producer string) (predictions.Parameters, error) {
	var batches []int
	for i, g := range s.plan.groups {
		if i == 0 || g.first == s.job.Ensemble.first(len(batches)) {
			batches = append(batches, g.batch)
		}
	}
	var tasks []Task
	for _, part := range s.models.parts() {
		tasks = append(tasks, part.task)
	}
	var p predictions.Parameters
	for _, x := range []struct {
		name  string
		value any
	}{
		{"producer", producer},
		{"onnxruntime", s.engine.Runtime.Version()},
		{"provider", s.engine.Provider},
		{"ensemble", s.job.Ensemble.ID},
		{"preprocess", s.job.Ensemble.Preprocess},
		{"data", s.data.Sources()},
		{"examples", s.data.Len()},
		{"batch_size", batches},
		{"tasks", tasks},
		{"classes", s.classes},
		{"class_names", nameSum(s.names)},
		{"columns", s.columns},
	} {
		if err := p.Add(x.name, x.value); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// nameSum identifies a list of names, or "" for none.
func nameSum(names []string) string {
	if names == nil {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join(names, "\n")))
	return hex.EncodeToString(sum[:])
}
