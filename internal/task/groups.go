package task

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// Grouping says which examples belong together, for two purposes that must not be confused.
type Grouping struct {
	// Unit names the unit of chance of an example, such as its patient. Examples of one unit depend on each other, so
	// intervals count units. If Unit is nil or returns "", each example is a unit.
	Unit func(i int, name string) string
	// Report names the group whose figures the example counts in, such as its hospital. nil means none.
	Report func(i int, name string) string
	// UnitBy and ReportBy say in words where the names come from.
	UnitBy, ReportBy string
}

// Group is a group of examples with its figures.
type Group struct {
	Name     string
	Examples int
	Units    int // number of units of chance
	// Evaluation has the losses of the units: see [Clustered].
	*Evaluation
	// Intervals are those of the mean losses by their key. They hold for all groups together with 95 %.
	Intervals map[string]chance.Interval
	counted   int // predictions that a share of errors counts
}

// Groups scores examples by group, as they are added.
type Groups struct {
	Grouping
	new func() *groupEvaluator
	all *groupEvaluator
	by  map[string]*groupEvaluator
}

// NewGroups returns groups without examples.
func NewGroups(t Task, g Grouping, opts EvaluateOptions) *Groups {
	opts.MainOnly, opts.NoLosses = true, false
	several := LossesOfUnits(t)
	of := func() *groupEvaluator { return &groupEvaluator{Evaluator: t.NewEvaluator(opts), several: several} }
	return &Groups{g, of, of(), map[string]*groupEvaluator{}}
}

// LossesOfUnits reports whether the losses of an evaluator are of units of chance already, as those of pixels and tokens are.
// Others are of examples.
func LossesOfUnits(t Task) bool { return Large(t) }

// At returns the evaluators that the example counts in: that of all examples, and that of its group.
func (g *Groups) At(i int, name string) []Evaluator {
	out := []Evaluator{g.all}
	if g.Report != nil {
		group := g.Report(i, name)
		if g.by[group] == nil {
			g.by[group] = g.new()
		}
		out = append(out, g.by[group])
	}
	for _, e := range out {
		if g.Unit != nil {
			e.Unit(g.Unit(i, name))
		}
	}
	return out
}

// Found returns the figures of all examples with usual intervals, and those of the groups, the highest first loss first.
// It must have a labelled example.
func (g *Groups) Found() (all *Group, groups []*Group) {
	for _, name := range slices.Sorted(maps.Keys(g.by)) {
		if e := g.by[name]; len(e.units) > 0 {
			groups = append(groups, e.found(name))
		}
	}
	family := chance.Family(max(1, len(groups)))
	for _, f := range groups {
		f.judge(family)
	}
	slices.SortStableFunc(groups, func(a, b *Group) int {
		return cmp.Compare(b.Value(b.Losses[0]), a.Value(a.Losses[0]))
	})
	all = g.all.found("all")
	all.judge(1)
	return all, groups
}

// Value returns the mean of a loss.
func (g *Group) Value(l Loss) float64 { return stat.Mean(g.Loss(l.Key), nil) }

func (g *Group) judge(family chance.Family) {
	for _, l := range g.Losses {
		if l.Key == "error" {
			g.Intervals[l.Key] = family.Share(l.Values, g.counted)
		} else {
			g.Intervals[l.Key] = family.Mean(l.Values)
		}
	}
}

// Interval returns the interval of a score, and reports whether there is one: for the means of losses, and for accuracy, which
// is 1 minus the share of errors.
func (g *Group) Interval(s Score) (chance.Interval, bool) {
	i, ok := g.Intervals[s.Key]
	if s.Key == "accuracy" {
		if i, ok = g.Intervals["error"]; ok {
			i = chance.Interval{Mean: 1 - i.Mean, Low: 1 - i.High, High: 1 - i.Low}
		}
	}
	return i, ok && !math.IsInf(i.Low, 0) && !math.IsNaN(i.Low)
}

// groupEvaluator is an [Evaluator] that knows the units of chance of its examples.
type groupEvaluator struct {
	Evaluator
	several bool // losses are of units already, and count positions
	unit    string
	units   []string // of the examples
}

func (e *groupEvaluator) Unit(name string) {
	e.unit = name
	e.Evaluator.Unit(name)
}

func (e *groupEvaluator) Add(outcome []float64, target truth.Truth) error {
	err := e.Evaluator.Add(outcome, target)
	if err == nil {
		e.units = append(e.units, e.unit)
	}
	return err
}

func (e *groupEvaluator) AddRow(values []float64, label int, sums []byte) bool {
	known := e.Evaluator.AddRow(values, label, sums)
	if known {
		e.units = append(e.units, e.unit)
	}
	return known
}

func (e *groupEvaluator) found(name string) *Group {
	out := &Group{Name: name, Examples: len(e.units), Evaluation: e.Evaluation(), Intervals: map[string]chance.Interval{}}
	if out.counted = len(e.units); e.several {
		out.counted = math.MaxInt // pixels or tokens
	} else {
		units := Numbered(e.units)
		for k, l := range out.Losses {
			out.Losses[k].Values = Clustered(l.Values, units)
		}
	}
	out.Units = len(out.Losses[0].Values)
	return out
}

// Numbered returns the number of each unit, from 0 in the order of their first examples. "" is always a unit of its own.
func Numbered(units []string) []int {
	number := map[string]int{}
	out, n := make([]int, len(units)), 0
	for i, name := range units {
		k, ok := number[name]
		if !ok || name == "" {
			k = n
			number[name] = k
			n++
		}
		out[i] = k
	}
	return out
}

// Clustered returns a loss for each unit of chance from those of the examples. Their mean is that of the examples, and their
// variance over their number is that of this mean if units are drawn at random: see [calibrate.Linearised]. It returns
// the losses themselves if no unit has two examples, or units is nil.
func Clustered(losses []float64, units []int) []float64 {
	if len(units) != len(losses) || len(units) == 0 || slices.Max(units)+1 == len(losses) {
		return losses
	}
	sums, n := make([]float64, slices.Max(units)+1), make([]float64, slices.Max(units)+1)
	for i, k := range units {
		sums[k] += losses[i]
		n[k]++
	}
	return calibrate.Linearised(sums, n)
}
