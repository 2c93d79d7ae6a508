package report

import "math"

const ellipsePoints = 120

// outline returns points of the contour, nil if the covariance is none. Its axes
// are those of the covariance: with L the Cholesky factor, centre + radius·L·u for
// u on the unit circle.
func (e *Ellipse) outline() []point {
	a := math.Sqrt(e.XX)
	b := e.XY / a
	d := math.Sqrt(e.YY - b*b)
	if !(a > 0) || !plottable(d) || !plottable(e.Radius*(a+math.Abs(b)+d)) || !plottable(e.X+e.Y) {
		return nil
	}
	out := make([]point, ellipsePoints+1)
	for k := range out {
		sin, cos := math.Sincos(2 * math.Pi * float64(k) / ellipsePoints)
		out[k] = point{e.X + e.Radius*a*cos, e.Y + e.Radius*(b*cos+d*sin)}
	}
	return out
}

// inside reports whether a point lies within the axes.
func (c *chart) inside(p point) bool {
	return c.x.min <= p.X && p.X <= c.x.max && c.y.min <= p.Y && p.Y <= c.y.max
}

// ellipse draws the contour where it is within the axes, and returns its highest
// point there, for nameEllipse.
func (c *chart) ellipse(e *Ellipse) (top at) {
	var runs [][]at
	var run []at
	top = at{0, math.Inf(1)}
	for _, p := range e.outline() {
		if !c.inside(p) {
			runs, run = append(runs, run), nil
			continue
		}
		where := c.place(p.X, p.Y)
		run = append(run, where)
		if where.y < top.y {
			top = where
		}
	}
	for _, run := range append(runs, run) {
		c.outlined(run...)
	}
	return top
}

// nameEllipse writes the label of a contour above a point of it.
func (c *chart) nameEllipse(e *Ellipse, top at) {
	if !math.IsInf(top.y, 1) && e.Label != "" {
		half := textWidth(e.Label, smallText) / 2
		x := min(max(top.x, c.x0+half+3), c.x1-half-3)
		c.text(colourInk, label{at: at{x, max(top.y-4, c.y0+smallText)}, text: e.Label, anchor: 0.5, size: smallText, bold: true, halo: true})
	}
}
