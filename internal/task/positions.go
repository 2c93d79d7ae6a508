package task

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/target"
)

// OfWidth returns the named task whose outcomes have the given number of values. sides are the sizes of the axes of
// positions, all 0 for examples with one.
func OfWidth(name string, width int, sides [3]int) (Task, error) {
	s, each := OutputSpec{}, width
	if sides[0] > 0 {
		s.Axis, s.Sides, s.Positions = -1, sides, sides[0]*max(1, sides[1])*max(1, sides[2])
		each = width/s.Positions - 1
	}
	for _, s.Count = range []int{each, each - 1, each / 3} { // binary: one score, width 2; labels, regression: three numbers each
		if t, err := New(name, s); err == nil && t.About().Width == width {
			return t, nil
		}
	}
	return nil, fmt.Errorf("task %q has no outcomes of %d numbers", name, width)
}

// Positions returns the number of positions of an example.
func Positions(t Task) int { return max(1, SpecOf(t).Positions) }

// OnePosition returns the task of one position.
func OnePosition(t Task) Task {
	if of, ok := t.(several); ok {
		return of.each
	}
	return t
}

// SpecOf returns the place of several positions in the output: their axis, their number, and the sizes of their axes, such as
// height and width. All are 0 if the example is the only position.
func SpecOf(t Task) (s OutputSpec) {
	if of, ok := t.(several); ok {
		return of.OutputSpec
	}
	return s
}

// Large reports whether outcomes are too large to keep those of all examples or members: those of pixels and tokens.
func Large(t Task) bool { return SpecOf(t).Axis != 0 }

// Sized returns the task for pictures of another size. It panics for a task of one position.
func Sized(t Task, h, w int) Task {
	s := SpecOf(t)
	s.Positions, s.Sides = h*w, [3]int{h, w}
	return newSeveral(t.(several).each, s)
}

// EachKnown calls f with the outcome and the label of every labelled position of an example.
func EachKnown(t Task, outcome []float64, label target.Target, f func(p int, row []float64, one target.Target) error) error {
	of, ok := t.(several)
	if !ok {
		if counts(label) {
			return f(0, outcome, label)
		}
		return nil
	}
	one := target.Target{Width: label.Width}
	for p := range of.Positions {
		if one = of.label(one, label, p); !counts(one) || of.pads(outcome, p) {
			continue
		}
		row, _ := of.row(outcome, p)
		if err := f(p, row, one); err != nil {
			return fmt.Errorf("position %s: %w", of.place(p), err)
		}
	}
	return nil
}

// EachRow calls f with the outcome of every position of an example, and its label, which may be unknown.
func EachRow(t Task, outcome []float64, label target.Target, f func(row []float64, one target.Target)) {
	of, ok := t.(several)
	if !ok {
		f(outcome, label)
		return
	}
	one := target.Target{Width: label.Width}
	for p := range of.Positions {
		if !of.pads(outcome, p) {
			one = of.label(one, label, p)
			row, _ := of.row(outcome, p)
			f(row, one)
		}
	}
}

// Pad says that position p only fills up the example of an outcome.
func Pad(t Task, outcome []float64, p int) {
	if of, ok := t.(several); ok {
		outcome[p*(of.width+1)+of.width] = math.NaN()
	}
}

// AddPositions adds w times the outcomes of the positions from … to−1 to sum, except those that fill up the example. It returns the
// sum of their entropies. scores may have fewer positions than the task.
func AddPositions(t Task, sum []float64, scores []float32, w float64, from, to int) (entropies float64, err error) {
	return t.(several).add(sum, scores, w, from, to)
}

// EachLogits calls use with the log-probabilities and the label of each labelled position, or of each known label of a
// position. classes is the number of log-probabilities. It is 0 for tasks without a temperature.
func EachLogits(t Task, outcome []float64, label target.Target, use func(logits []float64, label int)) (classes int) {
	if classes = t.About().Classes; classes == 0 {
		return 0
	}
	pairs, independent := OnePosition(t).(Paired)
	if independent {
		classes = 2
	}
	logits := make([]float64, classes)
	EachKnown(t, outcome, label, func(_ int, row []float64, one target.Target) error {
		if !independent {
			use(calibrate.LogProbs(logits, row), one.Classes[0])
			return nil
		}
		for k, pair := range pairsOf(pairs, row) {
			if v := one.Values[k]; v >= 0 {
				use(calibrate.LogProbs(logits, pair), int(v))
			}
		}
		return nil
	})
	return classes
}

// several is a task with several positions for each example: pixels or tokens.
//
// An outcome has a row for each position: the outcome of the task of one position, and then its entropy in nats. So the average
// gives a mutual information for each position. The entropy of a position that only fills up its example is NaN: it counts nowhere.
// The sums of labelled positions give all figures, so that no outcome outlives its example. The unit of chance is the example, the
// document of a text, or a group of examples.
type several struct {
	OutputSpec
	about   *About
	each    Task           // of one position
	width   int            // of an outcome of one position
	columns map[string]int // place of each column in the values of a position
	// hasClass reports whether each position has one of several classes.
	hasClass bool
}

func newSeveral(each Task, s OutputSpec) several {
	a := *each.About()
	what := "positions of an example"
	if s.Positions > 0 {
		what = sidesOf(s) + " positions"
	}
	first := each.Columns(positionOptions)[0]
	d := several{OutputSpec: s, each: each, columns: map[string]int{}, width: a.Width, hasClass: first.Kind == Class && !first.Target}
	at := 0
	for _, c := range each.Columns(positionOptions) {
		d.columns[c.Name] = at
		at += c.Len()
	}
	a.Meaning = strings.TrimSuffix(a.Meaning, " for each") + ", at each of the " + what
	a.Size += " at " + what
	a.Width = s.Positions * (d.width + 1)
	d.about = &a
	return d
}

// sidesOf describes the positions: "360×480", or "35".
func sidesOf(s OutputSpec) string {
	var sides []string
	for _, n := range s.Sides {
		if n > 0 {
			sides = append(sides, fmt.Sprint(n))
		}
	}
	if sides == nil {
		return fmt.Sprint(s.Positions)
	}
	return strings.Join(sides, "×")
}

func (t several) About() *About { return t.about }

// row returns the outcome of position p in an outcome of the example, and the entropy of the position.
func (t several) row(outcome []float64, p int) ([]float64, float64) {
	row := outcome[p*(t.width+1):][:t.width+1]
	return row[:t.width:t.width], row[t.width]
}

// Outcome marks the positions behind the last scores as filling.
func (t several) Outcome(dst []float64, scores []float32) (entropy float64, err error) {
	clear(dst)
	n := len(scores) / t.Count
	for p := n; p < t.Positions; p++ {
		Pad(t, dst, p)
	}
	entropy, err = t.add(dst, scores, 1, 0, n)
	return entropy / float64(n), err
}

// pads reports whether a position only fills up its example.
func (t several) pads(outcome []float64, p int) bool {
	return math.IsNaN(outcome[p*(t.width+1)+t.width])
}

func (t several) add(sum []float64, scores []float32, w float64, from, to int) (total float64, err error) {
	one, outcome := make([]float32, t.Count), make([]float64, t.width)
	isLogits := t.Evident()
	for p := from; p < to; p++ {
		if t.pads(sum, p) {
			continue
		}
		own := t.own(scores, p, one)
		row := sum[p*(t.width+1):][:t.width+1]
		if isLogits {
			if entropy, ok := addSoftmaxTo(row[:t.width], own, outcome, w); ok {
				row[t.width] += float64(w * entropy)
				total += entropy
				continue
			}
		}
		entropy, err := t.each.Outcome(outcome, own)
		if err != nil {
			return 0, fmt.Errorf("position %s: %w", t.place(p), err)
		}
		for c, v := range outcome {
			row[c] += float64(w * v)
		}
		row[t.width] += float64(w * entropy)
		total += entropy
	}
	return total, nil
}

// own returns the scores of position p. Those of pixels do not lie together and are copied into one.
func (t several) own(scores []float32, p int, one []float32) []float32 {
	if t.Axis != 1 {
		return scores[p*t.Count:][:t.Count]
	}
	n := len(scores) / t.Count
	for c := range one {
		one[c] = scores[c*n+p]
	}
	return one
}

// Evident implements [Evident].
func (t several) Evident() bool {
	each, ok := t.each.(Evident)
	return ok && each.Evident()
}

// Evidence implements [Evident].
func (t several) Evidence(scores []float32, positions int) (logSumExp, largest float64) {
	one := make([]float32, t.Count)
	for p := range positions {
		total, most := t.each.(Evident).Evidence(t.own(scores, p, one), 1)
		logSumExp, largest = logSumExp+total/float64(positions), largest+most/float64(positions)
	}
	return logSumExp, largest
}

// place names a position: its indices along the axes, such as "(3, 7)" for row 3 and column 7.
func (t several) place(p int) string {
	if t.Sides[1] == 0 {
		return fmt.Sprint(p)
	}
	var at []string
	for i := len(t.Sides) - 1; i >= 0; i-- {
		if n := t.Sides[i]; n > 0 {
			at, p = append([]string{fmt.Sprint(p % n)}, at...), p/n
		}
	}
	return "(" + strings.Join(at, ", ") + ")"
}

// flat returns the outcomes and the labels of all labelled positions of n examples, as examples of the task of one
// position.
func (t several) flat(outcomes []float64, labels target.Target) (rows []float64, flat target.Target) {
	for i := range labels.Len() {
		EachKnown(t, outcomes[i*t.about.Width:][:t.about.Width], labels.At(i), func(_ int, row []float64, one target.Target) error {
			rows, flat = append(rows, row...), flat.Append(one)
			return nil
		})
	}
	return rows, flat
}

// rows returns the outcomes of all positions of n examples, and their entropies, except those that fill up an example.
func (t several) rows(outcomes []float64) (rows, entropies []float64) {
	for p := range len(outcomes) / (t.width + 1) {
		if t.pads(outcomes, p) {
			continue
		}
		row, h := t.row(outcomes, p)
		rows, entropies = append(rows, row...), append(entropies, h)
	}
	return rows, entropies
}

func (t several) Likelihoods(outcomes []float64, labels target.Target) []float64 {
	return t.each.Likelihoods(t.flat(outcomes, labels))
}

// Uncertainties returns the means of the positions' uncertainties.
func (t several) Uncertainties() (list []Uncertainty) {
	for _, u := range t.each.Uncertainties() {
		of := u.Of
		u.Name = "mean " + u.Name
		u.Of = func(outcomes, _ []float64) (means []float64) {
			for i := 0; i < len(outcomes); i += t.about.Width {
				means = append(means, stat.Mean(of(t.rows(outcomes[i:i+t.about.Width])), nil))
			}
			return means
		}
		list = append(list, u)
	}
	return list
}

func (t several) Divergence(a, b []float64) float64 {
	rows, _ := t.rows(a)
	others, _ := t.rows(b)
	return t.each.Divergence(rows, others)
}

func (t several) CheckLabel(label target.Target) error {
	if n := max(1, label.Positions); n != t.Positions {
		return fmt.Errorf("labels of %d positions, want %d (%s)", n, t.Positions, sidesOf(t.OutputSpec))
	}
	one := target.Target{Width: label.Width}
	for p := range t.Positions {
		if one = t.label(one, label, p); !counts(one) {
			continue
		}
		if err := t.each.CheckLabel(one); err != nil {
			return fmt.Errorf("position %s: %w. If this label is no class, fit with %s and its number. If classes count from 1, and 0 "+
				"is none, fit with %s", t.place(p), err, setting.IgnoreIndex, setting.Preprocess.With("reduce-labels=true"))
		}
	}
	return nil
}

func (t several) Shown(outcomes []float64) ([]float64, int) {
	var rows []float64
	for p := range len(outcomes) / (t.width + 1) {
		row, _ := t.row(outcomes, p)
		rows = append(rows, row...)
	}
	shown, width := t.each.Shown(rows)
	return shown, width * t.Positions
}

func (t several) Calibrators() (list []Calibrator) {
	for _, c := range t.each.Calibrators() {
		fit := c.Fit
		c.CrossFits = nil
		c.Fit = func(outcomes []float64, labels target.Target) (*Calibration, error) {
			return fit(t.flat(outcomes, labels))
		}
		list = append(list, c)
	}
	return list
}

func (t several) Apply(dst []float64, c *Calibration, outcomes []float64) []float64 {
	if dst == nil {
		dst = make([]float64, len(outcomes))
	}
	copy(dst, outcomes)
	for p := range len(dst) / (t.width + 1) {
		row, _ := t.row(dst, p)
		t.each.Apply(row, c, row)
	}
	return dst
}

func (t several) label(one, label target.Target, p int) target.Target {
	if label.Classes != nil {
		one.Classes = label.Classes[p : p+1]
		if text := label.Text; text != nil {
			one.Text = &target.Text{Unit: text.Unit[p : p+1]}
			if text.Characters != nil {
				one.Text.Characters, one.Text.Bytes = text.Characters[p:p+1], text.Bytes[p:p+1]
			}
		}
	} else {
		one.Values = label.Values[p*label.Width:][:label.Width]
	}
	return one
}

// counts reports whether the label of a position is known. A hole in a depth map is NaN.
func counts(one target.Target) bool {
	return one.Known() && !slices.ContainsFunc(one.Values, math.IsNaN)
}

// border reports whether a pixel is next to another class: one of its four neighbours has another known label.
func (t several) border(label target.Target, p int) bool {
	h, w := t.Sides[0], t.Sides[1]
	if label.Classes == nil || w == 0 || t.Sides[2] != 0 {
		return false
	}
	own := label.Classes[p]
	other := func(inside bool, q int) bool { return inside && label.Classes[q] >= 0 && label.Classes[q] != own }
	y, x := p/w, p%w
	return other(y > 0, p-w) || other(y < h-1, p+w) || other(x > 0, p-1) || other(x < w-1, p+1)
}
