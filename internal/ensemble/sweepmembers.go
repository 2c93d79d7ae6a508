package ensemble

import (
	"context"

	"github.com/swagwrap/swagwrap/calibrate"
)

// maxAutoMembers bounds the number of members where it is not given.
const maxAutoMembers = 256

// memberCurve follows the average while members join it.
type memberCurve struct {
	sweep  *Sweep
	points []CurvePoint
	truths [][]float64 // for each member its probability of each image's true class
}

// add takes in a member and the average with it. Where the number of members is
// open, it returns errEnough once they are.
func (c *memberCurve) add(member, all *Sums) error {
	labels := c.sweep.Test.Labels()
	p := make([]float64, len(labels))
	for i, label := range labels {
		p[i] = member.Prob[i*member.Classes+label]
	}
	c.truths = append(c.truths, p)
	scores, err := c.sweep.score(all, c.sweep.Test)
	if err != nil {
		return err
	}
	n := calibrate.NewMonteCarloError(c.truths, c.sweep.Tolerance)
	scores.losses, scores.briers, scores.wrongs = nil, nil, nil
	c.points = append(c.points, CurvePoint{Members: len(c.truths), Scores: scores})
	if c.sweep.Members == 0 && n.Enough > 0 && n.Enough <= n.Members {
		return errEnough
	}
	return nil
}

// finish returns the curve and the Monte Carlo error of all members.
func (c *memberCurve) finish(ctx context.Context, seed uint64) ([]CurvePoint, calibrate.MonteCarloError, error) {
	bands, err := calibrate.NLLByMembers(ctx, c.truths, seed)
	for m, band := range bands {
		c.points[m].AnyOrder = band
	}
	return c.points, calibrate.NewMonteCarloError(c.truths, c.sweep.Tolerance), err
}
