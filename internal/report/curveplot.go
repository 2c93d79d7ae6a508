package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

func curveFigures(name string, curves []Curve) []figure {
	var figures []figure
	for i := range curves {
		if d := curves[i].draw(); d != nil {
			figures = append(figures, figure{name: fileName(name, curves[i].Title), drawing: d, note: curves[i].Note})
		}
	}
	return figures
}

// points are those that are complete; lower and upper are NaN without interval.
func (s *Series) points() []seriesPoint {
	var out []seriesPoint
	for i := range min(len(s.X), len(s.Y)) {
		p := seriesPoint{point{s.X[i], s.Y[i]}, math.NaN(), math.NaN()}
		if i < len(s.Lower) && i < len(s.Upper) && plottable(s.Lower[i]) && plottable(s.Upper[i]) {
			p.lower, p.upper = s.Lower[i], s.Upper[i]
		}
		out = append(out, p)
	}
	return out
}

type seriesPoint struct {
	point
	lower, upper float64
}

// maxBars is the number of points up to which each has a mark and a bar; above it
// some have a mark, and the interval is a band.
const maxBars = 24

// draw returns nil if there is nothing to draw.
func (cv *Curve) draw() *drawing {
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
	x, y := cv.axes(xs, ys)
	c := newChart(cv.Title, cv.describe(), chartWidth, chartHeight, x, y)
	for i, m := range cv.Marks {
		if !plottable(m.At) {
			continue
		}
		in := pen{colour: colourInk, stroke: 1.2, dash: [...]dash{dashed, dotted}[i%2]}
		c.line(in, at{c.x.pos(m.At), c.y0}, at{c.x.pos(m.At), c.y1})
	}
	for i, s := range cv.Series {
		c.series(i, s.Name, s.points())
	}
	if len(cv.Series) > 1 {
		for i, s := range cv.Series {
			c.seriesKey(i, s.Name)
		}
	}
	for i, m := range cv.Marks {
		in := pen{colour: colourInk, stroke: 1.2, dash: [...]dash{dashed, dotted}[i%2]}
		c.key(m.Label, func(d *drawing, x0, x1, y float64) { d.line(in, at{(x0 + x1) / 2, y - 8}, at{(x0 + x1) / 2, y + 8}) })
	}
	c.legend()
	return &c.drawing
}

func (cv *Curve) axes(xs, ys []float64) (x, y axis) {
	ends := slices.Clone(xs)
	for _, t := range append(slices.Clone(cv.Ticks), cv.Marks...) {
		ends = append(ends, t.At)
	}
	x, y = spanAxis(cv.XLabel, false, ends), spanAxis(cv.YLabel, false, ys)
	if cv.LogX && x.min > 0 {
		x.kind = logarithmic
	}
	if cv.LogY && y.min > 0 {
		y.kind = logarithmic
	}
	x, y = x.padded(0.03), y.padded(0.06)
	for _, t := range append(slices.Clone(cv.Ticks), cv.ownTicks(xs)...) {
		if plottable(t.At) {
			x.named = append(x.named, t)
		}
	}
	slices.SortStableFunc(x.named, func(s, t Tick) int { return cmp.Compare(s.At, t.At) })
	return x, y
}

// maxOwnTicks is the number of settings up to which each has a tick of its own.
const maxOwnTicks = 8

// ownTicks are at the settings themselves if they are few and have no names.
func (cv *Curve) ownTicks(xs []float64) []Tick {
	settings := slices.Compact(slices.Sorted(slices.Values(xs)))
	if cv.Ticks != nil || len(settings) < 3 || len(settings) > maxOwnTicks {
		return nil
	}
	ticks := make([]Tick, len(settings))
	for i, x := range settings {
		ticks[i] = Tick{x, shortNumber(x)}
	}
	return ticks
}

// describe says where each series is lowest.
func (cv *Curve) describe() string {
	desc := fmt.Sprintf("%s over %s.", cv.YLabel, cv.XLabel)
	for i := range cv.Series {
		best := point{math.NaN(), math.Inf(1)}
		for _, p := range cv.Series[i].points() {
			if plottable(p.X) && p.Y < best.Y {
				best = p.point
			}
		}
		if plottable(best.X) {
			desc += fmt.Sprintf(" %s: lowest %s at %s.", cv.Series[i].Name, shortNumber(best.Y), cv.place(best.X))
		}
	}
	return desc
}

// place names a value of the x axis.
func (cv *Curve) place(x float64) string {
	for _, t := range cv.Ticks {
		if t.At == x {
			return t.Label
		}
	}
	return shortNumber(x)
}

// series draws a line with its intervals, as bars or, of many points, as a band.
func (c *chart) series(i int, name string, points []seriesPoint) {
	in := seriesPen(i)
	plain := make([]point, len(points))
	for k, p := range points {
		plain[k] = p.point
	}
	if len(points) > maxBars {
		c.band(in, points)
		c.curve(in, plain)
		c.seriesMarkers(i, name, someOf(points))
		return
	}
	c.curve(in, plain)
	thinner := in
	thinner.stroke = 1.2
	for _, p := range points {
		c.bar(thinner, p.X, p.lower, p.upper)
	}
	c.seriesMarkers(i, name, points)
}

// someOf are a few points, so that a line is known by more than its colour.
func someOf(points []seriesPoint) []seriesPoint {
	last := len(points) - 1
	return []seriesPoint{points[last/4], points[last/2], points[last*3/4], points[last]}
}

func (c *chart) seriesMarkers(i int, name string, points []seriesPoint) {
	for _, p := range points {
		if plottable(p.X) && plottable(p.Y) {
			tip := fmt.Sprintf("%s: %s at %s", name, shortNumber(p.Y), shortNumber(p.X))
			if plottable(p.lower) {
				tip += fmt.Sprintf(" [%s, %s]", shortNumber(p.lower), shortNumber(p.upper))
			}
			c.marker(i, c.place(p.X, p.Y), markerSize, tip)
		}
	}
}

// band fills the space between the ends of the intervals, in runs of points that
// have them.
func (c *chart) band(in pen, points []seriesPoint) {
	in = pen{colour: in.colour, fill: 0.2}
	var upper, lower []at
	for i, p := range points {
		if plottable(p.X) && plottable(p.lower) {
			upper, lower = append(upper, c.place(p.X, p.upper)), append(lower, c.place(p.X, p.lower))
		}
		if (!plottable(p.X) || !plottable(p.lower) || i == len(points)-1) && len(upper) > 1 {
			slices.Reverse(lower)
			c.area(in, append(upper, lower...)...)
			upper, lower = nil, nil
		}
	}
}

// spectrumFigures is nil without a positive eigenvalue.
func (r *Report) spectrumFigures() []figure {
	if r.Spectrum == nil {
		return nil
	}
	label := r.Spectrum.Label
	if label == "" {
		label = "variance along the direction"
	}
	s := Series{Name: "eigenvalue"}
	for i, v := range r.Spectrum.Eigenvalues {
		if v > 0 && plottable(v) { // a covariance of rank K−1 has a zero, but for rounding
			s.X, s.Y = append(s.X, float64(i+1)), append(s.Y, v)
		}
	}
	cv := Curve{Title: "Eigenvalues", XLabel: "direction", YLabel: label, Series: []Series{s}}
	cv.LogY = len(s.Y) > 0 && slices.Max(s.Y) > 30*slices.Min(s.Y)
	d := cv.draw()
	if d == nil {
		return nil
	}
	return []figure{{name: "spectrum", drawing: d, note: r.Spectrum.Note}}
}
