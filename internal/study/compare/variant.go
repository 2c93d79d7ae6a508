package compare

import (
	"context"
	"fmt"

	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/task"
)

// variant is a method with its calibrations. Its examples are evaluated one at a time.
type variant struct {
	fits []func(example int) *task.Calibration // applied in this order
	opts task.EvaluateOptions
	// constant, if not nil, takes the place of the networks.
	constant *constant

	*task.Evaluation
	*task.Groups
	shifted *Shifted

	row []float64 // the calibrated outcome of one example
}

// variant returns the method with calibrations. A nil one is left out.
func (b *builder) variant(m *Method, fits ...*task.Fitted) *variant {
	v := &variant{opts: b.options(m)}
	v.opts.Expected = b.Test.Len()
	for _, f := range fits {
		if f != nil {
			v.fits = append(v.fits, f.ByExample())
		}
	}
	return v
}

// calibrated returns the calibrated outcome of an example of the test data. It is valid until the next call.
func (v *variant) calibrated(t task.Task, example int, outcome []float64) []float64 {
	if v.constant != nil {
		return v.constant.outcome(t)
	}
	if len(v.fits) == 0 {
		return outcome
	}
	v.row = append(v.row[:0], outcome...)
	for _, of := range v.fits {
		t.Apply(v.row, of(example), v.row)
	}
	return v.row
}

// A source gives the outcomes of a method for a data set, one after the other.
type source struct {
	data dataset.Dataset
	each func(f baseline.EachOutcome) error
	row  func(i int) int // the example of the test data
}

func same(i int) int { return i }

// addExamples adds each example of a source to the evaluators that to returns for variant v.
func addExamples(s source, variants []*variant, to func(t task.Task, v, i int) []*task.Evaluator) error {
	labels := s.data.Labels()
	return s.each(func(t task.Task, i int, a task.Average) error {
		label, err := labels.Load(i)
		if err == nil {
			err = t.CheckLabel(label)
		}
		for k, v := range variants {
			if err != nil {
				break
			}
			outcome := v.calibrated(t, s.row(i), a.Outcome)
			for _, e := range to(t, k, i) {
				if err == nil {
					err = e.Add(outcome, label)
				}
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.data.Name(i), err)
		}
		return nil
	})
}

// outcomes returns the outcomes of a method for data set k of its targets.
func (b *builder) outcomes(ctx context.Context, p *baseline.Predicted, k int, data dataset.Dataset, row func(i int) int) source {
	return source{data, func(f baseline.EachOutcome) error { return p.Each(ctx, b.run, k, false, f) }, row}
}

// score evaluates variants of the outcomes of a method, in one pass over each data set.
func (b *builder) score(ctx context.Context, p *baseline.Predicted, variants ...*variant) error {
	scored := b.addConstant(variants)
	all, units := make([]*task.Evaluator, len(scored)), b.unitNames()
	err := addExamples(b.outcomes(ctx, p, 0, b.Test, same), scored, func(t task.Task, k, i int) []*task.Evaluator {
		v := scored[k]
		if all[k] == nil {
			b.task, all[k], v.Groups = t, task.NewEvaluator(t, v.opts), task.NewGroups(t, b.Grouping, v.opts)
		}
		if units != nil {
			all[k].Unit(units[i])
		}
		if b.Report == nil {
			return all[k : k+1]
		}
		return append(v.At(i, b.Test.Name(i)), all[k])
	})
	if err != nil {
		return err
	}
	for k, v := range scored {
		v.Evaluation = all[k].Evaluation()
	}
	b.takeConstant(scored)
	if b.Shift == nil {
		return nil
	}
	if err := b.damage(ctx, p, variants); err != nil {
		return fmt.Errorf("damaged data: %w", err)
	}
	return nil
}

// shared holds the variants of networks whose outcomes are not kept: without a temperature, and with one if there is one. Each
// pass runs the networks, so that one finds both.
type shared struct {
	variants []*variant
	scaling  *task.Fitted
	failed   error // why there is no temperature
}

// sharedVariant returns the variant of the method's networks that is the method.
func (b *builder) sharedVariant(ctx context.Context, m *Method, p *baseline.Predicted) (*variant, error) {
	s := b.shared[&p.Models[0]]
	if s == nil {
		var err error
		if s, err = b.share(ctx, p); err != nil {
			return nil, err
		}
		b.shared[&p.Models[0]] = s
	}
	if p.By == "" {
		return s.variants[0], nil
	}
	if s.failed != nil {
		return nil, &leftOut{why: fmt.Sprintf("%s is left out: %v", p.Name, s.failed)}
	}
	m.scaled(s.scaling)
	return s.variants[1], nil
}

func (b *builder) share(ctx context.Context, p *baseline.Predicted) (*shared, error) {
	s := &shared{variants: []*variant{b.variant(&Method{})}}
	if p.Validation != nil {
		f, err := p.Fit(ctx, b.run, task.OneNumber)
		switch {
		case err == nil:
			s.scaling = f.Rounded()
			s.variants = append(s.variants, b.variant(&Method{}, s.scaling))
		case ctx.Err() != nil:
			return nil, err
		default:
			s.failed = err
		}
	}
	if err := b.score(ctx, p, s.variants...); err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	return s, nil
}
