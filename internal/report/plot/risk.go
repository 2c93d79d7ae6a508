package plot

import (
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
	d := diagram{dense: true}
	for _, m := range methods {
		if points := riskPoints(m.RiskCoverage); len(points) > 0 {
			d.add(m.Name, points, points[len(points)-1].Y)
		}
	}
	return d.overview("risk-coverage", "Risk over coverage", "Risk over coverage", func(title string, which []int) *Figure {
		var values []float64
		for _, i := range which {
			for _, p := range d.lines[i] {
				values = append(values, p.Y)
			}
		}
		x := axis{label: "coverage: share of images kept", max: 1, percent: true}
		y := spanAxis("risk: share of errors among them", true, values).padded(0.05)
		y.percent = true
		return newFigure(title, "The share of errors among the most confident predictions, over the share of images kept.", chartWidth, chartHeight, x, y)
	})
}

// riskPoints are those to draw, at most maxRiskPoints, the first and the last
// among them.
func riskPoints(curve []calibrate.RiskPoint) []seriesPoint {
	var points []seriesPoint
	for _, p := range curve {
		if p.Coverage >= minCoverage && p.Coverage <= 1 && plottable(p.Risk) {
			points = append(points, seriesPoint{plotter.XY{X: p.Coverage, Y: p.Risk}, math.NaN(), math.NaN()})
		}
	}
	if len(points) <= maxRiskPoints {
		return points
	}
	out := make([]seriesPoint, maxRiskPoints)
	for i := range out {
		out[i] = points[i*(len(points)-1)/(maxRiskPoints-1)]
	}
	return out
}
