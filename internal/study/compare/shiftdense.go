package compare

import (
	"fmt"

	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/task/dense"
)

// shiftedDense is what the [shift.Data] does to the networks of a method that score positions.
type shiftedDense struct {
	steps []*task.Evaluation // clean examples first, then by severity
	// together is for all severities, and each for each corruption at all severities. They have losses only. Losses are
	// of units of chance. An example with all its corruptions is one unit.
	together *task.Evaluation
	each     []*task.Evaluation
}

// streamShift evaluates the variants of a method on the clean examples of the shift, and then at each severity. No outcome is
// kept.
func (r *Result) streamShift(p *baseline.Predicted, s *streamed) error {
	opts := r.options(&Method{})
	opts.NoIntervals = true
	// several returns n evaluators of each variant.
	several := func(n int) [][]task.Evaluator {
		list := make([][]task.Evaluator, len(s.variants))
		for v := range list {
			for range n {
				list[v] = append(list[v], r.task.NewEvaluator(opts))
			}
		}
		return list
	}
	// pass evaluates data. to returns the evaluator of example i, and the example's index in the test data.
	pass := func(data dataset.Dataset, into [][]task.Evaluator, to func(i int) (k, row int)) error {
		labels := data.Labels()
		err := p.Stream(r.ctx, r.run, data, infer.Options{}, func(t dense.Task, i int, a task.Average) error {
			k, row := to(i)
			of := make([][]task.Evaluator, len(into))
			for v, evaluators := range into {
				e := evaluators[k]
				if !r.Shift.Texts {
					e.Unit(r.shiftUnit(row))
				}
				of[v] = []task.Evaluator{e}
			}
			return s.add(t, data.Name(i), labels, i, a, of)
		})
		if err != nil {
			return fmt.Errorf("%s, damaged data: %w", p.Name, err)
		}
		return nil
	}
	n, examples := len(r.Shift.Corruptions), r.Shift.Chosen()
	clean, together, each := several(1), several(1), several(n)
	if r.Shift.Clean != nil {
		if err := pass(r.Shift.Clean, clean, func(i int) (int, int) { return 0, examples[min(i, len(examples)-1)] }); err != nil {
			return err
		}
	}
	for v := range s.variants {
		first := s.variants[v].Evaluation
		if r.Shift.Clean != nil {
			first = clean[v][0].Evaluation()
		}
		s.variants[v].shifted = &shiftedDense{steps: []*task.Evaluation{first}}
	}
	for k := range r.Shift.Severities {
		own, all := several(n), several(1)
		if r.Shift.Texts {
			for c := range n {
				if err := pass(r.Shift.Sets[k*n+c], own, func(int) (int, int) { return c, 0 }); err != nil {
					return err
				}
			}
		} else if err := pass(r.Shift.Sets[k], own, func(i int) (int, int) { return i % n, r.Shift.Rows[i] }); err != nil {
			return err
		}
		for v, of := range s.variants {
			for c, e := range own[v] {
				all[v][0].Merge(e)
				each[v][c].Merge(e)
			}
			together[v][0].Merge(all[v][0])
			of.shifted.steps = append(of.shifted.steps, all[v][0].Evaluation())
		}
	}
	for v, of := range s.variants {
		of.shifted.together = &task.Evaluation{Losses: together[v][0].Losses()}
		for _, e := range each[v] {
			of.shifted.each = append(of.shifted.each, &task.Evaluation{Losses: e.Losses()})
		}
	}
	return nil
}

// shiftUnit names the unit of chance of a test example.
func (r *Result) shiftUnit(i int) string {
	if r.Unit != nil {
		if unit := r.Unit(i, r.Test.Name(i)); unit != "" {
			return "unit " + unit
		}
	}
	return fmt.Sprint("example ", i)
}
