package study

import (
	"fmt"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/task"
)

const (
	// shownGroups is the largest number of groups in a table. JSON has all.
	shownGroups = 20
	// fewUnits is the number of units of chance below which the interval of a group is rough.
	fewUnits = 30
)

// GroupsTable shows the main metrics of groups, the worst first.
func GroupsTable(g *task.Groups) *report.Table {
	all, groups := g.Found()
	columns := []report.Column{{Header: "group"}, {Header: "examples", Align: report.Decimal}}
	if g.Unit != nil {
		columns = append(columns, report.Column{Header: "units", Align: report.Decimal})
	}
	var shown []int // places of the metrics that can be computed; without the noise of a regression some cannot
	for i, s := range all.Main() {
		if s.Value != s.Value {
			continue
		}
		shown = append(shown, i)
		columns = append(columns, report.Column{Header: s.Header, Align: report.Decimal})
		if _, ok := all.Interval(s); ok {
			columns = append(columns, report.Column{Header: "[95 %]", Align: report.Decimal})
		}
	}
	t := report.NewTable(columns...)
	row := func(group *task.Group) {
		cells := []string{GroupName(group.Name), report.Thousands(group.Examples)}
		if g.Unit != nil {
			cells = append(cells, report.Thousands(group.Units))
		}
		for _, i := range shown {
			s := group.Main()[i]
			cells = append(cells, Cell(s))
			if _, ok := all.Interval(all.Main()[i]); ok {
				interval, ok := group.Interval(s)
				cells = append(cells, map[bool]string{true: Range(s.Metric, interval)}[ok])
			}
		}
		t.Row(cells...)
	}
	for _, group := range groups[:min(len(groups), shownGroups)] {
		row(group)
	}
	row(all)
	if g.Unit != nil {
		few := map[bool]string{true: ". They are few: intervals are rough"}[all.Units < fewUnits]
		t.Warn(fmt.Sprintf("unit of chance: intervals count %s units by %s, since examples of one unit depend on each other%s",
			report.Thousands(all.Units), g.UnitBy, few))
	}
	for _, note := range GroupNotes(g.Grouping, all, groups) {
		t.Warn(note)
	}
	return t
}

// GroupNotes says what the groups are, and what their intervals mean.
func GroupNotes(g task.Grouping, all *task.Group, groups []*task.Group) (notes []string) {
	if g.Report == nil {
		return notes
	}
	notes = append(notes, fmt.Sprintf("%s by %s. Their intervals hold for all groups together (Šidák), so also for the worst one",
		report.Plural(len(groups), "group"), g.ReportBy))
	few := 0
	for _, group := range groups {
		if group.Units < fewUnits {
			few++
		}
	}
	if few > 0 {
		what := map[bool]string{true: "examples", false: "units of chance"}[g.Unit == nil]
		notes = append(notes, fmt.Sprintf("%s with fewer than %d %s: their intervals are rough", report.Plural(few, "group"),
			fewUnits, what))
	}
	if len(groups) > shownGroups {
		notes = append(notes, report.Plural(len(groups)-shownGroups, "group")+" are not shown")
	}
	return notes
}

// GroupName returns the name of a group for tables.
func GroupName(name string) string {
	if name == "" {
		return "(no group)"
	}
	return name
}

// Range returns an interval of a metric in brackets.
func Range(m task.Metric, i chance.Interval) string {
	cell := func(v float64) string { return Cell(task.Score{Metric: m, Value: v}) }
	return "[" + cell(i.Low) + ", " + cell(i.High) + "]"
}

// GroupsJSON returns the figures of groups for JSON.
func GroupsJSON(g *task.Groups) Object {
	all, groups := g.Found()
	list := []Object{}
	for _, group := range groups {
		list = append(list, GroupJSON(group))
	}
	return Fields("unit", g.UnitBy, "report", g.ReportBy, "all", GroupJSON(all), "groups", list)
}

// GroupJSON returns the figures of a group for JSON.
func GroupJSON(g *task.Group) Object {
	o := Fields("group", g.Name, "examples", g.Examples, "units", g.Units)
	for _, s := range g.Main() {
		o = append(o, Field{s.Key, Finite(s.Value)})
		if i, ok := g.Interval(s); ok {
			o = append(o, Fields(s.Key+"_low", Finite(i.Low), s.Key+"_high", Finite(i.High))...)
		}
	}
	return o
}
