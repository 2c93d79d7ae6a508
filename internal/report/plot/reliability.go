package plot

import (
	"fmt"
	"math"
	"slices"

	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/swagwrap/swagwrap/calibrate"
)

// Method holds what is drawn of the predictions of one method. Either may be
// empty.
type Method struct {
	Name string
	// Reliability holds the bins of calibrate.Reliability.
	Reliability []calibrate.ReliabilityBin
	// RiskCoverage is what calibrate.RiskCoverage returns.
	RiskCoverage []calibrate.RiskPoint
}

// confidenceFloor is the smallest 1 − confidence that the axis shows; what is
// surer stands at its end.
const confidenceFloor = 1e-5

// gapsOf are the bins of a reliability diagram as the SWAG paper draws it (Maddox
// et al. 2019, section 5.1): confidence − accuracy over confidence, with the ends
// of its interval.
func gapsOf(bins []calibrate.ReliabilityBin) []seriesPoint {
	var gaps []seriesPoint
	for _, b := range bins {
		if b.Count < 1 || !plottable(b.Confidence) || !plottable(b.Accuracy) {
			continue
		}
		w := calibrate.Wilson(b.Accuracy, b.Count)
		lo, hi := w.Low, w.High
		gaps = append(gaps, seriesPoint{plotter.XY{X: b.Confidence, Y: b.Confidence - b.Accuracy}, b.Confidence - hi, b.Confidence - lo})
	}
	return gaps
}

// DrawReliability returns all methods in one figure, those that are close to each
// other once more on a scale of their own, then each with its intervals and the
// others faint behind it.
func DrawReliability(methods []Method) []*Figure {
	var d diagram
	for _, m := range methods {
		gaps, far := gapsOf(m.Reliability), 0.0
		for _, g := range gaps {
			far = max(far, math.Abs(g.Y))
		}
		d.add(m.Name, gaps, far)
	}
	all, near := d.closeOf(math.Inf(1)), d.closeOf(farOff)
	var figures []*Figure
	if len(all) > 1 {
		figures = d.overview("reliability", "Reliability of all methods", "Reliability", func(title string, which []int) *Figure {
			x, y := d.axes(which, false)
			f := newFigure(title, fmt.Sprintf("Confidence minus accuracy over confidence, for %d methods.", len(which)), chartWidth, chartHeight, x, y)
			f.reliabilityGround()
			return f
		})
	}
	for _, i := range all {
		if slices.Contains(near, i) {
			figures = append(figures, d.of(i, near))
		} else {
			figures = append(figures, d.of(i, all))
			figures[len(figures)-1].Note = "On a wider scale than the others."
		}
	}
	return figures
}

// of draws one method, and faintly those with which it shares its axes.
func (d *diagram) of(i int, which []int) *Figure {
	x, y := d.axes(which, true)
	alone := len(d.names) == 1
	width, height := smallWidth, smallHeight
	if alone {
		width, height = chartWidth, chartHeight
	}
	worst := seriesPoint{}
	for _, g := range d.lines[i] {
		if math.Abs(g.Y) >= math.Abs(worst.Y) {
			worst = g
		}
	}
	desc := fmt.Sprintf("%d groups of predictions. The widest gap between confidence and accuracy is %s at confidence %s.",
		len(d.lines[i]), signed(worst.Y, 3), fixed(worst.X, 3))
	f := newFigure("Reliability: "+d.names[i], desc, width, height, x, y)
	f.Name, f.Small = fileName("reliability", d.names[i]), !alone
	for _, j := range which {
		if j != i {
			f.curve(pen(line, 1.2, 0), places(d.lines[j]))
		}
	}
	f.reliabilityGround()
	f.curve(seriesPen(i), places(d.lines[i]))
	f.bars(seriesPen(i).Color, d.lines[i])
	f.marks(seriesMark(i), places(d.lines[i]))
	return f.finish()
}

// axes hold all of some methods, so that their figures compare.
func (d *diagram) axes(which []int, intervals bool) (x, y axis) {
	least, closest := 1.0, math.Inf(1)
	var values []float64
	for _, i := range which {
		for _, g := range d.lines[i] {
			least = min(least, g.X)
			if rest := 1 - g.X; rest > 0 {
				closest = min(closest, max(rest, confidenceFloor))
			}
			values = append(values, g.Y)
			if intervals {
				values = append(values, g.lower, g.upper)
			}
		}
	}
	if math.IsInf(closest, 1) { // all saturated
		closest = confidenceFloor
	}
	x = axis{label: "confidence", kind: confidence, max: 1 - closest*0.8}
	x.min = max(0, 1-(1-min(least, x.max))*1.15)
	if x.warp(x.max)-x.warp(x.min) < 0.3 {
		x.min, x.max = max(0, 1-(1-x.min)*1.5), 1-(1-x.max)/1.5
	}
	y = spanAxis("confidence − accuracy", true, values).padded(0.08)
	return x, y
}

// reliabilityGround says what the two sides of the zero line mean.
func (f *Figure) reliabilityGround() {
	f.curve(pen(ink, 1.2, 0), plotter.XYs{{X: f.x.min}, {X: f.x.max}}) // the axis holds zero
	f.add(plotFunc(func(c draw.Canvas, p *gonum.Plot) {
		said := style(soft, smallText, false)
		said.XAlign = draw.XRight
		if p.Y.Max > 0 {
			haloed(c, said, vg.Point{X: c.Max.X - 2, Y: c.Max.Y - smallText - 2}, "too confident")
		}
		if c.Y(p.Y.Norm(0))-c.Min.Y > 3*smallText {
			haloed(c, said, vg.Point{X: c.Max.X - 2, Y: c.Min.Y + 4}, "too cautious")
		}
	}))
}
