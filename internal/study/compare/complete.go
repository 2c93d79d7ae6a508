package compare

import (
	"fmt"

	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/task"
)

// complete adds the numbers of a method that need the outcomes of all examples.
func (b *builder) complete(m *Method, p *baseline.Predicted, all *kept) error {
	b.bestT(m, all)
	if err := b.save(m, p, all); err != nil {
		return err
	}
	if err := b.mix(m, p); err != nil {
		return err
	}
	if err := b.redraw(m, p); err != nil {
		return err
	}
	m.Warnings = append(m.Warnings, m.warnings(p)...)
	if m.Scaling != nil || !b.Scalings {
		return nil
	}
	if err := b.rescale(m, all); err != nil {
		return err
	}
	return b.recalibrate(m, all)
}

// bestT evaluates a method with its own temperature.
func (b *builder) bestT(m *Method, all *kept) {
	outcomes := all.final
	if m.Undetermined != "" { // the probabilities may be rounded to 0
		outcomes = all.own
	}
	if c, err := task.CrossFits(b.task, b.task.Calibrators()[0], outcomes, b.unitLabels(), b.Seed); err != nil {
		m.warn("no best temperature: %w", err)
	} else {
		m.AtBestT = c.Best()
	}
}

// save passes on the outcomes of the test data, and of those of the shift.
func (b *builder) save(m *Method, p *baseline.Predicted, all *kept) error {
	if b.Save == nil {
		return nil
	}
	shown, width := b.task.Shown(all.final)
	if err := b.Save(m.Key, shown, width); err != nil {
		return err
	}
	for k, sums := range p.Data[1:] {
		shown, width := b.task.Shown(b.calibrated(m, sums.Mean()))
		if err := b.Save(fmt.Sprintf("%s-severity-%d", m.Key, b.Shift.Severity(k+1)), shown, width); err != nil {
			return err
		}
	}
	return nil
}

// calibrated returns outcomes of a method with all that was fitted for it.
func (b *builder) calibrated(m *Method, outcomes []float64) []float64 {
	for _, f := range []*task.Fitted{m.Noise, m.Scaling} {
		if f != nil {
			outcomes = f.Apply(b.task, outcomes)
		}
	}
	return outcomes
}

// mix adds the scores of the mixture of a method's members. It requires that all members were kept and that no more
// than one noise was fitted.
func (b *builder) mix(m *Method, p *baseline.Predicted) error {
	t, ok := b.task.(task.Mixed)
	if !ok || p.Single() == nil || m.Noise != nil && m.Noise.CrossFitted() || m.Scaling != nil && m.Scaling.CrossFitted() {
		return nil
	}
	var members [][]float32
	var weights []float64
	for _, g := range p.Single() {
		outcomes := g.Mean()
		if m.Noise != nil {
			outcomes = withNoise(b.task, m.Noise, outcomes)
		}
		members, weights = append(members, outcomes), append(weights, float64(g.Weight)/p.Data[0].Weight)
	}
	return t.EvaluateMixture(m.Evaluation, members, weights, b.Test.Labels(), m.Scaling.Single())
}

func withNoise(t task.Task, noise *task.Fitted, outcomes []float32) []float32 {
	wide := make([]float64, len(outcomes))
	for i, v := range outcomes {
		wide[i] = float64(v)
	}
	out := make([]float32, len(outcomes))
	for i, v := range noise.Apply(t, wide) {
		out[i] = float32(v)
	}
	return out
}

// rescale evaluates a method with each calibrator of the task.
func (b *builder) rescale(m *Method, all *kept) error {
	list := listed(b.task)
	m.Scaled = make([]*Scaled, len(list))
	for i, c := range list {
		outcomes, s, err := b.scale(c, all.own, all.validation)
		if err != nil {
			m.warn("no %s scaling: %w", c.Method, err)
			continue
		}
		of := &Method{Name: m.Name}
		if err := b.decide(of, b.applied(s, all.validation)); err != nil {
			return err
		}
		e, err := task.Evaluate(b.task, outcomes, b.unitLabels(), b.options(of))
		if err != nil {
			return err
		}
		m.Scaled[i] = &Scaled{e, s}
	}
	return nil
}

// recalibrate evaluates the method's outcomes after a map recalibrated their distributions. Tasks without such a map
// are left alone.
func (b *builder) recalibrate(m *Method, all *kept) error {
	by, ok := task.Find(b.task, task.Recalibration)
	if !ok {
		return nil
	}
	maps, err := b.fit(by, all.own, all.validation)
	if err != nil {
		return err
	}
	opts := b.options(m)
	opts.Maps = maps
	if m.Recalibrated, err = task.Evaluate(b.task, all.own, b.Test.Labels(), opts); err == nil {
		m.Recalibrated.Warnings = append(m.Recalibrated.Warnings, maps.Warnings()...)
	}
	return err
}
