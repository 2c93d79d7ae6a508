package baseline

import (
	"context"
	"fmt"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/task"
)

// EachOutcome gets the averaged outcome of each example of a data set in turn, and the example's place in it. It may change
// the outcome.
type EachOutcome func(t task.Task, i int, a task.Average) error

// Kept reports whether the outcomes of all examples are in memory. Those of pixels and tokens would not fit: each call of
// [Predicted.Each] then runs the networks again.
func (p *Predicted) Kept() bool { return p.Models == nil }

// Task returns the task of the networks. It is nil before the first run of networks whose outcomes are not kept.
func (p *Predicted) Task() task.Task {
	if !p.Kept() {
		return p.Models[0].Known()
	}
	return p.Data[0].Task
}

// Each calls f with the outcomes for data set k of [Targets]. With evidence, averages have that of logits.
func (p *Predicted) Each(ctx context.Context, run infer.Run, k int, evidence bool, f EachOutcome) error {
	if !p.Kept() {
		return Stream(ctx, run, p.Models, p.sets[k], infer.Options{Evidence: evidence}, f)
	}
	return eachOf(p.Data[k], dataset.Order{}.Indices(len(p.Data[k].Entropy)), f)
}

// Some calls f with the outcomes for some examples of the first data set, in the given order. They must be kept.
func (p *Predicted) Some(examples []int, f EachOutcome) error { return eachOf(p.Data[0], examples, f) }

// eachOf calls f with outcomes of sums in memory.
func eachOf(sums *infer.Sums, examples []int, f EachOutcome) error {
	row := make([]float64, sums.Task.About().Width)
	for _, i := range examples {
		if err := f(sums.Task, i, sums.Average(row, i)); err != nil {
			return err
		}
	}
	return nil
}

// Stream runs networks over data, and calls f with the average of each example as soon as all networks have seen it.
func Stream(ctx context.Context, run infer.Run, models []infer.Model, data dataset.Dataset, opts infer.Options, f EachOutcome) error {
	s, err := infer.NewScorer(ctx, run.Engine, modelList(models), data, opts)
	if err != nil {
		return err
	}
	t := s.Task()
	return s.Run(ctx, 0, run.Progress, func(c *infer.Chunk) error {
		width := t.About().Width
		for i := range c.Len {
			if err := f(t, c.First+i, c.Average(c.Outcome[i*width:][:width], i)); err != nil {
				return err
			}
		}
		return nil
	})
}

// modelList is a [infer.MemberSource] of models in memory.
type modelList []infer.Model

func (l modelList) Parts() (parts []infer.Part) {
	for _, m := range l {
		if last := len(parts) - 1; last >= 0 && parts[last].Graph == m.Graph {
			parts[last].Count++
		} else {
			parts = append(parts, infer.Part{Count: 1, Graph: m.Graph})
		}
	}
	return parts
}

func (l modelList) Each(_ context.Context, first, count int, f func(infer.Model) error) error {
	for _, m := range l[first:][:count] {
		if err := f(m); err != nil {
			return err
		}
	}
	return nil
}

// Fit fits the calibration by to the predictions of the validation data. Outcomes that are not kept have a temperature only,
// fitted to all labelled positions.
func (p *Predicted) Fit(ctx context.Context, run infer.Run, by task.Method) (*task.Fitted, error) {
	data := p.sets[len(p.sets)-1]
	if p.Kept() {
		c, ok := task.Find(p.Validation.Task, by)
		if !ok {
			return nil, fmt.Errorf("%s: the task %s has no %s scaling", p.Name, p.Validation.Task.About().Name, by)
		}
		return c.On(p.Validation.Mean(), data.Labels())
	}
	rows, err := NewLogits(data.Len())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var of task.Task
	err = Stream(ctx, run, p.Models, data, infer.Options{}, func(t task.Task, i int, a task.Average) error {
		of = t
		label, err := data.Labels().Load(i)
		if err == nil {
			err = t.CheckLabel(label)
		}
		if err == nil {
			err = rows.Add(t, a.Outcome, label)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", data.Name(i), err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	c, err := rows.Fit(func(int) bool { return true })
	if err != nil {
		return nil, err
	}
	fitted, _ := task.Find(of, c.Method)
	return &task.Fitted{By: fitted, Each: []*task.Calibration{c}}, nil
}
