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

// streamShift evaluates the networks of a method on the clean examples of the shift, and then at each severity. It returns
// what it finds without and with the temperature of s. No outcome is kept.
func (r *Result) streamShift(p *baseline.Predicted, s *streamed) (out [2]*shiftedDense, err error) {
	scaled := []bool{false}
	if s.fitted != nil {
		scaled = append(scaled, true)
	}
	opts := r.options(&Method{})
	opts.NoIntervals = true
	several := func(n int) (list [2][]task.Evaluator) {
		for v := range scaled {
			for range n {
				list[v] = append(list[v], r.task.NewEvaluator(opts))
			}
		}
		return list
	}
	// pass evaluates data. to returns the evaluator of example i, and the example's index in the test data.
	pass := func(data dataset.Dataset, into [2][]task.Evaluator, to func(i int) (k, row int)) error {
		labels := data.Labels()
		err := p.Stream(r.ctx, r.engine, data, infer.Options{}, func(t dense.Task, i int, a task.Average) error {
			k, row := to(i)
			var of [2][]task.Evaluator
			for v := range scaled {
				e := into[v][k]
				if !r.Shift.Texts {
					e.Unit(r.shiftUnit(row))
				}
				of[v] = []task.Evaluator{e}
			}
			return s.add(t, data.Name(i), labels, i, a, of[0], of[1])
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
			return out, err
		}
	}
	for v, plain := range []*task.Evaluation{s.plain, s.scaled}[:len(scaled)] {
		if r.Shift.Clean != nil {
			plain = clean[v][0].Evaluation()
		}
		out[v] = &shiftedDense{steps: []*task.Evaluation{plain}}
	}
	for k := range r.Shift.Severities {
		own, all := several(n), several(1)
		if r.Shift.Texts {
			for c := range n {
				if err := pass(r.Shift.Sets[k*n+c], own, func(int) (int, int) { return c, 0 }); err != nil {
					return out, err
				}
			}
		} else if err := pass(r.Shift.Sets[k], own, func(i int) (int, int) { return i % n, r.Shift.Rows[i] }); err != nil {
			return out, err
		}
		for v := range scaled {
			for c, e := range own[v] {
				all[v][0].Merge(e)
				each[v][c].Merge(e)
			}
			together[v][0].Merge(all[v][0])
			out[v].steps = append(out[v].steps, all[v][0].Evaluation())
		}
	}
	for v := range scaled {
		out[v].together = &task.Evaluation{Losses: together[v][0].Losses()}
		for _, e := range each[v] {
			out[v].each = append(out[v].each, &task.Evaluation{Losses: e.Losses()})
		}
	}
	return out, nil
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
