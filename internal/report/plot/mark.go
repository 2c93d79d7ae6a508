package plot

import (
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// markShapes is the number of shapes, one for each series that has the same dash.
const markShapes = 6

// markSize is half the width of a mark in a chart.
const markSize = 3.9

// A mark is a filled glyph. All shapes have about the same area.
type mark struct {
	shape   int
	hollow  bool        // filled with the background colour
	outline color.Color // for a surface's marks, to be visible on any colour; else nil
}

// seriesMark returns the mark of the i-th series. Series with a broken line have hollow marks.
func seriesMark(i int) draw.GlyphStyle {
	return draw.GlyphStyle{Color: seriesPen(i).Color, Radius: markSize,
		Shape: mark{shape: i % markShapes, hollow: i/seriesRoles%len(dashes) != 0}}
}

// DrawGlyph implements [draw.GlyphDrawer].
func (m mark) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	path := outline(at, m.corners(style.Radius.Points()))
	switch {
	case m.hollow:
		c.SetColor(paper)
		c.Fill(path)
		c.SetLineStyle(pen(style.Color, 1.2, 0))
		c.Stroke(path)
		return
	case m.outline != nil:
		c.SetLineStyle(pen(m.outline, 2.4, 0))
		c.Stroke(path)
	}
	c.SetColor(style.Color)
	c.Fill(path)
}

func outline(at vg.Point, corners []vg.Point) vg.Path {
	var path vg.Path
	for i, p := range corners {
		if i == 0 {
			path.Move(at.Add(p))
		} else {
			path.Line(at.Add(p))
		}
	}
	path.Close()
	return path
}

// shapes are polygons; the last one is a star.
var shapes = [markShapes]struct {
	corners int
	angle   float64
	radii   []float64 // relative to the radius of the mark
}{
	{16, 0, []float64{1}}, {4, math.Pi / 4, []float64{1.2}}, {3, math.Pi / 2, []float64{1.3}},
	{4, 0, []float64{1.25}}, {3, -math.Pi / 2, []float64{1.3}}, {10, math.Pi / 2, []float64{1.45, 0.65}},
}

// corners returns the corners of a mark of width 2·r. Their distances from the middle alternate between the radii.
func (m mark) corners(r float64) []vg.Point {
	s := shapes[m.shape]
	corners := make([]vg.Point, s.corners)
	for k := range corners {
		sin, cos := math.Sincos(s.angle + 2*math.Pi*float64(k)/float64(s.corners))
		far := r * s.radii[k%len(s.radii)]
		corners[k] = vg.Point{X: vg.Points(far * cos), Y: vg.Points(far * sin)}
	}
	return corners
}
