package compare

import (
	"cmp"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

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
func (c *Comparison) unitLabels() target.Target {
	labels := c.Test.Labels()
	labels.Units = c.unitNumbers()
	return labels
}

// GroupDifferences returns the differences of two methods in the first loss, by group. Their intervals hold for all groups
// together.
func (r *Result) GroupDifferences(m, base *Method) (all []chance.Interval) {
	for k, g := range m.Groups {
		key := r.Loss().Key
		all = append(all, chance.Family(len(m.Groups)).Mean(difference(g.Loss(key), base.Groups[k].Loss(key))))
	}
	return all
}

// WorstFirst returns the indexes of the groups, the highest first loss of a method first.
func (r *Result) WorstFirst(m *Method) []int {
	order := make([]int, len(m.Groups))
	for i := range order {
		order[i] = i
	}
	value := func(k int) float64 { return m.Groups[k].Value(r.Loss()) }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(value(b), value(a)) })
	return order
}
