package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/task"
)

// builder evaluates the methods of a comparison one after the other, and collects their numbers.
type builder struct {
	*Comparison
	run        infer.Run
	task       task.Task // of the networks; nil before the first result
	kept       bool      // see [Result]
	methods    []*Method
	constant   *Method
	constantOf string
	notes      []string
	shared     map[*infer.Model]*shared // by the first network of a method whose outcomes are not kept
}

func (b *builder) result(notes []string) (*Result, error) {
	r := &Result{
		Comparison: b.Comparison,
		Task:       b.task,
		Kept:       b.kept,
		Methods:    b.methods,
		Constant:   b.constant,
		ConstantOf: b.constantOf,
		Notes:      append(b.notes, notes...),
		Runtime:    b.run.About(),
	}
	if err := baseline.InOrder(r.Methods, r.Notes, func(m *Method) string { return m.Key }); err != nil {
		return nil, err
	}
	r.align()
	r.compare()
	r.adjust()
	return r, nil
}

// align makes all evaluations comparable.
func (r *Result) align() {
	var all []*task.Evaluation
	for _, m := range r.Methods {
		all = append(all, m.Evaluation)
		for _, s := range m.Scaled {
			if s != nil {
				all = append(all, s.Evaluation)
			}
		}
	}
	task.Align(all...)
}

// leftOut says why a method is left out after its networks have run.
type leftOut struct{ why string }

func (o *leftOut) Error() string { return o.why }

// add evaluates the predictions of a method.
func (b *builder) add(ctx context.Context, p *baseline.Predicted) error {
	m := b.begin(p)
	err := b.evaluate(ctx, m, p)
	if out := (*leftOut)(nil); errors.As(err, &out) {
		if out.why != "" {
			b.notes = append(b.notes, out.why)
		}
		return nil
	}
	if err != nil {
		return err
	}
	b.methods = append(b.methods, m)
	if b.Scored != nil {
		b.Scored(m)
	}
	return nil
}

// begin returns the method without numbers.
func (b *builder) begin(p *baseline.Predicted) *Method {
	m := &Method{
		Key:        p.Key,
		Name:       p.Name,
		Members:    p.Members,
		Antithetic: p.Antithetic && p.Members > 1,
		Networks:   p.Networks(),
		StaleBN:    p.StaleBN,
		AtBestT:    math.NaN(),
	}
	if m.Deploy, m.Posteriors = b.Inputs.Deploy(p.Key); m.Deploy != nil && p.Drawn {
		m.Deploy.Members = p.Members
	}
	return m
}

// evaluate fills the method with numbers.
func (b *builder) evaluate(ctx context.Context, m *Method, p *baseline.Predicted) error {
	if b.kept = p.Kept(); !b.kept {
		v, err := b.sharedVariant(ctx, m, p)
		if err == nil {
			m.take(v)
			m.Warnings = append(m.Warnings, m.warnings(p)...)
		}
		return err
	}
	b.task = p.Task()
	all, err := b.fitAll(m, p)
	if err != nil {
		return err
	}
	v := b.variant(m, m.Noise, m.Scaling)
	if err := b.score(ctx, p, v); err != nil {
		return fmt.Errorf("%s: %w", m.Name, err)
	}
	m.take(v)
	return b.complete(m, p, all)
}

// take copies the scores of a variant into the method.
func (m *Method) take(v *variant) {
	m.Evaluation, m.Shifted = v.Evaluation, v.shifted
	if v.Report != nil {
		m.AllGroups, m.Groups = v.Found()
		slices.SortFunc(m.Groups, func(a, b *task.Group) int { return strings.Compare(a.Name, b.Name) })
	}
}

// warnings returns the warnings from before and after the evaluation, without those of the evaluation.
func (m *Method) warnings(p *baseline.Predicted) (list []error) {
	list = slices.Concat(p.Notes, m.doubts)
	if m.Noise != nil {
		for _, w := range m.Noise.Warnings() {
			same := func(known error) bool { return known.Error() == w.Error() }
			if !slices.ContainsFunc(m.Warnings, same) && !slices.ContainsFunc(list, same) {
				list = append(list, w)
			}
		}
	}
	if m.Scaling != nil {
		list = append(list, m.Scaling.Warnings()...)
	}
	return list
}

func (m *Method) warn(format string, args ...any) {
	m.Warnings = append(m.Warnings, fmt.Errorf(format, args...))
}

// scaled notes the scaling that is part of the method.
func (m *Method) scaled(s *task.Fitted) {
	m.deploy(s)
	m.Scaling, m.Name = s, named(m.Name, s)
	m.Undetermined = cmp.Or(m.Undetermined, s.Undetermined())
}

// named returns the name of a method with its fitted number.
func named(name string, s *task.Fitted) string {
	if s.Numbers() == "" {
		return name
	}
	if stem, ok := strings.CutSuffix(name, "-Temp"); ok {
		name = stem + "-" + s.By.Name
	}
	return fmt.Sprintf("%s (%s = %s)", name, s.By.Symbol, s.Numbers())
}

func (b *builder) options(m *Method) task.EvaluateOptions {
	return task.EvaluateOptions{Threshold: m.Threshold, EvaluateOptions: calibrate.EvaluateOptions{Seed: b.Seed}}
}
