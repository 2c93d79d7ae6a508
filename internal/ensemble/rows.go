package ensemble

import (
	"cmp"
	"fmt"
	"iter"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Rows iterates over the rows of a chunk. All rows share the same memory. Sums of the chunk become averages.
func (s *Scorer) Rows(c *infer.Chunk) iter.Seq[*predictions.Row] {
	return func(yield func(*predictions.Row) bool) {
		var row predictions.Row
		for i := range c.Len {
			if s.row(c, i, &row) && !yield(&row) {
				return
			}
		}
	}
}

// row makes the row that example i of a chunk completes, and reports whether it completes one. A tile completes one only if
// it is the last of its picture. It reuses the memory of r.
func (s *Scorer) row(c *infer.Chunk, i int, r *predictions.Row) bool {
	if s.join != nil {
		return s.tile(c, i, r)
	}
	at := c.First + i
	t, a, ran, err := s.averaged(c, i)
	label, bad := s.label(t, at)
	s.begin(r, at, s.job.Data.Name(at), label)
	s.beginSizes(at, r.Path)
	if err = cmp.Or(err, bad); err == nil {
		err = task.Read(t, &s.reading, s.job.Want, s.calibrated(t, a), label)
	}
	s.end(t, err, r)
	if s.decider != nil && !task.Large(t) && err == nil {
		r.Values = s.decider.Values(r.Values, a.Outcome, s.first()+at, r.Path)
	}
	if s.job.Settled && err == nil {
		r.Values = append(r.Values, float64(ran))
	}
	return true
}

// averaged returns the average of the members for example i of a chunk, in the size that its row has. t is the task of that
// size. ran is the number of members that the example went through. It fails if the example has no result.
func (s *Scorer) averaged(c *infer.Chunk, i int) (t task.Task, a task.Average, ran int, err error) {
	t, ran = s.Task(), s.Members()
	if c.Errs[i] != nil {
		return t, a, ran, c.Errs[i]
	}
	a = s.average(c, i)
	if s.job.Settled {
		if ran = c.Ran[i]; ran < s.Members() {
			t.(task.Settling).Complete(&a, s.job.Ensemble.Stopping.stage(ran))
		}
	}
	if s.job.Original {
		t, err = s.original(c.First+i, &a)
	}
	return t, a, ran, err
}

func (s *Scorer) begin(r *predictions.Row, index int, path string, label target.Target) {
	*r = predictions.Row{Index: index, Path: path, Label: target.Unknown, Values: r.Values[:0], Sums: r.Sums[:0]}
	if !s.labels.Dense() {
		r.Label = label.Class()
	}
}

// end fills in a row from the reading of its example, or from the reason why it has none.
func (s *Scorer) end(t task.Task, err error, r *predictions.Row) {
	if err != nil {
		r.Error = strings.Join(strings.Fields(err.Error()), " ") // in one line
		if !s.job.SkipErrors {
			r.Fatal = fmt.Errorf("%s: %w", r.Path, err)
		}
		return
	}
	r.Values, r.Sums = append(r.Values, s.reading.Values...), append(r.Sums, s.reading.Sums...)
	if s.reading.Sizes != nil {
		r.Values = s.decider.End(r.Values, s.job.Want.Target)
	}
	if s.job.Positions != nil {
		r.Fatal = s.job.Positions(r.Path, t, &s.reading)
	}
}

// beginSizes begins the sets of the positions of an example.
func (s *Scorer) beginSizes(at int, name string) {
	if s.reading.Sizes != nil {
		s.decider.Begin(s.first()+at, name)
	}
}

// first returns the number of the first example of the part, or 0.
func (s *Scorer) first() int {
	if s.job.Part == nil {
		return 0
	}
	return s.job.Part.First
}

// average returns the average of the members for example i of a chunk.
func (s *Scorer) average(c *infer.Chunk, i int) task.Average {
	width := s.Task().About().Width
	a := c.Average(c.Outcome[i*width:][:width], i)
	if s.job.Want.Members > 0 {
		size := s.Members() * width
		a.Members, a.Weights = c.Members[i*size:][:size], s.weights
	}
	return a
}

// calibrated adds the threshold and the calibration of positions to an average.
func (s *Scorer) calibrated(t task.Task, a task.Average) task.Average {
	a.Threshold = s.job.Threshold
	if s.job.Ensemble.Calibration != nil {
		a.Calibrate = func(outcome []float64) { s.job.Ensemble.Calibrated(task.OnePosition(t), outcome) }
	}
	return a
}

// label returns the checked labels of an example. An example that cannot be read has none.
func (s *Scorer) label(t task.Task, at int) (target.Target, error) {
	label, err := s.labels.Load(at)
	if err != nil || label.None() || !label.Dense() && !label.Known() {
		return label, err
	}
	return label, t.CheckLabel(label)
}

// original resamples the averages of an example to its size before it was resized. It returns the task of that size.
func (s *Scorer) original(at int, a *task.Average) (task.Task, error) {
	h, w, err := dataset.OriginalSize(s.job.Data, at)
	if err != nil {
		return s.Task(), err
	}
	if err := s.room(s.Task(), h, w, h); err != nil {
		return s.Task(), err
	}
	sides := task.SpecOf(s.Task()).Sides
	a.Outcome = dataset.Enlarge(a.Outcome, sides[0], sides[1], len(a.Outcome)/task.Positions(s.Task()), h, w)
	return task.Sized(s.Task(), h, w), nil
}
