package plot

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"
)

// Curve is a figure of one or more series over the same axes.
type Curve struct {
	Title, XLabel, YLabel string
	LogX, LogY            bool
	Series                []Series
	Marks                 []Tick   // labelled vertical lines: the default, the recommendation
	Ideal                 *float64 // a horizontal line, or nil
	Note                  string
}

// Tick is a labelled position on an axis.
type Tick struct {
	At    float64
	Label string
}

// Series is a line through the points X[i], Y[i], in ascending order of X. Lower and Upper hold the ends of
// intervals, or are nil. Values that are not finite are left out.
type Series struct {
	Name               string
	X, Y, Lower, Upper []float64
}

// DrawCurves returns a figure for each curve, whose file name begins with name.
func DrawCurves(name string, curves []Curve) []*Figure {
	return drawAll(curves, func(cv *Curve) *Figure { return cv.draw(name) })
}

func (s *Series) points() []estimate {
	var out []estimate
	for i := range min(len(s.X), len(s.Y)) {
		p := estimate{plotter.XY{X: s.X[i], Y: s.Y[i]}, math.NaN(), math.NaN()}
		if i < len(s.Lower) && i < len(s.Upper) && plottable(s.Lower[i]) && plottable(s.Upper[i]) {
			p.lower, p.upper = s.Lower[i], s.Upper[i]
		}
		out = append(out, p)
	}
	return out
}

// draw returns nil if there is nothing to draw.
func (cv *Curve) draw(name string) *Figure {
	var xs, ys []float64
	for _, s := range cv.Series {
		for _, p := range s.points() {
			if drawable(p.XY) {
				xs, ys = append(xs, p.X), append(ys, p.Y, p.lower, p.upper)
			}
		}
	}
	if len(xs) == 0 {
		return nil
	}
	if cv.Ideal != nil {
		ys = append(ys, *cv.Ideal)
	}
	x, y := cv.axes(xs, ys)
	f := newFigure(cv.Title, cv.describe(), chartWidth, chartHeight, x, y)
	f.Name, f.Note = fileName(name, cv.Title), cv.Note
	if cv.Ideal != nil {
		f.curve(pen(ink, 1.2, 0), plotter.XY{X: x.min, Y: *cv.Ideal}, plotter.XY{X: x.max, Y: *cv.Ideal})
	}
	markPen := func(i int) draw.LineStyle { return pen(ink, 1.2, 1+i%2) }
	for i, m := range cv.Marks {
		f.curve(markPen(i), plotter.XY{X: m.At, Y: y.min}, plotter.XY{X: m.At, Y: y.max})
	}
	for i, s := range cv.Series {
		f.series(i, s.points())
		if len(cv.Series) > 1 {
			f.seriesKey(i, s.Name)
		}
	}
	for i, m := range cv.Marks {
		f.key(m.Label, &plotter.Line{LineStyle: markPen(i)})
	}
	return f
}

func (cv *Curve) axes(xs, ys []float64) (x, y axis) {
	ends := slices.Clone(xs)
	for _, m := range cv.Marks {
		ends = append(ends, m.At)
	}
	x, y = spanAxis(cv.XLabel, false, ends), spanAxis(cv.YLabel, false, ys)
	if cv.LogX && x.min > 0 {
		x.kind = logarithmic
	}
	if cv.LogY && y.min > 0 {
		y.kind = logarithmic
	}
	x, y = x.padded(0.03), y.padded(0.06)
	x.named = ownTicks(xs)
	return x, y
}

// maxOwnTicks is the largest number of settings that all have their own tick.
const maxOwnTicks = 8

// ownTicks returns a tick for each setting if there are few.
func ownTicks(xs []float64) (ticks []Tick) {
	settings := slices.Compact(slices.Sorted(slices.Values(xs)))
	if len(settings) < 3 || len(settings) > maxOwnTicks {
		return nil
	}
	for _, x := range settings {
		ticks = append(ticks, Tick{x, shortNumber(x)})
	}
	return ticks
}

// describe returns the minimum of each series in words.
func (cv *Curve) describe() string {
	desc := fmt.Sprintf("%s over %s.", cv.YLabel, cv.XLabel)
	for i := range cv.Series {
		best := plotter.XY{X: math.NaN(), Y: math.Inf(1)}
		for _, p := range cv.Series[i].points() {
			if plottable(p.X) && p.Y < best.Y {
				best = p.XY
			}
		}
		if plottable(best.X) {
			desc += fmt.Sprintf(" %s: lowest %s at %s.", cv.Series[i].Name, shortNumber(best.Y), shortNumber(best.X))
		}
	}
	return desc
}
