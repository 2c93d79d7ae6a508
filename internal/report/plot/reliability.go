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
	// Points is the result of calibrate.OperatingPoints, and Decided the decisions at the threshold.
	Points  []calibrate.OperatingPoint
	Decided calibrate.Decisions
}

// confidenceFloor is the smallest 1 − confidence on the axis. Higher confidences are drawn at its end.
const confidenceFloor = 1e-5

// panelHeight is the height of a panel within the axes. stripShare is the part of it for the counts at the bottom.
const (
	panelHeight = 190.0
	stripShare  = 0.16
)

// gapOf returns a bin as the SWAG paper draws it (Maddox et al. 2019, section 5.1). It is confidence − accuracy over
// confidence, with the ends of its 95 % interval.
func gapOf(b calibrate.ReliabilityBin) seriesPoint {
	w := calibrate.Wilson(b.Accuracy, b.Count)
	return seriesPoint{plotter.XY{X: b.Confidence, Y: b.Confidence - b.Accuracy}, b.Confidence - w.High, b.Confidence - w.Low}
}

func gapsOf(bins []calibrate.ReliabilityBin) []seriesPoint {
	var gaps []seriesPoint
	for _, b := range bins {
		gaps = append(gaps, gapOf(b))
	}
	return gaps
}

// filled returns the bins that can be drawn.
func filled(bins []calibrate.ReliabilityBin) []calibrate.ReliabilityBin {
	return slices.DeleteFunc(slices.Clone(bins), func(b calibrate.ReliabilityBin) bool {
		return b.Count < 1 || !plottable(b.Confidence) || !plottable(b.Accuracy)
	})
}

// pooled merges neighbouring bins that are less than apart from each other on the axis, the nearest first. Many bins
// lie close to confidence 1.
func pooled(bins []calibrate.ReliabilityBin, x *axis, apart float64) []calibrate.ReliabilityBin {
	bins = slices.Clone(bins)
	for len(bins) > 1 {
		nearest, least := 0, math.Inf(1)
		for i := range bins[1:] {
			if d := x.pos(bins[i+1].Confidence) - x.pos(bins[i].Confidence); d < least {
				nearest, least = i, d
			}
		}
		if least >= apart {
			break
		}
		a, b := bins[nearest], bins[nearest+1]
		n := a.Count + b.Count
		mean := func(p, q float64) float64 {
			return (float64(a.Count)*p + float64(b.Count)*q) / float64(n)
		}
		bins[nearest] = calibrate.ReliabilityBin{Lower: a.Lower, Upper: b.Upper, Count: n, Confidence: mean(a.Confidence, b.Confidence), Accuracy: mean(a.Accuracy, b.Accuracy)}
		bins = slices.Delete(bins, nearest+1, nearest+2)
	}
	return bins
}

// DrawReliability returns a panel for each method. They share their axes so that readers can compare them, except for
// methods far from the others.
func DrawReliability(methods []Method) []*Figure {
	var d diagram
	var of []Method
	for _, m := range methods {
		all := filled(m.Reliability)
		d.class1 = d.class1 || m.OfClass1
		gaps, far := gapsOf(all), 0.0
		for _, g := range gaps {
			far = max(far, math.Abs(g.Y))
		}
		if d.add(&m, gaps, far) {
			m.Reliability = all
			of = append(of, m)
		}
	}
	var figures []*Figure
	for _, minor := range []bool{false, true} {
		group := d.of(minor)
		near := d.near(group, beyond)
		for _, i := range group {
			which, note := near, ""
			if !slices.Contains(near, i) {
				which, note = group, " On a wider scale than the others."
			}
			f := d.panel(i, which, of[i].Label, of[i].Reliability)
			f.Folded = minor
			f.Note += note
			figures = append(figures, f)
		}
	}
	return figures
}

// panel draws one method with axes that fit the methods in which.
func (d *diagram) panel(i int, which []int, label string, bins []calibrate.ReliabilityBin) *Figure {
	x, y := d.axes(which)
	y.named = y.steps(int(panelHeight / 38))
	low := y.min
	y.min -= (y.max - y.min) * stripShare / (1 - stripShare)
	title := d.names[i]
	if label != "" {
		title += ": " + label
	}
	f := newFigure(title, "", chartWidth, panelHeight, x, y)
	f.Name = fileName("reliability", d.names[i])
	groups := pooled(bins, &f.x, 2*markSize+3)
	gaps := gapsOf(groups)
	f.desc = fmt.Sprintf("Confidence minus accuracy over confidence, in %d groups of predictions.", len(gaps))
	above, below, right := "too confident", "too cautious", "it is right"
	if d.class1 {
		f.desc = fmt.Sprintf("Probability of class 1 minus share of class 1, over that probability, in %d groups of predictions.", len(gaps))
		above, below, right = "class 1 too probable", "class 1 not probable enough", "it is class 1"
	}
	f.Note = readGaps(bins, gaps, right)
	f.reliabilityGround(low, above, below)
	f.counts(groups, seriesRole+role(i%seriesRoles))
	f.band(seriesRole+role(i%seriesRoles), gaps)
	if len(gaps) == 1 {
		f.bars(seriesPen(i).Color, gaps)
	}
	f.curve(seriesPen(i), places(gaps))
	f.marks(seriesMark(i), places(gaps))
	return f.finish()
}

// readGaps describes a panel in words. It names the worst of the drawn groups. It also counts the original bins, on
// which the calibration error is based, that are off by more than their interval.
func readGaps(bins []calibrate.ReliabilityBin, groups []seriesPoint, right string) string {
	off := func(g seriesPoint) bool { return g.lower > 0 || g.upper < 0 }
	note, worst, many := "", seriesPoint{}, 0
	for _, g := range groups {
		if off(g) && math.Abs(g.Y) > math.Abs(worst.Y) {
			worst = g
			note = fmt.Sprintf("Where it says %s, %s in %s. ", share(g.X), right, share(g.X-g.Y))
		}
	}
	for _, g := range gapsOf(bins) {
		if off(g) {
			many++
		}
	}
	return note + fmt.Sprintf("Of %d bins %d lie off by more than their 95 %% interval; chance alone puts %.0f there.", len(bins), many, 0.05*float64(len(bins)))
}

// share formats a part in per cent, with enough decimals to distinguish it from 100 %.
func share(x float64) string {
	decimals := 0
	for 1-x > 0 && decimals < 5 && fixed(100*x, decimals) == fixed(100, decimals) {
		decimals++
	}
	return fixed(100*x, decimals) + " %"
}

// axes returns axes that fit all of the given methods, so that readers can compare their figures.
func (d *diagram) axes(which []int) (x, y axis) {
	least, closest := 1.0, math.Inf(1)
	var values []float64
	for _, i := range which {
		for _, g := range d.lines[i] {
			least = min(least, g.X)
			if rest := 1 - g.X; rest > 0 {
				closest = min(closest, max(rest, confidenceFloor))
			}
			values = append(values, g.Y, g.lower, g.upper)
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
	what := "confidence − accuracy"
	if d.class1 {
		x = axis{label: "probability of class 1", max: 1, percent: true}
		what = "probability − share of class 1"
	}
	y = spanAxis(what, true, values).padded(0.08)
	y.percent = true
	return x, y
}

// reliabilityGround labels the two sides of the zero line. The argument low is the upper end of the strip for the
// counts.
func (f *Figure) reliabilityGround(low float64, above, below string) {
	f.curve(pen(ink, 1.2, 0), plotter.XYs{{X: f.x.min}, {X: f.x.max}}) // the axis includes zero
	f.add(plotFunc(func(c draw.Canvas, p *gonum.Plot) {
		said := style(soft, smallText, false)
		said.XAlign = draw.XRight
		if p.Y.Max > 0 {
			haloed(c, said, vg.Point{X: c.Max.X - 2, Y: c.Max.Y - smallText - 2}, above)
		}
		if bottom := c.Y(p.Y.Norm(low)); c.Y(p.Y.Norm(0))-bottom > 2*smallText {
			haloed(c, said, vg.Point{X: c.Max.X - 2, Y: bottom + 4}, below)
		}
	}))
}

// counts draws the number of images of each group as a bar at the bottom, and writes the largest number.
func (f *Figure) counts(groups []calibrate.ReliabilityBin, of role) {
	largest := slices.MaxFunc(groups, func(a, b calibrate.ReliabilityBin) int { return a.Count - b.Count })
	f.add(plotFunc(func(c draw.Canvas, p *gonum.Plot) {
		high := vg.Length(stripShare*panelHeight - smallText - 2)
		for _, g := range groups {
			x, h := c.X(p.X.Norm(g.Confidence)), high*vg.Length(float64(g.Count)/float64(largest.Count))
			c.SetColor(tint{of, 0.3})
			c.Fill(vg.Rectangle{Min: vg.Point{X: x - markSize, Y: c.Min.Y}, Max: vg.Point{X: x + markSize, Y: c.Min.Y + h}}.Path())
		}
		said, label := style(soft, smallText, false), fmt.Sprintf("%d images", largest.Count)
		if largest.Count == 1 {
			label = "1 image"
		}
		half := said.Width(label) / 2
		x := min(max(c.X(p.X.Norm(largest.Confidence)), c.Min.X+half), c.Max.X-half)
		c.FillText(said, vg.Point{X: x - half, Y: c.Min.Y + high + 2}, label)
	}))
}
