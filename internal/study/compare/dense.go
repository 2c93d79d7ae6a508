package compare

import (
	"fmt"
	"math"

	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/task/dense"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// streamed is what one pass over the test data found about the networks of a method, for examples with several
// positions. Methods that differ only in a temperature share it.
type streamed struct {
	variants []variant // without a temperature, and with one if there is one
	fitted   *task.Fitted
	failed   error // why there is no temperature
}

// variant is a method without a temperature or with one.
type variant struct {
	*task.Evaluation
	groups  *task.Groups
	shifted *shiftedDense
}

// add adds the average of an example to the evaluators of each variant.
func (s *streamed) add(t dense.Task, name string, labels truth.Truth, i int, a task.Average, variants [][]task.Evaluator) error {
	label, err := labels.Load(i)
	if err == nil {
		err = t.CheckLabel(label)
	}
	for v, evaluators := range variants {
		if v == 1 {
			t.Apply(a.Outcome, s.fitted.Each[0], a.Outcome)
		}
		for _, e := range evaluators {
			if err == nil {
				err = e.Add(a.Outcome, label)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// addStreamed evaluates a method whose examples have several positions. No outcome is kept: each example is evaluated as
// soon as all networks have seen it.
func (r *Result) addStreamed(p *baseline.Predicted) error {
	s := r.streams[&p.Models[0]]
	if s == nil {
		var err error
		if s, err = r.stream(p); err != nil {
			return err
		}
		if r.streams == nil {
			if r.streams = map[*infer.Model]*streamed{}; r.Validation == nil {
				r.Notes = append(r.Notes, "methods with a temperature are left out: it needs labelled examples other than those of the test ("+setting.Val.String()+")")
			}
		}
		r.streams[&p.Models[0]] = s
	}
	m := &Method{Key: p.Key, Name: p.Name, Members: p.Members, Networks: p.Networks(), StaleBN: p.StaleBN, AtBestT: math.NaN()}
	m.Deploy, m.Posteriors = r.Inputs.Deploy(p.Key)
	of := s.variants[0]
	switch {
	case p.By == "":
	case p.By != task.OneNumber && p.By != task.ByTemperature, s.fitted == nil:
		if s.failed != nil {
			r.Notes = append(r.Notes, fmt.Sprintf("%s is left out: %v", p.Name, s.failed))
		}
		return nil
	default:
		of, m.Scaling, m.Name, m.Undetermined = s.variants[1], s.fitted, r.named(p.Name, s.fitted), s.fitted.Undetermined()
		m.deploy(s.fitted)
		of.Warnings = append(of.Warnings, s.fitted.Warnings()...)
	}
	m.Evaluation = of.Evaluation
	if r.Report != nil {
		m.groups(of.groups)
	}
	if r.Shift != nil {
		m.dense, m.Shifted = of.shifted, of.shifted.steps
	}
	m.Warnings = append(m.Warnings, p.Notes...)
	r.Methods = append(r.Methods, m)
	return nil
}

// stream evaluates the networks of a method with and without a temperature.
func (r *Result) stream(p *baseline.Predicted) (*streamed, error) {
	s := &streamed{}
	if p.Validation != nil {
		c, err := p.FitTemperature(r.ctx, r.run, r.Validation)
		if err == nil {
			by, _ := task.Find(p.Models[0].Known(), task.ByTemperature)
			s.fitted = (&task.Fitted{By: by, Each: []*task.Calibration{c}}).Rounded()
		} else if s.failed = err; r.ctx.Err() != nil {
			return nil, err
		}
	}
	count := 1
	if s.fitted != nil {
		count = 2
	}
	all, groups := make([]task.Evaluator, count), make([]*task.Groups, count)
	labels := r.Test.Labels()
	err := p.Stream(r.ctx, r.run, r.Test, infer.Options{}, func(t dense.Task, i int, a task.Average) error {
		if all[0] == nil {
			r.task = t
			opts := r.options(&Method{})
			for v := range all {
				all[v], groups[v] = t.NewEvaluator(opts), task.NewGroups(t, r.Grouping, opts)
			}
		}
		name, variants := r.Test.Name(i), make([][]task.Evaluator, count)
		for v, e := range all {
			if r.Unit != nil {
				e.Unit(r.Unit(i, name))
			}
			if variants[v] = []task.Evaluator{e}; r.Report != nil {
				variants[v] = append(variants[v], groups[v].At(i, name)...)
			}
		}
		return s.add(t, name, labels, i, a, variants)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	for v, e := range all {
		s.variants = append(s.variants, variant{Evaluation: e.Evaluation(), groups: groups[v]})
	}
	if r.Shift != nil {
		err = r.streamShift(p, s)
	}
	return s, err
}
