package plot

import (
	"fmt"
	"math"

	"gonum.org/v1/plot/plotter"

	"github.com/swagwrap/swagwrap/calibrate"
)

// DrawOperating returns the receiver operating characteristics and the precision–recall curves of all methods that
// use a threshold. Each has a mark at its threshold.
func DrawOperating(methods []Method) []*Figure {
	var roc, pr diagram
	var marks [2][]plotter.XY
	share := 0.0 // of class 1
	for _, m := range methods {
		if len(m.Points) == 0 {
			continue
		}
		d := m.Decided
		share = float64(d.TruePositives+d.FalseNegatives) / float64(d.TruePositives+d.FalseNegatives+d.TrueNegatives+d.FalsePositives)
		roc.add(&m, rocPoints(m.Points), 0)
		pr.add(&m, recallPoints(m.Points), 0)
		marks[0] = append(marks[0], plotter.XY{X: 1 - d.Specificity(), Y: d.Sensitivity()})
		marks[1] = append(marks[1], plotter.XY{X: d.Sensitivity(), Y: d.Precision()})
	}
	if len(roc.lines) == 0 {
		return nil
	}
	x := axis{label: "1 − specificity: share of class 0 taken for class 1", max: 1, percent: true}
	y := axis{label: "sensitivity: share of class 1 found", max: 1, percent: true}
	first := roc.operating("Receiver operating characteristic", "The share of class 1 that is found over the share of class 0 that is taken for it, at every threshold.",
		x, y, plotter.XYs{{X: 0, Y: 0}, {X: 1, Y: 1}}, marks[0])
	first.Name = "roc"
	x = axis{label: "recall: share of class 1 found", max: 1, percent: true}
	y = axis{label: "precision: share of finds that are class 1", max: 1, percent: true}
	second := pr.operating("Precision and recall", "The share of class 1 among what is taken for it, over the share of class 1 that is found, at every threshold.",
		x, y, plotter.XYs{{X: 0, Y: share}, {X: 1, Y: share}}, marks[1])
	second.Name = "precision-recall"
	return []*Figure{first, second}
}

// operating draws the lines of all methods, over the line of a random score.
func (d *diagram) operating(title, desc string, x, y axis, guessing plotter.XYs, marks []plotter.XY) *Figure {
	f := newFigure(title, desc, chartWidth, chartHeight, x, y)
	f.curve(pen(soft, 0.8, 1), guessing)
	all := append(d.of(true), d.of(false)...) // major methods on top
	minor := 0
	for _, i := range all {
		in := seriesPen(i)
		if d.minor[i] {
			in = pen(soft, 0.9, 0)
			minor++
		} else {
			f.seriesKey(i, d.names[i])
		}
		f.curve(in, places(d.lines[i]))
	}
	for _, i := range d.of(false) {
		if at := marks[i]; plottable(at.X) && plottable(at.Y) { // precision may be undefined
			f.marks(seriesMark(i), plotter.XYs{at})
		}
	}
	f.Note = "Marks stand at the thresholds of the tables; the dashed line is a score that tells nothing."
	switch {
	case minor == 1:
		f.Note += " Thin line: the other method."
	case minor > 1:
		f.Note += fmt.Sprintf(" Thin lines: the %d other methods.", minor)
	}
	return f.finish()
}

func bare(x, y float64) seriesPoint {
	return seriesPoint{plotter.XY{X: x, Y: y}, math.NaN(), math.NaN()}
}

// rocPoints returns the curve, which begins at the threshold that detects nothing.
func rocPoints(points []calibrate.OperatingPoint) []seriesPoint {
	out := []seriesPoint{bare(0, 0)}
	for _, p := range points {
		out = append(out, bare(1-p.Specificity(), p.Sensitivity()))
	}
	return thinned(bends(out))
}

// recallPoints returns steps whose area is the average precision.
func recallPoints(points []calibrate.OperatingPoint) []seriesPoint {
	var out []seriesPoint
	recall := 0.0
	for _, p := range points {
		if r := p.Sensitivity(); r > recall { // at equal recall, precision only falls
			out = append(out, bare(recall, p.Precision()), bare(r, p.Precision()))
			recall = r
		}
	}
	return thinned(out)
}

// bends removes points within vertical or horizontal lines.
func bends(points []seriesPoint) []seriesPoint {
	var out []seriesPoint
	for i, p := range points {
		if i > 0 && i+1 < len(points) {
			before, after := points[i-1], points[i+1]
			if before.X == p.X && p.X == after.X || before.Y == p.Y && p.Y == after.Y {
				continue
			}
		}
		out = append(out, p)
	}
	return out
}

// thinned returns at most maxRiskPoints points, with the first and the last.
func thinned(points []seriesPoint) []seriesPoint {
	if len(points) <= maxRiskPoints {
		return points
	}
	out := make([]seriesPoint, maxRiskPoints)
	for i := range out {
		out[i] = points[i*(len(points)-1)/(maxRiskPoints-1)]
	}
	return out
}
