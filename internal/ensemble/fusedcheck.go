package ensemble

import (
	"context"
	"fmt"
	"math"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// Difference is the difference between a fused model and the members that it was made from.
type Difference struct {
	Examples int
	Largest  float64 // largest difference of a number that both give, such as a probability
	Changed  int     // examples whose largest number is at another index
}

// Check runs the examples through the model at path, and through the members one by one. It returns the difference.
func (j *Fused) Check(ctx context.Context, e *infer.Engine, path string, data dataset.Dataset) (Difference, error) {
	fail := func(err error) (Difference, error) { return Difference{}, err }
	m, err := onnxio.Open(path)
	if err != nil {
		return fail(err)
	}
	defer m.Close()
	filled, err := m.Runtime()
	if err != nil {
		return fail(err)
	}
	input := data
	if j.Pixels {
		s, err := j.pictures()
		if err != nil {
			return fail(err)
		}
		if input, err = newPixels(data, s); err != nil {
			return fail(err)
		}
	}
	s, err := infer.NewScorer(ctx, e, j.members(e.Options().Threads, e.Memory()), data, infer.Options{})
	if err != nil {
		return fail(err)
	}
	defer s.Close()
	d := Difference{Examples: data.Len()}
	outputs := compared(m.Graph.Outputs, s.Task())
	session, err := e.Open(ctx, nil, filled, outputs...)
	if err != nil {
		return fail(err)
	}
	defer session.Close()
	batch := s.BatchSizes()[0]
	err = s.Run(ctx, 0, nil, func(c *infer.Chunk) error {
		if err := weights.Changed(); err != nil {
			return err
		}
		want := make([]float64, s.Task().About().Width)
		for from := 0; from < c.Len; from += batch {
			rows := make([]int, min(batch, c.Len-from))
			for i := range rows {
				rows[i] = c.First + from + i
			}
			out, err := session.Feed(ctx, input, rows)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			for i := range rows {
				average := c.Average(want, from+i)
				j.Ensemble.Calibrated(s.Task(), average.Outcome)
				shown, each := s.Task().Shown(average.Outcome)
				if spec := task.SpecOf(s.Task()); spec.Axis != 0 {
					n := spec.Positions
					got := make([]float32, 0, len(shown))
					for p := range n { // position by position, as they are shown
						for _, o := range out {
							all, err := infer.Float32s(o)
							if err != nil {
								return err
							}
							width := len(all) / int(o.Shape[0]) / n
							for v := range width {
								at := p*width + v
								if spec.Axis == 1 {
									at = v*n + p
								}
								got = append(got, all[i*n*width+at])
							}
						}
					}
					d.addPositions(shown, got, each/n)
					continue
				}
				var got []float32
				for _, o := range out {
					all, err := infer.Float32s(o)
					if err != nil {
						return err
					}
					width := len(all) / int(o.Shape[0])
					got = append(got, all[i*width:][:width]...)
				}
				d.add(shown, got)
			}
		}
		return nil
	})
	return d, err
}

// compared returns the names of the outputs that together hold the numbers of [task.Task.Shown].
func compared(outputs []onnxio.Value, t task.Task) (names []string) {
	_, width := t.Shown(make([]float64, t.About().Width))
	spec := task.SpecOf(t)
	for _, o := range outputs {
		if width <= 0 {
			break
		}
		names = append(names, o.Name)
		own := o.Shape[1]
		if spec.Axis != 0 { // the numbers of a position lie along an axis, which outputs of one number lack
			own = 1
			if at := (spec.Axis + len(o.Shape)) % len(o.Shape); o.Shape[at] > 0 {
				own = o.Shape[at]
			}
			own *= int64(task.Positions(t))
		}
		width -= int(own)
	}
	return names
}

// addPositions compares the numbers of all positions of an example, width for each.
func (d *Difference) addPositions(want []float64, got []float32, width int) {
	changed := d.Changed
	for p := 0; p < len(want); p += width {
		d.add(want[p:][:width], got[p:][:width])
	}
	d.Changed = changed + min(1, d.Changed-changed)
}

func (d *Difference) add(want []float64, got []float32) {
	best, other := 0, 0
	for k, v := range want {
		d.Largest = max(d.Largest, math.Abs(v-float64(got[k])))
		if v > want[best] {
			best = k
		}
		if got[k] > got[other] {
			other = k
		}
	}
	if best != other {
		d.Changed++
	}
}
