package task

import (
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/internal/target"
)

// channel is a number that each position of a row has: a column of the task of one position, or an element of it.
type channel struct {
	Column
	at int // index in the values of a position
}

// channels lists the channels. known says whether examples have labels.
func (t several) channels(known bool) (list []channel) {
	for _, c := range t.each.Columns(positionOptions) {
		at, losses := t.columns[c.Name], c.Hidden && c.Shape == nil && (c.Name == "nll" || c.Name == "brier")
		switch {
		case c.Target, c.Kind != Float64 && c.Kind != Class, c.Hidden && !(losses && known):
		case c.Shape == nil:
			list = append(list, channel{Column{Name: c.Name, Kind: c.Kind}, at})
		default:
			for k := range c.Len() {
				list = append(list, channel{Column{Name: fmt.Sprintf(c.Cell, k), Kind: c.Kind}, at + k})
			}
		}
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
func (t several) Columns(want RowOptions) (list []Column) {
	list = append(list, Column{Name: positionsColumn})
	for _, c := range t.channels(want.Target) {
		if c.Kind == Float64 {
			list = append(list, c.Column)
		}
	}
	if want.Target {
		list = append(list, Column{Name: labelledColumn})
	}
	if t.hasClass {
		if want.Target {
			list = append(list, Column{Name: rightColumn})
		}
		if !t.Next {
			list = append(list, Column{Name: sharesColumn, Cell: "share_%d", Shape: []int{t.about.Classes}})
		}
	}
	if lists(t, want) {
		if t.Next && want.Target {
			list = append(list, Column{Name: "each_token", Kind: Class, Shape: []int{t.Positions}, Ragged: true})
		}
		for _, c := range t.channels(t.Next && want.Target) {
			list = append(list, Column{Name: "each_" + c.Name, Kind: c.Kind, Shape: []int{t.Positions}, Ragged: true})
		}
	}
	list = append(list, signsColumns(t, want)...)
	if want.EachOutcome {
		list = append(list, Column{Name: "probs", Kind: Float32, Shape: t.arranged(shown(t))})
		if t.about.Classes == 0 {
			list[len(list)-1].Name = "mean"
		}
	}
	if want.EachOutcome && want.Target {
		c := Column{Name: "labels", Kind: Class, Shape: t.arranged(1)}
		if !t.hasClass {
			c.Kind, c.Shape = Float32, t.arranged(t.LabelWidth(t.about.Name))
		}
		list = append(list, c)
	}
	return list
}

// shown returns how many numbers of a position [Task.Shown] shows.
func shown(t several) int {
	_, n := t.each.Shown(make([]float64, t.width))
	return n
}

// arranged returns the shape of an array with n numbers for each position. It is [n H W] for pixels as in PyTorch, and [T n]
// for tokens as in Hugging Face. If n is 1, the shape has no n.
func (t several) arranged(n int) (shape []int) {
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
func (t several) appendArray(dst []float64, n int, of func(p int) []float64) []float64 {
	at, count := len(dst), t.Positions
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
func lists(t several, want RowOptions) bool { return want.Each && t.Sides[1] == 0 }

// A Reading is what the averaged outcome of an example says: the values of its row, and of each position.
type Reading struct {
	Values []float64
	Sums   []byte // for [Evaluator.AddRow]; empty without labels
	// Channels describes the numbers of a position. Maps has a number for each position of the task, for each channel. It is
	// NaN where a position only fills up the example.
	Channels []Column
	Maps     [][]float32
	// Positions is the number of positions that the example has, without those that fill it up.
	Positions int
	// NoMaps leaves Maps empty.
	NoMaps bool
	// Sizes makes the set of each position, if it is not nil. Its sizes are the last channel.
	Sizes Sizer

	counted
}

// A Sizer makes the set of a position from its calibrated outcome, and returns its size. one is the label of the position,
// which may be unknown.
type Sizer interface {
	Position(outcome []float64, one target.Target) (size float64)
}

// Read reads the averaged outcome of an example, and calibrates it in place. a.Calibrate calibrates the outcome of one position. It
// reuses the memory of r. If the example is the only position, its row has the values of the task, and there are no maps.
func Read(t Task, r *Reading, want RowOptions, a Average, label target.Target) error {
	of, ok := t.(several)
	if !ok {
		r.Values, r.Sums = t.Values(r.Values[:0], want, a, label), r.Sums[:0]
		return nil
	}
	r.Begin(t, want, label)
	if err := r.Add(a, 0); err != nil {
		return err
	}
	r.End()
	if want.EachOutcome {
		r.Values = of.appendOutcomes(r.Values, want, a.Outcome, label)
	}
	return nil
}

// counted is what a reading has counted so far.
type counted struct {
	of              several
	want            RowOptions
	label           target.Target
	channels        []channel
	means, filled   []float64 // of each channel: the sum, and the number of positions with a number
	shares          []float64 // positions that are predicted to have each class
	right, labelled float64
	signs           *signs // nil unless rows have them
	sums            positionSums
	filling         []int // positions that only fill up the example, in order
}

// Begin begins to read an example of several positions. Add and End follow, for examples that are not held whole.
func (r *Reading) Begin(task Task, want RowOptions, label target.Target) {
	t := task.(several)
	r.Positions = 0
	n := counted{of: t, want: want, label: label, channels: t.channels(want.Target), sums: t.newSums()}
	n.shares = make([]float64, t.about.Classes)
	n.means, n.filled = make([]float64, len(n.channels)), make([]float64, len(n.channels))
	if signsColumns(t, want) != nil {
		n.signs = &signs{threshold: want.Signs, predicted: make([]float64, groups(t))}
	}
	if r.Channels == nil {
		for _, c := range n.channels {
			r.Channels, r.Maps = append(r.Channels, c.Column), append(r.Maps, nil)
		}
		if r.Sizes != nil {
			r.Channels, r.Maps = append(r.Channels, Column{Name: SizeColumn}), append(r.Maps, nil)
		}
	}
	for k := range r.Maps {
		switch {
		case r.NoMaps:
		case len(r.Maps[k]) != t.Positions:
			r.Maps[k] = make([]float32, t.Positions)
		default:
			clear(r.Maps[k])
		}
	}
	r.counted = n
}

// Add reads the averaged outcomes of the positions that begin with the given one, in order, and calibrates them in place.
func (r *Reading) Add(a Average, first int) error {
	n, t, known := &r.counted, r.of, r.label.Known()
	one, values, prediction := target.Target{Width: n.label.Width}, []float64(nil), t.columns["prediction"]
	for p := first; p < first+len(a.Outcome)/(t.width+1); p++ {
		if t.pads(a.Outcome, p-first) {
			n.pad(r, p)
			continue
		}
		r.Positions++
		row, entropy := t.row(a.Outcome, p-first)
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
			values = t.each.Values(values[:0], positionOptions, average, target.Target{})
		}
		if n.signs != nil {
			n.signs.count(t, values, one, has)
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
		if r.Sizes != nil {
			label := target.Target{}
			if has {
				label = one
			}
			size := r.Sizes.Position(row, label)
			if !r.NoMaps {
				r.Maps[len(n.channels)][p] = float32(size)
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

// pad notes that position p only fills up the example.
func (n *counted) pad(r *Reading, p int) {
	n.filling = append(n.filling, p)
	for k := range r.Maps {
		if !r.NoMaps {
			r.Maps[k][p] = float32(math.NaN())
		}
	}
}

// End computes the row of the example from what was counted.
func (r *Reading) End() {
	n, t := &r.counted, r.of
	dst := append(r.Values[:0], float64(r.Positions))
	for k, c := range n.channels {
		if c.Kind == Float64 {
			dst = append(dst, n.means[k]/n.filled[k])
		}
	}
	if n.want.Target {
		dst = append(dst, n.labelled)
	}
	if t.hasClass {
		if n.want.Target {
			dst = append(dst, n.right/n.labelled)
		}
		if !t.Next {
			for _, count := range n.shares {
				dst = append(dst, count/float64(r.Positions))
			}
		}
	}
	if lists(t, n.want) {
		if t.Next && n.want.Target {
			for p := range t.Positions {
				_, fills := slices.BinarySearch(n.filling, p)
				switch {
				case fills:
					dst = append(dst, math.NaN())
				case n.label.Classes == nil:
					dst = append(dst, target.Unknown)
				default:
					dst = append(dst, float64(n.label.Classes[p]))
				}
			}
		}
		for k := range t.channels(t.Next && n.want.Target) {
			for _, v := range r.Maps[k] {
				dst = append(dst, float64(v))
			}
		}
	}
	if n.signs != nil {
		dst = n.signs.append(dst)
	}
	r.Values, r.Sums = dst, r.Sums[:0]
	if n.labelled > 0 {
		r.Sums = n.sums.append(r.Sums)
	}
}

// appendOutcomes appends the arrays of [RowOptions.EachOutcome]. Positions that fill up the example have none.
func (t several) appendOutcomes(dst []float64, want RowOptions, outcome []float64, label target.Target) []float64 {
	n := shown(t)
	none := slices.Repeat([]float64{math.NaN()}, n)
	dst = t.appendArray(dst, n, func(p int) []float64 {
		if t.pads(outcome, p) {
			return none
		}
		row, _ := t.row(outcome, p)
		shown, _ := t.each.Shown(row)
		return shown
	})
	if !want.Target {
		return dst
	}
	n = 1
	if !t.hasClass {
		n = t.LabelWidth(t.about.Name)
	}
	unknown := slices.Repeat([]float64{target.Unknown}, n)
	if t.about.Classes == 0 {
		unknown = slices.Repeat([]float64{math.NaN()}, n)
	}
	one := target.Target{Width: label.Width}
	return t.appendArray(dst, n, func(p int) []float64 {
		if !label.Known() || t.pads(outcome, p) {
			return unknown
		}
		if one = t.label(one, label, p); one.Classes != nil {
			return []float64{float64(one.Classes[0])}
		}
		return one.Values
	})
}

func (t several) Values(dst []float64, want RowOptions, a Average, label target.Target) []float64 {
	var r Reading
	Read(t, &r, want, a, label) // an invalid label was refused before
	return append(dst, r.Values...)
}
