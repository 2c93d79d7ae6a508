package ensemble

import (
	"context"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/task"
)

// A Spread computes the mean and the standard deviation over the members of each number that the networks' outputs have. It is
// for networks of the task [task.None]. One pass over the data serves all outputs.
type Spread struct {
	scorer *infer.Scorer
	// Outputs are those outputs. The numbers of an example are those of the first output, then those of the next.
	Outputs []infer.OutputPart
}

// NewSpread returns a Spread of all members. networks are those of the components, and names are the outputs that are wanted. skip
// is as in [infer.Options].
func NewSpread(ctx context.Context, engine *infer.Engine, e *Ensemble, networks []*infer.Network, names []string, data dataset.Dataset,
	skip bool) (*Spread, error) {
	for _, n := range networks {
		if err := n.TakeOutputs(names); err != nil {
			return nil, err
		}
	}
	m := (&Scoring{Ensemble: e, Networks: networks, Data: data}).members(engine)
	s, err := infer.NewScorer(ctx, engine, m, data, infer.Options{SkipErrors: skip})
	if err != nil {
		return nil, err
	}
	return &Spread{s, networks[0].OutputParts()}, nil
}

// Each calls f with each example in its order. failed says why it has no numbers, or is nil. The numbers are valid only during
// the call.
func (s *Spread) Each(ctx context.Context, progress func(images int), f func(i int, mean, std []float64, failed error) error) error {
	width := s.scorer.Task().About().Width
	outcome := make([]float64, width)
	return s.scorer.Run(ctx, 0, progress, func(c *infer.Chunk) error {
		for i := range c.Len {
			if c.Errs[i] != nil {
				if err := f(c.First+i, nil, nil, c.Errs[i]); err != nil {
					return err
				}
				continue
			}
			mean, std := task.Moments(c.Average(outcome, i).Outcome)
			if err := f(c.First+i, mean, std, nil); err != nil {
				return err
			}
		}
		return nil
	})
}
