package report

import (
	"fmt"
	"math"
)

// surfaceLevels is the number of bands of colour.
const surfaceLevels = 12

func (r *Report) surfaceFigures() []figure {
	var figures []figure
	for i := range r.Surfaces {
		if d := r.Surfaces[i].draw(); d != nil {
			figures = append(figures, figure{name: fileName("surface", r.Surfaces[i].Title), drawing: d, note: r.Surfaces[i].Note})
		}
	}
	return figures
}

// drawable reports whether the surface is a grid with at least one finite value.
func (s *Surface) drawable() bool {
	if len(s.X) < 2 || len(s.Y) < 2 || len(s.Z) != len(s.Y) || !ascending(s.X) || !ascending(s.Y) {
		return false
	}
	for _, row := range s.Z {
		if len(row) != len(s.X) {
			return false
		}
	}
	lo, hi := s.span()
	return lo <= hi
}

func ascending(xs []float64) bool {
	for i, x := range xs {
		if !plottable(x) || i > 0 && x <= xs[i-1] {
			return false
		}
	}
	return true
}

// span is the range of the finite values.
func (s *Surface) span() (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, row := range s.Z {
		for _, z := range row {
			if plottable(z) {
				lo, hi = min(lo, z), max(hi, z)
			}
		}
	}
	return lo, hi
}

// levels are the lower ends of the bands. They lie closer to each other at low
// values: of a bowl whose loss grows with the square of the distance, the bands
// are rings of equal width.
func (s *Surface) levels() []float64 {
	lo, hi := s.span()
	if lo == hi {
		return []float64{lo}
	}
	levels := make([]float64, surfaceLevels)
	for i := range levels {
		t := float64(i) / surfaceLevels
		levels[i] = lo + (hi-lo)*t*t
	}
	return levels
}

// draw returns nil if there is nothing to draw.
func (s *Surface) draw() *drawing {
	if !s.drawable() {
		return nil
	}
	lo, hi := s.span()
	x := axis{label: s.XLabel, min: s.X[0], max: s.X[len(s.X)-1]}
	y := axis{label: s.YLabel, min: s.Y[0], max: s.Y[len(s.Y)-1]}
	desc := fmt.Sprintf("%s between %s and %s over a grid of %d by %d points.", s.ZLabel, shortNumber(lo), shortNumber(hi), len(s.X), len(s.Y))
	c := newChart(s.Title, desc, chartWidth, s.height(), x, y)
	levels := s.levels()
	for i, level := range levels {
		c.bands(s, level, surfaceColour(float64(i)/max(1, float64(len(levels)-1))))
	}
	tops := make([]at, len(s.Ellipses))
	for i := range s.Ellipses {
		tops[i] = c.ellipse(&s.Ellipses[i])
	}
	for i := range s.Points {
		c.points(i, &s.Points[i])
	}
	for i := range s.Ellipses {
		c.nameEllipse(&s.Ellipses[i], tops[i])
	}
	c.colourBar(s.ZLabel, levels, hi)
	if len(s.Ellipses) > 0 {
		c.key("posterior density", func(d *drawing, x0, x1, y float64) { d.outlined(at{x0, y}, at{x1, y}) })
	}
	c.legend()
	return &c.drawing
}

// height gives both axes the same scale if that does not make the figure too high
// or too flat.
func (s *Surface) height() float64 {
	const width = chartWidth - 70 // about, within the axes
	h := width * (s.Y[len(s.Y)-1] - s.Y[0]) / (s.X[len(s.X)-1] - s.X[0])
	return min(max(h, 0.6*width), 1.15*width)
}

// outlined draws a line that stands out on any colour.
func (d *drawing) outlined(points ...at) {
	d.line(pen{colour: colourPaper, stroke: 4, faint: 0.15}, points...)
	d.line(pen{colour: colourInk, stroke: 1.6}, points...)
}

// points draws a set of marked points. Those outside the axes are told, not
// drawn at their edge.
func (c *chart) points(i int, set *PointSet) {
	var run []at
	outside := 0
	flush := func() {
		if set.Path {
			c.line(pen{colour: colourPaper, stroke: 2.4, faint: 0.3}, run...)
			c.line(pen{colour: colourInk, stroke: 0.9}, run...)
		}
		run = nil
	}
	var marks []point
	for k := range min(len(set.X), len(set.Y)) {
		p := point{set.X[k], set.Y[k]}
		if !plottable(p.X) || !plottable(p.Y) || !c.inside(p) {
			outside++
			flush()
			continue
		}
		run, marks = append(run, c.place(p.X, p.Y)), append(marks, p)
	}
	flush()
	for _, p := range marks {
		tip := fmt.Sprintf("%s: %s, %s", set.Name, shortNumber(p.X), shortNumber(p.Y))
		c.surfaceMarker(i, c.place(p.X, p.Y), tip)
	}
	name := set.Name
	if outside > 0 {
		name += fmt.Sprintf(" (%d outside)", outside)
	}
	c.key(name, func(d *drawing, x0, x1, y float64) {
		e := chart{drawing: *d}
		e.surfaceMarker(i, at{(x0 + x1) / 2, y}, "")
		*d = e.drawing
	})
}

// surfaceMarker is a mark with the shape of a series, in ink with an outline of
// paper.
func (c *chart) surfaceMarker(i int, p at, tip string) {
	shape := (i + markerShapes - 1) % markerShapes // the first is a star: SWA
	c.area(pen{colour: colourPaper, fill: 1, stroke: 2.4}, markerShape(shape, p, 4.2)...)
	c.area(pen{colour: colourInk, fill: 1}, markerShape(shape, p, 4.2)...).tip = tip
}
