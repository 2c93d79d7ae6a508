package plot

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot/plotter"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/chance"
)

const (
	// leastConfidence is the smallest 1 − confidence on the axis. Higher confidences are drawn at its end.
	leastConfidence = 1e-5
	// panelHeight is the height of a panel within the axes, and stripShare the part of it for the counts at the bottom.
	panelHeight, stripShare = 190.0, 0.16
)

// A panel is the reliability diagram of one method, as the SWAG paper draws it.
type panel struct {
	*Method
	number int // number of the method, which decides its colour
	bins   []calibrate.ReliabilityBin
	reach  float64 // largest distance from zero
}

// DrawReliability returns a panel for each method. They share their axes so that readers can compare them, except for
// methods far from the others.
func DrawReliability(methods []Method) (figures []*Figure) {
	for _, minor := range []bool{false, true} {
		var all, near []panel
		var reach []float64
		for i := range methods {
			p := panel{Method: &methods[i], number: i, bins: drawableBins(methods[i].Reliability)}
			if p.Minor != minor || len(p.bins) == 0 {
				continue
			}
			for _, g := range gapsOf(p.bins) {
				p.reach = max(p.reach, math.Abs(g.Y))
			}
			all, reach = append(all, p), append(reach, p.reach)
		}
		for _, p := range all {
			if p.reach <= reachOf(reach, farOff) {
				near = append(near, p)
			}
		}
		for _, p := range all {
			shared, note := near, ""
			if p.reach > reachOf(reach, farOff) {
				shared, note = all, " On a wider scale than the others."
			}
			f := p.draw(shared)
			f.Folded = minor
			f.Note += note
			figures = append(figures, f)
		}
	}
	return figures
}

func drawableBins(bins []calibrate.ReliabilityBin) []calibrate.ReliabilityBin {
	return slices.DeleteFunc(slices.Clone(bins), func(b calibrate.ReliabilityBin) bool {
		return b.Count < 1 || !plottable(b.Confidence) || !plottable(b.Accuracy)
	})
}

// gapsOf returns confidence − accuracy over confidence for each bin (Maddox et al. 2019, section 5.1), with the ends of
// its 95 % interval.
func gapsOf(bins []calibrate.ReliabilityBin) []estimate {
	var gaps []estimate
	for _, b := range bins {
		w := chance.Wilson(b.Accuracy, b.Count)
		gaps = append(gaps, estimate{plotter.XY{X: b.Confidence, Y: b.Confidence - b.Accuracy}, b.Confidence - w.High,
			b.Confidence - w.Low})
	}
	return gaps
}

// pooled merges neighbouring bins whose marks would touch, the nearest first. Many bins lie close to confidence 1.
func pooled(bins []calibrate.ReliabilityBin, x axis, width float64) []calibrate.ReliabilityBin {
	bins = slices.Clone(bins)
	for len(bins) > 1 {
		nearest, least := 0, math.Inf(1)
		for i := range bins[1:] {
			if d := x.at(bins[i+1].Confidence) - x.at(bins[i].Confidence); d < least {
				nearest, least = i, d
			}
		}
		if least*width >= 2*markSize+3 {
			break
		}
		a, b := &bins[nearest], bins[nearest+1]
		part := float64(b.Count) / float64(a.Count+b.Count)
		a.Upper, a.Count = b.Upper, a.Count+b.Count
		a.Confidence += part * (b.Confidence - a.Confidence)
		a.Accuracy += part * (b.Accuracy - a.Accuracy)
		bins = slices.Delete(bins, nearest+1, nearest+2)
	}
	return bins
}

// draw draws the panel with axes that fit all of the given ones.
func (d *panel) draw(shared []panel) *Figure {
	x, y := panelAxes(shared)
	y.named = y.numbers(int(panelHeight / 38))
	low := y.min
	y.min -= (y.max - y.min) * stripShare / (1 - stripShare)
	title := d.Name
	if d.Label != "" {
		title += ": " + d.Label
	}
	f := newFigure(title, "", chartWidth, panelHeight, x, y)
	f.Name = fileName("reliability", d.Name)
	groups := pooled(d.bins, x, f.within(panelHeight).Size().X.Points())
	gaps := gapsOf(groups)
	f.desc = fmt.Sprintf("Confidence minus accuracy over confidence, in %d groups of predictions.", len(gaps))
	above, below, right := "too confident", "too cautious", "it is right"
	if d.OfClass1 {
		f.desc = fmt.Sprintf("Probability of class 1 minus share of class 1, over that probability, in %d groups of predictions.",
			len(gaps))
		above, below, right = "class 1 too probable", "class 1 not probable enough", "it is class 1"
	}
	f.Note = readGaps(d.bins, gaps, right)
	f.curve(pen(ink, 1.2, 0), plotter.XY{X: x.min}, plotter.XY{X: x.max}) // the axis includes zero
	note := style(soft, smallText, false)
	f.write(above, note, plotter.XY{X: 1, Y: 1}, 0)
	if (y.at(0)-y.at(low))*panelHeight > 2*smallText {
		f.write(below, note, plotter.XY{X: 1, Y: y.at(low)}, 4)
	}
	f.counts(groups, d.number)
	f.band(d.number, gaps)
	if len(gaps) == 1 {
		f.bars(d.number, gaps)
	}
	f.curve(seriesPen(d.number), centres(gaps)...)
	f.marks(seriesMark(d.number), centres(gaps)...)
	return f
}

// readGaps describes a panel in words. It names the worst of the drawn groups. It also counts the original bins, on
// which the calibration error is based, that are off by more than their interval.
func readGaps(bins []calibrate.ReliabilityBin, groups []estimate, right string) string {
	off := func(g estimate) bool { return g.lower > 0 || g.upper < 0 }
	note, worst, many := "", estimate{}, 0
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
	return note + fmt.Sprintf("Of %d bins %d lie off by more than their 95 %% interval; chance alone puts %.0f there.", len(bins), many,
		0.05*float64(len(bins)))
}

// share formats a part in per cent, with enough decimals to distinguish it from 100 %.
func share(x float64) string {
	decimals := 0
	for 1-x > 0 && decimals < 5 && fixed(100*x, decimals) == fixed(100, decimals) {
		decimals++
	}
	return fixed(100*x, decimals) + " %"
}

// panelAxes returns axes that fit all of the given panels.
func panelAxes(panels []panel) (x, y axis) {
	least, closest := 1.0, math.Inf(1)
	var values []float64
	for _, p := range panels {
		for _, g := range gapsOf(p.bins) {
			least = min(least, g.X)
			if rest := 1 - g.X; rest > 0 {
				closest = min(closest, max(rest, leastConfidence))
			}
			values = append(values, g.Y, g.lower, g.upper)
		}
	}
	if math.IsInf(closest, 1) { // all saturated
		closest = leastConfidence
	}
	x = axis{label: "confidence", kind: confidence, max: 1 - closest*0.8}
	x.min = max(0, 1-(1-min(least, x.max))*1.15)
	if x.warp(x.max)-x.warp(x.min) < 0.3 {
		x.min, x.max = max(0, 1-(1-x.min)*1.5), 1-(1-x.max)/1.5
	}
	what := "confidence − accuracy"
	if panels[0].OfClass1 {
		x, what = shareAxis("probability of class 1"), "probability − share of class 1"
	}
	y = spanAxis(what, true, values).padded(0.08)
	y.percent = true
	return x, y
}

// counts draws the number of images of each group as a bar at the bottom, and writes the largest number.
func (f *Figure) counts(groups []calibrate.ReliabilityBin, method int) {
	largest := slices.MaxFunc(groups, func(a, b calibrate.ReliabilityBin) int { return a.Count - b.Count })
	const high = stripShare - (smallText+2)/panelHeight
	half := markSize / f.within(panelHeight).Size().X.Points()
	var bars []plotter.XYs
	for _, g := range groups {
		x, top := f.x.at(g.Confidence), high*float64(g.Count)/float64(largest.Count)
		bars = append(bars, plotter.XYs{{X: x - half}, {X: x + half}, {X: x + half, Y: top}, {X: x - half, Y: top}})
	}
	f.add(&plotter.Polygon{XYs: bars, Color: tint{roleOf(method), 0.3}})
	label := fmt.Sprintf("%d predictions", largest.Count)
	if largest.Count == 1 {
		label = "1 prediction"
	}
	f.write(label, style(soft, smallText, false), plotter.XY{X: f.x.at(largest.Confidence), Y: high}, 2)
}
