package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate"
)

// confidenceFloor is the smallest 1 − confidence that the axis shows; what is
// surer stands at its end.
const confidenceFloor = 1e-5

// A gap is a bin of a reliability diagram as the SWAG paper draws it (Maddox et
// al. 2019, section 5.2): confidence − accuracy over confidence, with the ends of
// its interval.
type gap struct {
	confidence, value, lower, upper float64
	count                           int
}

func gapsOf(bins []calibrate.ReliabilityBin) []gap {
	var gaps []gap
	for _, b := range bins {
		if b.Count < 1 || !plottable(b.Confidence) || !plottable(b.Accuracy) {
			continue
		}
		in := calibrate.Wilson(b.Accuracy, b.Count)
		gaps = append(gaps, gap{b.Confidence, b.Confidence - b.Accuracy, b.Confidence - in.High, b.Confidence - in.Low, b.Count})
	}
	return gaps
}

// reliabilityFigures are all methods in one, those that are close to each other
// once more on a scale of their own, then each with its intervals and the others
// faint behind it.
func (r *Report) reliabilityFigures() []figure {
	var d diagram
	var reach []float64
	for _, m := range r.Methods {
		gaps := gapsOf(m.Reliability)
		if len(gaps) == 0 {
			continue
		}
		d.names, d.gaps = append(d.names, m.Name), append(d.gaps, gaps)
		far := 0.0
		for _, g := range gaps {
			far = max(far, math.Abs(g.value))
		}
		reach = append(reach, far)
	}
	if len(d.names) == 0 {
		return nil
	}
	all := closeOf(reach, math.Inf(1))
	near := closeOf(reach, farOff)
	var figures []figure
	if len(all) > 1 {
		figures = append(figures, figure{name: "reliability", drawing: d.together("Reliability of all methods", all)})
		if len(near) < len(all) {
			title := fmt.Sprintf("Reliability, close-up of %d methods", len(near))
			figures = append(figures, figure{name: "reliability-close", drawing: d.together(title, near)})
		}
	}
	for _, i := range all {
		f := figure{name: fileName("reliability", d.names[i]), small: len(all) > 1}
		if slices.Contains(near, i) {
			f.drawing = d.of(i, near)
		} else {
			f.drawing, f.note = d.of(i, all), "On a wider scale than the others."
		}
		figures = append(figures, f)
	}
	return figures
}

// farOff is how many times the median a method reaches that is not shown in a
// close-up.
const farOff = 3

// closeOf returns which of the values are at most factor times their median.
func closeOf(values []float64, factor float64) []int {
	sorted := slices.Sorted(slices.Values(values))
	var which []int
	for i, v := range values {
		if v <= factor*sorted[(len(sorted)-1)/2] || math.IsInf(factor, 1) {
			which = append(which, i)
		}
	}
	return which
}

// A diagram holds the gaps of each method, which keeps its colour and mark in all
// figures.
type diagram struct {
	names []string
	gaps  [][]gap
}

// together draws some methods in one figure.
func (d *diagram) together(title string, which []int) *drawing {
	x, y := d.axes(which, false)
	c := newChart(title, fmt.Sprintf("Confidence minus accuracy over confidence, for %d methods.", len(which)), chartWidth, chartHeight, x, y)
	c.reliabilityGround()
	for _, i := range which {
		c.gaps(seriesPen(i), d.gaps[i])
	}
	for _, i := range which {
		c.gapMarkers(i, d.names[i], d.gaps[i])
		c.seriesKey(i, d.names[i])
	}
	c.legend()
	return &c.drawing
}

// of draws one method, and faintly those with which it shares its axes.
func (d *diagram) of(i int, which []int) *drawing {
	x, y := d.axes(which, true)
	width, height := smallWidth, smallHeight
	if len(d.names) == 1 {
		width, height = chartWidth, chartHeight
	}
	worst := gap{}
	for _, g := range d.gaps[i] {
		if math.Abs(g.value) >= math.Abs(worst.value) {
			worst = g
		}
	}
	desc := fmt.Sprintf("%d groups of predictions. The widest gap between confidence and accuracy is %s at confidence %s.",
		len(d.gaps[i]), Signed(worst.value, 3), Fixed(worst.confidence, 3))
	c := newChart("Reliability: "+d.names[i], desc, width, height, x, y)
	for _, j := range which {
		if j != i {
			c.gaps(pen{colour: colourLine, stroke: 1.2}, d.gaps[j])
		}
	}
	c.reliabilityGround()
	in := seriesPen(i)
	c.gaps(in, d.gaps[i])
	in.stroke = 1.2
	for _, g := range d.gaps[i] {
		c.bar(in, g.confidence, g.lower, g.upper)
	}
	c.gapMarkers(i, d.names[i], d.gaps[i])
	return &c.drawing
}

// axes hold all of some methods, so that their figures compare.
func (d *diagram) axes(which []int, intervals bool) (x, y axis) {
	least, closest := 1.0, math.Inf(1)
	var values []float64
	for _, i := range which {
		for _, g := range d.gaps[i] {
			least = min(least, g.confidence)
			if rest := 1 - g.confidence; rest > 0 {
				closest = min(closest, max(rest, confidenceFloor))
			}
			values = append(values, g.value)
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
func (c *chart) reliabilityGround() {
	c.rule(0)
	if c.y.max > 0 {
		c.text(colourSoft, label{at: at{c.x1 - 2, c.y0 + smallText + 2}, text: "too confident", anchor: 1, size: smallText, halo: true})
	}
	if c.y1-c.y.pos(0) > 3*smallText {
		c.text(colourSoft, label{at: at{c.x1 - 2, c.y1 - 5}, text: "too cautious", anchor: 1, size: smallText, halo: true})
	}
}

func (c *chart) gaps(in pen, gaps []gap) {
	points := make([]point, len(gaps))
	for i, g := range gaps {
		points[i] = point{g.confidence, g.value}
	}
	c.curve(in, points)
}

func (c *chart) gapMarkers(i int, name string, gaps []gap) {
	for _, g := range gaps {
		c.marker(i, c.place(g.confidence, g.value), markerSize, fmt.Sprintf("%s: confidence %s, accuracy %s, %s images",
			name, Fixed(g.confidence, 4), Fixed(g.confidence-g.value, 4), Thousands(g.count)))
	}
}
