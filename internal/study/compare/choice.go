package compare

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Advice is which method to deploy, and why. The rule stands in docs/verdict.md:
//
//  1. Of the methods with the fewest networks, which is one, the best has the lowest first loss on the validation and the test data
//     together. Validation examples have losses of fits that have not seen them. Where a simpler one is alike, it is taken
//     in its place.
//  2. A method with more networks is taken only if it is clearly better on the test data than that best one.
type Advice struct {
	Choice *Method // nil if nothing is recommended
	// Instead has a lower loss than the choice, and is alike: the method is simpler. It is nil otherwise. By is the loss of the
	// choice minus that of Instead, on the test data.
	Instead *Method
	By      chance.Difference
	// Together is the number of validation examples that chose with the test data, and Lowest the method that the test data alone would
	// choose among those with the fewest networks.
	Together int
	Lowest   *Method
	// Best is the best of the methods with the fewest networks. Rival is the method with more networks that is compared with it,
	// or nil. Over is the loss of Rival minus that of Best, with an interval that holds for all such methods together. Alone has
	// the interval of this comparison alone.
	Best, Rival *Method
	Over        chance.Interval
	Alone       chance.Difference
	// From is the simplest candidate: your network. Gain is the loss of the choice minus that of From, with an interval that
	// holds for all candidates together, since the test data chose among them. Gain is zero if both are one.
	From *Method
	Gain chance.Interval
	// Candidates is the number of methods that were chosen from.
	Candidates int
}

// judge chooses among the methods of a result.
type judge struct{ *Result }

// advice chooses among the candidates that have learnt something. Without any it is empty.
func (r judge) advice() Advice {
	if list := r.learnt(r.candidates()); len(list) > 0 {
		return r.choose(list)
	}
	return Advice{}
}

// candidates returns the methods that can be deployed, the simplest first: by the number of networks, then in the order of
// tables. That is your network before SWA before others, and each of them plain, with a temperature and with vector scaling.
func (r judge) candidates() []*Method {
	var all []*Method
	for _, m := range r.Methods {
		if m.Deploy != nil && !m.StaleBN && m.Sound() && !math.IsNaN(r.Value(m)) {
			all = append(all, m)
		}
	}
	slices.SortStableFunc(all, func(a, b *Method) int {
		return cmp.Or(cmp.Compare(a.Networks, b.Networks), cmp.Compare(baseline.Place(a.Key), baseline.Place(b.Key)))
	})
	return all
}

// learnt returns the methods that are clearly better than the constant prediction, with intervals that hold for all together.
func (r judge) learnt(all []*Method) (some []*Method) {
	if r.Constant == nil || len(all) == 0 {
		return all
	}
	for k, over := range r.together(all, r.Constant) {
		if over.High < 0 || r.never(all[k], r.Constant) {
			some = append(some, all[k])
		}
	}
	return some
}

// choose chooses among the candidates. There must be one.
func (r judge) choose(all []*Method) (c Advice) {
	k := slices.IndexFunc(all, func(m *Method) bool { return m.Networks > all[0].Networks })
	if k < 0 {
		k = len(all)
	}
	few, more := r.tempered(all[:k]), r.tempered(all[k:])
	c.From, c.Candidates = all[0], len(all)
	if r.pools(few) {
		c.Together = r.Validation.Len()
	}
	c.Lowest = slices.MinFunc(few, func(a, b *Method) int { return cmp.Compare(r.Value(a), r.Value(b)) })
	c.Best = r.lowest(few)
	c.take(r, few, c.Best)
	if better := r.compete(&c, more); better != nil {
		c.take(r, better, r.lowest(better))
	}
	if c.Choice != c.From {
		c.Gain = r.together(all[1:], c.From)[slices.Index(all[1:], c.Choice)]
	}
	return c
}

// alike is the difference, in its standard errors, up to which two methods are alike. One standard error (Breiman, Friedman,
// Olshen and Stone 1984, section 3.4.3) costs twice the regret on few labels, and none changes the method more often:
// TestAdvice.
const alike = 0.5

// take takes the simplest of the methods that is alike with the best of them.
func (c *Advice) take(r judge, from []*Method, best *Method) {
	c.Choice, c.Instead = best, nil
	for _, m := range from {
		if m == best {
			return
		}
		if mean, standard := r.apart(m, best, r.pools(from)); mean <= alike*standard {
			c.Choice, c.Instead, c.By = m, best, r.between(m, best)
			return
		}
	}
}

// compete compares methods of more networks with the best of few. It returns those that are clearly better.
func (r judge) compete(c *Advice, more []*Method) (better []*Method) {
	if len(more) == 0 {
		return nil
	}
	over := r.together(more, c.Best)
	for k, m := range more {
		if (over[k].High < 0 || r.never(m, c.Best)) && r.Enough(m, c.Best) {
			better = append(better, m)
		}
	}
	c.Rival = r.lowest(more)
	if better != nil {
		c.Rival = r.lowest(better)
	} else if m := r.candidate(); slices.Contains(more, m) {
		c.Rival = m
	}
	c.Over, c.Alone = over[slices.Index(more, c.Rival)], r.between(c.Rival, c.Best)
	return better
}

// never reports whether only the other method gives a true class the probability 0, so that its loss is infinite.
func (r judge) never(m, other *Method) bool {
	return math.IsInf(r.Value(other), 1) && !math.IsInf(r.Value(m), 1)
}

// lowest returns the method with the lowest first loss; of equal ones the first.
func (r judge) lowest(of []*Method) *Method {
	value, pooled := r.Value, r.pools(of)
	if pooled {
		value = func(m *Method) float64 {
			n, v := float64(len(m.Losses[0].Values)), float64(len(m.Unseen))
			return (n*r.Value(m) + floats.Sum(m.Unseen)) / (n + v)
		}
	}
	return slices.MinFunc(of, func(a, b *Method) int { return cmp.Compare(value(a), value(b)) })
}

// pools reports whether validation data counts among methods: all predict it, with a loss for each example.
func (r judge) pools(of []*Method) bool {
	return !slices.ContainsFunc(of, func(m *Method) bool { return !r.validates(m) })
}

func (r judge) validates(m *Method) bool {
	return r.Validation != nil && !task.LossesOfUnits(r.Task) && len(m.Unseen) == r.Validation.Len()
}

// apart returns the difference of two methods in the first loss, and its standard error. pooled says whether validation data counts.
func (r judge) apart(m, base *Method, pooled bool) (mean, standard float64) {
	d := r.between(m, base)
	if !pooled {
		return d.Mean, d.Standard
	}
	v := chance.NewDifference(difference(m.Unseen, base.Unseen), 0)
	n, all := float64(len(m.Losses[0].Values)), float64(len(m.Losses[0].Values)+len(m.Unseen))
	return (n*d.Mean + (all-n)*v.Mean) / all, math.Hypot(n*d.Standard, (all-n)*v.Standard) / all
}

// strong is the statistic 2·log(likelihood ratio) of one number, above which it is no chance: the quantile of 0.999 of χ².
const strong = 10.828

// tempered leaves out plain methods for which the validation data asks for a temperature strongly. The test data may still show that
// it is of another kind, with a temperature that makes the loss worse by more than chance.
func (r judge) tempered(of []*Method) (left []*Method) {
	for _, m := range of {
		t := find(of, m.Key+"-temp")
		asks := t != nil && r.validates(m) && r.validates(t) && 2*floats.Sum(difference(m.Unseen, t.Unseen)) > strong
		if !asks || r.unlike(r.DifferenceTo(m, t, r.Loss().Key), t.fits(0)) {
			left = append(left, m)
		}
	}
	return left
}

// units returns the differences of two methods in the first loss, by unit of chance, and the variance that fits add.
func (r judge) units(m, base *Method) (losses []float64, fits float64) {
	return r.Clustered(difference(m.Losses[0].Values, base.Losses[0].Values), nil), m.fits(0) + base.fits(0)
}

// between returns the difference of two methods in the first loss.
func (r judge) between(m, base *Method) chance.Difference {
	return chance.NewDifference(r.units(m, base))
}

// together returns the differences of methods to another one, with intervals that hold together.
func (r judge) together(methods []*Method, base *Method) []chance.Interval {
	losses, fits := make([][]float64, len(methods)), make([]float64, len(methods))
	for k, m := range methods {
		losses[k], fits[k] = r.units(m, base)
	}
	return chance.Together(losses, fits)
}
