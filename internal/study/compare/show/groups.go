package show

import (
	"fmt"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/study/compare"
	"github.com/swagwrap/swagwrap/internal/task"
)

// groupsTable shows the first loss by group for the two methods that the verdict compares. It is nil without groups.
func (r tables) groupsTable() *report.Table {
	if r.Report == nil {
		return nil
	}
	base, other := r.verdict.Base, r.verdict.Candidate
	columns := []report.Column{{Header: r.Loss().Name + " by group"}, decimal("examples")}
	if r.Unit != nil {
		columns = append(columns, decimal("units"))
	}
	columns = append(columns, decimal(short(base)+" [95 %]"))
	var differences []chance.Interval
	if other != nil {
		columns = append(columns, decimal(short(other)+" [95 %]"), decimal("difference [95 %]"))
		differences = r.GroupDifferences(other, base)
	}
	t := report.NewTable(columns...)
	order := r.WorstFirst(base)
	const shown = 20
	for _, k := range order[:min(len(order), shown)] {
		g := base.Groups[k]
		cells := []string{study.GroupName(g.Name), report.Thousands(g.Examples)}
		if r.Unit != nil {
			cells = append(cells, report.Thousands(g.Units))
		}
		cells = append(cells, r.groupCell(g))
		if other != nil {
			cells = append(cells, r.groupCell(other.Groups[k]), intervalText(differences[k]))
		}
		t.Row(cells...)
	}
	for _, note := range study.GroupNotes(r.Grouping, base.AllGroups, base.Groups) {
		t.Warn(note)
	}
	return t
}

func (r words) groupCell(g *task.Group) string {
	i, of := g.Intervals[r.Loss().Key], task.Metric{Digits: 4}
	return report.Fixed(i.Mean, 4) + " " + study.Range(of, i)
}

// groupLines says which group is the worst, and where the two methods differ that the verdict compares.
func (r sentences) groupLines() []string {
	base, other := r.verdict.Base, r.verdict.Candidate
	if r.Report == nil || len(base.Groups) < 2 {
		return nil
	}
	worst := func(m *compare.Method) string {
		g := m.Groups[r.WorstFirst(m)[0]]
		return fmt.Sprintf("for %s it is %s with %s %s", short(m), study.GroupName(g.Name), r.Loss().Name, r.groupCell(g))
	}
	line := fmt.Sprintf("The worst of %d groups: %s", len(base.Groups), worst(base))
	if other == nil {
		return []string{line + "."}
	}
	line += "; " + worst(other) + "."
	var better, worse []string
	for k, d := range r.GroupDifferences(other, base) {
		name := study.GroupName(base.Groups[k].Name)
		if d.High < 0 {
			better = append(better, name)
		} else if d.Low > 0 {
			worse = append(worse, name)
		}
	}
	if better == nil && worse == nil {
		return []string{line, fmt.Sprintf("No group shows a difference of %s to %s.", short(other), short(base))}
	}
	return []string{line, fmt.Sprintf("%s is better than %s in %s, and worse in %s.", short(other), short(base), some(better), some(worse))}
}

func some(names []string) string {
	const named = 3
	switch n := len(names); {
	case n == 0:
		return "no group"
	case n > named:
		return fmt.Sprintf("%d groups", n)
	}
	return strings.Join(names, ", ")
}

// groupsJSON returns the figures of a method by group with its differences to the baseline, or nil.
func (r fields) groupsJSON(m *compare.Method) any {
	if r.Report == nil {
		return nil
	}
	base := r.verdict.Base
	differences := r.GroupDifferences(m, base)
	list := []study.Object{}
	for k, g := range m.Groups {
		o := study.GroupJSON(g)
		if m != base {
			o = append(o, study.Field{Key: r.Loss().Key + "_difference", Value: study.Interval("value", differences[k])})
		}
		list = append(list, o)
	}
	return list
}
