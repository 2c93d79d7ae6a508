package plot

import (
	"fmt"

	"gonum.org/v1/plot/plotter"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/detect"
)

// Method holds the data for one method's figures. Reliability or RiskCoverage may be empty.
type Method struct {
	Name string
	// Minor methods are less important: their panels are folded, and their lines have no name.
	Minor bool
	// Label is the text of the panel next to the name, such as the calibration error.
	Label string
	// Reliability holds the bins of calibrate.Reliability. If OfClass1 is set, they are bins of the probability of
	// class 1, with the share of class 1 instead of the accuracy.
	Reliability []calibrate.ReliabilityBin
	OfClass1    bool
	// RiskCoverage is the result of calibrate.RiskCoverage.
	RiskCoverage []calibrate.RiskPoint
	// Points is the result of detect.OperatingPoints, and Decided the decisions at the threshold.
	Points  []detect.OperatingPoint
	Decided detect.Decisions
}

const (
	// maxLinePoints is the number of points of a line that are drawn. It is more than a screen can show.
	maxLinePoints = 200
	// minCoverage is the start of risk–coverage curves. At lower coverage a single error makes a cliff.
	minCoverage = 0.05
)

// A methodLine is the line of one method, with some marks.
type methodLine struct {
	number        int // number of the method, which decides its colour and mark
	name          string
	minor         bool
	points, marks plotter.XYs
}

// DrawRisk returns the risk–coverage curves of all methods (Geifman and El-Yaniv 2017), and a close-up of those that
// are close to each other.
func DrawRisk(methods []Method) []*Figure {
	var lines, near []methodLine
	var total []float64
	for i, m := range methods {
		if points := riskPoints(m.RiskCoverage); len(points) > 0 {
			lines = append(lines, methodLine{i, m.Name, m.Minor, points, someOf(points)})
			total = append(total, points[len(points)-1].Y)
		}
	}
	if len(lines) == 0 {
		return nil
	}
	for i, l := range lines {
		if total[i] <= reachOf(total, 3) {
			near = append(near, l)
		}
	}
	figures := []*Figure{drawRisks("Risk over coverage", lines)}
	if len(near) < len(lines) {
		figures = append(figures, drawRisks(fmt.Sprintf("Risk over coverage, close-up of %d methods", len(near)), near))
		figures[1].Name += "-close"
	}
	return figures
}

func drawRisks(title string, lines []methodLine) *Figure {
	var values []float64
	for _, l := range lines {
		for _, p := range l.points {
			values = append(values, p.Y)
		}
	}
	y := spanAxis("risk: share of errors among them", true, values).padded(0.05)
	y.percent = true
	f := newFigure(title, "The share of errors among the most confident predictions, over the share of examples kept.", chartWidth,
		chartHeight, shareAxis("coverage: share of examples kept"), y)
	f.Name = "risk-coverage"
	f.methodLines(lines)
	return f
}

// shareAxis returns an axis from 0 to 100 %.
func shareAxis(label string) axis { return axis{label: label, max: 1, percent: true} }

func riskPoints(curve []calibrate.RiskPoint) (points plotter.XYs) {
	for _, p := range curve {
		if p.Coverage >= minCoverage && p.Coverage <= 1 && plottable(p.Risk) {
			points = append(points, plotter.XY{X: p.Coverage, Y: p.Risk})
		}
	}
	return thinned(points)
}

// DrawOperating returns the receiver operating characteristics and the precision–recall curves of all methods that
// use a threshold. Each has a mark at its threshold.
func DrawOperating(methods []Method) []*Figure {
	var roc, pr []methodLine
	share := 0.0 // the share of class 1
	for i, m := range methods {
		if len(m.Points) == 0 {
			continue
		}
		d := m.Decided
		share = float64(d.TruePositives+d.FalseNegatives) / float64(d.TruePositives+d.FalseNegatives+d.TrueNegatives+d.FalsePositives)
		roc = append(roc, methodLine{i, m.Name, m.Minor, rocPoints(m.Points), plotter.XYs{{X: 1 - d.Specificity(), Y: d.Sensitivity()}}})
		pr = append(pr, methodLine{i, m.Name, m.Minor, recallPoints(m.Points), plotter.XYs{{X: d.Sensitivity(), Y: d.Precision()}}})
	}
	if len(roc) == 0 {
		return nil
	}
	first := newFigure("Receiver operating characteristic",
		"The share of class 1 that is found over the share of class 0 that is taken for it, at every threshold.", chartWidth, chartHeight,
		shareAxis("1 − specificity: share of class 0 taken for class 1"), shareAxis("sensitivity: share of class 1 found"))
	first.Name = "roc"
	first.operating(roc, plotter.XY{}, plotter.XY{X: 1, Y: 1})
	second := newFigure("Precision and recall", "Precision over recall of class 1, for each threshold.", chartWidth, chartHeight,
		shareAxis("recall: share of class 1 found"), shareAxis("precision: share of finds that are class 1"))
	second.Name = "precision-recall"
	second.operating(pr, plotter.XY{Y: share}, plotter.XY{X: 1, Y: share})
	return []*Figure{first, second}
}

// operating draws the lines of methods over the line of a random score.
func (f *Figure) operating(lines []methodLine, guessing ...plotter.XY) {
	f.curve(pen(soft, 0.8, 1), guessing...)
	f.Note = "Marks stand at the thresholds of the tables; the dashed line is a score that tells nothing. "
	f.methodLines(lines)
}

// methodLines draws the lines of methods. Minor methods are thin lines without a name, below the others.
func (f *Figure) methodLines(lines []methodLine) {
	minor := 0
	for _, l := range lines {
		if l.minor {
			f.curve(pen(soft, 0.9, 0), l.points...)
			minor++
		}
	}
	for _, l := range lines {
		if !l.minor {
			f.curve(seriesPen(l.number), l.points...)
			f.seriesKey(l.number, l.name)
		}
	}
	for _, l := range lines {
		if !l.minor {
			f.marks(seriesMark(l.number), l.marks...) // precision may be undefined
		}
	}
	switch {
	case minor == 1:
		f.Note += "Thin line: the other method."
	case minor > 1:
		f.Note += fmt.Sprintf("Thin lines: the %d other methods.", minor)
	}
}

// rocPoints returns the curve, which begins at the threshold that detects nothing.
func rocPoints(points []detect.OperatingPoint) plotter.XYs {
	out := plotter.XYs{{}}
	for _, p := range points {
		out = append(out, plotter.XY{X: 1 - p.Specificity(), Y: p.Sensitivity()})
	}
	return thinned(out)
}

// recallPoints returns steps whose area is the average precision.
func recallPoints(points []detect.OperatingPoint) (out plotter.XYs) {
	recall := 0.0
	for _, p := range points {
		if r := p.Sensitivity(); r > recall { // at equal recall, precision only falls
			out = append(out, plotter.XY{X: recall, Y: p.Precision()}, plotter.XY{X: r, Y: p.Precision()})
			recall = r
		}
	}
	return thinned(out)
}

// thinned returns at most maxLinePoints points, with the first and the last.
func thinned(points plotter.XYs) plotter.XYs {
	if len(points) <= maxLinePoints {
		return points
	}
	out := make(plotter.XYs, maxLinePoints)
	for i := range out {
		out[i] = points[i*(len(points)-1)/(maxLinePoints-1)]
	}
	return out
}
