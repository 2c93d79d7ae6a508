package report

import (
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// Sizes in a drawing.
const (
	chartWidth  = 420.0
	chartHeight = 250.0 // of the part within the axes
	smallWidth  = 300.0
	smallHeight = 170.0
	textSize    = 12.0
	smallText   = 11.0
	edge        = 6.0 // between the drawing's content and its border
	legendRow   = 18.0
	legendKey   = 26.0 // width of the sample of a line
)

// widest is how much wider than the built-in font the reader's may be: DejaVu Sans
// is.
const widest = 1.13

// textWidth is about the width of s in a sans-serif face, rather too much than too
// little.
func textWidth(s string, size float64) float64 {
	regular, _ := fonts()
	var buffer sfnt.Buffer
	var sum fixed.Int26_6
	for i, r := range s {
		if i > longText {
			break
		}
		glyph, _ := regular.GlyphIndex(&buffer, r) // 0, a box, for what it lacks
		advance, _ := regular.GlyphAdvance(&buffer, glyph, fixed.I(100), font.HintingNone)
		sum += advance
	}
	return float64(sum) / 64 / 100 * size * widest
}

// A chart is a drawing with two axes.
type chart struct {
	drawing
	x, y    axis
	x0, x1  float64 // left and right end of the part within the axes
	y0, y1  float64 // upper and lower end
	bottom  float64 // where the legend may begin
	entries []entry
}

// An entry of the legend.
type entry struct {
	name   string
	sample func(d *drawing, x0, x1, y float64)
}

// newChart draws the axes. The chart is width wide and, without its legend, as
// high as its content of the given height needs.
func newChart(title, desc string, width, height float64, x, y axis) *chart {
	c := &chart{drawing: drawing{title: title, desc: desc, width: width}, x: x, y: y}
	c.y0 = edge
	c.y1 = c.y0 + height
	c.y.from, c.y.to = c.y1, c.y0
	yTicks := c.y.ticks(int(height / 38))
	wide := 0.0
	for _, t := range yTicks {
		wide = max(wide, textWidth(t.Label, smallText))
	}
	c.x0 = edge + wide + 6
	if y.label != "" {
		c.x0 += textSize + 6
	}
	c.x1 = width - edge - 8
	c.x.from, c.x.to = c.x0, c.x1
	c.axes(yTicks)
	c.height = c.bottom + edge
	return c
}

// axes draws the grid, ticks and labels.
func (c *chart) axes(yTicks []Tick) {
	grid := pen{colour: colourLine, stroke: 1}
	for _, t := range yTicks {
		y := c.y.pos(t.At)
		c.line(grid, at{c.x0, y}, at{c.x1, y})
		c.text(colourSoft, label{at: at{c.x0 - 5, y + smallText*0.35}, text: t.Label, anchor: 1, size: smallText})
	}
	axisLine := pen{colour: colourSoft, stroke: 1}
	c.line(axisLine, at{c.x0, c.y1}, at{c.x1, c.y1})
	free := math.Inf(-1)
	for _, t := range c.x.ticks(int((c.x1 - c.x0) / 52)) {
		x := c.x.pos(t.At)
		c.line(axisLine, at{x, c.y1}, at{x, c.y1 + 4})
		// Labels are kept within the drawing, and apart.
		text := fitted(t.Label, (c.x1-c.x0)/3, smallText)
		half := textWidth(text, smallText) / 2
		middle := min(max(x, half+2), c.width-half-2)
		if middle-half < free {
			continue
		}
		free = middle + half + 4
		c.text(colourSoft, label{at: at{middle, c.y1 + 6 + smallText}, text: text, anchor: 0.5, size: smallText})
	}
	c.bottom = c.y1 + 6 + smallText + 4
	if c.x.label != "" {
		c.below(c.x.label)
	}
	if c.y.label != "" {
		text := fitted(c.y.label, c.y1-c.y0+2*edge, textSize)
		half := textWidth(text, textSize) / 2
		middle := max((c.y0+c.y1)/2, half+2)
		c.text(colourInk, label{at: at{edge + textSize*0.75, middle}, text: text, anchor: 0.5, size: textSize, vertical: true})
	}
}

// below writes what the figure shows below it, in the middle of the axis if it has
// the room.
func (c *chart) below(text string) {
	for _, line := range wrapTo(text, c.width-2*edge, textSize) {
		c.bottom += textSize + 3
		half := textWidth(line, textSize) / 2
		middle := min(max((c.x0+c.x1)/2, edge+half), c.width-edge-half)
		c.text(colourInk, label{at: at{middle, c.bottom}, text: line, anchor: 0.5, size: textSize})
	}
	c.bottom += 5
}

// fitted shortens a text to a width.
func fitted(text string, width, size float64) string {
	return shortenMiddle(cleanText(text), func(s string) bool { return textWidth(s, size) <= width })
}

// wrapTo breaks a text into lines of a width.
func wrapTo(text string, width, size float64) []string {
	perRune := textWidth("abcdefghijklmnopqrstuvwxyz", size) / 26
	lines := Wrap(cleanText(text), int(width/perRune))
	for i, line := range lines {
		lines[i] = fitted(line, width, size)
	}
	return lines
}

// A point is one in the units of the axes.
type point struct{ X, Y float64 }

// place is where a point lies.
func (c *chart) place(x, y float64) at { return at{c.x.pos(x), c.y.pos(y)} }

// curve draws a line through points, broken where one is not finite.
func (c *chart) curve(in pen, points []point) {
	var run []at
	for i, p := range points {
		ok := plottable(p.X) && plottable(p.Y)
		if ok {
			run = append(run, c.place(p.X, p.Y))
		}
		if !ok || i == len(points)-1 {
			c.line(in, run...)
			run = nil
		}
	}
}

// rule is a horizontal line across the chart that means something.
func (c *chart) rule(y float64) {
	if c.y.min <= y && y <= c.y.max {
		c.line(pen{colour: colourInk, stroke: 1.2}, at{c.x0, c.y.pos(y)}, at{c.x1, c.y.pos(y)})
	}
}

// bar draws the ends of an interval at x, if they are finite.
func (c *chart) bar(in pen, x, lower, upper float64) {
	if !plottable(x) || !plottable(lower) || !plottable(upper) {
		return
	}
	in.dash = unbroken
	p, q := c.place(x, lower), c.place(x, upper)
	c.line(in, p, q)
	const cap = 2.5
	for _, e := range []at{p, q} {
		c.line(in, at{e.x - cap, e.y}, at{e.x + cap, e.y})
	}
}

// key adds an entry to the legend.
func (c *chart) key(name string, sample func(d *drawing, x0, x1, y float64)) {
	c.entries = append(c.entries, entry{name, sample})
}

// seriesKey adds the i-th series to the legend.
func (c *chart) seriesKey(i int, name string) {
	c.key(name, func(d *drawing, x0, x1, y float64) {
		d.line(seriesPen(i), at{x0, y}, at{x1, y})
		d.marker(i, at{(x0 + x1) / 2, y}, 4, "")
	})
}

// legend draws the entries below the chart, in one row or else in columns, and
// sets the height.
func (c *chart) legend() {
	c.height = c.bottom + edge
	if len(c.entries) == 0 {
		return
	}
	room := c.width - 2*edge
	const gap = 16
	wide, sum := 0.0, -float64(gap)
	names := make([]string, len(c.entries))
	widths := make([]float64, len(c.entries))
	for i, e := range c.entries {
		names[i] = fitted(e.name, room-legendKey-6, textSize)
		widths[i] = legendKey + 6 + textWidth(names[i], textSize) + gap
		wide, sum = max(wide, widths[i]), sum+widths[i]
	}
	columns := max(1, min(len(c.entries), int((room+gap)/wide)))
	rows := (len(c.entries) + columns - 1) / columns
	if sum <= room { // one after the other
		rows = 1
	}
	top := c.bottom + 6
	x := edge
	for i, e := range c.entries {
		if rows > 1 {
			x = edge + float64(i/rows)*wide
		}
		y := top + (float64(i%rows)+0.5)*legendRow
		e.sample(&c.drawing, x, x+legendKey, y)
		c.text(colourInk, label{at: at{x + legendKey + 6, y + textSize*0.35}, text: names[i], size: textSize})
		x += widths[i]
	}
	c.bottom = top + float64(rows)*legendRow
	c.height = c.bottom + edge
}
