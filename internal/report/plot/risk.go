package plot

import (
	"fmt"
	"math"

	"gonum.org/v1/plot/plotter"

	"github.com/swagwrap/swagwrap/calibrate"
)

const (
	// maxRiskPoints is how many points of a curve are drawn: more than a screen
	// shows.
	maxRiskPoints = 200
	// minCoverage is where curves begin. Left of it a single error is a cliff.
	minCoverage = 0.05
)

// DrawRisk returns the risk–coverage curves of all methods (Geifman and El-Yaniv
// 2017), and once more those that are close to each other.
func DrawRisk(methods []Method) []*Figure {
	var names []string
	var curves []plotter.XYs
	var reach []float64
	for _, m := range methods {
		if points := riskPoints(m.RiskCoverage); len(points) > 0 {
			names, curves, reach = append(names, m.Name), append(curves, points), append(reach, points[len(points)-1].Y)
		}
	}
	if len(names) == 0 {
		return nil
	}
	all, near := closeOf(reach, math.Inf(1)), closeOf(reach, farOff)
	figures := []*Figure{drawRisk("risk-coverage", "Risk over coverage", names, curves, all)}
	if len(near) < len(all) {
		figures = append(figures, drawRisk("risk-coverage-close", fmt.Sprintf("Risk over coverage, close-up of %d methods", len(near)), names, curves, near))
	}
	return figures
}

func drawRisk(name, title string, names []string, curves []plotter.XYs, which []int) *Figure {
	var values []float64
	for _, i := range which {
		for _, p := range curves[i] {
			values = append(values, p.Y)
		}
	}
	x := axis{label: "coverage: share of images kept", max: 1, percent: true}
	y := spanAxis("risk: share of errors among them", true, values).padded(0.05)
	y.percent = true
	f := newFigure(title, "The share of errors among the most confident predictions, over the share of images kept.", chartWidth, chartHeight, x, y)
	f.Name = name
	for _, i := range which {
		f.curve(seriesPen(i), curves[i])
		f.marks(seriesMark(i), someOf(curves[i]))
		f.seriesKey(i, names[i])
	}
	return f.finish()
}

// riskPoints are those to draw, at most maxRiskPoints, the first and the last
// among them.
func riskPoints(curve []calibrate.RiskPoint) plotter.XYs {
	var points plotter.XYs
	for _, p := range curve {
		if p.Coverage >= minCoverage && p.Coverage <= 1 && plottable(p.Risk) {
			points = append(points, plotter.XY{X: p.Coverage, Y: p.Risk})
		}
	}
	if len(points) <= maxRiskPoints {
		return points
	}
	out := make(plotter.XYs, maxRiskPoints)
	for i := range out {
		out[i] = points[i*(len(points)-1)/(maxRiskPoints-1)]
	}
	return out
}
