package plot

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// plottable reports whether x can be drawn. Above the bound, squares and differences overflow.
func plottable(x float64) bool { return math.Abs(x) < 1e150 }

// An axis maps values to positions, from min at one end to max at the other. Values outside go to the nearer end. It
// provides the scale and the ticks of a gonum axis.
type axis struct {
	label    string
	kind     axisKind
	min, max float64
	room     float64 // approximate length
	named    []Tick  // instead of numbers
	percent  bool    // ticks in per cent
}

type axisKind int

const (
	linear axisKind = iota
	// logarithmic needs min > 0.
	logarithmic
	// confidence is logarithmic in 1 − x. It spreads the crowded end near 1, as in the reliability diagrams of the
	// SWAG paper. It requires max < 1, and values above max are drawn at max.
	confidence
)

// warp maps x to a linear scale.
func (a axis) warp(x float64) float64 {
	switch a.kind {
	case linear:
		return x
	case logarithmic:
		return math.Log10(x)
	}
	return -math.Log10(1 - x)
}

// Normalize implements [gonum.Normalizer]: 0 at lo, 1 at hi.
func (a axis) Normalize(lo, hi, x float64) float64 {
	x = min(max(x, lo), hi)
	return (a.warp(x) - a.warp(lo)) / (a.warp(hi) - a.warp(lo))
}

// pos returns about where x is drawn.
func (a *axis) pos(x float64) float64 { return a.Normalize(a.min, a.max, x) * a.room }

func (a *axis) holds(x float64) bool { return a.min <= x && x <= a.max }

// ticks returns at most about n labelled positions.
func (a *axis) ticks(n int) []Tick {
	switch {
	case a.named != nil:
		return a.named
	case a.kind == logarithmic && a.max/a.min >= 10:
		return a.decades(n)
	case a.kind == confidence:
		return a.nines()
	}
	return a.steps(n)
}

// steps returns ticks at multiples of 1, 2 or 5 times a power of ten.
func (a *axis) steps(n int) []Tick {
	step := niceStep(a.max-a.min, n)
	var ticks []Tick
	first := math.Ceil(a.min/step - 1e-9)
	for i := 0.0; first+i <= a.max/step+1e-9; i++ {
		x := (first + i) * step
		ticks = append(ticks, Tick{x, a.number(x, step)})
	}
	return ticks
}

// niceStep returns the smallest multiple of 1, 2 or 5 times a power of ten that fits at most n times into span.
func niceStep(span float64, n int) float64 {
	power := math.Pow(10, math.Floor(math.Log10(span/float64(n))))
	for _, m := range []float64{1, 2, 5} {
		if span/(m*power) <= float64(n)*(1+1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// number formats x so that it differs from its neighbours, a step away.
func (a *axis) number(x, step float64) string {
	decimals := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	if a.percent {
		return fixed(100*x, max(0, decimals-2)) + " %"
	}
	if end := max(math.Abs(a.min), math.Abs(a.max)); end < 0.001 || end >= 1e6 {
		return significant(x, 1+max(0, int(math.Ceil(math.Log10(end/step)-1e-9))))
	}
	return fixed(x, decimals)
}

// fixed formats x with a fixed number of decimals and a true minus sign.
func fixed(x float64, decimals int) string {
	return strings.ReplaceAll(strconv.FormatFloat(x+0, 'f', decimals, 64), "-", "−")
}

// shortNumber formats x with up to four digits: "1e−8", "0.0025", "1234".
func shortNumber(x float64) string { return significant(x, 4) }

// significant formats x with up to n digits.
func significant(x float64, n int) string {
	s := strconv.FormatFloat(x, 'g', n, 64)
	mantissa, exponent, found := strings.Cut(s, "e")
	if found {
		e, _ := strconv.Atoi(exponent)
		s = mantissa + "e" + strconv.Itoa(e)
	}
	return strings.ReplaceAll(s, "-", "−")
}

// decades returns ticks at every k-th power of ten, and at 2 and 5 times the powers if there are few.
func (a *axis) decades(n int) []Tick {
	lo, hi := math.Ceil(math.Log10(a.min)-1e-9), math.Floor(math.Log10(a.max)+1e-9)
	every := math.Ceil((hi - lo + 1) / float64(n))
	within := []float64{1}
	if 3*(hi-lo+1) <= float64(n) {
		within = []float64{1, 2, 5}
	}
	var ticks []Tick
	for e := lo - 1; e <= hi; e++ {
		if every > 1 && math.Mod(e-lo, every) != 0 {
			continue
		}
		for _, m := range within {
			if x := m * math.Pow(10, e); x >= a.min*(1-1e-9) && x <= a.max*(1+1e-9) {
				ticks = append(ticks, Tick{x, shortNumber(x)})
			}
		}
	}
	return ticks
}

// nines returns ticks at 0, 0.9, 0.99 and so on, and between them if the axis has room.
func (a *axis) nines() []Tick {
	var ticks []Tick
	for k, part := range []float64{1, 0.5, 0.2} {
		for gap, decimals := part, min(k, 1); 1-gap <= a.max; gap, decimals = gap/10, decimals+1 {
			ticks = append(ticks, Tick{1 - gap, fixed(1-gap, decimals)})
		}
	}
	return a.apart(ticks, 13)
}

// apart removes ticks outside the axis, and ticks whose labels would touch that of an earlier one. The result is in
// ascending order.
func (a *axis) apart(ticks []Tick, gap float64) []Tick {
	var kept []Tick
	for _, t := range ticks {
		if t.At < a.min-1e-12 || t.At > a.max+1e-12 || slices.ContainsFunc(kept, func(k Tick) bool {
			return math.Abs(a.pos(t.At)-a.pos(k.At)) < (textWidth(t.Label, smallText)+textWidth(k.Label, smallText))/2+gap
		}) {
			continue
		}
		kept = append(kept, t)
	}
	slices.SortFunc(kept, func(p, q Tick) int { return cmp.Compare(p.At, q.At) })
	return kept
}

// spanAxis returns an axis from the least to the greatest finite value. It includes zero if zero is true.
func spanAxis(label string, zero bool, values ...[]float64) axis {
	a := axis{label: label, min: math.Inf(1), max: math.Inf(-1)}
	for _, vs := range values {
		for _, v := range vs {
			if plottable(v) {
				a.min, a.max = min(a.min, v), max(a.max, v)
			}
		}
	}
	if zero && a.min <= a.max {
		a.min, a.max = min(a.min, 0), max(a.max, 0)
	}
	return a.widened()
}

// widened returns the axis with a positive length, which every mapping needs.
func (a axis) widened() axis {
	switch {
	case a.min > a.max:
		a.min, a.max = 0, 1
	case a.max-a.min <= 1e-12*math.Max(math.Abs(a.min), math.Abs(a.max)):
		d := cmp.Or(math.Abs(a.min)/10, 0.5)
		a.min, a.max = a.min-d, a.max+d
	}
	return a
}

// padded widens the axis by a part of its span at both ends, but keeps an end at zero.
func (a axis) padded(part float64) axis {
	if a.kind == logarithmic {
		by := math.Pow(a.max/a.min, part)
		a.min, a.max = a.min/by, a.max*by
		return a
	}
	d := (a.max - a.min) * part
	if a.min != 0 {
		a.min -= d
	}
	if a.max != 0 {
		a.max += d
	}
	return a
}
