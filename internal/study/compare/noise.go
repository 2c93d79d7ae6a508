package compare

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// noise holds the data for estimating how a method's losses vary with draws and images.
type noise struct {
	// without holds the losses without one group of members, by group, loss and image. The losses without two groups
	// are in pairs, and the weights of the groups in weights. All are nil without random draws.
	without [][][]float64
	pairs   [][][]float64
	weights []float64
	// corrections are the changes of the losses for infinitely many members, by loss and image; nil for a loss that
	// counts errors.
	corrections [][]float64
	// reordered holds the losses with other orders of the batch-norm images, by order, loss and image.
	reordered [][][]float64
	// parts holds the losses at temperatures around the fitted one, or around each of the cross-fitted ones. It is
	// nil for a method without a temperature.
	parts []part
}

// part is the set of images that one temperature scales. It is all test images, or those of one fold, whose
// temperature is fitted on the other folds.
type part struct {
	*calibrate.Tempered
	fit, rows []int // nil means the validation images, and all test images
}

// tempered computes the losses of outcomes at numbers around the one that a calibrator fitted. It returns nil for a
// calibrator without a single number. A refit of noise changes one factor of the variances of all targets.
func (r *Result) tempered(m *Method, fitted *task.Fitted, outcomes, validation []float64) (parts []part, err error) {
	for k, c := range fitted.Each {
		number, ok := c.Number()
		if !ok {
			return nil, nil
		}
		p, on, labels, of, judged := part{}, validation, truth.Truth{}, outcomes, r.Test.Labels()
		if fitted.CrossFitted() {
			p = part{fit: calibrate.Others(fitted.Folds, k), rows: fitted.Folds[k]}
			on, labels = task.Pick(r.task, outcomes, judged, p.fit)
			of, judged = task.Pick(r.task, outcomes, judged, p.rows)
		} else {
			labels = r.Validation.Labels()
		}
		p.Tempered, err = calibrate.NewTempered(number, func(v float64) ([]float64, [][]float64, error) {
			fitted, err := r.losses(m, r.task.Apply(nil, c.With(v), on), labels)
			if err != nil {
				return nil, nil, err
			}
			losses, err := r.losses(m, r.task.Apply(nil, c.With(v), of), judged)
			return fitted[0], losses, err
		})
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// losses returns the losses by loss and image.
func (r *Result) losses(m *Method, outcomes []float64, labels truth.Truth) ([][]float64, error) {
	list, err := task.Losses(r.task, outcomes, labels, task.EvaluateOptions{Threshold: m.Threshold})
	return values(list), err
}

func values(losses []task.Loss) (out [][]float64) {
	for _, l := range losses {
		out = append(out, l.Values)
	}
	return out
}

// redraw computes the losses of a method without some of its members, and with other orders of the batch-norm images.
// Each time the scaling is fitted again.
func (r *Result) redraw(m *Method, p *baseline.Predicted) error {
	losses := func(groups ...*baseline.Group) ([][]float64, error) {
		averages := baseline.Average(groups...)
		outcomes, validation, _, err := r.settle(averages[0], averages[len(averages)-1])
		if err != nil {
			return nil, err
		}
		by, ok := task.Find(r.task, p.By)
		if !ok {
			return r.losses(m, outcomes, r.Test.Labels())
		}
		scaled, _, err := r.scale(by, outcomes, validation)
		if err != nil {
			return nil, err
		}
		return r.losses(m, scaled, r.Test.Labels())
	}
	for g, group := range p.Groups {
		m.weights = append(m.weights, float64(group.Weight))
		if len(p.Groups) == 1 {
			m.without = append(m.without, values(m.Losses)) // a single group gives no information
			break
		}
		l, err := losses(slices.Concat(p.Groups[:g], p.Groups[g+1:])...)
		if err != nil {
			return err
		}
		m.without = append(m.without, l)
	}
	for g := range p.Groups {
		for o := g + 1; o < len(p.Groups) && len(p.Groups) > 2; o++ {
			l, err := losses(slices.Concat(p.Groups[:g], p.Groups[g+1:o], p.Groups[o+1:])...)
			if err != nil {
				return err
			}
			m.pairs = append(m.pairs, l)
		}
	}
	for k, loss := range m.Losses {
		var correction []float64
		if len(p.Groups) > 0 && loss.Key != errorLoss {
			_, corrected := calibrate.Jackknife(loss.Values, by(k, m.without), nil, m.weights)
			correction = difference(corrected, loss.Values)
		}
		m.corrections = append(m.corrections, correction)
	}
	for _, group := range p.Reordered {
		l, err := losses(group)
		if err != nil {
			return err
		}
		m.reordered = append(m.reordered, l)
	}
	return nil
}

// resampled adds the method's losses over a resample to sums, with the temperature fitted again.
func (m *Method) resampled(sums, test, validation []float64) {
	if m.parts == nil {
		for k, loss := range m.Losses {
			sums[k] += floats.Dot(loss.Values, test)
		}
	}
	pick := func(rows []int) (counts []float64) {
		for _, i := range rows {
			counts = append(counts, test[i])
		}
		return counts
	}
	for k, correction := range m.corrections {
		if correction != nil {
			sums[k] += floats.Dot(correction, test)
		}
	}
	for _, p := range m.parts {
		if p.rows == nil {
			p.Resample(sums, validation, test)
		} else {
			p.Resample(sums, pick(p.fit), pick(p.rows))
		}
	}
}

// compare compares every method with the baseline, image by image: see [calibrate.NewDifference]. Vector scaling and
// the prior of Laplace are not fitted again.
func (r *Result) compare() {
	base, kinds, validation := &r.Methods[r.baseline()], len(r.Methods[0].Losses), 0
	if r.Validation != nil {
		validation = r.Validation.Len()
	}
	spread := make([][][]float64, len(r.Methods)) // by method, loss and resample
	for i := range spread {
		spread[i] = make([][]float64, kinds)
	}
	n := r.Test.Len()
	calibrate.BootstrapOptions{Seed: r.Seed}.Counts(n, validation, func(test, validation []float64) {
		of := make([]float64, kinds)
		base.resampled(of, test, validation)
		for i := range r.Methods {
			sums := make([]float64, kinds)
			r.Methods[i].resampled(sums, test, validation)
			for k := range sums {
				spread[i][k] = append(spread[i][k], (sums[k]-of[k])/float64(n))
			}
		}
	})
	for i := range r.Methods {
		m := &r.Methods[i]
		if m == base {
			continue
		}
		m.Differences = map[string]Difference{}
		for k, loss := range m.Losses {
			mean := stat.Mean(difference(loss.Values, base.Losses[k].Values), nil)
			d := calibrate.NewDifference(mean, stat.Variance(spread[i][k], nil), n, draws(m, base, k))
			if loss.Key == errorLoss {
				d.P = max(d.P, disagree(loss.Values, base.Losses[k].Values)) // with nine images against one, the normal approximation fails
			}
			m.Differences[loss.Key] = Difference{d, math.NaN()}
		}
		m.warnDraws(r.main(m))
	}
}

// disagree tests which of two methods errs more, by the images on which only one errs.
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
	return calibrate.SignTest(won, lost)
}

// draws returns the effect of the random draws of two methods on their difference in loss k. If both use the same
// draws, the common part cancels.
func draws(m, base *Method, k int) (d calibrate.Draws) {
	own, other := m.Losses[k].Values, base.Losses[k].Values
	pairs := func(m *Method) [][]float64 {
		if m.Losses[k].Key == errorLoss {
			return nil // a count has no second derivative
		}
		return by(k, m.pairs)
	}
	switch a, b := by(k, m.without), by(k, base.without); {
	case len(a) == len(b) && len(a) > 0:
		d, _ = calibrate.Jackknife(difference(own, other), differences(a, b), differences(pairs(m), pairs(base)), m.weights)
	default:
		if len(a) > 0 {
			d, _ = calibrate.Jackknife(own, a, pairs(m), m.weights)
		}
		if len(b) > 0 {
			minus, _ := calibrate.Jackknife(other, b, pairs(base), base.weights)
			minus.Bias = -minus.Bias
			d = d.Plus(minus)
		}
	}
	if m.Losses[k].Key == errorLoss {
		d.Bias = 0
	}
	a, b := append(by(k, m.reordered), own), append(by(k, base.reordered), other)
	switch {
	case len(a) > 1 && len(a) == len(b):
		d = d.Plus(calibrate.Replicated(differences(a, b)))
	case len(a) > 1:
		d = d.Plus(calibrate.Replicated(a))
	case len(b) > 1:
		d = d.Plus(calibrate.Replicated(b))
	}
	return d
}

// by returns loss k of each element.
func by(k int, of [][][]float64) (out [][]float64) {
	for _, losses := range of {
		out = append(out, losses[k])
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

// warnDraws warns if there are too few members.
func (m *Method) warnDraws(d Difference) {
	switch {
	case math.IsInf(d.Draws.Variance, 1):
		m.warn("what other draws would give cannot be told from %s", report.Plural(m.Members, "member"))
	case math.Abs(d.Bias) > (d.High-d.Low)/8:
		m.warn("%s cost about %s beside infinitely many, of which the interval is", report.Plural(m.Members, "member"), report.Fixed(d.Bias, 4))
	}
}

// adjust corrects p-values for multiple comparisons. The family consists of the differences that the verdict may
// mention. These are the first loss and the errors of every method, unless they equal the baseline's by construction.
func (r *Result) adjust() {
	base := &r.Methods[r.baseline()]
	var family []float64
	each := func(f func(m *Method, key string)) {
		for i := range r.Methods {
			for _, key := range []string{r.loss().Key, errorLoss} {
				if m := &r.Methods[i]; m != base && !m.StaleBN && !slices.Equal(m.Loss(key), base.Loss(key)) {
					f(m, key)
				}
			}
		}
	}
	each(func(m *Method, key string) { family = append(family, m.Differences[key].P) })
	family = calibrate.Holm(family)
	each(func(m *Method, key string) {
		m.Differences[key], family = Difference{m.Differences[key].Difference, family[0]}, family[1:]
	})
}
