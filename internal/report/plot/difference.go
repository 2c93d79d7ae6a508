package plot

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"
)

// Differences compares methods with a baseline. Each has a point with an interval. Lower is better. Plain rows are
// values of their own: there is no baseline, no zero and no verdict.
type Differences struct {
	Title    string
	Plain    bool
	Label    string // of the axis, with its unit: "NLL − NLL(SWA-Temp), nats"
	Baseline string // the method at zero
	Rows     []Difference
	Note     string
}

// Difference is a method's difference to the baseline, with the ends of its interval. Ends that are NaN are not
// drawn. An Open difference counts as inconclusive even if its interval excludes zero, for example after many
// comparisons.
type Difference struct {
	Name                string
	Value, Lower, Upper float64
	Open                bool
}

// farOff bounds an axis as a multiple of the median distance from zero.
const farOff = 8

const differenceRow = 24.0

// DrawDifferences returns a figure for each comparison that has a finite value.
func DrawDifferences(all []Differences) []*Figure {
	return drawAll(all, (*Differences).draw)
}

// A verdict is the conclusion from an interval.
type verdict int

const (
	better verdict = iota
	worse
	open // the interval contains zero or is missing, or Open is set
)

func (d *Difference) verdict() verdict {
	switch {
	case d.Open:
		return open
	case d.Upper < 0:
		return better
	case d.Lower > 0:
		return worse
	}
	return open
}

func (d *Difference) hasInterval() bool { return plottable(d.Lower) && plottable(d.Upper) }

// verdictLooks are a disc for better, a square for worse and a ring if nothing is known.
var verdictLooks = [...]struct {
	name   string
	colour role
	mark   mark
}{
	better: {"better than ", seriesRole + 2, mark{disc, false, false}},
	worse:  {"worse than ", seriesRole + 1, mark{square, false, false}},
	open:   {"may be chance", soft, mark{disc, true, false}},
}

func (v verdict) glyph() draw.GlyphStyle {
	return draw.GlyphStyle{Color: verdictLooks[v].colour, Radius: 4.8, Shape: verdictLooks[v].mark}
}

func (v verdict) pen() draw.LineStyle { return pen(verdictLooks[v].colour, 2, 0) }

// draw returns nil if no value is finite.
func (ds *Differences) draw() *Figure {
	rows := slices.DeleteFunc(slices.Clone(ds.Rows), func(d Difference) bool { return !plottable(d.Value) })
	if len(rows) == 0 {
		return nil
	}
	// Rows are at 0, −1, −2 and so on.
	n := float64(len(rows))
	y := axis{min: -n + 0.4, max: 0.6}
	for i, row := range rows {
		y.named = append(y.named, Tick{float64(-i), fitted(row.Name, 0.46*chartWidth, textSize)})
	}
	f := newFigure(ds.Title, ds.describe(rows), chartWidth, n*differenceRow+6, ds.axis(rows), y)
	f.Name, f.Note = fileName("difference", ds.Title), ds.Note
	if ds.Plain {
		for i := range rows {
			rows[i].Open = true
		}
	} else {
		f.curve(pen(ink, 1.2, 0), plotter.XY{Y: y.min}, plotter.XY{Y: y.max})
	}
	for i := range rows {
		f.difference(&rows[i], float64(-i))
	}
	if ds.Plain {
		return f
	}
	for v, look := range verdictLooks {
		v := verdict(v)
		if !slices.ContainsFunc(rows, func(d Difference) bool { return d.verdict() == v }) {
			continue
		}
		name := look.name
		if v != open {
			name += ds.Baseline
		}
		f.key(name, &plotter.Line{LineStyle: v.pen()}, &plotter.Scatter{GlyphStyle: v.glyph()})
	}
	return f
}

// axis returns an axis that contains zero and all rows except those far beyond the others.
func (ds *Differences) axis(rows []Difference) axis {
	var reach, ends []float64 // distances from zero, or for plain rows none
	for _, row := range rows {
		far := math.Abs(row.Value)
		if ds.Plain {
			far = 0
		} else if row.hasInterval() {
			far = max(far, math.Abs(row.Lower), math.Abs(row.Upper))
		}
		reach = append(reach, far)
	}
	for i, row := range rows {
		if reach[i] <= reachOf(reach, farOff) {
			ends = append(ends, row.Value, row.Lower, row.Upper)
		}
	}
	return spanAxis(ds.Label, !ds.Plain, ends).padded(0.08)
}

// difference draws the value of a row and its interval. A value beyond the axis becomes a number with an arrow.
func (f *Figure) difference(row *Difference, y float64) {
	v, at := row.verdict(), plotter.XY{X: row.Value, Y: y}
	if !f.x.holds(row.Value) {
		label := signed(row.Value, 2) + " →"
		if row.Value < 0 {
			label = "← " + signed(row.Value, 2)
		}
		f.write(label, style(verdictLooks[v].colour, smallText, true), f.place(at), -smallText/3)
		return
	}
	if row.hasInterval() {
		low := f.place(plotter.XY{X: row.Lower, Y: y})
		f.add(&plotter.XErrorBars{
			XYs:       plotter.XYs{low},
			XErrors:   plotter.XErrors{{High: f.x.at(row.Upper) - low.X}},
			LineStyle: v.pen(),
			CapWidth:  8,
		})
	}
	f.marks(v.glyph(), at)
}

func (ds *Differences) describe(rows []Difference) string {
	desc := ds.Label + "."
	for _, row := range rows {
		number := signed
		if ds.Plain {
			number = fixed
		}
		desc += fmt.Sprintf(" %s: %s", row.Name, number(row.Value, 4))
		if row.hasInterval() {
			desc += fmt.Sprintf(" [%s, %s]", number(row.Lower, 4), number(row.Upper, 4))
		}
		desc += "."
	}
	return desc
}

// signed formats a difference with its sign.
func signed(x float64, decimals int) string {
	if s := fixed(x, decimals); x <= 0 {
		return s
	} else {
		return "+" + s
	}
}
