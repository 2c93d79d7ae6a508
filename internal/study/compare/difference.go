package compare

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/task"
)

// pairs compares methods on the same examples.
type pairs struct {
	*Comparison
	task task.Task
}

func (r *Result) pairs() pairs { return pairs{r.Comparison, r.Task} }

// clustered returns the losses of the units of chance for those of examples with these indexes; nil stands for all test
// examples. Losses of pixels and tokens are of units already.
func (p pairs) clustered(losses []float64, rows []int) []float64 {
	if p.Unit == nil || task.LossesOfUnits(p.task) {
		return losses
	}
	names := p.unitNames()
	if rows != nil {
		names = nil
		for _, i := range rows {
			names = append(names, p.unitNames()[i])
		}
	}
	return task.Clustered(losses, task.Numbered(names))
}

// Clustered returns the losses of the units of chance for those of examples with these indexes; nil stands for all test
// examples.
func (r *Result) Clustered(losses []float64, rows []int) []float64 {
	return r.pairs().clustered(losses, rows)
}

// compare compares every method with the baseline, and each step of the price list with the one before.
func (r *Result) compare() {
	base := r.base()
	for _, m := range r.Methods {
		if m != base {
			m.Differences, m.Draws = r.pairs().differ(m, base), r.pairs().draws(m, base)
		}
	}
	r.Steps = r.steps()
	if m := r.candidate(); r.Shift != nil && m != nil {
		r.Shifted = r.ShiftDifference(m, base, r.Loss().Key, 0)
	}
}

// ladder lists for each place of the price list the methods that can take it, the preferred one first.
var ladder = [][]string{{baseline.SGD}, {baseline.SGDTemp}, {baseline.SWATemp, baseline.SWA},
	{baseline.SWAGTemp, baseline.SWAG, baseline.SWAGDiag}, {baseline.SWAGTuned}}

// steps returns the price list. It is nil if fewer than two of its methods were run.
func (r *Result) steps() (steps []Step) {
	var from *Method
	for _, keys := range ladder {
		for _, key := range keys {
			to := r.Method(key)
			if to == nil {
				continue
			}
			if from != nil {
				steps = append(steps, Step{from, to, r.pairs().differ(to, from)[r.Loss().Key]})
			}
			from = to
			break
		}
	}
	return steps
}

// differ returns the differences of two methods by the key of the loss, by unit of chance. The fits of vector scaling
// and of the prior of Laplace are taken as given.
func (p pairs) differ(m, base *Method) map[string]Difference {
	out := map[string]Difference{}
	for k, loss := range m.Losses {
		each := difference(loss.Values, base.Losses[k].Values)
		units := p.clustered(each, nil)
		d := chance.NewDifference(units, m.fits(k)+base.fits(k))
		// With nine wrong examples against one, the normal approximation fails. Losses of units are shares of wrong positions.
		if loss.Key == ErrorLoss && !task.LossesOfUnits(p.task) && len(units) == len(each) {
			more, less := disagreements(loss.Values, base.Losses[k].Values)
			d.P, d.Interval = max(d.P, chance.SignTest(more, less)), chance.ErrorDifference(more, less, len(each))
		}
		out[loss.Key] = Difference{d, math.NaN()}
	}
	return out
}

// DifferenceTo compares two methods in a loss on the test data.
func (r *Result) DifferenceTo(m, base *Method, key string) Difference {
	return r.pairs().differ(m, base)[key]
}

// fits returns the variance that the fit of the method's number adds to loss k.
func (m *Method) fits(k int) float64 {
	if m.Fits == nil {
		return 0
	}
	return m.Fits[k]
}

// disagreements counts the examples on which only the first of two methods errs, and those on which only the second does.
func disagreements(a, b []float64) (more, less int) {
	for i := range a {
		switch {
		case a[i] > b[i]:
			more++
		case a[i] < b[i]:
			less++
		}
	}
	return more, less
}

// draws returns the effect of the random draws of two methods on their difference in the first loss. If both use the
// same draws, the common part cancels.
func (p pairs) draws(m, base *Method) (d chance.Draws) {
	units := func(losses []float64) []float64 { return p.clustered(losses, nil) }
	own, other := units(m.Losses[0].Values), units(base.Losses[0].Values)
	switch a, b := mapLists(m.Without, units), mapLists(base.Without, units); {
	case len(a) == len(b) && len(a) > 0:
		d = chance.NewDraws(difference(own, other), differences(a, b), m.Weights)
	default:
		if len(a) > 0 {
			d = chance.NewDraws(own, a, m.Weights)
		}
		if len(b) > 0 {
			d = d.Plus(chance.NewDraws(other, b, base.Weights).Minus())
		}
	}
	a, b := append(mapLists(m.Reordered, units), own), append(mapLists(base.Reordered, units), other)
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

func mapLists(lists [][]float64, f func([]float64) []float64) (out [][]float64) {
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
			for _, key := range []string{r.Loss().Key, ErrorLoss} {
				if m != base && !m.StaleBN && m.Sound() && !slices.Equal(m.Loss(key), base.Loss(key)) {
					d := m.Differences[key]
					f(&d)
					m.Differences[key] = d
				}
			}
		}
		for i, s := range r.Steps {
			if s.From != base && s.To != base && s.From.Sound() && s.To.Sound() {
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
			r.Steps[i].Adjusted = s.To.Differences[r.Loss().Key].Adjusted
		case s.To == base:
			r.Steps[i].Adjusted = s.From.Differences[r.Loss().Key].Adjusted
		}
	}
}
