package plot

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"
)

// Surface is a loss over a plane in weight space.
type Surface struct {
	Title, XLabel, YLabel, ZLabel string
	X, Y                          []float64   // ascending
	Z                             [][]float64 // Z[j][i] is the value at X[i], Y[j]; values that are not finite stay blank
	Ellipses                      []Ellipse   // contours of the posterior density
	Points                        []PointSet
	Note                          string
}

// PointSet holds marked points of a surface, such as the iterates of SGD.
type PointSet struct {
	Name string
	X, Y []float64
	Path bool // joined in order
}

// surfaceLevels is the number of colour bands.
const surfaceLevels = 12

// DrawSurfaces returns a figure for each grid with a finite value.
func DrawSurfaces(all []Surface) []*Figure {
	return drawAll(all, (*Surface).draw)
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

// span returns the range of the finite values.
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

// levels returns the lower ends of the bands. They are closer at low values: if the loss grows with the square of the
// distance, the bands are rings of equal width.
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

func (s *Surface) draw() *Figure {
	if !s.drawable() {
		return nil
	}
	lo, hi := s.span()
	x := axis{label: s.XLabel, min: s.X[0], max: s.X[len(s.X)-1]}
	y := axis{label: s.YLabel, min: s.Y[0], max: s.Y[len(s.Y)-1]}
	desc := fmt.Sprintf("%s between %s and %s over a grid of %d by %d points.", s.ZLabel, shortNumber(lo), shortNumber(hi), len(s.X), len(s.Y))
	f := newFigure(s.Title, desc, chartWidth, s.height(), x, y)
	f.Name, f.Note = fileName("surface", s.Title), s.Note
	levels := s.levels()
	for i, level := range levels {
		f.add(&plotter.Polygon{XYs: s.band(level), Color: levelColour(i, levels)})
	}
	for i := range s.Ellipses {
		inside, _ := f.inside(s.Ellipses[i].outline())
		f.outlined(inside, 0.85, 4, 1.6)
	}
	for i := range s.Points {
		f.points(i, &s.Points[i])
	}
	for i := range s.Ellipses {
		f.nameEllipse(&s.Ellipses[i])
	}
	f.colourBar(s.ZLabel, levels, hi)
	if len(s.Ellipses) > 0 {
		f.key("posterior density", &plotter.Line{LineStyle: pen(ink, 1.6, 0)})
	}
	return f.finish()
}

// height gives both axes the same scale, unless the figure becomes too high or too flat.
func (s *Surface) height() float64 {
	const width = chartWidth - 70 // approximate width within the axes
	h := width * (s.Y[len(s.Y)-1] - s.Y[0]) / (s.X[len(s.X)-1] - s.X[0])
	return min(max(h, 0.6*width), 1.15*width)
}

// inside returns the points with NaN for those outside the axes, and the number of these.
func (f *Figure) inside(points plotter.XYs) (inside plotter.XYs, outside int) {
	inside = slices.Clone(points)
	for i, p := range points {
		if !f.x.holds(p.X) || !f.y.holds(p.Y) {
			inside[i].X, inside[i].Y = math.NaN(), math.NaN()
			outside++
		}
	}
	return inside, outside
}

// outlined draws a line that is visible on any colour.
func (f *Figure) outlined(points plotter.XYs, opacity, wide, thin float64) {
	f.curve(pen(tint{paper, opacity}, wide, 0), points)
	f.curve(pen(ink, thin, 0), points)
}

// points draws a set of marked points. Points outside the axes are not drawn but counted in the legend.
func (f *Figure) points(i int, set *PointSet) {
	points := make(plotter.XYs, min(len(set.X), len(set.Y)))
	for k := range points {
		points[k] = plotter.XY{X: set.X[k], Y: set.Y[k]}
	}
	inside, outside := f.inside(points)
	if set.Path {
		f.outlined(inside, 0.7, 2.4, 0.9)
	}
	f.marks(surfaceMark(i), inside)
	name := set.Name
	if outside > 0 {
		name += fmt.Sprintf(" (%d outside)", outside)
	}
	f.key(name, &plotter.Scatter{GlyphStyle: surfaceMark(i)})
}

// surfaceMark returns the shape of a series in ink with a light outline. The first is a star, for SWA.
func surfaceMark(i int) draw.GlyphStyle {
	return draw.GlyphStyle{Color: ink, Radius: 4.2, Shape: mark{shape: (i + markShapes - 1) % markShapes, outline: paper}}
}

func levelColour(i int, levels []float64) color.Color {
	return heat(float64(i) / max(1, float64(len(levels)-1)))
}

// colourBar shows the bands and their lower ends below the chart.
func (f *Figure) colourBar(name string, levels []float64, top float64) {
	const high = 10
	n := float64(len(levels))
	within := f.within(f.height)
	room, left := within.Size().X.Points(), within.Min.X.Points()-edge
	every := 1
	for _, level := range append(slices.Clone(levels), top) {
		every = max(every, int(math.Ceil((textWidth(significant(level, 3), smallText)+6)*n/room)))
	}
	x, y := axis{label: name + " (bands are narrower at low values)", max: n}, axis{max: 1, named: []Tick{}}
	for i, level := range levels {
		if i == 0 || i%every == 0 && len(levels)-i >= every {
			x.named = append(x.named, Tick{float64(i), significant(level, 3)})
		}
	}
	if top > levels[0] {
		x.named = append(x.named, Tick{n, significant(top, 3)})
	}
	f.bar = newFigure("", "", f.width-left, high, x, y)
	f.bar.plot.X.Tick.Marker = constant(x.named) // short, and there is room left of the bar
	*f.bar.grid = plotter.Grid{}
	for i := range levels {
		from, to := float64(i), float64(i+1)
		f.bar.add(&plotter.Polygon{XYs: []plotter.XYs{{{X: from}, {X: to}, {X: to, Y: 1}, {X: from, Y: 1}}}, Color: levelColour(i, levels)})
	}
	f.bar.finish()
}
