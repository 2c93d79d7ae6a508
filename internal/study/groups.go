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

// Groups returns the section with the main metrics of groups, the worst first.
func Groups(g *task.Groups) *Section {
	all, groups := g.Found()
	columns := Keys("group", "examples")
	if g.Unit != nil {
		columns = Keys("group", "examples", "units")
	}
	for _, s := range all.Main() {
		if s.Value != s.Value { // without the noise of a regression some cannot be computed
			continue
		}
		columns = append(columns, Column{Key: s.Key})
		if _, ok := all.Interval(s); ok {
			columns = append(columns, Column{Key: s.Key + "_low"})
		}
	}
	s := &Section{Columns: columns, Rows: append(Rows(groups[:min(len(groups), shownGroups)], GroupRow), GroupRow(all))}
	if g.Unit != nil {
		few := map[bool]string{true: ". They are few: intervals are rough"}[all.Units < fewUnits]
		s.Warn(fmt.Sprintf("unit of chance: intervals count %s units by %s, since examples of one unit depend on each other%s",
			report.Thousands(all.Units), g.UnitBy, few))
	}
	s.Warnings = append(s.Warnings, GroupNotes(g.Grouping, all, groups)...)
	return s
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
	cell := func(v float64) string { return Format(task.Score{Metric: m, Value: v}) }
	return "[" + cell(i.Low) + ", " + cell(i.High) + "]"
}

// GroupsRow returns the figures of groups, and those of all examples.
func GroupsRow(g *task.Groups) Row {
	all, groups := g.Found()
	return Fields("unit", g.UnitBy, "report", g.ReportBy, "all", GroupRow(all), "groups", Rows(groups, GroupRow))
}

// GroupRow returns the figures of a group. A table shows intervals next to the figures.
func GroupRow(g *task.Group) Row {
	r := Row{Name("group", "group", GroupName(g.Name)), Count("examples", "examples", g.Examples), Count("units", "units", g.Units)}
	r[0].Value = g.Name
	for _, s := range g.Main() {
		r = append(r, Scores("", []task.Score{s})...)
		if i, ok := g.Interval(s); ok {
			r = append(r, Number(s.Key+"_low", "[95 %]", i.Low, Range(s.Metric, i)), Cell{Key: s.Key + "_high", Value: i.High})
		}
	}
	return r
}
