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

// A regression may leave open how far targets are from what networks say. Then each method
// has the noise that makes the validation data most likely by its own predictions, or
// without validation data that of one half of the test data, on the other.

// halves are the test data's for what is fitted on one and applied to the other.
func (r *Result) halves() [][]int { return calibrate.Folds(r.Test.Len(), 2, r.Seed) }

// settle returns outcomes of the test and of the validation data with the noise that they
// lack; as they are where they lack none. Without validation data noise has one for each
// half.
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

// noisy asks for the losses of outcomes, as they are without noise, at noise about that which
// was fitted. What is fitted anew is one factor of the variances of all targets.
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

// idle says why a method is left out that scales variances whose noise was fitted to the very
// data that the scaling would be, or is "".
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

// warnOfNoise says once what both halves of the test data warn of.
func (m *Method) warnOfNoise() {
	for _, n := range m.Noise {
		for _, w := range n.Warnings {
			if !slices.ContainsFunc(m.Warnings, func(known error) bool { return known.Error() == w.Error() }) {
				m.Warnings = append(m.Warnings, w)
			}
		}
	}
}

// noiseCell is the noise of a method, by target, and by half where there are two.
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

// noisePlace says what the noise was fitted on, or is "".
func (r *Result) noisePlace() string {
	if task.Lacking(r.task) == nil {
		return ""
	}
	return "noise of each method fitted on " + r.fittedOn()
}
