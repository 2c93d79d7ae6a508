package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Networks for a regression may predict no noise. Then each method gets the noise that makes the validation data most
// likely under its own predictions. Without validation data, each half of the test data gets the noise that is fitted
// on the other half.

// settle returns the outcomes of the test and validation data with the missing noise added. It returns them unchanged
// if no noise is missing.
func (r *Result) settle(outcomes, validation []float64) (test, val []float64, noise *task.Fitted, err error) {
	by := task.Missing(r.task)
	if by == nil {
		return outcomes, validation, nil, nil
	}
	if test, noise, err = r.scale(*by, outcomes, validation); err != nil {
		return nil, nil, nil, err
	}
	return test, r.applied(noise, validation), noise, nil
}

// idle returns the reason to leave out a method that scales variances if the noise is fitted on the same data, or "".
func (r *Result) idle(p *baseline.Predicted) string {
	if p.By != task.OneNumber || task.Missing(r.task) == nil {
		return ""
	}
	name := strings.TrimSuffix(p.Name, "-Temp")
	return fmt.Sprintf("%s-%s is left out: the noise of %s is fitted on the same data and takes its place", name, r.first().Name, name)
}

// warnOfNoise adds the warnings of the noise, without repetition.
func (m *Method) warnOfNoise() {
	if m.Noise == nil {
		return
	}
	for _, w := range m.Noise.Warnings() {
		if !slices.ContainsFunc(m.Warnings, func(known error) bool { return known.Error() == w.Error() }) {
			m.Warnings = append(m.Warnings, w)
		}
	}
}

// noiseCell returns the noise of a method by target, and by half if there are two.
func (m *Method) noiseCell() string {
	var out []string
	if m.Noise == nil {
		return ""
	}
	for _, c := range m.Noise.Each {
		var each []string
		for _, std := range c.NoiseStd {
			each = append(each, report.Fixed(std, 4))
		}
		out = append(out, strings.Join(each, " "))
	}
	return strings.Join(out, ", ")
}

// noisePlace describes the data on which the noise was fitted, or returns "".
func (r *Result) noisePlace() string {
	if task.Missing(r.task) == nil {
		return ""
	}
	return "noise of each method fitted on " + r.fittedOn()
}
