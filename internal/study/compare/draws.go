package compare

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Redrawn holds the data for estimating how a method's losses vary with labels and draws.
type Redrawn struct {
	// Without holds the first loss without one unit of chance, by unit and example, and Weights the weights of the units: a
	// group of members, or an antithetic pair. Both are nil without random draws.
	Without [][]float64
	Weights []float64
	// Reordered holds the first loss with other orders of the batch-norm examples, by order and example.
	Reordered [][]float64
	// Fits holds, by loss, the variance that a fitted number adds. It is nil for a method without one.
	Fits []float64
	// Unseen holds the first loss of each validation example, with fits that have not seen it. It is nil without such data, and
	// for methods that do not predict it.
	Unseen []float64
}

// refit computes what the fit of the calibration of outcomes adds: see [builder.refitWith].
func (b *builder) refit(m *Method, fitted *task.Fitted, outcomes, validation []float64) error {
	return b.refitWith(m, fitted, func(c *task.Calibration) ([]float64, []float64, error) {
		return b.task.Apply(nil, c, outcomes), b.task.Apply(nil, c, validation), nil
	})
}

// refitWith computes, by loss, the variance that the fit of a number adds, and the losses of fits without each example. It computes
// nothing for a calibration without a single number. A refit of noise changes one factor of the variances of all targets. A number that is fitted on other
// folds of the test data affects the losses of its fold. The function with returns the outcomes of the test and the
// validation data with another calibration.
func (b *builder) refitWith(m *Method, fitted *task.Fitted, with baseline.With) error {
	m.Fits, m.Unseen = nil, nil
	for k, c := range fitted.Each {
		number, ok := c.Number()
		if !ok {
			return nil
		}
		share := 1.0
		each, err := chance.NewRefit(func(factor float64) (on []float64, of [][]float64, err error) {
			test, validation, err := with(c.With(number * factor))
			if err != nil {
				return nil, nil, err
			}
			labels, judged := target.Target{}, b.Test.Labels()
			if fitted.CrossFitted() {
				validation, labels = task.Pick(b.task, test, judged, calibrate.Others(fitted.Folds, k))
				test, judged = task.Pick(b.task, test, judged, fitted.Folds[k])
				share = float64(judged.Len()) / float64(b.Test.Len())
			} else {
				labels = b.Validation.Labels()
			}
			all, err := b.losses(m, validation, labels)
			if err != nil {
				return nil, nil, err
			}
			of, err = b.losses(m, test, judged)
			return all[0], of, err
		})
		if err != nil {
			return err
		}
		if m.Fits == nil {
			m.Fits = make([]float64, len(each.Variances))
		}
		floats.AddScaled(m.Fits, share*share, each.Variances)
		if !fitted.CrossFitted() {
			m.Unseen = each.Unseen
		}
	}
	return nil
}

// unseenFolds is the number of folds of the validation data for methods that fit several numbers.
const unseenFolds = 5

// crossFit computes the losses of the validation data with fits that have not seen the examples.
func (b *builder) crossFit(m *Method, by task.Calibrator, fitted *task.Fitted, validation []float64) (err error) {
	if b.Validation == nil || m.Unseen != nil {
		return nil
	}
	if m.Unseen = fitted.Single().Unseen; m.Unseen != nil {
		return nil
	}
	labels := b.Validation.Labels()
	folds, err := task.CrossFit(b.task, by, validation, labels, unseenFolds, b.Seed)
	if err != nil {
		return nil // too few examples, or one fold cannot be fitted
	}
	m.Unseen, err = b.firstLosses(m, folds.Apply(b.task, validation), labels)
	return err
}

// firstLosses returns the first loss of each example.
func (b *builder) firstLosses(m *Method, outcomes []float64, labels target.Target) ([]float64, error) {
	all, err := b.losses(m, outcomes, labels)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// losses returns the losses by loss and example.
func (b *builder) losses(m *Method, outcomes []float64, labels target.Target) (out [][]float64, err error) {
	list, err := task.Losses(b.task, outcomes, labels, task.EvaluateOptions{Threshold: m.Threshold})
	for _, l := range list {
		out = append(out, l.Values)
	}
	return out, err
}

// redraw computes the losses of a method without some of its members, and with other orders of the batch-norm
// examples. The method keeps its calibration.
func (b *builder) redraw(m *Method, p *baseline.Predicted) error {
	loss := func(groups ...*baseline.Group) ([]float64, error) {
		return b.firstLosses(m, b.calibrated(m, baseline.Average(0, groups...)), b.Test.Labels())
	}
	units := p.Units()
	for g, unit := range units {
		if !p.Drawn {
			break
		}
		weight := 0.0
		for _, group := range unit {
			weight += float64(group.Weight)
		}
		m.Weights = append(m.Weights, weight)
		if len(units) == 1 {
			m.Without = append(m.Without, m.Losses[0].Values) // a single unit gives no information
			break
		}
		l, err := loss(slices.Concat(slices.Concat(units[:g]...), slices.Concat(units[g+1:]...))...)
		if err != nil {
			return err
		}
		m.Without = append(m.Without, l)
	}
	for _, group := range p.Reordered {
		l, err := loss(group)
		if err != nil {
			return err
		}
		m.Reordered = append(m.Reordered, l)
	}
	return nil
}

// Settling returns the number of members with which the standard error of the draws would be half of that of the
// examples, rounded up to tens. The variance of the draws falls as one over the number of members.
func Settling(members int, draws, examples float64) int {
	ratio := 2 * draws / examples
	return 10 * int(math.Ceil(float64(members)*ratio*ratio/10))
}

// more returns the number of members at which the error of the draws is below half of that of the test data, at most
// MaxMembers. It is about the difference to the baseline, which has been added before. Without it no more are drawn.
func (b *builder) more(p *baseline.Predicted) (int, error) {
	base := find(b.methods, baseline.SWATemp)
	if base == nil || !base.Sound() {
		base = find(b.methods, baseline.SWA)
	}
	if base == nil || !base.Sound() || len(p.Groups) < chance.LeastMembers(p.Antithetic) {
		return p.Members, nil
	}
	m := &Method{Members: p.Members, Antithetic: p.Antithetic}
	var validation []float64
	if p.Validation != nil {
		validation = p.Validation.Mean()
	}
	outcomes, _, noise, err := b.withNoise(p.Data[0].Mean(), validation)
	if err != nil {
		return p.Members, nil // fitNoise reports it
	}
	m.Noise = noise
	losses, err := task.Losses(b.task, outcomes, b.Test.Labels(), task.EvaluateOptions{})
	if err != nil {
		return 0, err
	}
	m.Evaluation = &task.Evaluation{Losses: losses}
	if err := b.redraw(m, p); err != nil {
		return 0, err
	}
	pairs := pairs{b.Comparison, b.task}
	draws, examples := pairs.draws(m, base).Standard(), pairs.differ(m, base)[losses[0].Key].Standard
	if !(draws > examples/2) {
		return p.Members, nil
	}
	return min(b.MaxMembers, max(p.Members+2, Settling(p.Members, draws, examples))), nil
}
