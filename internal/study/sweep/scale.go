package sweep

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/task"
)

const (
	// firstMembers draw all scales, and moreMembers those that these do not distinguish from the best.
	firstMembers = 8
	moreMembers  = 16
)

// ScaleChoice is the choice of SWAG's scale on validation data.
type ScaleChoice struct {
	Scale float64 // the scale with the lowest NLL, or the paper's if nothing tells
	Paper float64 // that of the paper
	Tried []TriedScale
	// Why is the reason why nothing tells, or "".
	Why      string
	By       string // what is fitted for each scale, in words
	Examples int    // that chose
	Members  int    // for which NLLs are given
	Networks int    // that were run
	Images   int64  // that they saw
}

// TriedScale is a scale with its score.
type TriedScale struct {
	Scale       float64
	Members     int     // that were drawn
	Temperature float64 // NaN if the data do not determine one
	// NLL is the mean first loss at the temperature. That part of it is taken off which is due to fewer members than asked for,
	// by the jackknife.
	NLL float64
}

// String says in words what was chosen, among what, and what it cost.
func (c *ScaleChoice) String() string {
	if c.Why != "" {
		return fmt.Sprintf("SWAG keeps the paper's scale %g: %s.", c.Paper, c.Why)
	}
	what := fmt.Sprintf("keep the paper's scale %g for SWAG", c.Scale)
	if c.Scale != c.Paper {
		what = fmt.Sprintf("choose scale %g for SWAG; the paper has %g", c.Scale, c.Paper)
	}
	var tried []string
	for _, t := range c.Tried {
		tried = append(tried, fmt.Sprintf("%s at %g", report.Fixed(t.NLL, 4), t.Scale))
	}
	return fmt.Sprintf("%s validation examples %s. With %d members, and %s for each scale, the NLL is about %s. %d networks saw %s "+
		"examples for this choice.",
		report.Thousands(c.Examples), what, c.Members, c.By, strings.Join(tried, ", "), c.Networks, report.Thousands(int(c.Images)))
}

// candidate is a scale during the choice.
type candidate struct {
	TriedScale
	average
	losses
	draws chance.Draws
}

// ChooseScale chooses among [ensemble.Scales] by the NLL of validation data, each scale with a temperature of its own. Members are
// those of a sweep: all scales share their random numbers. Few members draw every scale. More draw those that the few do not
// distinguish from the best. In a tie the paper's scale wins.
func (s *Sweep) ChooseScale(ctx context.Context, run infer.Run) (*ScaleChoice, error) {
	on := s.tuning()
	r, d := &Result{Sweep: &on}, on.Default()
	c := &ScaleChoice{Scale: d.Scale, Paper: d.Scale, Examples: on.Test.Len(), Members: on.Members}
	all := []*candidate{{TriedScale: TriedScale{Scale: d.Scale}}}
	for _, scale := range ensemble.Scales {
		if scale != d.Scale {
			all = append(all, &candidate{TriedScale: TriedScale{Scale: scale}})
		}
	}
	for _, x := range all {
		x.average = average{sweep: &on, setting: Setting{Scale: x.Scale, Rank: d.Rank}}
	}
	left := all
	for _, members := range []int{firstMembers, moreMembers} {
		members = min(members, on.Members)
		for _, x := range left {
			why, err := r.grow(ctx, run, x, members, c)
			if err != nil {
				return nil, err
			}
			if x == all[0] && why != "" {
				c.Scale, c.Why = c.Paper, why
				return c, nil
			}
		}
		best := slices.MinFunc(all, func(a, b *candidate) int { // the first of equal ones
			if a.NLL < b.NLL {
				return -1
			}
			return 1
		})
		c.Scale = best.Scale
		left = slices.DeleteFunc(slices.Clone(all), func(x *candidate) bool { return x != best && x.worse(best) })
		if len(left) == 1 || members == on.Members {
			break
		}
		if s.Resize != nil {
			s.Resize(c.Images + int64(len(left)*(min(moreMembers, on.Members)-members))*on.each())
		}
	}
	slices.SortFunc(all, func(a, b *candidate) int { return int(math.Copysign(1, a.Scale-b.Scale)) })
	for _, x := range all {
		c.Tried = append(c.Tried, x.TriedScale)
	}
	return c, ctx.Err()
}

// ScaleImages returns the number of examples that the first members of [Sweep.ChooseScale] see.
func (s *Sweep) ScaleImages() int64 {
	on := s.tuning()
	return int64(len(ensemble.Scales)*min(firstMembers, on.Members)) * on.each()
}

// each returns the number of examples that a member sees.
func (s *Sweep) each() int64 {
	n := int64(s.Test.Len())
	if s.Network.Recomputes() {
		n += int64(s.BatchNorm.Images())
	}
	return n
}

// grow draws more members of a candidate, and scores them. why says that the data determine no temperature.
func (r *Result) grow(ctx context.Context, run infer.Run, x *candidate, members int, c *ScaleChoice) (why string, err error) {
	added := members - x.Members
	if x.average.members = members; added > 0 {
		if err := x.run(ctx, run); err != nil {
			return "", err
		}
	}
	x.Members, c.Networks, c.Images = members, c.Networks+added, c.Images+int64(added)*r.each()
	x.NLL, x.Temperature = math.Inf(1), math.NaN()
	sums := &x.test.all
	if task.Missing(sums.Task) != nil {
		return task.ErrNoNoise.Error(), nil
	}
	fitted, err := sums.Task.Calibrators()[0].On(sums.Mean(), r.Test.Labels())
	if err != nil {
		return err.Error(), nil // a true class has probability 0
	}
	if why := fitted.Undetermined(); why != "" {
		return "the validation data determine no " + fitted.By.Words + ": " + why, nil
	}
	fitted, c.By = fitted.Rounded(), fitted.By.Words
	if x.losses, err = r.losses(&x.test, fitted, r.Test); err != nil {
		return "", err
	}
	x.Temperature, x.NLL = fitted.Values()[0], stat.Mean(x.own, nil)
	if x.draws = chance.NewDraws(x.own, x.without, weightsOf(x.test)); members < r.Members && len(x.without) > 1 {
		x.NLL -= x.draws.Bias * (1 - float64(members)/float64(r.Members))
	}
	return "", nil
}

func weightsOf(p part) (out []float64) {
	for _, g := range p.groups {
		out = append(out, float64(g.Members))
	}
	return out
}

// worse reports whether the 95 % interval of the difference to the best, for new examples and other draws, excludes 0.
func (x *candidate) worse(best *candidate) bool {
	if math.IsInf(x.NLL, 1) || len(x.without) != len(best.without) {
		return true
	}
	r := &Result{weights: weightsOf(x.test)}
	d := r.difference(x.losses, best.losses)
	return x.NLL-best.NLL+d.Low-d.Mean > 0
}
