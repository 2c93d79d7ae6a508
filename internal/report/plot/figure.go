// Package plot draws the figures of a report with gonum.org/v1/plot: differences with intervals, reliability
// diagrams, histograms of entropy, risk over coverage, curves and surfaces. The input is plain numbers. Each Draw
// function returns only figures that have something to show.
//
// # Invariants
//
// A method keeps its colour, dash and mark in all figures, by its place in the list. Values that are not finite are
// left out, and names may contain anything. The same data gives the same bytes.
//
// # Concurrency
//
// The methods of a Figure only read it, so several goroutines may use it.
package plot

import (
	"image/color"
	"iter"
	"slices"
	"strings"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	plottext "gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/swagwrap/swagwrap/internal/report/text"
)

// Sizes in a figure, in units of about one pixel on a phone.
const (
	chartWidth    = 420.0
	chartHeight   = 250.0 // height of the part within the axes
	entropyHeight = 190.0
	textSize      = 12.0
	smallText     = 11.0
	titleSize     = 13.0
	edge          = 6.0 // distance between the content and the border
	legendRow     = 18.0
	legendKey     = 26.0 // width of a line's sample
	legendGap     = 22.0 // between columns
	legendTop     = 9.0
	barTop        = 8.0 // above a colour bar
)

// A Figure is drawn as SVG, in a page or as a separate file, or as PNG.
type Figure struct {
	Name  string // name of its file, without extension: lower-case letters, digits and hyphens
	Title string
	Note  string // text below the figure
	// Folded figures are hidden until the reader opens them.
	Folded bool

	desc          string // description for readers who cannot see the figure
	width, height float64
	x, y          axis
	plot          *plot.Plot // both of its axes go from 0 to 1
	bar           *Figure    // the colour bar below, or nil
	keys          []key
}

// A key is an entry of the legend.
type key struct {
	name    string
	samples []plot.Thumbnailer
}

// Words returns the texts in the figure, for the glossary.
func (f *Figure) Words() []string {
	words := []string{f.Title, f.Note, f.x.label, f.y.label}
	if f.bar != nil {
		words = append(words, f.bar.x.label)
	}
	for _, k := range f.keys {
		words = append(words, k.name)
	}
	return words
}

func style(c color.Color, size float64, bold bool) plottext.Style {
	f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Length(size)}
	if bold {
		f.Weight = xfont.WeightBold
	}
	return plottext.Style{Color: c, Font: f, Handler: plot.DefaultTextHandler}
}

func textWidth(s string, size float64) float64 {
	return style(ink, size, false).Width(s).Points()
}

// fitted shortens a text to a width.
func fitted(s string, width, size float64) string {
	return text.ShortenTo(text.Clean(s), width, func(s string) float64 { return textWidth(s, size) })
}

// wrapped breaks a text into lines of at most a width.
func wrapped(s string, width, size float64) string {
	lines := text.WrapTo(text.Clean(s), func(line string) bool { return textWidth(line, size) <= width })
	for i, line := range lines {
		lines[i] = fitted(line, width, size)
	}
	return strings.Join(lines, "\n")
}

// newFigure returns axes without data. The area within the axes has the given height, and the figure has the given
// width. If the vertical axis has names and no label, the names are those of rows.
func newFigure(title, desc string, width, height float64, x, y axis) *Figure {
	p := plot.New()
	p.BackgroundColor = nil
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1, 0, 1
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.Padding, a.Label.TextStyle.Color, a.Label.TextStyle.Font = 4, ink, style(ink, textSize, false).Font
		a.Tick.Label.Color, a.Tick.Label.Font = soft, style(soft, smallText, false).Font
		a.LineStyle, a.Tick.LineStyle = pen(soft, 1, 0), pen(soft, 1, 0)
	}
	p.X.Padding, p.Y.Padding = 0, 3
	p.X.Tick.Length = 7 // otherwise the first label would touch that of the vertical axis
	p.Y.Width, p.Y.Tick.Width, p.Y.Tick.Length = 0, 0, 0
	p.Y.Tick.Label.YAlign = -0.62 // the middle of digits, which have no descenders
	grid := &plotter.Grid{Horizontal: pen(line, 1, 0)}
	if y.named != nil && y.label == "" {
		p.Y.Tick.Label.Color, p.Y.Tick.Label.Font = ink, style(ink, textSize, false).Font
		grid = &plotter.Grid{Vertical: pen(line, 1, 0)}
	}
	f := &Figure{Title: text.Clean(title), desc: text.Clean(desc), width: width, height: height, plot: p, x: x, y: y}
	p.Y.Label.Text = fitted(y.label, height, textSize)
	p.Y.Tick.Marker = y.marker(int(height/38), height, func(string) float64 { return 1.8 * smallText })
	p.X.Tick.Marker = plot.ConstantTicks{}
	room := f.within(height).Size().X.Points()
	p.X.Label.Text = wrapped(x.label, room-textSize, textSize)
	p.X.Tick.Marker = x.marker(int(room/52), room, func(label string) float64 { return textWidth(label, smallText) + 6 })
	f.add(grid)
	return f
}

// marker returns the ticks for gonum, at their places.
func (a axis) marker(n int, length float64, extent func(string) float64) (marker plot.ConstantTicks) {
	for _, t := range a.ticks(n, length, extent) {
		marker = append(marker, plot.Tick{Value: a.at(t.At), Label: t.Label})
	}
	return marker
}

// within returns the area within the axes if the plot with its axes has the given height.
func (f *Figure) within(height float64) vg.Rectangle {
	all := vg.Rectangle{Min: vg.Point{X: edge}, Max: vg.Point{X: vg.Length(f.width - edge), Y: vg.Length(height)}}
	return f.plot.DataCanvas(draw.Canvas{Rectangle: all}).Rectangle
}

// axes returns the height of the plot with its axes.
func (f *Figure) axes() float64 {
	const unset = 1000
	return unset - f.within(unset).Size().Y.Points() + f.height
}

func (f *Figure) key(name string, samples ...plot.Thumbnailer) {
	f.keys = append(f.keys, key{text.Clean(name), samples})
}

// legend returns the keys in columns, which have the same width.
func (f *Figure) legend() (columns []plot.Legend, width, height float64) {
	room := f.width - 2*edge
	names := make([]string, len(f.keys))
	for i, k := range f.keys {
		names[i] = "\u00a0" + fitted(k.name, room-legendKey-6, textSize)
		width = max(width, legendKey+textWidth(names[i], textSize)+legendGap)
	}
	if len(names) == 0 {
		return nil, 0, 0
	}
	most := max(1, min(len(names), int((room+legendGap)/width)))
	rows := (len(names) + most - 1) / most
	for part := range slices.Chunk(names, rows) {
		l := plot.NewLegend()
		l.Top, l.Left, l.ThumbnailWidth, l.YPosition = true, true, legendKey, draw.PosCenter
		l.TextStyle = style(ink, textSize, false)
		l.Padding = legendRow - l.TextStyle.Rectangle("x").Max.Y
		for i, name := range part {
			l.Add(name, f.keys[len(columns)*rows+i].samples...)
		}
		columns = append(columns, l)
	}
	return columns, width, float64(rows)*legendRow + legendTop
}

// titleLines returns the title as a file shows it, with its height.
func (f *Figure) titleLines() (lines string, height float64) {
	if lines = wrapped(f.Title, f.width-2*edge, titleSize); lines != "" {
		height = style(ink, titleSize, true).Height(lines).Points() + 8
	}
	return lines, height
}

// size returns the size of the drawing, in units.
func (f *Figure) size(titled bool) (width, height vg.Length) {
	_, _, h := f.legend()
	h += edge + f.axes() + edge
	if f.bar != nil {
		h += barTop + f.bar.axes()
	}
	if titled {
		_, title := f.titleLines()
		h += title
	}
	return vg.Length(f.width), vg.Length(h)
}

func (f *Figure) draw(to vg.Canvas, titled bool) {
	width, height := f.size(titled)
	c := draw.Crop(draw.NewCanvas(to, width, height), edge, -edge, edge, -edge)
	take := func(height float64) draw.Canvas { // from the top
		part := c
		c.Max.Y -= vg.Length(height)
		part.Min.Y = c.Max.Y
		return part
	}
	if titled {
		title, h := f.titleLines()
		bold := style(ink, titleSize, true)
		bold.YAlign = draw.YTop
		part := take(h)
		c.FillText(bold, vg.Point{X: part.Min.X, Y: part.Max.Y}, title)
	}
	axes := take(f.axes())
	f.plot.Draw(axes)
	if f.bar != nil {
		take(barTop)
		f.bar.plot.Draw(draw.Crop(take(f.bar.axes()), f.plot.DataCanvas(axes).Min.X-c.Min.X, 0, 0, 0))
	}
	take(legendTop)
	columns, step, _ := f.legend()
	for i := range columns {
		columns[i].Draw(draw.Crop(c, vg.Length(float64(i)*step), 0, 0, 0))
	}
}

// A plotFunc hides the size of a plotter's glyphs, so that gonum does not shrink the axes for them.
type plotFunc func(c draw.Canvas, p *plot.Plot)

// Plot implements [plot.Plotter].
func (f plotFunc) Plot(c draw.Canvas, p *plot.Plot) { f(c, p) }

// add adds a plotter of places from 0 to 1.
func (f *Figure) add(p plot.Plotter) { f.plot.Add(plotFunc(p.Plot)) }

// place returns where a point is drawn.
func (f *Figure) place(p plotter.XY) plotter.XY { return plotter.XY{X: f.x.at(p.X), Y: f.y.at(p.Y)} }

// write writes a text inside the axes, with its middle at a place, on a ground that makes it readable. Its baseline is
// above the place by the given distance.
func (f *Figure) write(s string, in plottext.Style, at plotter.XY, above vg.Length) {
	s = fitted(s, f.width/3, in.Font.Size.Points())
	f.add(plotFunc(func(c draw.Canvas, _ *plot.Plot) {
		box := in.Rectangle(s)
		x := min(max(c.X(at.X)-box.Max.X/2, c.Min.X+2), c.Max.X-box.Max.X-2)
		y := min(max(c.Y(at.Y)+above, c.Min.Y+2), c.Max.Y-in.Font.Size)
		from := vg.Point{X: x, Y: y}
		c.SetColor(tint{paper, 0.75})
		c.Fill(vg.Rectangle{Min: box.Min.Add(from).Sub(vg.Point{X: 2}), Max: box.Max.Add(from).Add(vg.Point{X: 2})}.Path())
		c.FillText(in, from, s)
	}))
}

// runs returns the longest stretches of at least two points that are ok.
func runs[P any](points []P, ok func(P) bool) iter.Seq[[]P] {
	return func(yield func([]P) bool) {
		for from, i := 0, 0; i <= len(points); i++ {
			if i < len(points) && ok(points[i]) {
				continue
			}
			if i-from > 1 && !yield(points[from:i]) {
				return
			}
			from = i + 1
		}
	}
}

func drawable(p plotter.XY) bool { return plottable(p.X) && plottable(p.Y) }

// places returns where points are drawn.
func (f *Figure) places(points plotter.XYs) plotter.XYs {
	out := make(plotter.XYs, len(points))
	for i, p := range points {
		out[i] = f.place(p)
	}
	return out
}

// curve draws a line through points, interrupted where one is not finite.
func (f *Figure) curve(in draw.LineStyle, points ...plotter.XY) {
	for run := range runs(points, drawable) {
		f.add(&plotter.Line{XYs: f.places(run), LineStyle: in})
	}
}

// marks draws glyphs at the finite points.
func (f *Figure) marks(in draw.GlyphStyle, points ...plotter.XY) {
	points = slices.DeleteFunc(slices.Clone(points), func(p plotter.XY) bool { return !drawable(p) })
	f.add(&plotter.Scatter{XYs: f.places(points), GlyphStyle: in})
}

// An estimate is a point with the ends of its interval, which are NaN without one.
type estimate struct {
	plotter.XY
	lower, upper float64
}

func (e estimate) hasInterval() bool {
	return drawable(e.XY) && plottable(e.lower) && plottable(e.upper)
}

// centres returns the points without their intervals.
func centres(points []estimate) plotter.XYs {
	out := make(plotter.XYs, len(points))
	for i, p := range points {
		out[i] = p.XY
	}
	return out
}

// maxBars is the largest number of points that all have a mark and a bar. Longer series have a few marks, and a band
// as interval.
const maxBars = 24

// series draws a line with its intervals: bars for few points, a band for many.
func (f *Figure) series(i int, points []estimate) {
	if len(points) > maxBars {
		f.band(i, points)
	}
	f.curve(seriesPen(i), centres(points)...)
	if len(points) <= maxBars {
		f.bars(i, points)
	}
	marked := centres(points)
	if len(points) > maxBars {
		marked = someOf(marked)
	}
	f.marks(seriesMark(i), marked...)
}

// someOf returns a few of many points, so that a line is identified by more than its colour.
func someOf(points plotter.XYs) plotter.XYs {
	last := len(points) - 1
	return plotter.XYs{points[last/4], points[last/2], points[last*3/4], points[last]}
}

// bars draws the intervals of the points that have them.
func (f *Figure) bars(i int, points []estimate) {
	e := &plotter.YErrorBars{LineStyle: pen(roleOf(i), 1.2, 0), CapWidth: 5}
	for _, p := range points {
		if p.hasInterval() {
			low := f.place(plotter.XY{X: p.X, Y: p.lower})
			e.XYs = append(e.XYs, low)
			e.YErrors = append(e.YErrors, struct{ Low, High float64 }{High: f.y.at(p.upper) - low.Y})
		}
	}
	f.add(e)
}

// band fills the area between the ends of the intervals, for each run of points that have them.
func (f *Figure) band(i int, points []estimate) {
	for run := range runs(points, estimate.hasInterval) {
		ring := make(plotter.XYs, 2*len(run)) // forward along the upper ends, back along the lower ones
		for i, p := range run {
			ring[i], ring[len(ring)-1-i] = f.place(plotter.XY{X: p.X, Y: p.upper}), f.place(plotter.XY{X: p.X, Y: p.lower})
		}
		f.add(&plotter.Polygon{XYs: []plotter.XYs{ring}, Color: tint{roleOf(i), 0.2}})
	}
}

// seriesKey adds the i-th series to the legend.
func (f *Figure) seriesKey(i int, name string) {
	f.key(name, &plotter.Line{LineStyle: seriesPen(i)}, &plotter.Scatter{GlyphStyle: seriesMark(i)})
}

// reachOf returns a multiple of the median distance. Axes do not reach further, because distant values would squeeze the
// others together.
func reachOf(distances []float64, times float64) float64 {
	sorted := slices.Sorted(slices.Values(distances))
	return times * sorted[(len(sorted)-1)/2]
}

func drawAll[T any](all []T, draw func(*T) *Figure) []*Figure {
	var figures []*Figure
	for i := range all {
		if f := draw(&all[i]); f != nil {
			figures = append(figures, f)
		}
	}
	return figures
}
