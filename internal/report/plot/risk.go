package plot

import (
	"fmt"
	"math"

	"gonum.org/v1/plot/plotter"

	"github.com/swagwrap/swagwrap/calibrate"
)

const (
	// maxRiskPoints is the number of points of a curve that are drawn. It is more than a screen can show.
	maxRiskPoints = 200
	// minCoverage is the start of the curves. At lower coverage a single error makes a cliff.
	minCoverage = 0.05
)

// DrawRisk returns the risk–coverage curves of all methods (Geifman and El-Yaniv 2017), and a close-up of those that
// are close to each other.
func DrawRisk(methods []Method) []*Figure {
	var d diagram
	for _, m := range methods {
		if points := riskPoints(m.RiskCoverage); len(points) > 0 {
			d.add(&m, points, points[len(points)-1].Y)
		}
	}
	all := append(d.of(true), d.of(false)...) // major methods on top
	near := d.near(all, 3)
	if len(all) == 0 {
		return nil
	}
	figures := []*Figure{d.risks("Risk over coverage", all)}
	if len(near) < len(all) {
		figures = append(figures, d.risks(fmt.Sprintf("Risk over coverage, close-up of %d methods", len(near)), near))
		figures[1].Name += "-close"
	}
	return figures
}

// risks draws the curves of some methods. Minor methods are lines without a name.
func (d *diagram) risks(title string, which []int) *Figure {
	var values []float64
	var ends []lineEnd
	minor := 0
	for _, i := range which {
		for _, p := range d.lines[i] {
			values = append(values, p.Y)
		}
		if d.minor[i] {
			minor++
			continue
		}
		ends = append(ends, lineEnd{i, d.names[i], d.lines[i][len(d.lines[i])-1].XY})
	}
	x := axis{label: "coverage: share of images kept", max: 1, percent: true}
	y := spanAxis("risk: share of errors among them", true, values).padded(0.05)
	y.percent = true
	f := newFigure(title, "The share of errors among the most confident predictions, over the share of images kept.", chartWidth, chartHeight, x, y)
	f.Name = "risk-coverage"
	f.nameEnds(ends)
	for _, i := range which {
		in := seriesPen(i)
		if d.minor[i] {
			in = pen(soft, 0.9, 0)
		}
		f.curve(in, places(d.lines[i]))
	}
	for _, e := range ends {
		f.marks(seriesMark(e.series), places(someOf(d.lines[e.series])))
	}
	switch {
	case minor == 1:
		f.Note = "Thin line: the other method."
	case minor > 1:
		f.Note = fmt.Sprintf("Thin lines: the %d other methods.", minor)
	}
	return f.finish()
}

// riskPoints returns the points to draw.
func riskPoints(curve []calibrate.RiskPoint) []seriesPoint {
	var points []seriesPoint
	for _, p := range curve {
		if p.Coverage >= minCoverage && p.Coverage <= 1 && plottable(p.Risk) {
			points = append(points, seriesPoint{plotter.XY{X: p.Coverage, Y: p.Risk}, math.NaN(), math.NaN()})
		}
	}
	return thinned(points)
}
