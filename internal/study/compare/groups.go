package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// group evaluates a method on each group of the test data.
func (r *Result) group(m *Method, outcomes []float64) error {
	if r.Report == nil {
		return nil
	}
	g := task.NewGroups(r.task, r.Grouping, r.options(m))
	labels, width := r.Test.Labels(), len(outcomes)/r.Test.Len()
	for i := range r.Test.Len() {
		for _, e := range g.At(i, r.Test.Name(i)) {
			if err := e.Add(outcomes[i*width:][:width], labels.At(i)); err != nil {
				return fmt.Errorf("%s: %w", m.Name, err)
			}
		}
	}
	m.groups(g)
	return nil
}

// groups stores the figures of the groups. They have the same order for all methods.
func (m *Method) groups(g *task.Groups) {
	m.AllGroups, m.Groups = g.Found()
	slices.SortFunc(m.Groups, func(a, b *task.Group) int { return strings.Compare(a.Name, b.Name) })
}

// clustered returns the losses of the units of chance for those of examples with these indexes; nil stands for all test
// examples. Losses of pixels and tokens are of units already.
func (r *Result) clustered(losses []float64, rows []int) []float64 {
	if r.Unit == nil || r.dense() {
		return losses
	}
	names := r.unitNames()
	if rows != nil {
		names = nil
		for _, i := range rows {
			names = append(names, r.unitNames()[i])
		}
	}
	return task.Clustered(losses, task.Numbered(names))
}

// unitNames returns the unit of chance of each test example, or nil.
func (c *Comparison) unitNames() []string {
	if c.unitOf == nil && c.Unit != nil {
		for i := range c.Test.Len() {
			c.unitOf = append(c.unitOf, c.Unit(i, c.Test.Name(i)))
		}
	}
	return c.unitOf
}

// unitNumbers numbers the units of chance of the test examples. It returns nil without units.
func (c *Comparison) unitNumbers() []int {
	if c.Unit == nil {
		return nil
	}
	return task.Numbered(c.unitNames())
}

// unitLabels returns the labels of the test examples with their units, so that halves do not share one.
func (r *Result) unitLabels() truth.Truth {
	labels := r.Test.Labels()
	labels.Units = r.unitNumbers()
	return labels
}

// groupDifferences returns the differences of two methods in the first loss, by group. Their intervals hold for all groups
// together.
func (r *Result) groupDifferences(m, base *Method) (all []chance.Interval) {
	for k, g := range m.Groups {
		key := r.loss().Key
		all = append(all, chance.Family(len(m.Groups)).Mean(difference(g.Loss(key), base.Groups[k].Loss(key))))
	}
	return all
}

// worstFirst returns the indexes of the groups, the highest first loss of a method first.
func (r *Result) worstFirst(m *Method) []int {
	order := make([]int, len(m.Groups))
	for i := range order {
		order[i] = i
	}
	value := func(k int) float64 { return m.Groups[k].Value(r.loss()) }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(value(b), value(a)) })
	return order
}

// groupsTable shows the first loss by group for the two methods that the verdict compares.
func (r *Result) groupsTable() *report.Table {
	base, other := r.base(), r.candidate()
	columns := []report.Column{{Header: r.loss().Name + " by group"}, decimal("examples")}
	if r.Unit != nil {
		columns = append(columns, decimal("units"))
	}
	columns = append(columns, decimal(base.short()+" [95 %]"))
	var differences []chance.Interval
	if other != nil {
		columns = append(columns, decimal(other.short()+" [95 %]"), decimal("difference [95 %]"))
		differences = r.groupDifferences(other, base)
	}
	t := report.NewTable(columns...)
	order := r.worstFirst(base)
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

func (r *Result) groupCell(g *task.Group) string {
	i, of := g.Intervals[r.loss().Key], task.Metric{Digits: 4}
	return report.Fixed(i.Mean, 4) + " " + study.Range(of, i)
}

// groupLines says which group is the worst, and where the two methods differ that the verdict compares.
func (r *Result) groupLines() []string {
	base, other := r.base(), r.candidate()
	if r.Report == nil || len(base.Groups) < 2 {
		return nil
	}
	worst := func(m *Method) string {
		g := m.Groups[r.worstFirst(m)[0]]
		return fmt.Sprintf("for %s it is %s with %s %s", m.short(), study.GroupName(g.Name), r.loss().Name, r.groupCell(g))
	}
	line := fmt.Sprintf("The worst of %d groups: %s", len(base.Groups), worst(base))
	if other == nil {
		return []string{line + "."}
	}
	line += "; " + worst(other) + "."
	var better, worse []string
	for k, d := range r.groupDifferences(other, base) {
		name := study.GroupName(base.Groups[k].Name)
		if d.High < 0 {
			better = append(better, name)
		} else if d.Low > 0 {
			worse = append(worse, name)
		}
	}
	if better == nil && worse == nil {
		return []string{line, fmt.Sprintf("No group shows a difference of %s to %s.", other.short(), base.short())}
	}
	return []string{line, fmt.Sprintf("%s is better than %s in %s, and worse in %s.", other.short(), base.short(), some(better), some(worse))}
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
func (r *Result) groupsJSON(m *Method) any {
	if r.Report == nil {
		return nil
	}
	base := r.base()
	differences := r.groupDifferences(m, base)
	list := []study.Object{}
	for k, g := range m.Groups {
		o := study.GroupJSON(g)
		if m != base {
			o = append(o, study.Field{Key: r.loss().Key + "_difference", Value: study.Interval("value", differences[k])})
		}
		list = append(list, o)
	}
	return list
}
