package show

import (
	"fmt"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/study/compare"
	"github.com/swagwrap/swagwrap/internal/task"
)

func decimal(header string) report.Column {
	return report.Column{Header: header, Align: report.Decimal}
}

// mainTable shows the main metrics, and the differences in the first loss.
func (r tables) mainTable() *report.Table {
	t, noisy := report.NewTable(r.mainColumns()...), false
	if r.Floor != nil {
		t.Row(r.floorCells()...)
	}
	for _, m := range r.Methods {
		cells, above := r.mainCells(m)
		t.Row(append(cells, marks(m))...)
		noisy = noisy || above
	}
	if noisy {
		t.Warn("^ above the range of a calibrated model with the same confidences")
	}
	r.noteDifferences(t)
	r.noteUnits(t)
	if r.Kept {
		r.noteKept(t)
	}
	t.Warn(r.staleNote())
	t.Warn(r.Tuned)
	r.noteWarnings(t)
	return t
}

// lacks reports whether the networks predict no noise.
func (r tables) lacks() bool { return task.Missing(r.Task) != nil }

func (r tables) mainColumns() []report.Column {
	columns := []report.Column{{Header: "method"}}
	for i, m := range r.Methods[0].Main() {
		column := decimal(m.Header)
		switch {
		case m.Key == r.Loss().Key: // always shown
		case i <= 2:
			column.Optional = 1
		default:
			column.Optional = 3 + i
		}
		columns = append(columns, column)
		if m.Key == r.Loss().Key {
			columns = append(columns, decimal("minus "+r.baselineName()+" [95 %]"))
		}
	}
	if r.lacks() {
		columns = append(columns, report.Column{Header: "noise", Align: report.Decimal, Optional: 4})
	}
	if r.Kept {
		for i, header := range []string{"other seeds", "very many members", "at best " + r.First().Symbol} {
			columns = append(columns, report.Column{Header: header, Align: report.Decimal, Optional: []int{2, 3, 20}[i]})
		}
	}
	return append(columns, report.Column{Header: " ", Empty: " "})
}

// mainCells returns the cells of a method. above reports that its ECE is above the range of a calibrated model.
func (r tables) mainCells(m *compare.Method) (cells []string, above bool) {
	cells = []string{m.Name}
	for _, s := range m.Main() {
		cell := study.Cell(s)
		if s.Key == "ece" && m.Has("ece_calibrated_high") && s.Value > m.Value("ece_calibrated_high") {
			cell, above = cell+" ^", true
		}
		cells = append(cells, cell)
		if s.Key == r.Loss().Key {
			cells = append(cells, r.differenceCell(m))
		}
	}
	if r.lacks() {
		cells = append(cells, noiseCell(m))
	}
	if r.Kept {
		cells = append(append(cells, r.drawsCells(m)...), report.Fixed(m.AtBestT, 4))
	}
	return cells, above
}

// floorCells returns the cells of a network that learnt nothing.
func (r tables) floorCells() (cells []string) {
	cells = []string{r.Floor.Name + ", no network"}
	for _, s := range r.Floor.Main() {
		if cells = append(cells, study.Cell(s)); s.Key == r.Loss().Key {
			cells = append(cells, " ") // not the dash of the baseline
		}
	}
	for len(cells) < len(r.mainColumns()) {
		cells = append(cells, " ")
	}
	return cells
}

// noteDifferences says what the differences are.
func (r tables) noteDifferences(t *report.Table) {
	loss, base := r.Loss().Name, r.baselineName()
	note := fmt.Sprintf("minus %s: %s − %s(%s). The interval is for the difference of these networks on new %s.", base, loss, loss,
		base, r.units())
	if r.classError() {
		note += fmt.Sprintf(" ECE in %v.", calibrate.ECEOptions{})
	}
	t.Note(note)
	t.Note(fmt.Sprintf("what the verdict calls better or worse is adjusted for %d tests (Holm); intervals are for single comparisons",
		r.Tests))
}

// noteUnits says what intervals and tests count.
func (r tables) noteUnits(t *report.Table) {
	if !r.Kept {
		t.Note("figures count all labelled positions")
	}
	switch n := len(r.Clustered(r.Loss().Values, nil)); {
	case r.Unit != nil:
		units := fmt.Sprintf("unit of chance: intervals and tests count %s units by %s, since %s of one unit depend on each other",
			report.Thousands(n), r.UnitBy, r.units())
		switch {
		case n < fewUnits:
			t.Warn(units + ". They are few: intervals are rough")
		case r.example() == "token": // its units are the same in each comparison
			t.Note(units)
		default:
			t.Warn(units)
		}
	case !r.Kept:
		t.Note(fmt.Sprintf("intervals and tests count whole %s, since neighbouring positions depend on each other", r.units()))
	}
}

// noteKept explains the figures that need the outcomes of all examples.
func (r tables) noteKept(t *report.Table) {
	loss := r.Loss().Name
	t.Note(fmt.Sprintf("at best %s: %s with a temperature that is fitted on one half of the test %s and applied to the other, mean over "+
		"%d random splits; without it where that is better", r.First().Symbol, loss, r.units(), calibrate.Splits))
	t.Note(fmt.Sprintf("other seeds: standard error of %s over other draws, on the same %s. very many members: %s with very many "+
		"members, with its standard error", loss, r.units(), loss))
	if r.lacks() {
		t.Note("noise: the standard deviation of targets about their means that makes the data it is fitted on most likely. Networks " +
			"predict none. For one network it is the RMSE there")
	}
	if r.Method(baseline.Laplace) != nil {
		t.Note(baseline.TauNote)
	}
}

// differenceCell returns the difference to the baseline in the first loss with its interval.
func (r tables) differenceCell(m *compare.Method) string {
	if m.Differences == nil {
		return ""
	}
	return textOf(r.Main(m))
}

// drawsCells returns how the first loss varies with other draws, and what it would be with very many members. Both are
// empty for a method without random draws.
func (r tables) drawsCells(m *compare.Method) []string {
	d, ok := m.OwnDraws()
	if !ok {
		return []string{"", ""}
	}
	spread := "±" + report.Fixed(d.Standard(), 4)
	return []string{spread, report.Fixed(r.Value(m)-d.Bias, 4) + " " + spread}
}

// staleNote says what SWA costs without batch-norm statistics of its own, or is "".
func (r tables) staleNote() string {
	stale, fresh := r.Method(baseline.StaleSWA), r.Method(baseline.SWA)
	if stale == nil {
		return ""
	}
	note := "! these batch-norm statistics do not belong to the averaged weights"
	if fresh != nil && r.CountsErrors() {
		what, is := "accuracy", report.InsteadOf(stale.Value("accuracy"), fresh.Value("accuracy"), report.Percent, 1)
		if stale.Value("accuracy") == fresh.Value("accuracy") {
			what, is = r.Loss().Name, report.InsteadOf(r.Value(stale), r.Value(fresh), report.Fixed, 4)
		}
		note += fmt.Sprintf(": with the last checkpoint's, SWA's %s is %s", what, is)
	}
	return note
}

// marks returns the marks that refer to the notes below a table.
func marks(m *compare.Method) string {
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
func (r tables) noteWarnings(t *report.Table) {
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

// stepsTable shows the price list. It is nil without one.
func (r tables) stepsTable() *report.Table {
	if r.Steps == nil {
		return nil
	}
	loss := r.Loss()
	t := report.NewTable(report.Column{Header: "step by step"}, decimal("networks"), decimal(loss.Name), decimal("change [95 %]"))
	row := func(m *compare.Method, change string) {
		t.Row(marked(m), report.Thousands(m.Networks), report.Fixed(r.Value(m), 4), change)
	}
	for i, s := range r.Steps {
		if i == 0 {
			row(s.From, " ")
		}
		row(s.To, textOf(s.Difference))
	}
	return t
}

// marked returns the name of a method, with a mark if the verdict does not count it. The mark stands at the notes of the main
// table, too.
func marked(m *compare.Method) string {
	if m.Sound() {
		return m.Name
	}
	return m.Name + " *"
}

// noiseCell returns the noise of a method by target, and by half if there are two.
func noiseCell(m *compare.Method) string {
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

func textOf(d compare.Difference) string { return intervalText(d.Interval) }

func intervalText(i chance.Interval) string {
	return report.Signed(i.Mean, 4) + " " + report.Interval(i.Low, i.High, 4)
}
