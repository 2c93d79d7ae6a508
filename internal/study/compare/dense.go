package compare

import (
	"cmp"
	"fmt"
	"math"

	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/task/dense"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// streamed is what one pass over the test data found about the networks of a method, for examples with several
// positions. Methods that differ only in a temperature share it.
type streamed struct {
	plain, scaled *task.Evaluation // scaled is nil without a temperature
	fitted        *task.Fitted
	failed        error // why there is no temperature

	groups, scaledGroups *task.Groups
	shifted              [2]*shiftedDense // without and with the temperature
}

// add adds the average of an example without and with the temperature.
func (s *streamed) add(t dense.Task, name string, labels truth.Truth, i int, a task.Average, plain, scaled []task.Evaluator) error {
	label, err := labels.Load(i)
	if err == nil {
		err = t.CheckLabel(label)
	}
	for _, e := range plain {
		if err == nil {
			err = e.Add(a.Outcome, label)
		}
	}
	if err == nil && s.fitted != nil {
		t.Apply(a.Outcome, s.fitted.Each[0], a.Outcome)
		for _, e := range scaled {
			err = cmp.Or(err, e.Add(a.Outcome, label))
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
				r.Notes = append(r.Notes, "methods with a temperature are left out: it needs labelled examples other than those of the test (--val)")
			}
		}
		r.streams[&p.Models[0]] = s
	}
	m := &Method{Key: p.Key, Name: p.Name, Members: p.Members, Networks: p.Networks(), StaleBN: p.StaleBN, AtBestT: math.NaN(), Evaluation: s.plain}
	m.Deploy, m.Posteriors = r.Inputs.Deploy(p.Key)
	switch {
	case p.By == "":
	case p.By != task.OneNumber && p.By != task.ByTemperature, s.scaled == nil:
		if s.failed != nil {
			r.Notes = append(r.Notes, fmt.Sprintf("%s is left out: %v", p.Name, s.failed))
		}
		return nil
	default:
		m.Evaluation, m.Scaling, m.Name = s.scaled, s.fitted, r.named(p.Name, s.fitted)
		m.deploy(s.fitted)
		m.Warnings = append(m.Warnings, s.fitted.Warnings()...)
	}
	if r.Report != nil {
		m.groups(map[bool]*task.Groups{false: s.groups, true: s.scaledGroups}[p.By != ""])
	}
	if r.Shift != nil {
		m.dense = s.shifted[map[bool]int{true: 1}[p.By != ""]]
		m.Shifted = m.dense.steps
	}
	m.Warnings = append(m.Warnings, p.Notes...)
	r.Methods = append(r.Methods, m)
	return nil
}

// stream evaluates the networks of a method with and without a temperature.
func (r *Result) stream(p *baseline.Predicted) (*streamed, error) {
	s := &streamed{}
	if p.Validation != nil {
		c, err := p.FitTemperature(r.ctx, r.engine, r.Validation)
		if err == nil {
			by, _ := task.Find(p.Models[0].Known(), task.ByTemperature)
			s.fitted = (&task.Fitted{By: by, Each: []*task.Calibration{c}}).Rounded()
		} else if s.failed = err; r.ctx.Err() != nil {
			return nil, err
		}
	}
	var plain, scaled task.Evaluator
	var groups, scaledGroups *task.Groups
	labels := r.Test.Labels()
	err := p.Stream(r.ctx, r.engine, r.Test, infer.Options{}, func(t dense.Task, i int, a task.Average) error {
		if plain == nil {
			r.task = t
			opts := r.options(&Method{})
			plain, scaled = t.NewEvaluator(opts), t.NewEvaluator(opts)
			groups, scaledGroups = task.NewGroups(t, r.Grouping, opts), task.NewGroups(t, r.Grouping, opts)
		}
		name := r.Test.Name(i)
		of, scaledOf := []task.Evaluator{plain}, []task.Evaluator{scaled}
		if r.Unit != nil {
			unit := r.Unit(i, name)
			plain.Unit(unit)
			scaled.Unit(unit)
		}
		if r.Report != nil {
			of, scaledOf = append(of, groups.At(i, name)...), append(scaledOf, scaledGroups.At(i, name)...)
		}
		return s.add(t, name, labels, i, a, of, scaledOf)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	s.plain, s.groups = plain.Evaluation(), groups
	if s.fitted != nil {
		s.scaled, s.scaledGroups = scaled.Evaluation(), scaledGroups
	}
	if r.Shift != nil {
		s.shifted, err = r.streamShift(p, s)
	}
	return s, err
}
