package baseline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// swagMemberTemp is SWAG with a temperature before the average, Σ_m softmax(log p_m / T) / S. All members have the same
// T. It minimises the NLL of the average (Rahaman and Thiery 2021; Wu and Gales, arXiv 2101.05397). SWAG-Temp has its
// temperature after the average.
var swagMemberTemp = &Method{
	Key: "swag-member-temp", From: fromSWAG, Fits: true, Name: called("SWAG-MemberTemp"), Needs: needsDeviations, Scores: true,
	Outcomes: true,
	Cost:     shared(eachMember), Run: func(ctx context.Context, w *work) error { return w.memberTemp(ctx) },
}

func (w *work) memberTemp(ctx context.Context) error {
	if !w.targets.Noise {
		return &unfit{err: fmt.Errorf("only %s has this method", setting.Compare), plain: true}
	}
	swag, err := w.swagOf(ctx)
	if err != nil || w.shard != nil {
		return err
	}
	t := swag.Data[0].Task
	switch by := t.Calibrators()[0]; {
	case by.Squared:
		return &unfit{err: fmt.Errorf("members of the task %s have no temperature", t.About().Name), plain: true}
	case swag.Single() == nil:
		return &unfit{err: fmt.Errorf("the predictions of %d members need more than %d MiB", swag.Members, groupBytes>>20)}
	}
	fitted, err := w.fitMembers(ctx, t, swag.Groups)
	if err != nil {
		return err
	}
	p := w.random(w.own())
	p.Antithetic = swag.Antithetic
	p.Name, p.Notes, p.Fitted = fmt.Sprintf("%s (T = %s)", p.Name, fitted.Numbers()), fitted.Warnings(), fitted
	p.With = func(c *task.Calibration) (data, validation []float64, err error) {
		data, err = w.pooled(ctx, t, swag.Groups, 0, dataset.Order{}.Indices(w.targets.Data[0].Len()), c)
		if v := w.targets.Validation; v != nil && err == nil {
			validation, err = w.pooled(ctx, t, swag.Groups, len(w.targets.Data), dataset.Order{}.Indices(v.Len()), c)
		}
		return data, validation, err
	}
	for k, g := range swag.Groups {
		one := w.result(p.Validation != nil)
		one.Members = 1
		for i, sums := range one.sums() {
			sums.Init("SWAG", w.targets.all()[i].Len(), t)
			sums.Outcome = fitted.Apply(t, Average(i, g))
			sums.Members, sums.Weight = 1, 1
		}
		p.Take(one, k)
	}
	return w.yield(p)
}

// fitMembers fits the temperature of members to the validation data. Without validation data it fits to each half of
// the data for the other half.
func (w *work) fitMembers(ctx context.Context, t task.Task, members []*Group) (*task.Fitted, error) {
	sets, out := w.targets.all(), &task.Fitted{By: t.Calibrators()[0]}
	set := len(sets) - 1
	labels, n := sets[set].Labels(), sets[set].Len()
	fit := func(rows []int) (*task.Calibration, error) {
		some, failed := labels.Pick(rows), error(nil)
		best, nll := lowest(func(temperature float64) float64 {
			pooled, err := w.pooled(ctx, t, members, set, rows, task.WithNumber(t.About().Name, temperature))
			failed = cmp.Or(failed, err)
			return task.NLL(t, pooled, some)
		})
		if failed == nil && !(nll < math.Inf(1)) {
			failed = &unfit{err: errors.New("the NLL of the members' average is not finite at any temperature")}
		}
		c := task.WithNumber(t.About().Name, best)
		if failed == nil {
			failed = w.judgeMembers(ctx, c, t, members, set, rows, some)
		}
		return c, failed
	}
	use := func(c *task.Calibration, _ []int) { out.Each = append(out.Each, c) }
	if w.targets.Validation == nil {
		out.Folds = calibrate.UnitFolds(w.targets.Units, n, 2, w.Seed)
		return out, calibrate.CrossFit(out.Folds, fit, use)
	}
	c, err := fit(dataset.Order{}.Indices(n))
	use(c, nil)
	return out, err
}

// judgeMembers notes why some rows do not determine the temperature of members: for the same reasons as one of their average.
func (w *work) judgeMembers(
	ctx context.Context, c *task.Calibration, t task.Task, members []*Group, set int, rows []int, labels target.Target,
) error {
	average, err := w.pooled(ctx, t, members, set, rows, c.With(1))
	if err != nil {
		return err
	}
	c.Undetermined = c.Outside()
	// An average with a true class of probability 0 has no temperature, and its members may have one.
	if after, err := t.Calibrators()[0].Fit(average, labels); err == nil {
		c.Undetermined = cmp.Or(after.Undetermined, c.Undetermined)
	}
	return nil
}

// pooled returns the average of the members' calibrated outcomes for some rows of a data set, rows×Width.
func (w *work) pooled(ctx context.Context, t task.Task, members []*Group, set int, rows []int, c *task.Calibration) ([]float64, error) {
	width := t.About().Width
	out := make([]float64, len(rows)*width)
	return out, eachPart(ctx, len(rows), func(from, to int) {
		one := make([]float64, (to-from)*width)
		for _, g := range members {
			for i, r := range rows[from:to] {
				for k, v := range g.outcome[set][r*width:][:width] {
					one[i*width+k] = float64(v / g.Weight)
				}
			}
			for i, v := range t.Apply(one, c, one) {
				out[from*width+i] += v / float64(len(members))
			}
		}
	})
}

// lowest returns the temperature with the lowest NLL, and that NLL. It tries three temperatures for each power of ten.
// Then it narrows the interval around the best one by the golden section, to a relative error of T below 1e-4. The NLL
// of an average may have several minima, which a search from T = 1 would miss.
func lowest(nll func(temperature float64) float64) (temperature, least float64) {
	best, least := 0, nll(1)
	// 10^(−9/3) is MinTemperature, and 10^(18/3) MaxTemperature. Temperatures above 10^(9/3) are rare, and are only tried
	// while the NLL still falls.
	const coldest, usual, hottest = -9, 9, 18
	at := func(k float64) float64 { return nll(math.Pow(10, k/3)) }
	for k := coldest; k <= usual || k <= hottest && best == k-1; k++ {
		if v := at(float64(k)); v < least {
			best, least = k, v
		}
	}
	if best == coldest || best == hottest {
		return math.Pow(10, float64(best)/3), least
	}
	low, high := float64(best-1), float64(best+1)
	a, b := high-(high-low)/math.Phi, low+(high-low)/math.Phi
	atA, atB := at(a), at(b)
	for high-low > 1e-4 {
		if atA < atB {
			high, b, atB = b, a, atA
			a = high - (high-low)/math.Phi
			atA = at(a)
		} else {
			low, a, atA = a, b, atB
			b = low + (high-low)/math.Phi
			atB = at(b)
		}
	}
	return math.Pow(10, (low+high)/6), min(least, atA, atB)
}
