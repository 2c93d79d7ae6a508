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

// An axis maps values to places, from 0 at min to 1 at max. Values outside go to the nearer end.
type axis struct {
	label    string
	kind     axisKind
	min, max float64
	named    []Tick // instead of numbers
	percent  bool   // numbers in per cent
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

func (a axis) at(x float64) float64 {
	x = min(max(x, a.min), a.max)
	return (a.warp(x) - a.warp(a.min)) / (a.warp(a.max) - a.warp(a.min))
}

func (a axis) holds(x float64) bool { return a.min <= x && x <= a.max }

// ticks returns ticks in ascending order, numbers at most about n. Ticks whose labels would touch are left out.
// length is that of the axis, and extent returns the length of a label along it.
func (a axis) ticks(n int, length float64, extent func(label string) float64) []Tick {
	all := a.named
	if all == nil {
		all = a.numbers(n)
	}
	var kept []Tick
	for _, t := range all {
		touches := func(k Tick) bool {
			return math.Abs(a.at(t.At)-a.at(k.At))*length < (extent(t.Label)+extent(k.Label))/2
		}
		if rounding := 1e-9 * (a.max - a.min); t.At >= a.min-rounding && t.At <= a.max+rounding && !slices.ContainsFunc(kept, touches) {
			kept = append(kept, t)
		}
	}
	slices.SortFunc(kept, func(p, q Tick) int { return cmp.Compare(p.At, q.At) })
	return kept
}

// numbers returns ticks, the most important first. Some may lie a little outside.
func (a axis) numbers(n int) []Tick {
	if a.kind == confidence || a.kind == logarithmic && a.max/a.min >= 10 {
		return a.powers(n)
	}
	// The step is 1, 2 or 5 times a power of ten.
	step := math.Pow(10, math.Floor(math.Log10((a.max-a.min)/float64(n))))
	for _, times := range []float64{2, 2.5, 2} {
		if (a.max-a.min)/step > float64(n)*(1+1e-9) {
			step *= times
		}
	}
	var ticks []Tick
	for k := math.Ceil(a.min/step - 1e-9); k <= a.max/step+1e-9; k++ {
		ticks = append(ticks, Tick{k * step, a.number(k*step, step)})
	}
	return ticks
}

// number formats x so that it differs from its neighbours, a step away.
func (a axis) number(x, step float64) string {
	decimals := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	if a.percent {
		return fixed(100*x, max(0, decimals-2)) + " %"
	}
	if end := max(math.Abs(a.min), math.Abs(a.max)); end < 0.001 || end >= 1e6 {
		return significant(x, 1+max(0, int(math.Ceil(math.Log10(end/step)-1e-9))))
	}
	return fixed(x, decimals)
}

// powers returns ticks at powers of ten, of many every k-th, or of few also 5 and 2 times these. On a confidence axis they
// are distances from 1.
func (a axis) powers(n int) (ticks []Tick) {
	low, high := math.Log10(a.min), math.Log10(a.max)
	if a.kind == confidence {
		low, high = math.Log10(1-a.max), 0
	}
	low, high = math.Ceil(low-1e-9), math.Floor(high+1e-9)
	every, few := 1.0, true
	if a.kind == logarithmic {
		every, few = math.Ceil((high-low+1)/float64(n)), 3*(high-low+1) <= float64(n)
	}
	for _, part := range []float64{1, 5, 2} {
		for e := low - 1; e <= high; e++ {
			x := part * math.Pow(10, e)
			switch {
			case part > 1 && !few, math.Mod(e-low, every) != 0:
			case a.kind == confidence:
				ticks = append(ticks, Tick{1 - x, fixed(1-x, max(0, int(-e)))})
			default:
				ticks = append(ticks, Tick{x, shortNumber(x)})
			}
		}
	}
	return ticks
}

// fixed formats x with a fixed number of decimals and a true minus sign.
func fixed(x float64, decimals int) string {
	return strings.ReplaceAll(strconv.FormatFloat(x+0, 'f', decimals, 64), "-", "−")
}

// shortNumber formats x with up to four digits: "1e−8", "0.0025", "1234".
func shortNumber(x float64) string { return significant(x, 4) }

// significant formats x with up to n digits.
func significant(x float64, n int) string {
	mantissa, exponent, found := strings.Cut(strconv.FormatFloat(x+0, 'g', n, 64), "e")
	if found {
		e, _ := strconv.Atoi(exponent)
		mantissa += "e" + strconv.Itoa(e)
	}
	return strings.ReplaceAll(mantissa, "-", "−")
}

// spanAxis returns an axis from the least to the greatest finite value. It includes zero if zero is true. It is never
// empty.
func spanAxis(label string, zero bool, values []float64) axis {
	a := axis{label: label, min: math.Inf(1), max: math.Inf(-1)}
	for _, v := range values {
		if plottable(v) {
			a.min, a.max = min(a.min, v), max(a.max, v)
		}
	}
	switch {
	case a.min > a.max:
		a.min, a.max = 0, 1
	case zero:
		a.min, a.max = min(a.min, 0), max(a.max, 0)
	}
	if largest := max(math.Abs(a.min), math.Abs(a.max)); a.max-a.min <= 1e-12*largest {
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
