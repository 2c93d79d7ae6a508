package plot

import (
	"fmt"
	"image/color"
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

// Spectrum holds the eigenvalues of the posterior covariance's low-rank part, in descending order.
type Spectrum struct {
	Eigenvalues []float64
	Note        string // such as the share of variance in the diagonal part
}

// DrawCurves returns a figure for each curve, whose file name begins with name.
func DrawCurves(name string, curves []Curve) []*Figure {
	return drawAll(curves, func(cv *Curve) *Figure {
		f := cv.draw()
		if f != nil {
			f.Name = fileName(name, cv.Title)
		}
		return f
	})
}

// drawAll returns the figures that are not empty.
func drawAll[T any](all []T, draw func(*T) *Figure) []*Figure {
	var figures []*Figure
	for i := range all {
		if f := draw(&all[i]); f != nil {
			figures = append(figures, f)
		}
	}
	return figures
}

// DrawSpectrum returns nil if no eigenvalue is positive.
func DrawSpectrum(s *Spectrum) []*Figure {
	if s == nil {
		return nil
	}
	values := Series{Name: "eigenvalue"}
	for i, v := range s.Eigenvalues {
		if v > 0 && plottable(v) { // a covariance of rank K−1 has one zero, up to rounding
			values.X, values.Y = append(values.X, float64(i+1)), append(values.Y, v)
		}
	}
	cv := Curve{Title: "Eigenvalues", XLabel: "direction", YLabel: "variance along the direction", Series: []Series{values}, Note: s.Note}
	cv.LogY = len(values.Y) > 0 && slices.Max(values.Y) > 30*slices.Min(values.Y)
	f := cv.draw()
	if f == nil {
		return nil
	}
	f.Name = "spectrum"
	return []*Figure{f}
}

// points returns the points of the series. Their lower and upper ends are NaN without an interval.
func (s *Series) points() []seriesPoint {
	var out []seriesPoint
	for i := range min(len(s.X), len(s.Y)) {
		p := seriesPoint{plotter.XY{X: s.X[i], Y: s.Y[i]}, math.NaN(), math.NaN()}
		if i < len(s.Lower) && i < len(s.Upper) && plottable(s.Lower[i]) && plottable(s.Upper[i]) {
			p.lower, p.upper = s.Lower[i], s.Upper[i]
		}
		out = append(out, p)
	}
	return out
}

type seriesPoint struct {
	plotter.XY
	lower, upper float64
}

// maxBars is the largest number of points that all have a mark and a bar. Longer series have a few marks, and a band
// as interval.
const maxBars = 24

// draw returns nil if there is nothing to draw.
func (cv *Curve) draw() *Figure {
	var xs, ys []float64
	for _, s := range cv.Series {
		for _, p := range s.points() {
			if plottable(p.X) && plottable(p.Y) {
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
	f.Note = cv.Note
	if cv.Ideal != nil {
		f.curve(pen(ink, 1.2, 0), plotter.XYs{{X: x.min, Y: *cv.Ideal}, {X: x.max, Y: *cv.Ideal}})
	}
	for i, m := range cv.Marks {
		if plottable(m.At) {
			f.curve(markPen(i), plotter.XYs{{X: m.At, Y: y.min}, {X: m.At, Y: y.max}})
		}
	}
	for i, s := range cv.Series {
		f.series(i, s.points())
		if len(cv.Series) > 1 {
			f.seriesKey(i, s.Name)
		}
	}
	for i, m := range cv.Marks {
		f.key(m.Label, upright{markPen(i)})
	}
	return f.finish()
}

func markPen(i int) draw.LineStyle { return pen(ink, 1.2, 1+i%2) }

// upright is the legend's sample of a vertical line.
type upright struct{ draw.LineStyle }

// Thumbnail implements [gonum.Thumbnailer].
func (u upright) Thumbnail(c *draw.Canvas) {
	c.StrokeLine2(u.LineStyle, c.Center().X, c.Min.Y-3, c.Center().X, c.Max.Y+3)
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
func ownTicks(xs []float64) []Tick {
	settings := slices.Compact(slices.Sorted(slices.Values(xs)))
	if len(settings) < 3 || len(settings) > maxOwnTicks {
		return nil
	}
	ticks := make([]Tick, len(settings))
	for i, x := range settings {
		ticks[i] = Tick{x, shortNumber(x)}
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

// series draws a line with its intervals: bars for few points, a band for many.
func (f *Figure) series(i int, points []seriesPoint) {
	in, marked := seriesPen(i), points
	if len(points) > maxBars {
		f.band(seriesRole+role(i%seriesRoles), points)
		marked = someOf(points)
	}
	f.curve(in, places(points))
	if len(points) <= maxBars {
		f.bars(in.Color, points)
	}
	f.marks(seriesMark(i), places(marked))
}

// places returns the points without their intervals.
func places(points []seriesPoint) plotter.XYs {
	out := make(plotter.XYs, len(points))
	for k, p := range points {
		out[k] = p.XY
	}
	return out
}

// someOf returns a few of many points, so that a line is identified by more than its colour.
func someOf(points []seriesPoint) []seriesPoint {
	last := len(points) - 1
	return []seriesPoint{points[last/4], points[last/2], points[last*3/4], points[last]}
}

// bars draws the intervals of the points that have them.
func (f *Figure) bars(c color.Color, points []seriesPoint) {
	e := &plotter.YErrorBars{LineStyle: pen(c, 1.2, 0), CapWidth: 5}
	for _, p := range points {
		if plottable(p.X) && plottable(p.lower) && plottable(p.upper) {
			half := (p.upper - p.lower) / 2
			e.XYs = append(e.XYs, plotter.XY{X: p.X, Y: p.lower + half})
			e.YErrors = append(e.YErrors, struct{ Low, High float64 }{half, half})
		}
	}
	f.add(e)
}

// band fills the area between the ends of the intervals, for each run of points that have them.
func (f *Figure) band(c role, points []seriesPoint) {
	for run := range runs(points, func(p seriesPoint) bool { return plottable(p.X) && plottable(p.lower) }) {
		ring := make(plotter.XYs, 2*len(run)) // forward along the upper ends, back along the lower ones
		for i, p := range run {
			ring[i], ring[len(ring)-1-i] = plotter.XY{X: p.X, Y: p.upper}, plotter.XY{X: p.X, Y: p.lower}
		}
		f.add(&plotter.Polygon{XYs: []plotter.XYs{ring}, Color: tint{c, 0.2}})
	}
}
