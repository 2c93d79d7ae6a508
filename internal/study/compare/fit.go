package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/task"
)

// kept holds the outcomes of a method that keeps those of all examples: of the test data, and of the validation data. The
// latter are nil without such data.
type kept struct {
	raw, rawValidation []float64 // of the networks
	own, validation    []float64 // with the missing noise, before a scaling
	final              []float64 // after it
}

// fitAll fits what belongs to a method: the noise that networks do not predict, a scaling, and a threshold.
func (b *builder) fitAll(m *Method, p *baseline.Predicted) (*kept, error) {
	by, _ := task.Find(b.task, p.By) // see [Comparison.leaves]
	all := &kept{raw: p.Data[0].Mean()}
	if p.Validation != nil {
		all.rawValidation = p.Validation.Mean()
	}
	if err := b.fitNoise(m, all); err != nil {
		return nil, err
	}
	m.Undetermined = cmp.Or(m.Noise.Undetermined(), p.Fitted.Undetermined())
	if err := b.fitScaling(m, p, by, all); err != nil {
		return nil, err
	}
	if p.Fitted == nil {
		return all, nil
	}
	return all, b.refitWith(m, p.Fitted, p.With)
}

// fitNoise fits the missing noise. Networks for a regression may predict none. Then each method gets the noise that makes the
// validation data most likely under its own predictions. Without validation data, each half of the test data gets the noise
// that is fitted on the other half.
func (b *builder) fitNoise(m *Method, all *kept) (err error) {
	if all.own, all.validation, m.Noise, err = b.withNoise(all.raw, all.rawValidation); err != nil {
		return &leftOut{why: fmt.Sprintf("%s is left out: %v", m.Name, err)}
	}
	if m.Noise == nil {
		return nil
	}
	m.deploy(m.Noise)
	return b.refit(m, m.Noise, all.raw, all.rawValidation)
}

// withNoise returns the outcomes of the test and validation data with the missing noise. It returns them unchanged if no noise
// is missing.
func (b *builder) withNoise(outcomes, validation []float64) (test, val []float64, noise *task.Fitted, err error) {
	by := task.Missing(b.task)
	if by == nil {
		return outcomes, validation, nil, nil
	}
	if test, noise, err = b.scale(*by, outcomes, validation); err != nil {
		return nil, nil, nil, err
	}
	return test, b.applied(noise, validation), noise, nil
}

// fitScaling fits the scaling that is part of the method, if there is one, and the threshold.
func (b *builder) fitScaling(m *Method, p *baseline.Predicted, by task.Calibrator, all *kept) error {
	if p.By == "" {
		all.final = all.own
		if m.Noise == nil && p.Fitted == nil && all.validation != nil {
			m.Unseen, _ = b.firstLosses(m, all.validation, b.Validation.Labels()) // what fits to them reports labels that are wrong
		}
		return b.decide(m, all.validation)
	}
	scaled, s, err := b.scale(by, all.own, all.validation)
	if err != nil {
		return &leftOut{why: fmt.Sprintf("%s is left out: %v", p.Name, err)}
	}
	m.scaled(s)
	if err := b.decide(m, b.applied(s, all.validation)); err != nil {
		return err
	}
	all.final = scaled
	if err := b.refit(m, s, all.own, all.validation); err != nil {
		return err
	}
	if !b.tries(m.Key) {
		return b.crossFit(m, by, s, all.validation)
	}
	if m.Undetermined != "" {
		return &leftOut{}
	}
	if err := b.crossFit(m, by, s, all.validation); err != nil {
		return err
	}
	stem := strings.TrimSuffix(m.Key, string(by.Method))
	for _, o := range b.methods {
		other := strings.HasPrefix(o.Key, stem) && o.Key != m.Key && o.Unseen != nil
		if m.Unseen == nil || other && floats.Sum(o.Unseen) <= floats.Sum(m.Unseen) {
			return &leftOut{}
		}
	}
	return nil
}

// tries reports whether a method is a row only if cross-validation prefers it to other calibrations of the same network. Nobody asked
// for it.
func (c *Comparison) tries(key string) bool {
	return baseline.Tried(key) && !c.Full && !slices.Contains(c.Asked, key)
}

// mostTried bounds rows·classes² for a method that is tried. A fit takes some ten passes with as many multiplications, and
// cross-validation five fits.
const mostTried = 2e7

// fit fits a calibrator on the validation data, or on halves of the test data without it.
func (b *builder) fit(by task.Calibrator, outcomes, validation []float64) (*task.Fitted, error) {
	if b.Validation == nil {
		return task.CrossFit(b.task, by, outcomes, b.unitLabels(), 2, b.Seed)
	}
	f, err := by.On(validation, b.Validation.Labels())
	if err != nil {
		return nil, fmt.Errorf("validation data: %w", err)
	}
	return f.Rounded(), nil
}

func (b *builder) scale(by task.Calibrator, outcomes, validation []float64) ([]float64, *task.Fitted, error) {
	f, err := b.fit(by, outcomes, validation)
	if err != nil {
		return nil, nil, err
	}
	return f.Apply(b.task, outcomes), f, nil
}

// applied returns the scaled outcomes of the validation data, or nil without such data.
func (b *builder) applied(s *task.Fitted, validation []float64) []float64 {
	if validation == nil {
		return nil
	}
	return s.Apply(b.task, validation)
}

// decide sets the threshold of the method and of its ensemble. The argument validation holds the method's outcomes on
// the validation data, scaled as the method is.
func (b *builder) decide(m *Method, validation []float64) error {
	t, ok := b.task.(task.Decided)
	switch {
	case b.Threshold == 0 && b.By == detect.Criterion{}:
		return nil
	case !ok:
		return fmt.Errorf("a threshold is on the probability of class 1 of the task binary, and the task is %s", b.task.About().Name)
	case b.Threshold > 0:
		m.Threshold = b.Threshold
	default:
		chosen, err := t.Decide(validation, b.Validation.Labels(), b.By)
		if err != nil {
			m.doubts = append(m.doubts, fmt.Errorf("the threshold is %g: validation data: %w", detect.DefaultThreshold, err))
			return nil
		}
		m.Threshold = chosen.Threshold
	}
	if m.Deploy != nil {
		m.Deploy.Threshold = m.Threshold
	}
	return nil
}
