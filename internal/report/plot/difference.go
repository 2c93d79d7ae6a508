package plot

import (
	"fmt"
	"math"
	"slices"

	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Differences compares methods with a baseline. Each has a point with an interval. Lower is better.
type Differences struct {
	Title    string
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

// beyond bounds the axis as a multiple of the median distance from zero. Without it one distant method would squeeze
// the others together.
const beyond = 8

const differenceRow = 24.0

// DrawDifferences returns a figure for each comparison that has a finite value.
func DrawDifferences(all []Differences) []*Figure {
	return drawAll(all, (*Differences).draw)
}

// A verdict is the conclusion from an interval.
type verdict int

const (
	open verdict = iota // the interval contains zero or is missing, or Open is set
	better
	worse
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

// verdictLooks are a ring if nothing is known, a disc for better and a square for worse.
var verdictLooks = [...]struct {
	colour role
	mark   mark
}{open: {soft, mark{hollow: true}}, better: {seriesRole + 2, mark{}}, worse: {seriesRole + 1, mark{shape: 1}}}

func (v verdict) glyph() draw.GlyphStyle {
	return draw.GlyphStyle{Color: verdictLooks[v].colour, Radius: 4.8, Shape: verdictLooks[v].mark}
}

func (v verdict) pen() draw.LineStyle { return pen(verdictLooks[v].colour, 2, 0) }

// draw returns nil if no value is finite.
func (ds *Differences) draw() *Figure {
	var rows []Difference
	for _, row := range ds.Rows {
		if plottable(row.Value) {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	// Rows are at 0, −1, −2 and so on.
	n := float64(len(rows))
	y := axis{min: -n + 0.4, max: 0.6}
	for i, row := range rows {
		y.named = append(y.named, Tick{float64(-i), fitted(row.Name, 0.4*chartWidth, textSize)})
	}
	f := newFigure(ds.Title, ds.describe(rows), chartWidth, n*differenceRow+6, ds.axis(rows), y)
	f.Name, f.Note = fileName("difference", ds.Title), ds.Note
	f.plot.Y.Tick.Label.Color, f.plot.Y.Tick.Label.Font.Size = ink, textSize
	f.xTicks() // again, because names are larger than numbers
	*f.grid = plotter.Grid{Vertical: pen(line, 1, 0)}
	f.curve(pen(ink, 1.2, 0), plotter.XYs{{X: 0, Y: y.min}, {X: 0, Y: y.max}})
	for i := range rows {
		f.difference(&rows[i], float64(-i))
	}
	for _, v := range []struct {
		verdict
		name string
	}{{better, "better than " + ds.Baseline}, {worse, "worse than " + ds.Baseline}, {open, "not told apart"}} {
		if slices.ContainsFunc(rows, func(d Difference) bool { return d.verdict() == v.verdict }) {
			f.key(v.name, &plotter.Line{LineStyle: v.pen()}, &plotter.Scatter{GlyphStyle: v.glyph()})
		}
	}
	return f.finish()
}

// axis returns an axis that contains zero and all rows except those far beyond the others.
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

// difference draws the value of a row and its interval. A value beyond the axis becomes an arrow with the number.
func (f *Figure) difference(row *Difference, y float64) {
	v := row.verdict()
	if !f.x.holds(row.Value) {
		f.add(plotFunc(func(c draw.Canvas, p *gonum.Plot) { v.arrow(c, row.Value, c.Y(p.Y.Norm(y))) }))
		return
	}
	if row.hasInterval() {
		half := (row.Upper - row.Lower) / 2
		f.add(&plotter.XErrorBars{XYs: plotter.XYs{{X: row.Lower + half, Y: y}}, XErrors: plotter.XErrors{{Low: half, High: half}}, LineStyle: v.pen(), CapWidth: 8})
	}
	f.marks(v.glyph(), plotter.XYs{{X: row.Value, Y: y}})
}

// arrow points to a value beyond the axis and writes it.
func (v verdict) arrow(c draw.Canvas, value float64, y vg.Length) {
	end, back := c.Max.X, vg.Length(-7)
	said := style(ink, smallText, false)
	said.XAlign, said.YAlign = draw.XRight, draw.YCenter
	if value < 0 {
		end, back, said.XAlign = c.Min.X, 7, draw.XLeft
	}
	c.FillPolygon(v.pen().Color, []vg.Point{{X: end, Y: y}, {X: end + back, Y: y - 4.5}, {X: end + back, Y: y + 4.5}})
	haloed(c, said, vg.Point{X: end + back*1.7, Y: y + said.FontExtents().Descent}, signed(value, 2))
}

func (ds *Differences) describe(rows []Difference) string {
	desc := ds.Label + "."
	for _, row := range rows {
		desc += fmt.Sprintf(" %s: %s", row.Name, signed(row.Value, 4))
		if row.hasInterval() {
			desc += fmt.Sprintf(" [%s, %s]", signed(row.Lower, 4), signed(row.Upper, 4))
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
