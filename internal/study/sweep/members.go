package sweep

import (
	"context"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/task"
)

// curve records the scores of the average as members are added.
type curve struct {
	sweep   *Sweep
	points  []CurvePoint
	targets [][]float64 // for each member, the probability of each image's label
}

// averagedLoss returns the name of the loss of averaged likelihoods. It is the first loss, or that of the mixture if
// the task's first loss uses averaged outcomes.
func (r shown) averagedLoss() string {
	if m, ok := r.task.(task.Mixed); ok {
		return m.MixtureLoss()
	}
	return r.loss().Name
}

// add adds a member and the average that includes it.
func (c *curve) add(member, all *infer.Sums) error {
	c.targets = append(c.targets, member.Task.Likelihoods(member.Outcome, c.sweep.Test.Labels()))
	e, err := all.Evaluate(c.sweep.Test.Labels(), c.sweep.options())
	if err != nil {
		return err
	}
	e.Losses = nil // one per image, at each number of members
	c.points = append(c.points, CurvePoint{Members: len(c.targets), Evaluation: e})
	return nil
}

// finish stores the curve and the Monte Carlo error of all members in a result.
func (c *curve) finish(ctx context.Context, r *Result) error {
	bands, err := chance.NLLByMembers(ctx, c.targets, r.Antithetic, r.Seed)
	for m, band := range bands {
		c.points[m].AnyOrder = band
	}
	r.Curve, r.Error = c.points, chance.NewMonteCarloError(c.targets, r.Antithetic, 0)
	return err
}
