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
		// Not Less: NaN abstains. No Cast: converters to float16 break those of true and false.
		above := m.Op("Greater", m.Largest(value("prob")), m.Constant([]float32{a.Cut}, 1, 1))
		out = append(out, Output{task.Output{Name: task.AbstainColumn, Value: m.Op("Not", above), Width: 1}, true})
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
	units := rounded(m, prob)
	keys := m.Op("Mul", prob, row(sets.Keys(classes)))
	if classes <= mostCompared {
		return m.Op("Greater", compared(m, rule, keys, units, classes), row(rule.Least())), nil
	}
	if v := m.Opset(); v < leastRanked {
		return "", fmt.Errorf("opset %d, and sets by %s of more than %d classes need %d: export the checkpoints with that, or choose %s", v,
			c.Method, mostCompared, leastRanked, setting.Sets.With(string(sets.LAC)))
	}
	order := descending(m, keys, row(make([]float32, classes)), classes)
	behind := m.Node("CumSum", []string{m.Rowwise("GatherElements", units, order), m.Integer(1)},
		fused.Attribute{Name: "exclusive", Int: 1}, fused.Attribute{Name: "reverse", Int: 1})
	if penalties := rule.Penalties(classes); penalties != nil {
		for k := range penalties {
			penalties[k] /= sets.Fine
		}
		behind = m.Op("Sub", behind, row(penalties))
	}
	behind = m.Rowwise("ScatterElements", units, order, behind) // in the order of classes again
	return m.Op("Greater", behind, row(rule.Least())), nil
}

// rounded adds the probabilities as [sets.Ranking] rounds them, in units of a graph. Sums of them are exact in float32 in any order.
func rounded(m *fused.Model, prob string) string {
	number := func(v float32) string { return m.Constant([]float32{v}, 1, 1) }
	scaled := m.Op("Mul", prob, number(sets.Coarse))
	most := m.Op("Floor", scaled)
	fine := m.Op("Add", m.Op("Mul", m.Op("Sub", scaled, most), number(sets.Fine)), number(0.5))
	return m.Op("Add", most, m.Op("Mul", m.Op("Floor", fine), number(1./sets.Fine)))
}

// compared adds the sum of the units of all classes behind each class, [rows, classes], without the penalty of its rank. It compares the
// keys of each pair of classes. It sorts nothing, so runtimes and compilers without sorting can run it. Of equal keys the first class
// comes first.
func compared(m *fused.Model, rule *sets.Rule, keys, units string, classes int) string {
	n := int64(classes)
	across, down := m.Integers(0, 1, n), m.Integers(0, n, 1)
	first := make([]float32, 0, n*n) // 1 where the other class is the own one or stands before it, and −1 where it stands behind
	for o := range n {
		for c := range n {
			first = append(first, map[bool]float32{true: 1, false: -1}[o <= c])
		}
	}
	sign := m.Sign(m.Op("Sub", m.Op("Reshape", keys, down), m.Op("Reshape", keys, across)))
	sign = m.Sign(m.Op("Add", m.Op("Add", sign, sign), m.Constant(first, 1, n, n)))
	behind := m.Sum(m.Op("Mul", m.Op("Relu", m.Op("Neg", sign)), m.Op("Reshape", units, down)))
	if step, most := rule.Step(); step > 0 {
		rank := m.Sum(m.Op("Relu", sign)) // from 1
		above := m.Op("Relu", m.Op("Sub", rank, m.Constant([]float32{float32(rule.Free)}, 1, 1, 1)))
		penalty := m.AtMost(m.Op("Mul", above, m.Constant([]float32{step / sets.Fine}, 1, 1, 1)), most/sets.Fine)
		behind = m.Op("Sub", behind, penalty)
	}
	return m.Op("Reshape", behind, m.Integers(0, n))
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
