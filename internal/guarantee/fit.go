package guarantee

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/sets"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Fitting chooses the thresholds of a [Coverage]. Add its examples, and then call Choose.
type Fitting struct {
	Task   task.Task
	Level  float64
	Size   float64 // of sets on average, instead of a level
	Method string  // "" for the default: lac, or the standard deviation
	By     string  // as in [Coverage]
	Seed   uint64  // of the examples that choose the penalty of raps

	examples int
	groups   map[string]*gathered
	probs    []float64 // of classes, for methods that rank them
	labels   []int
	of       []string // groups of these examples
	own      [][]float64
}

// gathered holds what a group of examples says of thresholds.
type gathered struct {
	missed []sets.Missed // one for all classes, or one for each
	sizes  sets.Counted
	scores [][]float64 // of each target
}

// Add adds an example with its calibrated outcome and what is known of it. group is "" without groups.
func (f *Fitting) Add(outcome []float64, label target.Target, group string) error {
	if !label.Known() {
		return nil
	}
	if err := f.Task.CheckLabel(label); err != nil {
		return err
	}
	f.examples++
	if f.By == "" || f.By == ByClass {
		group = ""
	}
	into := []*gathered{f.group("")}
	if group != "" {
		into = append(into, f.group(group))
	}
	if f.Size > 0 {
		f.addSizes(outcome, into)
		return nil
	}
	if t, ok := f.Task.(task.Targeted); ok {
		f.addNumbers(t, outcome, label, into)
		return nil
	}
	if f.ranks() {
		f.probs, f.labels, f.of = append(f.probs, outcome...), append(f.labels, label.Class()), append(f.of, group)
		return nil
	}
	f.addTrue(outcome, label, into)
	return nil
}

// ranks reports whether the method orders the classes of an example.
func (f *Fitting) ranks() bool {
	return f.Method == string(sets.APS) || f.Method == string(sets.RAPS)
}

func (f *Fitting) group(name string) *gathered {
	if f.groups == nil {
		f.groups = make(map[string]*gathered)
	}
	g := f.groups[name]
	if g == nil {
		g = &gathered{missed: make([]sets.Missed, 1)}
		if f.By == ByClass {
			g.missed = make([]sets.Missed, 1+f.Task.About().Classes) // of all classes first
		}
		f.groups[name] = g
	}
	return g
}

// addNumbers adds the distance of each target from its mean, in standard deviations.
func (f *Fitting) addNumbers(t task.Targeted, outcome []float64, label target.Target, into []*gathered) {
	for k, y := range label.Values {
		mean, std := deviation(t, outcome, k, f.deviation())
		score := math.Abs(y-mean) / std
		if y == mean {
			score = 0
		}
		for _, g := range into {
			if g.scores == nil {
				g.scores = make([][]float64, label.Width)
			}
			g.scores[k] = append(g.scores[k], score)
		}
	}
}

// deviation returns the method of intervals.
func (f *Fitting) deviation() string {
	switch {
	case f.Method != "":
		return f.Method
	case task.Missing(f.Task) != nil:
		return ByEpistemic
	}
	return ByStd
}

// deviation returns the mean of a target and the standard deviation that intervals are multiples of.
func deviation(t task.Targeted, outcome []float64, k int, method string) (mean, std float64) {
	m := t.Moments(outcome, k)
	if method == ByEpistemic {
		return m.Mean, math.Sqrt(m.Epistemic)
	}
	return m.Mean, m.Std()
}

// addTrue adds the probabilities of all that is true of the example.
func (f *Fitting) addTrue(outcome []float64, label target.Target, into []*gathered) {
	if f.own == nil {
		f.own = make([][]float64, len(into[0].missed))
	}
	for c := range f.own {
		f.own[c] = f.own[c][:0]
	}
	eachTrue(f.Task, outcome, label, func(class int, p float64) {
		if task.Large(f.Task) {
			p = coarse(p)
		}
		if f.own[0] = append(f.own[0], p); len(f.own) > 1 {
			f.own[1+class] = append(f.own[1+class], p)
		}
	})
	for _, g := range into {
		for c := range g.missed {
			g.missed[c].Add(f.own[c]...)
		}
	}
}

// addSizes adds the probabilities of all classes of the example.
func (f *Fitting) addSizes(outcome []float64, into []*gathered) {
	var all []float64
	positions, classes := 0, f.Task.About().Classes
	task.EachRow(f.Task, outcome, target.Target{}, func(row []float64, _ target.Target) {
		positions++
		for _, p := range row[:classes] {
			if task.Large(f.Task) {
				p = float64(math.Float32frombits(math.Float32bits(float32(p)) | (1<<10 - 1))) // as coarse, but up
			}
			all = append(all, p)
		}
	})
	for _, g := range into {
		g.sizes.Add(positions, all...)
	}
}

// coarse rounds a probability down to 13 bits, because pictures have many pixels. Sets grow by up to 1 in 8,000.
func coarse(p float64) float64 {
	return float64(math.Float32frombits(math.Float32bits(float32(p)) &^ (1<<10 - 1)))
}

// eachTrue calls use with the classes or labels that are true of an example, and their probabilities. A pixel without a
// label has none.
func eachTrue(t task.Task, outcome []float64, label target.Target, use func(class int, p float64)) {
	if task.Large(t) {
		task.EachKnown(t, outcome, label, func(_ int, row []float64, one target.Target) error {
			eachTrue(task.OnePosition(t), row, one, use)
			return nil
		})
		return
	}
	if label.Classes != nil {
		if c := label.Class(); c >= 0 {
			use(c, outcome[c])
		}
		return
	}
	for k, v := range label.Values {
		if v == 1 {
			use(k, outcome[k])
		}
	}
}

// mostGroups bounds what an ensemble stores.
const mostGroups = 10_000

// Choose chooses the thresholds.
func (f *Fitting) Choose(data Data) (*Coverage, error) {
	c := &Coverage{Level: f.Level, Size: f.Size, Method: f.Method, By: f.By, Data: data}
	if f.examples == 0 {
		return nil, fmt.Errorf("no labelled examples")
	}
	if _, numbers := f.Task.(task.Targeted); numbers {
		c.Method = f.deviation()
	} else if c.Method == "" {
		c.Method = string(sets.LAC)
	}
	c.Data.Examples = f.examples
	if f.By != "" && f.By != ByClass && len(f.groups) == 1 {
		return nil, fmt.Errorf("no example has a group by %s", f.By)
	}
	if len(f.groups) > mostGroups {
		return nil, fmt.Errorf("%d groups, want at most %d", len(f.groups)-1, mostGroups)
	}
	if f.ranks() {
		return c, f.chooseRanked(c)
	}
	names := append([]string{""}, slices.DeleteFunc(slices.Sorted(maps.Keys(f.groups)), func(s string) bool { return s == "" })...)
	for _, name := range names {
		g, e := f.groups[name], Cell{Group: name}
		if f.Size > 0 {
			p, ok := g.sizes.Highest(f.Size, f.Task.About().Classes)
			if e.add(g.sizes.Len(), 1-p, ok, sets.Above(p), 0); !ok && name == "" {
				return nil, fmt.Errorf("%d examples cannot show that sets have at most %g classes on average, want at least %d",
					f.examples, f.Size, c.Least(f.Task))
			}
			c.Cells = append(c.Cells, e)
			continue
		}
		for _, scores := range g.scores {
			n := len(scores)
			q, ok := sets.Quantile(scores, f.Level)
			covered := sort.Search(n, func(i int) bool { return scores[i] > q })
			e.add(n, q, ok, 0, sets.Upper(n, len(slices.Compact(scores)), covered, false))
		}
		of := g.missed
		if g.scores != nil {
			of = nil
		} else if f.By == ByClass {
			of = of[1:]
		}
		for k := range of {
			p, ok := of[k].Lowest(f.Level)
			e.add(of[k].Len(), 1-p, ok, sets.Below(p), of[k].Upper(sets.Below(p)))
		}
		c.Cells = append(c.Cells, e)
	}
	whole := Cell{}
	if f.By == ByClass {
		m := &f.groups[""].missed[0]
		p, ok := m.Lowest(f.Level)
		whole.add(m.Len(), 1-p, ok, sets.Below(p), 0)
	}
	_, paired := f.Task.(task.Paired)
	c.complete(whole, paired || task.Large(f.Task) || f.Size > 0)
	return c, nil
}

// add adds a threshold. ok is false if it is infinite.
func (e *Cell) add(examples int, threshold float64, ok bool, cut float32, upper int) {
	t := &threshold
	if !ok {
		t, cut, upper = nil, math.MaxFloat32, examples+1
	}
	e.Upper = append(e.Upper, upper)
	e.Examples, e.Thresholds, e.Cuts = append(e.Examples, examples), append(e.Thresholds, t), append(e.Cuts, cut)
}

// complete lets groups and classes with too few examples take the threshold of all examples. of is that of all classes,
// where each class has its own. several says that more than one thing is true of an example.
func (c *Coverage) complete(of Cell, several bool) {
	for i := range c.Cells {
		e := &c.Cells[i]
		for k, t := range e.Thresholds {
			switch {
			case t != nil:
			case c.By == ByClass && of.Thresholds[0] != nil:
				e.Thresholds[k], e.Cuts[k], e.Whole = of.Thresholds[0], of.Cuts[0], append(e.Whole, k)
			case i > 0 && c.Cells[0].Thresholds[k] != nil:
				e.Thresholds[k], e.Cuts[k], e.Whole = c.Cells[0].Thresholds[k], c.Cells[0].Cuts[k], append(e.Whole, k)
			default:
				e.Cuts[k] = sets.Everything(sets.Method(c.Method))
			}
		}
		if c.Intervals() {
			e.Cuts = nil
		}
		if several {
			e.Upper = nil
		}
	}
}

// chooseRanked chooses the thresholds of methods that rank the classes.
func (f *Fitting) chooseRanked(c *Coverage) error {
	n, classes := len(f.labels), f.Task.About().Classes
	rule := &sets.Rule{Method: sets.Method(c.Method)}
	rows := make([]int, n)
	for i := range rows {
		rows[i] = i
	}
	if rule.Method == sets.RAPS {
		tune, rest := sets.Split(n, sets.TuneShare, f.Seed)
		if !rule.Tune(f.probs, classes, f.labels, tune, f.Level) {
			return fmt.Errorf("%d examples for the penalty of raps, want at least %d: aps has none", len(tune), sets.Least(f.Level))
		}
		rows, c.Penalty, c.Free = rest, rule.Penalty, rule.Free
	}
	c.Data.Examples = len(rows)
	fit := func(e *Cell, of func(i int) bool) {
		var own []int
		for _, i := range rows {
			if of(i) {
				own = append(own, i)
			}
		}
		t := rule.Fit(f.probs, classes, f.labels, own, f.Level)
		e.add(t.Examples, t.Exact, !t.Infinite(), t.Cut, t.Upper)
	}
	whole := Cell{}
	fit(&whole, func(int) bool { return true })
	if f.By == ByClass {
		e := Cell{}
		for k := range classes {
			fit(&e, func(i int) bool { return f.labels[i] == k })
		}
		c.Cells = []Cell{e}
	} else {
		c.Cells = []Cell{whole}
		names := slices.Sorted(slices.Values(f.of))
		for _, name := range slices.Compact(names) {
			if name != "" {
				e := Cell{Group: name}
				fit(&e, func(i int) bool { return f.of[i] == name })
				c.Cells = append(c.Cells, e)
			}
		}
	}
	c.complete(whole, false)
	return nil
}

// NewAnswers chooses the confidence above which answers are given. g are the confidences of examples, and whether they
// are right.
func NewAnswers(g []calibrate.TopLabel, risk float64, data Data) (*Answers, error) {
	for i := range g {
		g[i].Confidence = float64(float32(g[i].Confidence)) // what a model gives
	}
	a, err := calibrate.FitAnsweringAbove(g, risk, func(t float64) float64 { return float64(sets.Above(t)) })
	if err != nil {
		return nil, err
	}
	data.Examples = len(g)
	return &Answers{Risk: risk, Cut: float32(a.Threshold), Answered: a.Coverage, Data: data}, nil
}
