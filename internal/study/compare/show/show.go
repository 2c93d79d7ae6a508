// Package show says what a comparison found: its verdict in plain words, and its tables, figures and JSON.
//
// It computes no numbers and takes no decisions. Those are in [compare.Result] and [compare.Verdict].
package show

import (
	"slices"

	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/report/plot"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/study/compare"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Result declares what a comparison says.
func Result(r *compare.Result) *study.Document {
	w := words{r, r.Verdict()}
	rows := rowsOf(w)
	d := &study.Document{
		Title:     "SWAG and its alternatives",
		Heading:   w.heading(),
		Settings:  w.facts(),
		BatchNorm: &r.BatchNorm,
		Averages:  r.Averages,
		Notes:     r.Notes,
		Verdict:   sentences{w}.all(),
		Brief:     sentences{w}.brief(),
		Next:      r.Next(),
		Code:      w.code(),
		Answers:   sentences{w}.answers(),
		Sections:  rows.sections(),
		Short:     rows.short(),
		Figures:   figures{w}.add,
		Provenance: study.Provenance(r.Runtime, r.Networks(), study.Used{As: "validation", Data: r.Validation},
			study.Used{As: "training", Data: r.Inputs.BatchNorm.Data}, study.Used{As: "test", Data: r.Test}),
	}
	d.JSON = rows.all(d.Verdict, r.Spell.Lines(d.Next), d.Code)
	return d
}

// Verdict returns the verdict in plain words, in sentences of about a line.
func Verdict(r *compare.Result) []string { return sentences{words{r, r.Verdict()}}.all() }

// figures makes the figures of the page.
type figures struct{ words }

func (r figures) add(page *report.Report) {
	if r.Shift != nil {
		page.Shifts = r.shiftCurves()
	}
	page.Differences, page.Calibrations = r.differences(), r.calibrations()
	page.Promote()
	page.Steps = true
	_, decided := r.Task.(task.Decided)
	for _, m := range r.Methods {
		if !m.StaleBN {
			page.Methods = append(page.Methods, plot.Method{
				Name:         m.Name,
				Minor:        !r.major(m),
				Label:        calibrationError(m),
				Reliability:  m.Reliability,
				OfClass1:     decided,
				RiskCoverage: m.RiskCoverage,
				Points:       m.Points,
				Decided:      m.Decided,
			})
		}
	}
}

// words has the words for the data and the methods of a comparison.
type words struct {
	*compare.Result
	verdict compare.Verdict
}

// major reports whether figures name a method. If there are many methods, figures name those of the price list, and the
// method to deploy.
func (r words) major(m *compare.Method) bool {
	return len(r.Methods) <= mostNamed || m == r.verdict.Choice || m == r.verdict.Base ||
		slices.ContainsFunc(r.Steps, func(s compare.Step) bool { return s.From == m || s.To == m })
}

// mostNamed is the largest number of methods for which figures name all.
const mostNamed = 4
