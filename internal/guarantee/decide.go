package guarantee

import (
	"fmt"
	"math"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate/sets"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// A Decider makes the sets, the intervals and the abstentions of examples. It is nil if nothing is guaranteed.
type Decider struct {
	*Guarantee
	task task.Task // of one position
	// GroupOf names the group of an example. It may be nil.
	groupOf func(i int, name string) string

	rules   map[*Cell]*sets.Rule
	ranking sets.Ranking
	set     []bool

	// Of the positions of the current example:
	cell      *Cell
	size      float64 // sum of the sizes of their sets
	n         float64
	has, miss float64 // what is true, and what of it is in no set
}

// NewDecider returns a Decider for predictions of the task. It fails if the guarantee does not fit them.
func NewDecider(g *Guarantee, t task.Task, groupOf func(i int, name string) string) (*Decider, error) {
	if g.Empty() {
		return nil, nil
	}
	if err := g.Check(t); err != nil {
		return nil, err
	}
	d := &Decider{Guarantee: g, task: task.OnePosition(t), groupOf: groupOf, rules: make(map[*Cell]*sets.Rule)}
	d.set = make([]bool, d.task.About().Classes)
	return d, nil
}

// Want sets what rows have.
func (d *Decider) Want(want *task.RowOptions) {
	if d == nil {
		return
	}
	if c := d.Coverage; c != nil {
		want.Set, want.Interval = !c.Intervals(), c.Intervals()
	}
	want.Abstain = d.Answers != nil
}

// Values appends what an example gets, in the order of [task.RowColumns]. outcome is its calibrated average.
func (d *Decider) Values(dst, outcome []float64, i int, name string) []float64 {
	if c := d.Coverage; c != nil {
		e := d.of(i, name)
		if t, ok := d.task.(task.Targeted); ok {
			dst = c.bounds(dst, t, e, outcome)
		} else {
			size := 0.0
			for _, in := range d.make(e, outcome) {
				v := 0.0
				if in {
					v = 1
				}
				dst, size = append(dst, v), size+v
			}
			dst = append(dst, size)
		}
	}
	if a := d.Answers; a != nil {
		v := 1.0
		for _, p := range outcome {
			if float32(p) > a.Cut {
				v = 0
			}
		}
		dst = append(dst, v)
	}
	return dst
}

// of returns the cell of an example.
func (d *Decider) of(i int, name string) *Cell {
	if d.groupOf == nil || d.Coverage.By == "" || d.Coverage.By == ByClass {
		return d.Coverage.find("")
	}
	return d.Coverage.find(d.groupOf(i, name))
}

// make makes the set of a position.
func (d *Decider) make(e *Cell, outcome []float64) []bool {
	r := d.rules[e]
	if r == nil {
		r = d.Coverage.Rule(e)
		d.rules[e] = r
	}
	d.ranking.Make(d.set, r, outcome[:len(d.set)])
	return d.set
}

// bounds appends the lower and then the upper ends of the intervals of all targets.
func (c *Coverage) bounds(dst []float64, t task.Targeted, e *Cell, outcome []float64) []float64 {
	for _, sign := range []float64{-1, 1} {
		for k, q := range e.Thresholds {
			end := math.Inf(int(sign))
			if q != nil {
				mean, std := deviation(t, outcome, k, c.Method)
				end = mean + sign*(*q*std)
			}
			dst = append(dst, end)
		}
	}
	return dst
}

// Begin begins an example with several positions.
func (d *Decider) Begin(i int, name string) {
	d.cell, d.size, d.n, d.has, d.miss = d.of(i, name), 0, 0, 0, 0
}

// Position makes the set of a position, and returns its size. one is its label, which may be unknown.
func (d *Decider) Position(row []float64, one target.Target) (size float64) {
	for _, in := range d.make(d.cell, row) {
		if in {
			size++
		}
	}
	d.size, d.n = d.size+size, d.n+1
	if one.Known() {
		eachTrue(d.task, row, one, func(class int, _ float64) {
			if d.has++; !d.set[class] {
				d.miss++
			}
		})
	}
	return size
}

// End appends what an example with several positions gets: the mean size of their sets, and with labels the share of the
// target that they miss.
func (d *Decider) End(dst []float64, labelled bool) []float64 {
	if dst = append(dst, d.size/d.n); labelled {
		dst = append(dst, d.miss/d.has) // NaN where nothing is true
	}
	return dst
}

// mostNamed is the number of classes that a line names.
const mostNamed = 4

// Lines says below a picture what a row has of guarantees. names are those of classes.
func Lines(columns []task.Column, values []float64, names []string) (lines []task.Line) {
	add := func(text, value string) { lines = append(lines, task.Line{Text: text, Value: value, Part: -1}) }
	at := 0
	for _, c := range columns {
		own := values[at : at+c.Len()]
		at += c.Len()
		switch {
		case c.Kind == task.Subset:
			var in []string
			n := 0
			for k, v := range own {
				if v == 0 {
					continue
				}
				if n++; n <= mostNamed {
					in = append(in, task.NameOf("class", k, names))
				}
			}
			if n > mostNamed {
				in = append(in, "…")
			}
			add("set: "+strings.Join(in, ", "), fmt.Sprintf("%d of %d", n, len(own)))
		case c.Name == task.SizeColumn && c.Kind == task.Float64 && len(lines) == 0:
			add("classes in the set of a pixel", fmt.Sprintf("%.2f", own[0]))
		case c.Name == task.LowerColumn:
			add("at least", fmt.Sprintf("%.4g", own[0]))
		case c.Name == task.UpperColumn:
			add("at most", fmt.Sprintf("%.4g", own[0]))
		case c.Kind == task.Flag && own[0] != 0:
			add("no answer is guaranteed", "")
		}
	}
	return lines
}
