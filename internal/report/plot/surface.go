package plot

import (
	"fmt"
	"math"
	"slices"
	"strings"

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

// Ellipse is a contour of a Gaussian density with a 2×2 covariance, at Radius standard deviations. It consists of all
// p with (p − centre)ᵀ Σ⁻¹ (p − centre) = Radius².
type Ellipse struct {
	X, Y       float64 // centre
	XX, XY, YY float64 // covariance
	Radius     float64
	Label      string // such as "2σ"
}

// DrawSurfaces returns a figure for each grid with a finite value.
func DrawSurfaces(all []Surface) []*Figure {
	return drawAll(all, (*Surface).draw)
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
	levels := make([]float64, len(bandColours))
	for i := range levels {
		t := float64(i) / float64(len(levels))
		levels[i] = lo + (hi-lo)*t*t
	}
	return levels
}

func (s *Surface) draw() *Figure {
	lo, hi := s.span()
	if lo > hi {
		return nil
	}
	x := axis{label: s.XLabel, min: s.X[0], max: s.X[len(s.X)-1]}
	y := axis{label: s.YLabel, min: s.Y[0], max: s.Y[len(s.Y)-1]}
	// Both axes have the same scale, unless the figure would become too high or too flat.
	const width = chartWidth - 70 // approximate width within the axes
	height := min(max(width*(y.max-y.min)/(x.max-x.min), 0.6*width), 1.15*width)
	desc := fmt.Sprintf("%s between %s and %s over a grid of %d by %d points.", s.ZLabel, shortNumber(lo), shortNumber(hi),
		len(s.X), len(s.Y))
	f := newFigure(s.Title, desc, chartWidth, height, x, y)
	f.Name, f.Note = fileName("surface", s.Title), s.Note
	levels := s.levels()
	for i, level := range levels {
		var rings []plotter.XYs
		for _, ring := range s.above(level) {
			rings = append(rings, f.places(ring))
		}
		f.add(&plotter.Polygon{XYs: rings, Color: fromHex(bandColours[i])})
	}
	var contours []string
	for _, e := range s.Ellipses {
		f.outlined(e.outline(), 0.85, 4, 1.6)
		contours = append(contours, e.Label)
	}
	for i := range s.Points {
		f.points(i, &s.Points[i])
	}
	f.colourBar(s.ZLabel, levels, hi)
	if len(contours) > 0 {
		f.key("posterior density at "+strings.Join(contours, ", "), &plotter.Line{LineStyle: pen(ink, 1.6, 0)})
	}
	return f
}

// above returns the region where the value is at least level. Gonum's heat map only draws one block of colour per grid
// point. Cells with a corner that is not finite are left out.
func (s *Surface) above(level float64) (rings []plotter.XYs) {
	for j := range len(s.Y) - 1 {
		for i := range len(s.X) - 1 {
			corners := [...]plotter.XYZ{
				{X: s.X[i], Y: s.Y[j], Z: s.Z[j][i]}, {X: s.X[i+1], Y: s.Y[j], Z: s.Z[j][i+1]},
				{X: s.X[i+1], Y: s.Y[j+1], Z: s.Z[j+1][i+1]}, {X: s.X[i], Y: s.Y[j+1], Z: s.Z[j+1][i]},
			}
			if slices.ContainsFunc(corners[:], func(p plotter.XYZ) bool { return !plottable(p.Z) }) {
				continue
			}
			// Keep the part of the cell that is at least at level (Sutherland and Hodgman 1974). The value is linear along
			// the edges.
			var ring plotter.XYs
			for k, p := range corners {
				q := corners[(k+1)%len(corners)]
				if p.Z >= level {
					ring = append(ring, plotter.XY{X: p.X, Y: p.Y})
				}
				if (p.Z >= level) != (q.Z >= level) {
					t := (level - p.Z) / (q.Z - p.Z)
					ring = append(ring, plotter.XY{X: p.X + t*(q.X-p.X), Y: p.Y + t*(q.Y-p.Y)})
				}
			}
			if ring != nil {
				rings = append(rings, ring)
			}
		}
	}
	return rings
}

// inside returns the points with NaN for those outside the axes.
func (f *Figure) inside(points plotter.XYs) plotter.XYs {
	points = slices.Clone(points)
	for i, p := range points {
		if !f.x.holds(p.X) || !f.y.holds(p.Y) {
			points[i].X, points[i].Y = math.NaN(), math.NaN()
		}
	}
	return points
}

// outlined draws the part of a line within the axes so that it is visible on any colour.
func (f *Figure) outlined(points plotter.XYs, opacity, wide, thin float64) {
	points = f.inside(points)
	f.curve(pen(tint{paper, opacity}, wide, 0), points...)
	f.curve(pen(ink, thin, 0), points...)
}

// points draws the marked points within the axes. The first set has triangles.
func (f *Figure) points(i int, set *PointSet) {
	points := make(plotter.XYs, min(len(set.X), len(set.Y)))
	for k := range points {
		points[k] = plotter.XY{X: set.X[k], Y: set.Y[k]}
	}
	if set.Path {
		f.outlined(points, 0.7, 2.4, 0.9)
	}
	glyph := draw.GlyphStyle{Color: ink, Radius: 4.2, Shape: mark{shapes[(i+2)%len(shapes)], false, true}}
	f.marks(glyph, f.inside(points)...)
	f.key(set.Name, &plotter.Scatter{GlyphStyle: glyph})
}

// colourBar shows the bands and their lower ends below the chart.
func (f *Figure) colourBar(name string, levels []float64, top float64) {
	n := float64(len(levels))
	// Both ends come first, because they must not be left out.
	x := axis{label: name + " (bands are narrower at low values)", max: n, named: []Tick{{0, significant(levels[0], 3)}}}
	if top > levels[0] {
		x.named = append(x.named, Tick{n, significant(top, 3)})
	}
	for i, level := range levels[1:] {
		x.named = append(x.named, Tick{float64(i + 1), significant(level, 3)})
	}
	const high = 10
	left := f.within(f.height).Min.X.Points() - edge
	f.bar = newFigure("", "", f.width-left, high, x, axis{max: 1, named: []Tick{}})
	for i := range levels {
		from, to := float64(i)/n, float64(i+1)/n
		f.bar.add(&plotter.Polygon{
			XYs:   []plotter.XYs{{{X: from}, {X: to}, {X: to, Y: 1}, {X: from, Y: 1}}},
			Color: fromHex(bandColours[i]),
		})
	}
}

const ellipsePoints = 120

// outline returns points of the contour, or nil if the covariance is not valid. With L the Cholesky factor they are
// centre + radius·L·u for u on the unit circle.
func (e *Ellipse) outline() plotter.XYs {
	a := math.Sqrt(e.XX)
	b := e.XY / a
	d := math.Sqrt(e.YY - b*b)
	if !(a > 0) || !plottable(d) || !plottable(e.Radius*(a+math.Abs(b)+d)) || !plottable(e.X+e.Y) {
		return nil
	}
	out := make(plotter.XYs, ellipsePoints+1)
	for k := range out {
		sin, cos := math.Sincos(2 * math.Pi * float64(k) / ellipsePoints)
		out[k] = plotter.XY{X: e.X + e.Radius*a*cos, Y: e.Y + e.Radius*(b*cos+d*sin)}
	}
	return out
}
