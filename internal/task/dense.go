package task

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// dense is a task whose networks score several positions of an example: pixels or tokens. An outcome has a row for each
// position: the outcome of that position, and then its entropy in nats. The average of the entropies gives a mutual
// information for each position.
type dense struct {
	described
	OutputSpec
	each  Task // of one position
	width int  // of an outcome of one position
	// hasClass reports whether each position has one of several classes.
	hasClass bool
}

// Dense is a task with several positions for each example.
type Dense interface {
	Task
	// Spec describes the output: the number of positions, and the sizes of their axes.
	Spec() OutputSpec
	// Each is the task of one position, whose outcomes have Width numbers. Row returns those of position p in an
	// outcome of the example, and the entropy of the position.
	Each() Task
	Row(outcome []float64, p int) (each []float64, entropy float64)
	// AddOutcome adds w times the outcome for the scores to sum. It returns the mean entropy of the positions. scores
	// may have fewer positions than the task; the sums of the others do not change.
	AddOutcome(sum []float64, scores []float32, w float64) (entropy float64, err error)
	// AddPositions is AddOutcome for the positions from … to−1. It returns the sum of their entropies.
	AddPositions(sum []float64, scores []float32, w float64, from, to int) (entropies float64, err error)
	// Logits calls use with the log-probabilities and the label of each labelled position, or of each known label of a
	// position: what a temperature is fitted to. classes is their number. It is 0 for tasks without a temperature.
	Logits(outcome []float64, label truth.Truth, use func(logits []float64, label int)) (classes int)
	// Sized returns the task for pictures of another size.
	Sized(h, w int) Dense
	// Read reads an averaged outcome. Begin, Add and End do so in several steps, for examples that are not held whole: Add
	// reads the outcomes of the positions that begin with the given one. positions is 0 for all of the task.
	Read(r *Reading, want RowOptions, a Average, label truth.Truth) error
	Begin(r *Reading, want RowOptions, positions int, label truth.Truth)
	Add(r *Reading, a Average, first int) error
	End(r *Reading)
}

func newDense(each Task, s OutputSpec) (Task, error) {
	a := *each.About()
	what := "positions of an example"
	if s.Positions > 0 {
		what = s.positions() + " positions"
	}
	first := each.Columns(positionOptions)[0]
	d := dense{OutputSpec: s, each: each, width: a.Width, hasClass: first.Kind == Class && !first.Truth}
	a.Meaning = strings.TrimSuffix(a.Meaning, " for each") + ", at each of the " + what
	a.Size += " at " + what
	a.Width = s.Positions * (d.width + 1)
	d.about = &a
	return d, nil
}

// positions describes the positions: "360×480", or "35".
func (s OutputSpec) positions() string {
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

// LabelWidth returns the number of labels or targets of a position, for the named task. It is 1 for classes.
func (s OutputSpec) LabelWidth(name string) int {
	s.Axis = 0
	if t, err := Of(name, s); err == nil && t.About().Classes == 0 {
		return t.About().Width / perTarget
	} else if err == nil && Truth(name) == truth.Labels {
		return s.Count
	}
	return 1
}

func (t dense) Sized(h, w int) Dense {
	s := t.OutputSpec
	s.Positions, s.Sides = h*w, [3]int{h, w}
	d, _ := newDense(t.each, s) // never fails
	return d.(Dense)
}

func (t dense) Positions() int   { return t.OutputSpec.Positions }
func (t dense) Spec() OutputSpec { return t.OutputSpec }
func (t dense) Each() Task       { return t.each }

func (t dense) Row(outcome []float64, p int) ([]float64, float64) {
	row := outcome[p*(t.width+1):][:t.width+1]
	return row[:t.width:t.width], row[t.width]
}

func (t dense) Outcome(dst []float64, scores []float32) (float64, error) {
	clear(dst)
	return t.AddOutcome(dst, scores, 1)
}

func (t dense) AddOutcome(sum []float64, scores []float32, w float64) (float64, error) {
	n := len(scores) / t.Count
	total, err := t.AddPositions(sum, scores, w, 0, n)
	return total / float64(n), err
}

func (t dense) AddPositions(sum []float64, scores []float32, w float64, from, to int) (total float64, err error) {
	one, outcome := make([]float32, t.Count), make([]float64, t.width)
	logits, isLogits := t.each.(classes)
	isLogits = isLogits && logits.form() == Logits
	for p := from; p < to; p++ {
		own := t.own(scores, p, one)
		row := sum[p*(t.width+1):][:t.width+1]
		if isLogits {
			if entropy, ok := addSoftmax(row[:t.width], own, outcome, w); ok {
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
func (t dense) own(scores []float32, p int, one []float32) []float32 {
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
func (t dense) Evident() bool {
	each, ok := t.each.(Evident)
	return ok && each.Evident()
}

// Evidence implements [Evident].
func (t dense) Evidence(scores []float32, positions int) (logSumExp, largest float64) {
	one := make([]float32, t.Count)
	for p := range positions {
		total, most := t.each.(Evident).Evidence(t.own(scores, p, one), 1)
		logSumExp, largest = logSumExp+total/float64(positions), largest+most/float64(positions)
	}
	return logSumExp, largest
}

// addSoftmax computes e^u as 2^(k/64)·e^r with |r| ≤ ln 2 / 128. The series of e^r is off by less than 1e-13. This takes a
// third of the time of math.Exp.
const (
	tableBits = 6
	step      = math.Ln2 / (1 << tableBits)
	perLog2   = 1 / step
)

// roots[k] is 2^(k/64).
var roots = func() (table [1 << tableBits]float64) {
	for k := range table {
		table[k] = math.Exp2(float64(k) / (1 << tableBits))
	}
	return table
}()

// addSoftmax adds w times the softmax of logits to row, and returns its entropy: log Σ e^u − Σ p·u for u = z − max z. So
// it needs one logarithm. ok is false if a logit is not finite, or if their sum overflows. e is memory of their number.
func addSoftmax(row []float64, logits []float32, e []float64, w float64) (entropy float64, ok bool) {
	peak, total := logits[0], float32(0)
	for _, v := range logits {
		if v > peak { // the function max also looks for NaN, which total shows
			peak = v
		}
		total += v
	}
	if total-total != 0 {
		return 0, false
	}
	sum, weighted := 0.0, 0.0
	e = e[:len(logits)]
	for c, v := range logits {
		u := float64(v) - float64(peak)
		x := 0.0
		if u > -700 { // else far below the last digit of the sum
			k := int(u*perLog2 - 0.5)
			r := u - float64(float64(k)*step)
			x = math.Float64frombits(uint64(1023+k>>tableBits)<<52) * roots[k&(1<<tableBits-1)] * (1 + r*(1+r*(0.5+r*(1.0/6+r*(1.0/24)))))
		}
		e[c], sum, weighted = x, sum+x, weighted+float64(x*u)
	}
	scale := w / sum
	row = row[:len(e)]
	for c, x := range e {
		row[c] += float64(x * scale)
	}
	return math.Log(sum) - weighted/sum, true
}

// place names a position: its indices along the axes, such as "(3, 7)" for row 3 and column 7.
func (t dense) place(p int) string {
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

// eachKnown calls f with the outcome and the label of every labelled position of an example.
func (t dense) eachKnown(outcome []float64, label truth.Truth, f func(p int, row []float64, one truth.Truth) error) error {
	one := truth.Truth{Width: label.Width}
	for p := range t.Positions() {
		if one = t.label(one, label, p); !counts(one) {
			continue
		}
		row, _ := t.Row(outcome, p)
		if err := f(p, row, one); err != nil {
			return fmt.Errorf("position %s: %w", t.place(p), err)
		}
	}
	return nil
}

// flat returns the outcomes and the labels of all labelled positions of n examples, as examples of the task of one
// position.
func (t dense) flat(outcomes []float64, labels truth.Truth) (rows []float64, flat truth.Truth) {
	for i := range labels.Len() {
		t.eachKnown(outcomes[i*t.about.Width:][:t.about.Width], labels.At(i), func(_ int, row []float64, one truth.Truth) error {
			rows, flat = append(rows, row...), flat.Append(one)
			return nil
		})
	}
	return rows, flat
}

// rows returns the outcomes of all positions of n examples, and their entropies. It leaves out positions behind the end
// of a short list, whose outcomes are zeros.
func (t dense) rows(outcomes []float64) (rows, entropies []float64) {
	for p := range len(outcomes) / (t.width + 1) {
		row, h := t.Row(outcomes, p)
		if !slices.ContainsFunc(row, func(v float64) bool { return v != 0 }) {
			continue
		}
		rows, entropies = append(rows, row...), append(entropies, h)
	}
	return rows, entropies
}

func (t dense) Likelihoods(outcomes []float64, labels truth.Truth) []float64 {
	return t.each.Likelihoods(t.flat(outcomes, labels))
}

// Uncertainties returns the means of the positions' uncertainties.
func (t dense) Uncertainties() (list []Uncertainty) {
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

func (t dense) Divergence(a, b []float64) float64 {
	rows, _ := t.rows(a)
	others, _ := t.rows(b)
	return t.each.Divergence(rows, others)
}

func (t dense) CheckLabel(label truth.Truth) error {
	if n := max(1, label.Positions); n != t.Positions() {
		return fmt.Errorf("labels of %d positions, want %d (%s)", n, t.Positions(), t.positions())
	}
	one := truth.Truth{Width: label.Width}
	for p := range t.Positions() {
		if one = t.label(one, label, p); !counts(one) {
			continue
		}
		if err := t.each.CheckLabel(one); err != nil {
			return fmt.Errorf("position %s: %w. If this label is no class, fit with --ignore-index and its number", t.place(p), err)
		}
	}
	return nil
}

func (t dense) Shown(outcomes []float64) ([]float64, int) {
	var rows []float64
	for p := range len(outcomes) / (t.width + 1) {
		row, _ := t.Row(outcomes, p)
		rows = append(rows, row...)
	}
	shown, width := t.each.Shown(rows)
	return shown, width * t.Positions()
}

func (t dense) Calibrators() (list []Calibrator) {
	for _, c := range t.each.Calibrators() {
		fit := c.Fit
		c.CrossFits = nil
		c.Fit = func(outcomes []float64, labels truth.Truth) (*Calibration, error) {
			return fit(t.flat(outcomes, labels))
		}
		list = append(list, c)
	}
	return list
}

func (t dense) Apply(dst []float64, c *Calibration, outcomes []float64) []float64 {
	if dst == nil {
		dst = make([]float64, len(outcomes))
	}
	copy(dst, outcomes)
	for p := range len(dst) / (t.width + 1) {
		row, _ := t.Row(dst, p)
		t.each.Apply(row, c, row)
	}
	return dst
}

// channel is a number that each position of a row has: a column of the task of one position, or an element of it.
type channel struct {
	Column
	at int // in the values of a position
}

// channels lists the channels. known says whether examples have labels.
func (t dense) channels(known bool) (list []channel) {
	at := 0
	for _, c := range t.each.Columns(positionOptions) {
		losses := c.Hidden && c.Shape == nil && (c.Name == "nll" || c.Name == "brier")
		switch {
		case c.Truth, c.Kind != Float64 && c.Kind != Class, c.Hidden && !(losses && known):
		case c.Shape == nil:
			list = append(list, channel{Column{Name: c.Name, Kind: c.Kind}, at})
		default:
			for k := range c.Len() {
				list = append(list, channel{Column{Name: fmt.Sprintf(c.Cell, k), Kind: c.Kind}, at + k})
			}
		}
		at += c.Len()
	}
	return list
}

var positionOptions = RowOptions{Top: 1}

// Names of columns of an example with several positions.
const (
	positionsColumn = "positions"
	labelledColumn  = "labelled"
	rightColumn     = "accuracy"
	sharesColumn    = "shares"
)

// Columns lists means over positions. The mean of a loss is over labelled positions. Shares are those of the positions
// that are predicted to have each class.
func (t dense) Columns(want RowOptions) (list []Column) {
	list = append(list, Column{Name: positionsColumn})
	for _, c := range t.channels(want.Truth) {
		if c.Kind == Float64 {
			list = append(list, c.Column)
		}
	}
	if want.Truth {
		list = append(list, Column{Name: labelledColumn})
	}
	if t.hasClass {
		if want.Truth {
			list = append(list, Column{Name: rightColumn})
		}
		if !t.Next {
			list = append(list, Column{Name: sharesColumn, Cell: "share_%d", Shape: []int{t.about.Classes}})
		}
	}
	if t.lists(want) {
		if t.Next && want.Truth {
			list = append(list, Column{Name: "each_token", Kind: Class, Shape: []int{t.Positions()}, Ragged: true})
		}
		for _, c := range t.channels(t.Next && want.Truth) {
			list = append(list, Column{Name: "each_" + c.Name, Kind: c.Kind, Shape: []int{t.Positions()}, Ragged: true})
		}
	}
	if want.EachOutcome {
		list = append(list, Column{Name: "probs", Kind: Float32, Shape: t.arranged(t.shown())})
		if t.about.Classes == 0 {
			list[len(list)-1].Name = "mean"
		}
	}
	if want.EachOutcome && want.Truth {
		c := Column{Name: "labels", Kind: Class, Shape: t.arranged(1)}
		if !t.hasClass {
			c.Kind, c.Shape = Float32, t.arranged(t.LabelWidth(t.about.Name))
		}
		list = append(list, c)
	}
	return list
}

// shown returns how many numbers of a position [Task.Shown] shows.
func (t dense) shown() int {
	_, n := t.each.Shown(make([]float64, t.width))
	return n
}

// arranged returns the shape of an array with n numbers for each position: [n H W] for pixels and [T n] for tokens, as in
// PyTorch and Hugging Face, without n if it is 1.
func (t dense) arranged(n int) (shape []int) {
	for _, side := range t.Sides {
		if side > 0 {
			shape = append(shape, side)
		}
	}
	switch {
	case n == 1:
	case len(shape) > 1:
		shape = append([]int{n}, shape...)
	default:
		shape = append(shape, n)
	}
	return shape
}

// appendArray appends n numbers for each position in the order of arranged. of returns those of position p.
func (t dense) appendArray(dst []float64, n int, of func(p int) []float64) []float64 {
	at, count := len(dst), t.Positions()
	dst = append(dst, make([]float64, n*count)...)
	for p := range count {
		for k, v := range of(p) {
			i := p*n + k
			if t.Sides[1] > 0 {
				i = k*count + p
			}
			dst[at+i] = v
		}
	}
	return dst
}

// lists reports whether rows have a list for each channel. Tokens have, and pixels have not.
func (t dense) lists(want RowOptions) bool { return want.Each && t.Sides[1] == 0 }

// A Reading is what the averaged outcome of an example says: the values of its row, and of each position.
type Reading struct {
	Values []float64
	Sums   []byte // for [Evaluator.AddRow]; empty without labels
	// Channels describes the numbers of a position. Maps has a number for each position of the task, for each channel.
	Channels []Column
	Maps     [][]float32
	// Positions is the number of positions that the example has. Later positions in Maps are 0.
	Positions int
	// NoMaps leaves Maps empty.
	NoMaps bool

	counted
}

// Read reads an averaged outcome, and calibrates it in place. a.Calibrate calibrates the outcome of one position. It
// reuses the memory of r.
func (t dense) Read(r *Reading, want RowOptions, a Average, label truth.Truth) error {
	t.Begin(r, want, a.Positions, label)
	if err := t.Add(r, a, 0); err != nil {
		return err
	}
	t.End(r)
	if want.EachOutcome {
		r.Values = t.appendOutcomes(r.Values, want, a.Outcome, r.Positions, label)
	}
	return nil
}

// counted is what a reading has counted so far.
type counted struct {
	want            RowOptions
	label           truth.Truth
	channels        []channel
	means, filled   []float64 // of each channel: the sum, and the number of positions with a number
	shares          []float64 // positions that are predicted to have each class
	right, labelled float64
	sums            positionSums
}

// Begin begins to read an example that has so many positions, or all of the task for 0.
func (t dense) Begin(r *Reading, want RowOptions, positions int, label truth.Truth) {
	if r.Positions = positions; positions == 0 {
		r.Positions = t.Positions()
	}
	n := counted{want: want, label: label, channels: t.channels(want.Truth), shares: make([]float64, t.about.Classes), sums: t.newSums()}
	n.means, n.filled = make([]float64, len(n.channels)), make([]float64, len(n.channels))
	if r.Channels == nil {
		for _, c := range n.channels {
			r.Channels, r.Maps = append(r.Channels, c.Column), append(r.Maps, nil)
		}
	}
	for k := range r.Maps {
		switch {
		case r.NoMaps:
		case len(r.Maps[k]) != t.Positions():
			r.Maps[k] = make([]float32, t.Positions())
		default:
			clear(r.Maps[k])
		}
	}
	r.counted = n
}

// Add reads the averaged outcomes of the positions that begin with the given one, in order, and calibrates them in place.
func (t dense) Add(r *Reading, a Average, first int) error {
	n, known := &r.counted, r.counted.label.Known()
	one, values := truth.Truth{Width: n.label.Width}, []float64(nil)
	for p := first; p < min(first+len(a.Outcome)/(t.width+1), r.Positions); p++ {
		row, entropy := t.Row(a.Outcome, p-first)
		average := Average{Outcome: row, Entropy: entropy, Calibrate: a.Calibrate, Threshold: a.Threshold}
		has := false
		if known {
			one = t.label(one, n.label, p)
			has = counts(one)
		}
		if has {
			n.labelled++
			values = t.each.Values(values[:0], positionOptions, average, one)
			if err := n.sums.add(position{row, one, t.border(n.label, p), values}); err != nil {
				return fmt.Errorf("position %s: %w", t.place(p), err)
			}
		} else {
			values = t.each.Values(values[:0], positionOptions, average, truth.Truth{})
		}
		for k, c := range n.channels {
			v := values[c.at]
			if !r.NoMaps {
				r.Maps[k][p] = float32(v)
			}
			if v == v && c.Kind == Float64 {
				n.means[k], n.filled[k] = n.means[k]+v, n.filled[k]+1
			}
		}
		if t.hasClass {
			n.shares[int(values[prediction])]++
			if has && int(values[prediction]) == one.Classes[0] {
				n.right++
			}
		}
	}
	return nil
}

// End computes the row of the example from what was counted.
func (t dense) End(r *Reading) {
	n := &r.counted
	dst := append(r.Values[:0], float64(r.Positions))
	for k, c := range n.channels {
		if c.Kind == Float64 {
			dst = append(dst, n.means[k]/n.filled[k])
		}
	}
	if n.want.Truth {
		dst = append(dst, n.labelled)
	}
	if t.hasClass {
		if n.want.Truth {
			dst = append(dst, n.right/n.labelled)
		}
		if !t.Next {
			for _, count := range n.shares {
				dst = append(dst, count/float64(r.Positions))
			}
		}
	}
	if t.lists(n.want) {
		if t.Next && n.want.Truth {
			for p := range t.Positions() {
				switch {
				case p >= r.Positions:
					dst = append(dst, math.NaN())
				case n.label.Classes == nil:
					dst = append(dst, truth.Unknown)
				default:
					dst = append(dst, float64(n.label.Classes[p]))
				}
			}
		}
		for k := range t.channels(t.Next && n.want.Truth) {
			for p, v := range r.Maps[k] {
				if p >= r.Positions {
					v = float32(math.NaN())
				}
				dst = append(dst, float64(v))
			}
		}
	}
	r.Values, r.Sums = dst, r.Sums[:0]
	if n.labelled > 0 {
		r.Sums = n.sums.append(r.Sums)
	}
}

// appendOutcomes appends the arrays of [RowOptions.EachOutcome]. Positions behind the end of a short list have none.
func (t dense) appendOutcomes(dst []float64, want RowOptions, outcome []float64, positions int, label truth.Truth) []float64 {
	n := t.shown()
	none := slices.Repeat([]float64{math.NaN()}, n)
	dst = t.appendArray(dst, n, func(p int) []float64 {
		if p >= positions {
			return none
		}
		row, _ := t.Row(outcome, p)
		shown, _ := t.each.Shown(row)
		return shown
	})
	if !want.Truth {
		return dst
	}
	n = 1
	if !t.hasClass {
		n = t.LabelWidth(t.about.Name)
	}
	unknown := slices.Repeat([]float64{truth.Unknown}, n)
	if t.about.Classes == 0 {
		unknown = slices.Repeat([]float64{math.NaN()}, n)
	}
	one := truth.Truth{Width: label.Width}
	return t.appendArray(dst, n, func(p int) []float64 {
		if !label.Known() || p >= positions {
			return unknown
		}
		if one = t.label(one, label, p); one.Classes != nil {
			return []float64{float64(one.Classes[0])}
		}
		return one.Values
	})
}

func (t dense) Values(dst []float64, want RowOptions, a Average, label truth.Truth) []float64 {
	var r Reading
	t.Read(&r, want, a, label) // an invalid label was refused before
	return append(dst, r.Values...)
}

func (t dense) label(one, label truth.Truth, p int) truth.Truth {
	if label.Classes != nil {
		one.Classes = label.Classes[p : p+1]
		if text := label.Text; text != nil {
			one.Text = &truth.Text{Unit: text.Unit[p : p+1]}
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
func counts(one truth.Truth) bool {
	return one.Known() && !slices.ContainsFunc(one.Values, math.IsNaN)
}

// border reports whether a pixel is next to another class: one of its four neighbours has another known label.
func (t dense) border(label truth.Truth, p int) bool {
	h, w := t.Sides[0], t.Sides[1]
	if label.Classes == nil || w == 0 || t.Sides[2] != 0 {
		return false
	}
	own := label.Classes[p]
	other := func(inside bool, q int) bool { return inside && label.Classes[q] >= 0 && label.Classes[q] != own }
	y, x := p/w, p%w
	return other(y > 0, p-w) || other(y < h-1, p+w) || other(x > 0, p-1) || other(x < w-1, p+1)
}

func (t dense) Logits(outcome []float64, label truth.Truth, use func(logits []float64, label int)) (count int) {
	if _, ok := t.each.(regression); ok {
		return 0
	}
	of, several := t.each.(labels)
	if count = t.about.Classes; several {
		count = 2
	}
	logits := make([]float64, count)
	t.eachKnown(outcome, label, func(_ int, row []float64, one truth.Truth) error {
		if !several {
			use(calibrate.LogProbs(logits, row), one.Classes[0])
			return nil
		}
		p, q, _ := of.parts(row)
		for k, v := range one.Values {
			if v >= 0 {
				logits[0], logits[1] = math.Log(q[k]), math.Log(p[k])
				use(logits, int(v))
			}
		}
		return nil
	})
	return count
}
