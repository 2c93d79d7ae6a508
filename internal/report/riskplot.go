package report

import (
	"fmt"
	"math"

	"github.com/swagwrap/swagwrap/calibrate"
)

const (
	// maxRiskPoints is how many points of a curve are drawn: more than a screen
	// shows.
	maxRiskPoints = 200
	// minCoverage is where curves begin. Left of it a single error is a cliff.
	minCoverage = 0.05
)

// riskFigures is the risk–coverage curve of all methods (Geifman and El-Yaniv
// 2017), and once more of those that are close to each other.
func (r *Report) riskFigures() []figure {
	var names []string
	var curves [][]point
	var reach []float64
	for _, m := range r.Methods {
		points := riskPoints(m.RiskCoverage)
		if len(points) == 0 {
			continue
		}
		names, curves = append(names, m.Name), append(curves, points)
		reach = append(reach, points[len(points)-1].Y)
	}
	if len(names) == 0 {
		return nil
	}
	all, near := closeOf(reach, math.Inf(1)), closeOf(reach, farOff)
	figures := []figure{{name: "risk-coverage", drawing: riskDrawing("Risk over coverage", names, curves, all)}}
	if len(near) < len(all) {
		title := fmt.Sprintf("Risk over coverage, close-up of %d methods", len(near))
		figures = append(figures, figure{name: "risk-coverage-close", drawing: riskDrawing(title, names, curves, near)})
	}
	return figures
}

func riskDrawing(title string, names []string, curves [][]point, which []int) *drawing {
	var values []float64
	for _, i := range which {
		for _, p := range curves[i] {
			values = append(values, p.Y)
		}
	}
	x := axis{label: "coverage: share of images kept", max: 1, percent: true}
	y := spanAxis("risk: share of errors among them", true, values).padded(0.05)
	y.percent = true
	desc := "The share of errors among the most confident predictions, over the share of images kept."
	c := newChart(title, desc, chartWidth, chartHeight, x, y)
	for _, i := range which {
		c.curve(seriesPen(i), curves[i])
		c.riskMarkers(i, names[i], curves[i])
		c.seriesKey(i, names[i])
	}
	c.legend()
	return &c.drawing
}

// riskPoints are those to draw.
func riskPoints(curve []calibrate.RiskPoint) []point {
	var points []point
	for _, p := range curve {
		if p.Coverage >= minCoverage && p.Coverage <= 1 && plottable(p.Risk) {
			points = append(points, point{p.Coverage, p.Risk})
		}
	}
	return thin(points, maxRiskPoints)
}

// thin keeps at most n points, the first and the last among them.
func thin(points []point, n int) []point {
	if len(points) <= n {
		return points
	}
	out := make([]point, n)
	for i := range out {
		out[i] = points[i*(len(points)-1)/(n-1)]
	}
	return out
}

// riskMarkers marks a few points of a curve, so that it is known by more than its
// colour.
func (c *chart) riskMarkers(i int, name string, points []point) {
	last := len(points) - 1
	for _, k := range []int{last / 4, last / 2, last * 3 / 4, last} {
		p := points[k]
		tip := fmt.Sprintf("%s: risk %s at coverage %s", name, Percent(p.Y, 2), Percent(p.X, 0))
		c.marker(i, c.place(p.X, p.Y), markerSize, tip)
	}
}
