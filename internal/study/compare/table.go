package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/task/dense"
)

// Heading returns the settings in one line.
func (r *Result) Heading() string {
	how := fmt.Sprintf("%s, scale %g, rank %d", report.Plural(r.Members, "member"), r.Scale, r.rank())
	if r.Single() {
		how = "one checkpoint"
	}
	s := fmt.Sprintf("%s, %s, seed %d", r.testExamples(), how, r.Seed)
	if r.Validation != nil || !r.dense() {
		s += fmt.Sprintf("; %s fitted on %s", r.first().Symbol, r.fittedOn())
	}
	if place := r.noisePlace(); place != "" {
		s += "; " + place
	}
	if n := len(r.Runs); n > 1 {
		s += fmt.Sprintf("; %d posteriors, single rows of %s", n, r.Runs[0].Network.Posterior.Path)
	}
	return s
}

// facts returns the settings that the numbers depend on.
func (r *Result) facts() []report.Fact {
	facts := []report.Fact{study.Fact("test "+r.units(), "%s", report.Thousands(r.Test.Len()))}
	if cut, ok := dataset.CutOf(r.Test); ok {
		facts = []report.Fact{study.Fact("test tokens", "%s", report.Thousands(cut.Predictions)), study.Fact("in", "%s", cut.How())}
		if cut.Documents != nil {
			facts = append(facts, study.Fact("documents", "%s", report.Thousands(len(cut.Documents))))
		}
		if cut.Unknown > 0 {
			facts = append(facts, study.Fact("words not in the vocabulary", "%s", report.Thousands(cut.Unknown)))
		}
	}
	if r.Single() {
		facts = append(facts, study.Fact("checkpoints", "1"))
	} else {
		facts = append(facts, study.Fact("members", "%d", r.Members), study.Fact("scale", "%g", r.Scale), study.Fact("rank", "%d", r.rank()))
	}
	facts = append(facts, study.Fact("seed", "%d", r.Seed), study.Fact(r.first().Symbol+" fitted on", "%s", r.fittedOn()))
	if r.noisePlace() != "" {
		facts = append(facts, study.Fact("noise of each method fitted on", "%s", r.fittedOn()))
	}
	if n := len(r.Runs); n > 1 {
		facts = append(facts, study.Fact("posteriors", "%d; single rows of %s", n, r.Runs[0].Network.Posterior.Path))
	}
	return facts
}

func (r *Result) rank() int { return r.Runs[0].Network.Posterior.Options.Columns }

func (r *Result) fittedOn() string {
	if r.Validation == nil && r.dense() {
		return "nothing, without " + setting.Val.String()
	}
	if r.Validation == nil {
		return "halves of the test " + r.units()
	}
	if cut, ok := dataset.CutOf(r.Validation); ok && r.dense() {
		every, off := baseline.SampleEvery(r.task.(dense.Task), r.Validation.Len()), 0.0
		if every == 1 {
			return cut.Count("validation")
		}
		for _, m := range r.Methods {
			if m.Scaling != nil {
				off = max(off, m.Scaling.Each[0].Error)
			}
		}
		return fmt.Sprintf("1 in %d of %s, which gives T a standard error of %.1g at most", every, cut.Count("validation"), off)
	}
	return report.Plural(r.Validation.Len(), "validation "+dataset.Unit(r.Test))
}

// Tables returns the printed tables.
func (r *Result) Tables() []*report.Table {
	var tables []*report.Table
	if r.Steps != nil {
		tables = append(tables, r.stepsTable())
	}
	tables = append(tables, r.mainTable())
	if t := r.parts(); t != nil {
		switch {
		case r.AllMetrics || len(r.Methods[0].Parts) <= mostParts:
			tables = append(tables, t.Table)
		case r.isText():
			tables[len(tables)-1].Warn(setting.Metrics.With("all") + " and " + setting.Report.With("FILE") + " show each document")
		}
	}
	if _, ok := r.task.(task.Decided); ok {
		tables = append(tables, r.decisionsTable())
	}
	if r.runs != nil {
		tables = append(tables, r.runsTable())
	}
	if r.Report != nil {
		tables = append(tables, r.groupsTable())
	}
	if r.Shift != nil {
		for _, t := range r.shiftTables() {
			tables = append(tables, t.Table)
		}
		if r.AllMetrics {
			tables = append(tables, r.corruptionTable())
		}
	}
	if r.AllMetrics {
		tables = append(tables, r.furtherTable())
		for _, t := range []*report.Table{r.setsTable(), r.scalingsTable(), r.recalibrationTable()} {
			if t != nil {
				tables = append(tables, t)
			}
		}
	}
	return tables
}

func decimal(header string) report.Column {
	return report.Column{Header: header, Align: report.Decimal}
}

// mainTable shows the main metrics, and the differences in the first loss.
func (r *Result) mainTable() *report.Table {
	loss, base := r.loss(), r.baselineName()
	columns := []report.Column{{Header: "method"}}
	for i, m := range r.Methods[0].Main() {
		column := decimal(m.Header)
		if i > 2 {
			column.Optional = 1 + i
		}
		columns = append(columns, column)
		if m.Key == loss.Key {
			columns = append(columns, decimal("minus "+base+" [95 %]"))
		}
	}
	lacks := task.Missing(r.task) != nil
	if lacks {
		columns = append(columns, decimal("noise"))
	}
	for i, header := range []string{"other seeds", "very many members", "at best " + r.first().Symbol} {
		if r.dense() {
			break // these need all outcomes in memory
		}
		columns = append(columns, report.Column{Header: header, Align: report.Decimal, Optional: []int{1, 2, 9}[i]})
	}
	columns = append(columns, report.Column{Header: " ", Empty: " "})
	t, noisy := report.NewTable(columns...), false
	for _, m := range r.Methods {
		cells := []string{m.Name}
		for _, s := range m.Main() {
			cell := study.Cell(s)
			if s.Key == "ece" && m.Has("ece_calibrated_high") && s.Value > m.Value("ece_calibrated_high") {
				cell, noisy = cell+" ^", true
			}
			cells = append(cells, cell)
			if s.Key == loss.Key {
				cells = append(cells, r.differenceCell(m))
			}
		}
		if lacks {
			cells = append(cells, m.noiseCell())
		}
		if !r.dense() {
			cells = append(append(cells, r.drawsCells(m)...), report.Fixed(m.AtBestT, 4))
		}
		t.Row(append(cells, m.marks())...)
	}
	if noisy {
		t.Warn("^ above the range of a calibrated model with the same confidences")
	}
	note := fmt.Sprintf("minus %s: %s − %s(%s). The interval is for the difference of these networks on new %s.", base, loss.Name, loss.Name, base, r.units())
	if r.classError() {
		note += fmt.Sprintf(" ECE in %v.", calibrate.ECEOptions{})
	}
	t.Note(note)
	t.Note(fmt.Sprintf("what the verdict calls better or worse is adjusted for %d tests (Holm); intervals are for single comparisons", r.Tests))
	if r.dense() {
		t.Note("figures count all labelled positions")
	}
	switch n := len(r.clustered(r.loss().Values, nil)); {
	case r.Unit != nil:
		units := fmt.Sprintf("unit of chance: intervals and tests count %s units by %s, since %s of one unit depend on each other", report.Thousands(n), r.UnitBy, r.units())
		switch {
		case n < fewUnits:
			t.Warn(units + ". They are few: intervals are rough")
		case r.isText(): // its units are the same in each comparison
			t.Note(units)
		default:
			t.Warn(units)
		}
	case r.dense():
		t.Note(fmt.Sprintf("intervals and tests count whole %s, since neighbouring positions depend on each other", r.units()))
	}
	if !r.dense() {
		t.Note(fmt.Sprintf("at best %s: %s with a temperature that is fitted on one half of the test %s and applied to the other, mean over %d random splits; without it where that is better", r.first().Symbol, loss.Name, r.units(), calibrate.Splits))
		t.Note(fmt.Sprintf("other seeds: standard error of %s over other draws, on the same %s. very many members: %s with very many members, with its standard error", loss.Name, r.units(), loss.Name))
		if lacks {
			t.Note("noise: the standard deviation of targets about their means that makes the data it is fitted on most likely. Networks predict none. For one network it is the RMSE there")
		}
		if r.method(baseline.Laplace) != nil {
			t.Note(baseline.TauNote)
		}
	}
	t.Warn(r.staleNote())
	t.Warn(r.Tuned)
	r.noteWarnings(t)
	return t
}

// differenceCell returns the difference to the baseline in the first loss with its interval.
func (r *Result) differenceCell(m *Method) string {
	if m.Differences == nil {
		return ""
	}
	return r.main(m).text()
}

// drawsCells returns how the first loss varies with other draws, and what it would be with very many members. Both are
// empty for a method without random draws.
func (r *Result) drawsCells(m *Method) []string {
	if len(m.without) < 2 {
		return []string{"", ""}
	}
	d := chance.NewDraws(m.Losses[0].Values, m.without, m.weights)
	error := "±" + report.Fixed(d.Standard(), 4)
	return []string{error, report.Fixed(r.value(m)-d.Bias, 4) + " " + error}
}

// staleNote says what SWA costs without batch-norm statistics of its own, or is "".
func (r *Result) staleNote() string {
	stale, fresh := r.method(baseline.StaleSWA), r.method(baseline.SWA)
	if stale == nil {
		return ""
	}
	note := "! these batch-norm statistics do not belong to the averaged weights"
	if fresh != nil && r.countsErrors() {
		what, is := "accuracy", report.InsteadOf(stale.Value("accuracy"), fresh.Value("accuracy"), report.Percent, 1)
		if stale.Value("accuracy") == fresh.Value("accuracy") {
			what, is = r.loss().Name, report.InsteadOf(r.value(stale), r.value(fresh), report.Fixed, 4)
		}
		note += fmt.Sprintf(": with the last checkpoint's, SWA's %s is %s", what, is)
	}
	return note
}

// marks returns the marks that refer to the notes below a table.
func (m *Method) marks() string {
	mark := ""
	if m.StaleBN {
		mark = "!"
	}
	if len(m.Warnings) > 0 {
		mark += "*"
	}
	return mark
}

// noteWarnings adds the warnings as notes, and names all methods that share one.
func (r *Result) noteWarnings(t *report.Table) {
	var order []string
	names := make(map[string][]string)
	for _, m := range r.Methods {
		for _, warning := range m.Warnings {
			text := warning.Error()
			if names[text] == nil {
				order = append(order, text)
			}
			names[text] = append(names[text], m.Name)
		}
	}
	for _, text := range order {
		who := strings.Join(names[text], ", ")
		if len(names[text]) == len(r.Methods) && len(r.Methods) > 1 {
			who = "all"
		}
		t.Warn(fmt.Sprintf("* %s: %s", who, text))
	}
}

// furtherTable shows the metrics that the other tables leave out.
func (r *Result) furtherTable() *report.Table {
	return r.metricsTable("method", true, func(s task.Score) bool { return s.Further && !s.Decision && !s.Set })
}

// setsTable shows sets of classes, or is nil for tasks without them.
func (r *Result) setsTable() *report.Table {
	first := r.Methods[0]
	if !first.Has("set_level") {
		return nil
	}
	t := r.metricsTable("sets of classes", false, func(s task.Score) bool { return s.Set })
	if level, n := first.Value("set_level"), r.Test.Len()/2; r.Unit != nil {
		t.Note("no unit of chance is in both halves. The coverage varies more than that of as many independent examples")
	} else if level == level {
		low, high := calibrate.CoverageRange(level, n)
		t.Note(fmt.Sprintf("a fit on %s %s covers from %s to %s of new ones, in 95 %% of fits (beta distribution). The coverage above joins both halves, so it is nearer to the level. A class gap of %s is chance",
			report.Thousands(n), r.units(), report.Percent(low, 1), report.Percent(high, 1), report.Percent(calibrate.ChanceGap(r.Test.Labels().Classes, level), 1)))
	}
	return t
}

// decisionsTable shows the decisions of the methods by their thresholds.
func (r *Result) decisionsTable() *report.Table {
	t := r.metricsTable("by a threshold", false, func(s task.Score) bool { return s.Decision })
	note := "class 1 is predicted where its probability is the threshold or more"
	if (r.By != detect.Criterion{}) {
		note += fmt.Sprintf("; for each method it is chosen by %v on the validation %s", r.By, r.units())
	}
	t.Note(note)
	return t
}

// metricsTable shows some metrics of all methods. The first column has the names of the methods, and the second the
// numbers of members if they are wanted.
func (r *Result) metricsTable(header string, members bool, shown func(task.Score) bool) *report.Table {
	pick := func(e *task.Evaluation) (some []task.Score) {
		for _, s := range e.Scores {
			if shown(s) {
				some = append(some, s)
			}
		}
		return some
	}
	columns := []report.Column{{Header: header}}
	if members {
		columns = append(columns, decimal("members"))
	}
	first := pick(r.Methods[0].Evaluation)
	t := report.NewTable(append(columns, study.Columns(first)...)...)
	for _, m := range r.Methods {
		cells := []string{m.Name}
		if members {
			cells = append(cells, report.Thousands(m.Members))
		}
		t.Row(append(cells, study.Cells(pick(m.Evaluation))...)...)
	}
	for _, s := range first {
		if s.Note != "" {
			t.Note(s.Note)
		}
	}
	return t
}

// calibrated returns the cells of metrics after a calibration, which are empty without one. The calibration gives the
// metrics their headers.
func calibrated(e *task.Evaluation, columns []task.Metric) []string {
	cells := make([]string, len(columns))
	for i, c := range columns {
		if e != nil {
			cells[i] = study.Cell(task.Score{Metric: c, Value: e.Value(c.Key)})
		}
	}
	return cells
}

// named returns table columns with the headers that a calibration gives to metrics.
func named(metrics []task.Metric) (columns []report.Column) {
	for _, m := range metrics {
		columns = append(columns, decimal(m.Header))
	}
	return columns
}

// scalingsTable shows each method with its own calibrators. It is nil if no method has any.
func (r *Result) scalingsTable() *report.Table {
	if !slices.ContainsFunc(r.Methods, func(m *Method) bool { return m.Scaled != nil }) {
		return nil
	}
	own := r.first().Columns // metrics that the first calibrator changes
	columns := append([]report.Column{{Header: "method"}}, study.Columns(r.Methods[0].Only(own))...)
	for i, c := range r.calibrators() {
		if i == 0 {
			columns = append(columns, decimal(r.first().Symbol))
		}
		columns = append(columns, named(c.Columns)...)
	}
	t := report.NewTable(columns...)
	crossed := false
	for _, m := range r.Methods {
		cells := append([]string{m.Name}, study.Cells(m.Only(own))...)
		for i, c := range r.calibrators() {
			var e *task.Evaluation
			numbers := ""
			if m.Scaled != nil && m.Scaled[i] != nil {
				s := m.Scaled[i]
				e, numbers, crossed = s.Evaluation, s.Fitted.Numbers(), crossed || i == 0 && s.Fitted.CrossFitted()
			}
			if i == 0 {
				cells = append(cells, numbers)
			}
			cells = append(cells, calibrated(e, c.Columns)...)
		}
		t.Row(cells...)
	}
	if crossed {
		t.Note("scalings are fitted on one half of the test " + r.units() + " and judged on the other")
	} else {
		t.Note("scalings are fitted on the validation " + r.units())
	}
	return t
}

// classError reports whether the task has calibration errors of probabilities.
func (r *Result) classError() bool {
	return slices.ContainsFunc(r.Methods[0].Scores, func(m task.Score) bool { return strings.HasPrefix(m.Key, "ece") })
}
