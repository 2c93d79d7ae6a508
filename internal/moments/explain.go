package moments

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Change maps the values of a sample: group g becomes Scale[g]·x + Shift[g] of group
// From[g]. It undoes a fault, and its name is that of the fault.
type Change struct {
	Name         string
	From         []int     // nil for the same groups
	Scale, Shift []float64 // one for each group, or one for all; nil for 1 and 0
}

// Group says what group g becomes: scale·x + shift of the group from.
func (c Change) Group(g int) (from int, scale, shift float64) {
	from, scale = g, 1
	if c.From != nil {
		from = c.From[g]
	}
	if n := len(c.Scale); n > 0 {
		scale = c.Scale[min(g, n-1)]
	}
	if n := len(c.Shift); n > 0 {
		shift = c.Shift[min(g, n-1)]
	}
	return from, scale, shift
}

// Then returns the change of so many groups that makes c and then next.
func (c Change) Then(next Change, groups int) Change {
	out := Change{Name: c.Name}
	for g := range groups {
		middle, a, b := next.Group(g)
		from, scale, shift := c.Group(middle)
		if out.Scale, out.Shift = append(out.Scale, a*scale), append(out.Shift, float64(a*shift)+b); c.From != nil || next.From != nil {
			out.From = append(out.From, from)
		}
	}
	return out
}

// Changed returns the changed sample. Tokens are shifted by Shift[0].
func (s *Sample) Changed(c Change) *Sample {
	out := &Sample{Kind: s.Kind, examples: s.examples}
	for g := range s.groups {
		from, scale, shift := c.Group(g)
		out.groups = append(out.groups, s.groups[from].changed(scale, shift))
	}
	_, _, shift := c.Group(0)
	for _, text := range s.texts {
		moved := map[int64]float64{}
		for id, p := range text {
			moved[id+int64(shift)] = p
		}
		out.texts = append(out.texts, moved)
	}
	return out
}

func (g group) changed(scale, shift float64) group {
	out := group{min: scale*g.min + shift, max: scale*g.max + shift, zeros: g.zeros, whole: g.whole}
	if scale < 0 {
		out.min, out.max = out.max, out.min
	}
	for _, m := range g.means {
		out.means = append(out.means, scale*m+shift)
	}
	for _, v := range g.variances {
		out.variances = append(out.variances, scale*scale*v)
	}
	return out
}

// Explanation names the fault of a sample.
type Explanation struct {
	Difference
	// Change undoes the fault; nil if none of the changes tried does.
	Change *Change
	// Columns are the columns that are off, each with its own change if one was found. It is nil if Change explains
	// all.
	Columns []ColumnChange
}

// ColumnChange is the fault of one column.
type ColumnChange struct {
	Column int
	From   int     // the column of training that it resembles, or −1
	Units  []Unit  // conversions that bring it back to training, the closest first; at most two
	Share  float64 // share of its values outside the range of training
}

// Unit is a conversion of units: Scale·x + Shift undoes it.
type Unit struct {
	Name         string
	Scale, Shift float64
}

// Units are the conversions that [Explain] tries on columns.
var Units = units()

func units() []Unit {
	all := []Unit{
		{"°F, where training had °C", 1 / 1.8, -32 / 1.8},
		{"°C, where training had °F", 1.8, 32},
		{"kelvin, where training had °C", 1, -273.15},
		{"°C, where training had kelvin", 1, 273.15},
		{"values of the opposite sign", -1, 0},
	}
	both := func(name string, factor float64) {
		all = append(all, Unit{name + " times those of training", 1 / factor, 0}, Unit{"1/" + name + " of those of training", factor, 0})
	}
	for _, f := range []struct {
		name   string
		factor float64
	}{{"10", 10}, {"100", 100}, {"1,000", 1e3}, {"10,000", 1e4}, {"1,000,000", 1e6}, {"1,000,000,000", 1e9}, {"255", 255}, {"2.54", 2.54},
		{"3.2808", 3.2808}, {"1.6093", 1.6093},
		{"2.2046", 2.2046}, {"60", 60}, {"3,600", 3600}, {"24", 24}, {"86,400", 86400}, {"12", 12}, {"57.296", 180 / math.Pi}} {
		both(f.name, f.factor)
	}
	return all
}

// Explain compares a sample with training and, if it is off, looks for the change that brings it back. If several
// changes do, it chooses the one that comes closest. It finds reversed channels and inverted photographs even if no
// single channel is off.
func Explain(training Summary, s *Sample, changes []Change) Explanation {
	e := Explanation{Difference: Compare(training, s)}
	off := e.Off()
	if len(off) == 0 && !e.tokensOff {
		e.Change = e.reversed(training, s, changes)
		if e.Change == nil && s.Kind == Columns {
			e.swapped(training, s)
		}
		return e
	}
	best := e.score(s.Kind) / 2 // a change that does not halve the difference explains nothing
	for _, c := range changes {
		d := Compare(training, s.Changed(c))
		if score := d.score(s.Kind); score < min(best, 1) && !d.tokensOff && len(d.Off()) == 0 {
			best, e.Change = score, &c
		}
	}
	if e.Change == nil && s.Kind == Columns {
		e.columns(training, s, off)
	}
	return e
}

// Found reports whether the sample is not like training.
func (e Explanation) Found() bool {
	return e.tokensOff || len(e.Off()) > 0 || e.Change != nil || len(e.Columns) > 0
}

// score returns how far the worst group is off, in units of the limits.
func (d Difference) score(kind Kind) float64 {
	worst := max(d.Tokens/maxTokens, d.Beyond/maxOutside)
	for _, g := range d.Groups {
		worst = max(worst, g.score(kind))
	}
	return worst
}

// Limits of reversed channels, in standard errors and in standard deviations over the examples. Pictures of one kind,
// such as skies, may have another contrast. Only a reversal that explains it is reported.
const (
	maxContrast = 5
	maxColours  = 0.35
)

// reversed returns the change that brings the contrast of colours back to that of training:
// the channels are reversed, or the pictures are inverted.
func (e *Explanation) reversed(training Summary, s *Sample, changes []Change) (found *Change) {
	if math.Abs(e.contrast) < maxContrast || math.Abs(e.colours) < maxColours {
		return nil
	}
	most, best := math.Hypot(e.contrast, e.spread)/3, math.Inf(1)
	for _, c := range changes {
		d := Compare(training, s.Changed(c))
		// Both reverse the contrast, but inverted pictures have another brightness.
		left := math.Hypot(d.contrast, d.spread)
		if all := math.Hypot(left, d.light); left < most && all < best && len(d.Off()) == 0 {
			best, found = all, &c
		}
	}
	return found
}

// columns looks for the fault of each column that is off. Another column may be in its place, or its unit may differ.
func (e *Explanation) columns(training Summary, s *Sample, off []int) {
	taken := map[int]bool{}
	for _, g := range off {
		found := ColumnChange{Column: g, From: -1, Share: e.Groups[g].Outside}
		was, best := training.Groups[g], e.Groups[g].score(Columns)/2
		for other := range s.groups {
			if other == g || taken[other] {
				continue
			}
			d := compareColumn(was, s.groups[other], training.Examples, level)
			// A column that is not off must fit in the other place as well.
			fits := e.Groups[other].Off || !compareColumn(training.Groups[other], s.groups[g], training.Examples, level).Off
			if fits && !d.Off && d.score(Columns) < min(best, 1) {
				best, found.From = d.score(Columns), other
			}
		}
		if found.From >= 0 {
			taken[found.From] = true
		} else {
			found.Units = e.units(training, s, g)
		}
		e.Columns = append(e.Columns, found)
	}
}

// units returns the conversions that bring a column back to training. The second is only
// returned if the examples hardly distinguish it from the first.
func (e *Explanation) units(training Summary, s *Sample, g int) (found []Unit) {
	score := func(u Unit) float64 {
		d := compareColumn(training.Groups[g], s.groups[g].changed(u.Scale, u.Shift), training.Examples, level)
		if d.Off {
			return math.Inf(1)
		}
		return d.score(Columns)
	}
	most := min(1, e.Groups[g].score(Columns)/2)
	for _, u := range Units {
		if score(u) < most {
			found = append(found, u)
		}
	}
	slices.SortStableFunc(found, func(a, b Unit) int { return cmp.Compare(score(a), score(b)) })
	const near = 0.4 // as a share of a distance that matters
	if len(found) > 1 && score(found[1]) > score(found[0])+near {
		found = found[:1]
	}
	return found[:min(2, len(found))]
}

// maxRho is the least difference of rank correlations that shows that columns are swapped.
const maxRho = 0.4

// swapped finds two swapped columns with similar distributions. Their correlations with the other columns are swapped
// too.
func (e *Explanation) swapped(training Summary, s *Sample) {
	n, m := float64(s.examples), float64(training.Examples)
	size := len(s.groups)
	if len(training.Correlation) == 0 || size < 3 || min(n, m) < 8 {
		return
	}
	was, is := square(training.Correlation, size), square(s.spearman(), size)
	varied := make([]bool, size)
	for g := range varied {
		varied[g] = varies(training.Groups[g]) && varies(s.groups[g].summary(Columns))
	}
	// 1.06/(n−3) is the variance of Fisher's z of Spearman's ρ (Fieller et al. 1957).
	variance := 1.06 * (1/(n-3) + 1/(m-3))
	fit := func(i, j int) (chi2, most float64) { // column i in the position of column j
		for k := range size {
			if k != i && k != j && varied[k] {
				z := math.Atanh(clip(is[i][k])) - math.Atanh(clip(was[j][k]))
				chi2, most = chi2+z*z/variance, max(most, math.Abs(is[i][k]-was[j][k]))
			}
		}
		return chi2, most
	}
	tests := float64(size * (size - 1) / 2)
	limit := distuv.ChiSquared{K: 2 * float64(size-2)}.Quantile(1 - level/tests/10)
	best := 0.3 // largest share of the difference that a swap may leave
	pairs(size, func(i, j int) {
		if !varied[i] || !varied[j] {
			return
		}
		a, rho := fit(i, i)
		b, rhoToo := fit(j, j)
		c, _ := fit(i, j)
		d, _ := fit(j, i)
		if a+b < limit || max(rho, rhoToo) < maxRho || (c+d)/(a+b) > best {
			return
		}
		for _, p := range [2][2]int{{i, j}, {j, i}} {
			if compareColumn(training.Groups[p[0]], s.groups[p[1]], training.Examples, level).Off {
				return
			}
		}
		best = (c + d) / (a + b)
		e.Columns = []ColumnChange{{Column: i, From: j}, {Column: j, From: i}}
	})
}

// varies reports whether no single value fills most examples of a column. The ranks of a nearly constant column depend
// on a few examples, and so do its correlations.
func varies(g Group) bool {
	longest, length := 0, 0
	for k, q := range g.Quantiles {
		if length++; k == 0 || q != g.Quantiles[k-1] {
			length = 1
		}
		longest = max(longest, length)
	}
	return longest <= len(g.Quantiles)*3/4
}

func clip(rho float64) float64 { return min(max(rho, -0.99), 0.99) }

// square makes a full matrix of the pairs (i, j), i < j.
func square(upper []float64, n int) [][]float64 {
	out := make([][]float64, n)
	for i := range out {
		out[i] = slices.Repeat([]float64{1}, n)
	}
	k := 0
	pairs(n, func(i, j int) {
		out[i][j], out[j][i] = upper[k], upper[k]
		k++
	})
	return out
}
