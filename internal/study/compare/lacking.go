package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// Networks for a regression may predict no noise. Then each method gets the noise that makes the validation data most
// likely under its own predictions. Without validation data, each half of the test data gets the noise that is fitted
// on the other half.

// halves returns the two halves of the test data for fits on one and application to the other.
func (r *Result) halves() [][]int { return calibrate.Folds(r.Test.Len(), 2, r.Seed) }

// settle returns the outcomes of the test and validation data with the missing noise added. It returns them unchanged
// if no noise is missing. Without validation data there is one noise for each half.
func (r *Result) settle(outcomes, validation []float64) (test, val []float64, noise []*task.Noise, err error) {
	t := task.Lacking(r.task)
	if t == nil {
		return outcomes, validation, nil, nil
	}
	if r.Validation != nil {
		n, err := t.FitNoise(validation, r.Validation.Labels())
		if err != nil {
			return nil, nil, nil, fmt.Errorf("validation data: %w", err)
		}
		return t.AddNoise(nil, n, outcomes), t.AddNoise(nil, n, validation), []*task.Noise{n}, nil
	}
	if r.Test.Len() < 2 {
		return nil, nil, nil, fmt.Errorf("%s for 2 halves", report.Plural(r.Test.Len(), "test example"))
	}
	test, width, halves := slices.Clone(outcomes), r.task.Width(), r.halves()
	for h, rows := range halves {
		n, err := t.FitNoise(r.pick(outcomes, halves[1-h]))
		if err != nil {
			return nil, nil, nil, err
		}
		of, _ := r.pick(outcomes, rows)
		t.AddNoise(of, n, of)
		for k, row := range rows {
			copy(test[row*width:], of[k*width:][:width])
		}
		noise = append(noise, n)
	}
	return test, nil, noise, nil
}

// noisy computes the losses of noise-free outcomes at noise levels around the fitted one. A refit changes one factor
// of the variances of all targets.
func (r *Result) noisy(m *Method, noise []*task.Noise, outcomes, validation []float64) (parts []part, err error) {
	t := task.Lacking(r.task)
	for h, n := range noise {
		p, of, judged := part{}, outcomes, r.Test.Labels()
		on, labels := validation, truth.Truth{}
		if r.Validation != nil {
			labels = r.Validation.Labels()
		} else {
			halves := r.halves()
			p = part{fit: halves[1-h], rows: halves[h]}
			on, labels = r.pick(outcomes, p.fit)
			of, judged = r.pick(outcomes, p.rows)
		}
		p.Tempered, err = calibrate.NewTempered(1, func(factor float64) ([]float64, [][]float64, error) {
			fitted, err := r.losses(m, t.AddNoise(nil, n.Times(factor), on), labels)
			if err != nil {
				return nil, nil, err
			}
			losses, err := r.losses(m, t.AddNoise(nil, n.Times(factor), of), judged)
			return fitted[0], losses, err
		})
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// idle returns the reason to leave out a method that scales variances if the noise is fitted on the same data, or "".
func (r *Result) idle(p *baseline.Predicted) string {
	if p.Scaler != calibrate.ByTemperature || task.Lacking(r.task) == nil {
		return ""
	}
	name := strings.TrimSuffix(p.Name, "-Temp") + "-" + r.first().Name
	if p.Members == 1 {
		return fmt.Sprintf("%s is left out: noise that is fitted has its scale already (%s would be 1). SWA with it is the baseline", name, r.first().Symbol)
	}
	return fmt.Sprintf("%s is left out: noise that is fitted on the same data takes its place", name)
}

// warnOfNoise adds the warnings of the noise, without repetition.
func (m *Method) warnOfNoise() {
	for _, n := range m.Noise {
		for _, w := range n.Warnings {
			if !slices.ContainsFunc(m.Warnings, func(known error) bool { return known.Error() == w.Error() }) {
				m.Warnings = append(m.Warnings, w)
			}
		}
	}
}

// noiseCell returns the noise of a method by target, and by half if there are two.
func (m *Method) noiseCell() string {
	var out []string
	for _, n := range m.Noise {
		var each []string
		for _, std := range n.Std {
			each = append(each, report.Fixed(std, 4))
		}
		out = append(out, strings.Join(each, " "))
	}
	return strings.Join(out, ", ")
}

// noisePlace describes the data on which the noise was fitted, or returns "".
func (r *Result) noisePlace() string {
	if task.Lacking(r.task) == nil {
		return ""
	}
	return "noise of each method fitted on " + r.fittedOn()
}
