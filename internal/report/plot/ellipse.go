package plot

import (
	"math"

	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Ellipse is a contour of a Gaussian density with a 2×2 covariance, at Radius standard deviations. It consists of all
// p with (p − centre)ᵀ Σ⁻¹ (p − centre) = Radius².
type Ellipse struct {
	X, Y       float64 // centre
	XX, XY, YY float64 // covariance
	Radius     float64
	Label      string // such as "2σ"
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

// nameEllipse writes the label of a contour above its highest point within the axes.
func (f *Figure) nameEllipse(e *Ellipse) {
	top := plotter.XY{Y: math.Inf(-1)}
	inside, _ := f.inside(e.outline())
	for _, p := range inside {
		if p.Y > top.Y {
			top = p
		}
	}
	label := fitted(e.Label, f.width/3, smallText)
	if math.IsInf(top.Y, -1) || label == "" {
		return
	}
	f.add(plotFunc(func(c draw.Canvas, p *gonum.Plot) {
		said := style(ink, smallText, true)
		half := said.Width(label) / 2
		at := vg.Point{X: c.X(p.X.Norm(top.X)), Y: c.Y(p.Y.Norm(top.Y)) + 2}
		at.X = min(max(at.X, c.Min.X+half+3), c.Max.X-half-3) - half
		at.Y = min(at.Y, c.Max.Y-smallText)
		haloed(c, said, at, label)
	}))
}
