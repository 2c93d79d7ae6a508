package show

import (
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/study/compare"
	"github.com/swagwrap/swagwrap/internal/task"
)

// furtherTable shows the metrics that the other tables leave out.
func (r tables) furtherTable() *report.Table {
	return r.metricsTable("method", true, func(s task.Score) bool { return s.Further && !s.Decision && !s.Set })
}

// setsTable shows sets of classes, or is nil for tasks without them.
func (r tables) setsTable() *report.Table {
	first := r.Methods[0]
	if !first.Has("set_level") {
		return nil
	}
	t := r.metricsTable("sets of classes", false, func(s task.Score) bool { return s.Set })
	if level, n := first.Value("set_level"), r.Test.Len()/2; r.Unit != nil {
		t.Note("no unit of chance is in both halves. The coverage varies more than that of as many independent examples")
	} else if level == level {
		low, high := calibrate.CoverageRange(level, n)
		t.Note(fmt.Sprintf("a fit on %s %s covers from %s to %s of new ones, in 95 %% of fits (beta distribution). The coverage above "+
			"joins both halves, so it is nearer to the level. A class gap of %s is chance",
			report.Thousands(n), r.units(), report.Percent(low, 1), report.Percent(high, 1),
			report.Percent(calibrate.ChanceGap(r.Test.Labels().Classes, level), 1)))
	}
	return t
}

// decisionsTable shows the decisions of the methods by their thresholds. It is nil for tasks without them.
func (r tables) decisionsTable() *report.Table {
	if _, ok := r.Task.(task.Decided); !ok {
		return nil
	}
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
func (r tables) metricsTable(header string, members bool, shown func(task.Score) bool) *report.Table {
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
func (r tables) scalingsTable() *report.Table {
	if !slices.ContainsFunc(r.Methods, func(m *compare.Method) bool { return m.Scaled != nil }) {
		return nil
	}
	own := r.First().Columns // metrics that the first calibrator changes
	columns := append([]report.Column{{Header: "method"}}, study.Columns(r.Methods[0].Only(own))...)
	for i, c := range r.Listed() {
		if i == 0 {
			columns = append(columns, decimal(r.First().Symbol))
		}
		columns = append(columns, named(c.Columns)...)
	}
	t := report.NewTable(columns...)
	crossed := false
	for _, m := range r.Methods {
		cells := append([]string{m.Name}, study.Cells(m.Only(own))...)
		for i, c := range r.Listed() {
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

// recalibrationTable shows each method's distributions before and after recalibration. It returns nil for tasks
// without it.
func (r tables) recalibrationTable() *report.Table {
	how, ok := task.Find(r.Task, task.Recalibration)
	if !ok {
		return nil
	}
	columns := append([]report.Column{{Header: "method"}}, study.Columns(r.Methods[0].Only(how.Columns))...)
	table := report.NewTable(append(columns, named(how.Columns)...)...)
	for _, m := range r.Methods {
		cells := append([]string{m.Name}, study.Cells(m.Only(how.Columns))...)
		table.Row(append(cells, calibrated(m.Recalibrated, how.Columns)...)...) // Recalibrated is nil if the method itself is scaled
	}
	table.Note(how.Words + " is fitted on " + r.fittedOn() + "; it moves quantiles and intervals, and leaves no density: there is no " +
		"NLL after it")
	return table
}
