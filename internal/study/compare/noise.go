package compare

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// noise holds the data for estimating how a method's losses vary with labels and draws.
type noise struct {
	// without holds the first loss without one group of members, by group and example, and weights the weights of the
	// groups. Both are nil without random draws.
	without [][]float64
	weights []float64
	// reordered holds the first loss with other orders of the batch-norm examples, by order and example.
	reordered [][]float64
	// fits holds, by loss, the variance that a fitted number adds. It is nil for a method without one.
	fits []float64
}

// refits returns the variance of each loss that comes from the fit of the calibration of outcomes: see [Result.refitsWith].
func (r *Result) refits(m *Method, fitted *task.Fitted, outcomes, validation []float64) ([]float64, error) {
	return r.refitsWith(m, fitted, func(c *task.Calibration) ([]float64, []float64, error) {
		return r.task.Apply(nil, c, outcomes), r.task.Apply(nil, c, validation), nil
	})
}

// refitsWith returns, by loss, the variance that the fit of a number adds. It returns nil for a calibration without a
// single number. A refit of noise changes one factor of the variances of all targets. A number that is fitted on other
// folds of the test data affects the losses of its fold. The function with returns the outcomes of the test and the
// validation data with another calibration.
func (r *Result) refitsWith(m *Method, fitted *task.Fitted, with baseline.With) (variances []float64, err error) {
	for k, c := range fitted.Each {
		number, ok := c.Number()
		if !ok {
			return nil, nil
		}
		share := 1.0
		each, err := chance.RefitVariances(func(factor float64) (on []float64, of [][]float64, err error) {
			test, validation, err := with(c.With(number * factor))
			if err != nil {
				return nil, nil, err
			}
			labels, judged := truth.Truth{}, r.Test.Labels()
			if fitted.CrossFitted() {
				validation, labels = task.Pick(r.task, test, judged, calibrate.Others(fitted.Folds, k))
				test, judged = task.Pick(r.task, test, judged, fitted.Folds[k])
				share = float64(judged.Len()) / float64(r.Test.Len())
			} else {
				labels = r.Validation.Labels()
			}
			all, err := r.losses(m, validation, labels)
			if err != nil {
				return nil, nil, err
			}
			of, err = r.losses(m, test, judged)
			return all[0], of, err
		})
		if err != nil {
			return nil, err
		}
		floats.Scale(share*share, each)
		if variances == nil {
			variances = make([]float64, len(each))
		}
		floats.Add(variances, each)
	}
	return variances, nil
}

// losses returns the losses by loss and example.
func (r *Result) losses(m *Method, outcomes []float64, labels truth.Truth) (out [][]float64, err error) {
	list, err := task.Losses(r.task, outcomes, labels, task.EvaluateOptions{Threshold: m.Threshold})
	for _, l := range list {
		out = append(out, l.Values)
	}
	return out, err
}

// redraw computes the losses of a method without some of its members, and with other orders of the batch-norm
// examples. The method keeps its calibration.
func (r *Result) redraw(m *Method, p *baseline.Predicted) error {
	loss := func(groups ...*baseline.Group) ([]float64, error) {
		outcomes := baseline.Average(0, groups...)
		for _, c := range []*task.Fitted{m.Noise, m.Scaling} {
			if c != nil {
				outcomes = c.Apply(r.task, outcomes)
			}
		}
		all, err := r.losses(m, outcomes, r.Test.Labels())
		if err != nil {
			return nil, err
		}
		return all[0], nil
	}
	for g := range p.Groups {
		if !p.Drawn {
			break
		}
		m.weights = append(m.weights, float64(p.Groups[g].Weight))
		if len(p.Groups) == 1 {
			m.without = append(m.without, m.Losses[0].Values) // a single group gives no information
			break
		}
		l, err := loss(slices.Concat(p.Groups[:g], p.Groups[g+1:])...)
		if err != nil {
			return err
		}
		m.without = append(m.without, l)
	}
	for _, group := range p.Reordered {
		l, err := loss(group)
		if err != nil {
			return err
		}
		m.reordered = append(m.reordered, l)
	}
	return nil
}

// more returns the number of members at which the error of the draws is below half of that of the test data, at most
// MaxMembers. It is about the difference to the baseline, which has been added before. Without it no more are drawn.
func (r *Result) more(p *baseline.Predicted) (int, error) {
	base := r.method(baseline.SWATemp)
	if base == nil || !base.sound() {
		base = r.method(baseline.SWA)
	}
	if base == nil || !base.sound() || len(p.Groups) < fewMembers {
		return p.Members, nil
	}
	m := &Method{Members: p.Members}
	outcomes, _, noise, err := r.settle(p.Data[0].Mean(), r.validation(p))
	if err != nil {
		return p.Members, nil // add reports it
	}
	m.Noise = noise
	losses, err := task.Losses(r.task, outcomes, r.Test.Labels(), task.EvaluateOptions{})
	if err != nil {
		return 0, err
	}
	m.Evaluation = &task.Evaluation{Losses: losses}
	if err := r.redraw(m, p); err != nil {
		return 0, err
	}
	m.Differences = r.differ(m, base)
	draws, examples := r.draws(m, base).Standard(), r.main(m).Standard
	if !(draws > examples/2) {
		return p.Members, nil
	}
	return min(r.MaxMembers, max(p.Members+1, settling(p.Members, draws, examples))), nil
}

// compare compares every method with the baseline, and each step of the price list with the one before.
func (r *Result) compare() {
	base := r.base()
	for _, m := range r.Methods {
		if m != base {
			m.Differences, m.Draws = r.differ(m, base), r.draws(m, base)
		}
	}
	r.Steps = r.steps()
	if m := r.candidate(); r.Shift != nil && m != nil {
		r.Shifted = r.shiftDifference(m, base, r.loss().Key, 0)
	}
}

// differ returns the differences of two methods by the key of the loss, by unit of chance. The fits of vector scaling
// and of the prior of Laplace are taken as given.
func (r *Result) differ(m, base *Method) map[string]Difference {
	out := map[string]Difference{}
	for k, loss := range m.Losses {
		fits := 0.0
		for _, f := range [][]float64{m.fits, base.fits} {
			if f != nil {
				fits += f[k]
			}
		}
		each := difference(loss.Values, base.Losses[k].Values)
		units := r.clustered(each, nil)
		d := chance.NewDifference(units, fits)
		if loss.Key == errorLoss && len(units) == len(each) {
			d.P = max(d.P, disagree(loss.Values, base.Losses[k].Values)) // with nine examples against one, the normal approximation fails
		}
		out[loss.Key] = Difference{d, math.NaN()}
	}
	return out
}

// disagree tests which of two methods errs more, by the examples on which only one errs.
func disagree(a, b []float64) float64 {
	won, lost := 0, 0
	for i := range a {
		switch {
		case a[i] < b[i]:
			won++
		case a[i] > b[i]:
			lost++
		}
	}
	return chance.SignTest(won, lost)
}

// draws returns the effect of the random draws of two methods on their difference in the first loss. If both use the
// same draws, the common part cancels.
func (r *Result) draws(m, base *Method) (d chance.Draws) {
	units := func(losses []float64) []float64 { return r.clustered(losses, nil) }
	own, other := units(m.Losses[0].Values), units(base.Losses[0].Values)
	switch a, b := each(m.without, units), each(base.without, units); {
	case len(a) == len(b) && len(a) > 0:
		d = chance.NewDraws(difference(own, other), differences(a, b), m.weights)
	default:
		if len(a) > 0 {
			d = chance.NewDraws(own, a, m.weights)
		}
		if len(b) > 0 {
			d = d.Plus(chance.NewDraws(other, b, base.weights).Minus())
		}
	}
	a, b := append(each(m.reordered, units), own), append(each(base.reordered, units), other)
	switch {
	case len(a) > 1 && len(a) == len(b):
		d = d.Plus(chance.Replicated(differences(a, b)))
	case len(a) > 1:
		d = d.Plus(chance.Replicated(a))
	case len(b) > 1:
		d = d.Plus(chance.Replicated(b))
	}
	return d
}

func each(lists [][]float64, f func([]float64) []float64) (out [][]float64) {
	for _, list := range lists {
		out = append(out, f(list))
	}
	return out
}

func difference(a, b []float64) []float64 { return floats.SubTo(make([]float64, len(a)), a, b) }

func differences(a, b [][]float64) (out [][]float64) {
	for i := range a {
		out = append(out, difference(a[i], b[i]))
	}
	return out
}

// adjust corrects p-values for multiple comparisons. The family consists of the differences that the verdict may
// mention. These are the first loss and the errors of every method against the baseline, the steps of the price list
// between other methods, and the difference on changed data. Differences that are zero by construction do not count.
func (r *Result) adjust() {
	base := r.base()
	var family []float64
	each := func(f func(d *Difference)) {
		for _, m := range r.Methods {
			for _, key := range []string{r.loss().Key, errorLoss} {
				if m != base && !m.StaleBN && m.sound() && !slices.Equal(m.Loss(key), base.Loss(key)) {
					d := m.Differences[key]
					f(&d)
					m.Differences[key] = d
				}
			}
		}
		for i, s := range r.Steps {
			if s.From != base && s.To != base && s.From.sound() && s.To.sound() {
				f(&r.Steps[i].Difference)
			}
		}
		if r.Shift != nil && r.candidate() != nil {
			f(&r.Shifted)
		}
	}
	each(func(d *Difference) { family = append(family, d.P) })
	r.Tests = len(family)
	family = chance.Holm(family)
	each(func(d *Difference) { d.Adjusted, family = family[0], family[1:] })
	for i, s := range r.Steps {
		switch {
		case s.From == base:
			r.Steps[i].Adjusted = s.To.Differences[r.loss().Key].Adjusted
		case s.To == base:
			r.Steps[i].Adjusted = s.From.Differences[r.loss().Key].Adjusted
		}
	}
}
