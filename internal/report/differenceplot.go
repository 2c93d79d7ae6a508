package report

import (
	"fmt"
	"math"
	"slices"
)

// beyond is how many times the median distance from zero the axis reaches: one
// method that is far off must not press the others together.
const beyond = 8

const differenceRow = 24.0

func (r *Report) differenceFigures() []figure {
	var figures []figure
	for i := range r.Differences {
		if d := r.Differences[i].draw(); d != nil {
			figures = append(figures, figure{name: fileName("difference", r.Differences[i].Title), drawing: d, note: r.Differences[i].Note})
		}
	}
	return figures
}

// A verdict is what an interval says.
type verdict int

const (
	open verdict = iota // it holds zero, or there is none
	better
	worse
)

func (d *Difference) verdict() verdict {
	switch {
	case d.Upper < 0:
		return better
	case d.Lower > 0:
		return worse
	}
	return open
}

func (v verdict) colour() colour {
	return [...]colour{open: colourSoft, better: colourSeries + 2, worse: colourSeries + 1}[v]
}

// verdictMarker is a disc, a square or, where nothing is known, a ring.
func (d *drawing) verdictMarker(v verdict, p at, tip string) {
	s := d.area(pen{colour: v.colour(), fill: 1, stroke: 1.6}, markerShape([...]int{open: 0, better: 0, worse: 1}[v], p, 4.2)...)
	s.paper, s.tip = v == open, tip
}

// draw returns nil if no value is finite.
func (ds *Differences) draw() *drawing {
	var rows []Difference
	for _, row := range ds.Rows {
		if plottable(row.Value) {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	names := 0.0
	for _, row := range rows {
		names = max(names, textWidth(cleanText(row.Name), textSize))
	}
	names = min(names, 0.4*chartWidth)
	c := &chart{drawing: drawing{title: ds.Title, desc: ds.describe(rows), width: chartWidth}, x: ds.axis(rows)}
	c.x0, c.x1 = edge+names+12, chartWidth-edge-8
	c.y0, c.y1 = edge, edge+float64(len(rows))*differenceRow+6
	c.x.from, c.x.to = c.x0, c.x1
	c.y = axis{max: 1, from: c.y1, to: c.y0}
	zero := c.x.pos(0)
	for _, t := range c.x.ticks(int((c.x1 - c.x0) / 52)) {
		c.line(pen{colour: colourLine, stroke: 1}, at{c.x.pos(t.At), c.y0}, at{c.x.pos(t.At), c.y1})
	}
	c.line(pen{colour: colourInk, stroke: 1.2}, at{zero, c.y0}, at{zero, c.y1})
	c.axes(nil)
	for i := range rows {
		c.difference(&rows[i], names, c.y0+3+(float64(i)+0.5)*differenceRow)
	}
	c.verdictKeys(rows, ds.Baseline)
	return &c.drawing
}

// axis holds zero and all rows but those far beyond the others.
func (ds *Differences) axis(rows []Difference) axis {
	var reach, ends []float64
	for _, row := range rows {
		far := math.Abs(row.Value)
		for _, e := range []float64{row.Lower, row.Upper} {
			if plottable(e) {
				far = max(far, math.Abs(e))
			}
		}
		reach = append(reach, far)
	}
	sorted := slices.Sorted(slices.Values(reach))
	limit := beyond * sorted[(len(sorted)-1)/2]
	for i, row := range rows {
		if reach[i] <= limit {
			ends = append(ends, row.Value, row.Lower, row.Upper)
		}
	}
	return spanAxis(ds.Label, true, ends).padded(0.08)
}

// difference draws a row: its name, its interval and its value, or an arrow if
// that is beyond the axis.
func (c *chart) difference(row *Difference, names, y float64) {
	name := fitted(row.Name, names, textSize)
	c.text(colourInk, label{at: at{edge + names, y + textSize*0.35}, text: name, anchor: 1, size: textSize})
	in := pen{colour: row.verdict().colour(), stroke: 2}
	tip := row.Name + ": " + Signed(row.Value, 4)
	if plottable(row.Lower) && plottable(row.Upper) {
		tip += " " + Interval(row.Lower, row.Upper, 4)
	}
	if row.Value < c.x.min || row.Value > c.x.max {
		end, back, anchor := c.x1, -7.0, 1.0
		if row.Value < c.x.min {
			end, back, anchor = c.x0, 7.0, 0.0
		}
		c.area(pen{colour: in.colour, fill: 1}, at{end, y}, at{end + back, y - 4.5}, at{end + back, y + 4.5}).tip = tip
		c.text(colourInk, label{at: at{end + back*1.7, y + textSize*0.35}, text: Signed(row.Value, 2), anchor: anchor, size: smallText, halo: true})
		return
	}
	if plottable(row.Lower) && plottable(row.Upper) {
		lo, hi := c.x.pos(row.Lower), c.x.pos(row.Upper)
		c.line(in, at{lo, y}, at{hi, y})
		for _, x := range []float64{lo, hi} {
			c.line(in, at{x, y - 4}, at{x, y + 4})
		}
	}
	c.verdictMarker(row.verdict(), at{c.x.pos(row.Value), y}, tip)
}

// verdictKeys explains the marks that occur.
func (c *chart) verdictKeys(rows []Difference, baseline string) {
	for _, v := range []struct {
		verdict
		name string
	}{{better, "better than " + baseline}, {worse, "worse than " + baseline}, {open, "not told apart"}} {
		if slices.ContainsFunc(rows, func(d Difference) bool { return d.verdict() == v.verdict }) {
			c.key(v.name, func(d *drawing, x0, x1, y float64) {
				d.line(pen{colour: v.colour(), stroke: 2}, at{x0, y}, at{x1, y})
				d.verdictMarker(v.verdict, at{(x0 + x1) / 2, y}, "")
			})
		}
	}
	c.legend()
}

func (ds *Differences) describe(rows []Difference) string {
	desc := ds.Label + "."
	for _, row := range rows {
		desc += fmt.Sprintf(" %s: %s", row.Name, Signed(row.Value, 4))
		if plottable(row.Lower) && plottable(row.Upper) {
			desc += " " + Interval(row.Lower, row.Upper, 4)
		}
		desc += "."
	}
	return desc
}
