package compare

import (
	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/report"
)

// Step is one step of the price list, from the user's own network to a tuned ensemble. Difference is what the step
// changes in the first loss.
type Step struct {
	From, To *Method
	Difference
}

// ladder lists for each place of the price list the methods that can take it, the preferred one first.
var ladder = [][]string{{baseline.SGD}, {baseline.SGDTemp}, {baseline.SWATemp, baseline.SWA}, {baseline.SWAGTemp, baseline.SWAG, baseline.SWAGDiag}, {baseline.SWAGTuned}}

// steps returns the price list. It is nil if fewer than two of its methods were run.
func (r *Result) steps() (steps []Step) {
	var from *Method
	for _, keys := range ladder {
		for _, key := range keys {
			to := r.method(key)
			if to == nil {
				continue
			}
			if from != nil {
				steps = append(steps, Step{from, to, r.differ(to, from)[r.loss().Key]})
			}
			from = to
			break
		}
	}
	return steps
}

// stepsTable shows the price list.
func (r *Result) stepsTable() *report.Table {
	loss := r.loss()
	t := report.NewTable(report.Column{Header: "step by step"}, decimal("networks"), decimal(loss.Name), decimal("change [95 %]"))
	row := func(m *Method, change string) {
		t.Row(m.marked(), report.Thousands(m.Networks), report.Fixed(r.value(m), 4), change)
	}
	for i, s := range r.Steps {
		if i == 0 {
			row(s.From, " ")
		}
		row(s.To, s.text())
	}
	return t
}

// marked returns the name of a method, with a mark if the verdict does not count it. The mark stands at the notes of the main
// table, too.
func (m *Method) marked() string {
	if m.sound() {
		return m.Name
	}
	return m.Name + " *"
}

func (d Difference) text() string { return intervalText(d.Interval) }

func intervalText(i chance.Interval) string {
	return report.Signed(i.Mean, 4) + " " + report.Interval(i.Low, i.High, 4)
}
