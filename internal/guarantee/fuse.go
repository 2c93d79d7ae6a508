package guarantee

import (
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate/sets"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/onnxio/fused"
)

// Output is an output of a model: a value [rows, Width] of its graph. Flags are true or false.
type Output struct {
	task.Output
	Flags bool
}

const (
	// mostCompared is the largest number of classes that are ranked by comparing each with each. A row then takes 4 kB for a table.
	mostCompared = 32
	// leastRanked is the first opset with CumSum and ScatterElements, which rank more classes.
	leastRanked = 11
)

// Exportable returns an error if no graph can make the guarantee.
func (g *Guarantee) Exportable() error {
	if g.Empty() || g.Coverage == nil || g.Coverage.By == "" || g.Coverage.By == ByClass {
		return nil
	}
	return fmt.Errorf("has thresholds by %s, and a model does not know the group of an example: choose them for all examples, or by "+
		"class, and export that ensemble", g.Coverage.By)
}

// Fuse adds the operators that decide as a [Decider] does, from the outputs of the task: prob, or mean and a standard
// deviation. t is the task of one position.
func (g *Guarantee) Fuse(m *fused.Model, t task.Task, of []task.Output) (out []Output, err error) {
	if g.Empty() {
		return nil, nil
	}
	if err := g.Exportable(); err != nil {
		return nil, err
	}
	value := func(name string) string {
		return of[slices.IndexFunc(of, func(o task.Output) bool { return o.Name == name })].Value
	}
	switch c := g.Coverage; {
	case c == nil:
	case c.Intervals():
		lower, upper := c.fuseBounds(m, value("mean"), value(c.Method))
		n := task.Targets(t)
		out = append(out, Output{task.Output{Name: task.LowerColumn, Value: lower, Width: n}, false},
			Output{task.Output{Name: task.UpperColumn, Value: upper, Width: n}, false})
	default:
		set, err := c.fuseSet(m, value("prob"), t.About().Classes)
		if err != nil {
			return nil, err
		}
		out = append(out, Output{task.Output{Name: task.SetColumn, Value: set, Width: t.About().Classes}, true})
	}
	if a := g.Answers; a != nil {
		above := m.Op("Greater", value("prob"), m.Constant([]float32{a.Cut}, 1, 1))
		count := m.Sum(m.Floats(above))
		abstain := m.Op("Less", count, m.Constant([]float32{0.5}, 1, 1))
		out = append(out, Output{task.Output{Name: task.AbstainColumn, Value: abstain, Width: 1}, true})
	}
	return out, nil
}

// fuseSet adds the mask of the classes that are in the set.
func (c *Coverage) fuseSet(m *fused.Model, prob string, classes int) (string, error) {
	rule := c.Rule(&c.Cells[0])
	row := func(values []float32) string { return m.Constant(values, 1, int64(len(values))) }
	if rule.Method == sets.LAC {
		return m.Op("Greater", prob, row(rule.Cuts)), nil
	}
	units := m.Op("Floor", m.Op("Add", m.Op("Mul", prob, row([]float32{sets.Grid()})), row([]float32{0.5})))
	keys := m.Op("Mul", prob, row(sets.Keys(classes)))
	penalties := rule.Penalties(classes)
	if classes <= mostCompared {
		return m.Op("Less", compared(m, keys, units, penalties, classes), row(rule.Cuts)), nil
	}
	if v := m.Opset(); v < leastRanked {
		return "", fmt.Errorf("opset %d, and sets by %s of more than %d classes need %d: export the checkpoints with that, or choose %s", v,
			c.Method, mostCompared, leastRanked, setting.Sets.With(string(sets.LAC)))
	}
	order := descending(m, keys, row(make([]float32, classes)), classes)
	scores := m.Op("CumSum", m.Rowwise("GatherElements", units, order), m.Integer(1))
	if penalties != nil {
		scores = m.Op("Add", scores, row(penalties))
	}
	scores = m.Rowwise("ScatterElements", units, order, scores) // in the order of classes again
	return m.Op("Less", scores, row(rule.Cuts)), nil
}

// compared adds the sum of the units of each class and of all classes before it, [rows, classes], by comparing the keys of each pair of
// classes. It sorts nothing, so runtimes and compilers without sorting can run it. Of equal keys the first class comes first. Units are
// whole numbers, whose sums are exact in float32 in any order.
func compared(m *fused.Model, keys, units string, penalties []float32, classes int) string {
	n := int64(classes)
	across, down := m.Integers(0, 1, n), m.Integers(0, n, 1)
	other, own := m.Op("Reshape", keys, down), m.Op("Reshape", keys, across)
	more, less := m.Floats(m.Op("Greater", other, own)), m.Floats(m.Op("Less", other, own))
	upTo := make([]float32, 0, n*n) // 1 where the other class is the own one or stands before it
	for o := range n {
		for c := range n {
			upTo = append(upTo, map[bool]float32{true: 1}[o <= c])
		}
	}
	equal := m.Op("Sub", m.Op("Sub", m.Constant([]float32{1}, 1, 1, 1), more), less)
	before := m.Op("Add", more, m.Op("Mul", equal, m.Constant(upTo, 1, n, n)))
	scores := m.Sum(m.Op("Mul", before, m.Op("Reshape", units, down)))
	if penalties != nil {
		rank := m.Op("Sub", m.Sum(before), m.Constant([]float32{1}, 1, 1, 1)) // from 0
		scores = m.Op("Add", scores, m.Op("Gather", m.Constant(penalties, n), m.Integral(rank)))
	}
	return m.Op("Reshape", scores, m.Integers(0, n))
}

// descending adds the classes of each row in the order of their keys. Some versions of ONNX Runtime end the process when they sort some
// batches. One more row, which is dropped behind, makes every batch one that they sort.
func descending(m *fused.Model, keys, more string, classes int) string {
	rows := m.Node("Concat", []string{keys, more}, fused.Attribute{Name: "axis"})
	_, order := m.Pair("TopK", rows, m.Integers(int64(classes)))
	return m.Op("Slice", order, m.Integers(0), m.Integers(-1), m.Integers(0))
}

// fuseBounds adds mean − q·std and mean + q·std.
func (c *Coverage) fuseBounds(m *fused.Model, mean, std string) (lower, upper string) {
	var factors, endless []float32
	for _, q := range c.Cells[0].Thresholds {
		if q != nil {
			factors, endless = append(factors, float32(*q)), append(endless, 0)
		} else { // infinity times a deviation of 0 is no number
			factors, endless = append(factors, 0), append(endless, float32(math.Inf(1)))
		}
	}
	row := func(values []float32) string { return m.Constant(values, 1, int64(len(values))) }
	half := m.Op("Add", m.Op("Mul", std, row(factors)), row(endless))
	return m.Op("Sub", mean, half), m.Op("Add", mean, half)
}
