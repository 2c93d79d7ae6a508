package sweep

import (
	"context"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/task"
)

// maxAutoMembers bounds the number of members where it is not given.
const maxAutoMembers = 256

// curve follows the average while members join it.
type curve struct {
	sweep  *Sweep
	points []CurvePoint
	truths [][]float64 // for each member how probable it makes each image's label
}

// averagedLoss is what the average of likelihoods tells of: the first loss, or that of the
// mixture where a task's first loss is of averaged outcomes.
func (r *Result) averagedLoss() string {
	if m, ok := r.task.(task.Mixed); ok {
		return m.MixtureLoss()
	}
	return r.task.Losses()[0].Name
}

// add takes in a member and the average with it. Where the number of members is
// open, it returns errEnough once they are.
func (c *curve) add(member, all *infer.Sums) error {
	c.truths = append(c.truths, member.Task.Likelihoods(member.Outcome, c.sweep.Test.Labels()))
	e, err := c.sweep.evaluate(all, c.sweep.Test)
	if err != nil {
		return err
	}
	e.Losses = nil // one for each image, at each number of members
	c.points = append(c.points, CurvePoint{Members: len(c.truths), Evaluation: e})
	n := calibrate.NewMonteCarloError(c.truths, c.sweep.Tolerance)
	if c.sweep.Members == 0 && n.Enough > 0 && n.Enough <= n.Members {
		return errEnough
	}
	return nil
}

// finish puts the curve and the Monte Carlo error of all members into a result.
func (c *curve) finish(ctx context.Context, r *Result) error {
	bands, err := calibrate.NLLByMembers(ctx, c.truths, r.Seed)
	for m, band := range bands {
		c.points[m].AnyOrder = band
	}
	r.Curve, r.Error = c.points, calibrate.NewMonteCarloError(c.truths, c.sweep.Tolerance)
	return err
}
