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

// Of declares what a comparison says.
func Of(r *compare.Result) study.Result {
	w := words{r, r.Verdict()}
	s := study.Sections{
		Title:     "SWAG and its alternatives",
		Heading:   w.heading(),
		Settings:  w.facts(),
		BatchNorm: &r.BatchNorm,
		Notes:     r.Notes,
		Verdict:   sentences{w}.all(),
		Next:      r.Next(),
		Code:      w.code(),
		Answers:   sentences{w}.answers(),
		Tables:    tables{w}.all(),
		Figures:   figures{w}.add,
		Provenance: study.Provenance(r.Runtime, r.Networks(), study.Used{As: "validation", Data: r.Validation},
			study.Used{As: "training", Data: r.Inputs.BatchNorm.Data}, study.Used{As: "test", Data: r.Test}),
	}
	s.JSON = fields{w}.all(s.Verdict, r.Spell.Lines(s.Next), s.Code)
	return s.Result()
}

// Verdict returns the verdict in plain words, in sentences of about a line.
func Verdict(r *compare.Result) []string { return sentences{words{r, r.Verdict()}}.all() }

// Places of tables on the page. They are for the tables whose order on the page differs from that in the text.
const (
	middle = 1 + iota
	late
	last
)

// tables makes the tables.
type tables struct{ words }

// all returns the tables in the order of the text.
func (r tables) all() (all []study.Section) {
	add := func(t *report.Table, title, explanation string, s study.Section) {
		if t != nil {
			s.NamedTable = report.NamedTable{Title: title, Explanation: explanation, Table: t, Folded: s.Folded}
			all = append(all, s)
		}
	}
	folded := func(where study.Where, order int) study.Section {
		return study.Section{NamedTable: report.NamedTable{Folded: true}, Where: where, Order: order}
	}
	verbose := study.OnlyOnPage // in the text, with all metrics
	if r.AllMetrics {
		verbose = study.Everywhere
	}
	add(r.stepsTable(), "What each step buys", "From your last checkpoint to the ensemble. An interval compares a step with the one "+
		"before, on new examples.", study.Section{})
	add(r.mainTable(), "Methods", r.explanation(), study.Section{})
	if s := r.parts(); s != nil {
		all = append(all, *s)
	}
	add(r.decisionsTable(), "Decisions", "What is predicted by a threshold on the probability of class 1, the positive class.",
		study.Section{Order: middle})
	add(r.runsTable(), "Runs of training", "The methods in each run, on the same test data.", study.Section{})
	add(r.groupsTable(), "Groups", "The two methods of the verdict on each group of the test data.", study.Section{})
	for _, t := range r.shiftTables() {
		all = append(all, study.Section{NamedTable: t})
	}
	add(r.corruptionTable(), "By corruption", "Means over the severities.", folded(verbose, 0))
	add(r.furtherTable(), "Further metrics", "", folded(verbose, late))
	add(r.setsTable(), "Sets of classes", "Conformal sets contain the true class with a promised probability.", folded(verbose, late))
	if r.Scalings {
		add(r.scalingsTable(), "With scalings of their own", "", study.Section{Where: verbose, Order: late})
		add(r.recalibrationTable(), "With distributions recalibrated", "", study.Section{Where: verbose, Order: late})
	}
	return all
}

func (r tables) explanation() string {
	out := "NLL is the mean for each " + r.unit() + " in nats. Lower is better, except for accuracy. An interval is for the difference " +
		"of these networks on new examples."
	if r.Kept {
		out += " At best T: with a temperature of its own, on examples that it was not fitted on. Other seeds: what other draws would " +
			"change on the same examples."
	}
	return out
}

// figures makes the figures of the page.
type figures struct{ words }

func (r figures) add(page *report.Report) {
	if r.Shift != nil {
		page.Shifts = r.shiftCurves()
	}
	page.Differences, page.Calibrations = r.differences(), r.calibrations()
	page.Promote()
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
