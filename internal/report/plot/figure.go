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
	"iter"
	"math"
	"slices"

	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	plottext "gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	xfont "golang.org/x/image/font"

	"github.com/swagwrap/swagwrap/internal/report/text"
)

// Sizes in a figure, in units of about one pixel on a phone.
const (
	chartWidth  = 420.0
	chartHeight = 250.0 // of the part within the axes
	smallWidth  = 300.0
	smallHeight = 170.0
	textSize    = 12.0
	smallText   = 11.0
	titleSize   = 13.0
	edge        = 6.0 // distance between the content and the border
	legendRow   = 18.0
	legendKey   = 26.0 // width of a line's sample
	legendGap   = 16.0
	legendTop   = 9.0
)

// A Figure is drawn as SVG, in a page or as a separate file, or as PNG.
type Figure struct {
	Name  string // of its file, without extension: lower-case letters, digits and hyphens
	Title string
	Note  string // text below the figure
	Small bool   // one of several figures side by side
	// Folded figures are hidden until the reader opens them.
	Folded bool

	desc          string // for readers who cannot see it
	width, height float64
	plot          *gonum.Plot
	x, y          axis
	xLabel        string // of the axes. Gonum would put them at the mean of the ends, which is not the middle of a logarithmic axis
	yLabel        string
	grid          *plotter.Grid // behind everything else
	axes          float64       // height of the plot with its axes
	bar           *Figure       // the colour bar below, or nil
	right         float64       // room for the names on the right of the axes
	named         []string      // the names there
	legend        float64       // height of the legend
	keys          []key
	columns       []gonum.Legend
	columnWidth   vg.Length
}

// A key is an entry of the legend.
type key struct {
	name    string
	samples []gonum.Thumbnailer
}

// Words returns the texts in the figure, for the glossary.
func (f *Figure) Words() []string {
	words := append([]string{f.Title, f.Note, f.xLabel, f.yLabel}, f.named...)
	if f.bar != nil {
		words = append(words, f.bar.xLabel)
	}
	for _, k := range f.keys {
		words = append(words, k.name)
	}
	return words
}

// style returns the style of a text.
func style(c role, size float64, bold bool) plottext.Style {
	f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Length(size)}
	if bold {
		f.Weight = xfont.WeightBold
	}
	return plottext.Style{Color: c, Font: f, Handler: gonum.DefaultTextHandler}
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
	perRune := textWidth("abcdefghijklmnopqrstuvwxyz", size) / 26
	lines := text.Wrap(text.Clean(s), int(width/perRune))
	out := ""
	for _, line := range lines {
		out += fitted(line, width, size) + "\n"
	}
	return out[:max(0, len(out)-1)]
}

// newFigure returns axes without data. The area within the axes has the given height, and the figure with its legend
// has the given width.
func newFigure(title, desc string, width, height float64, x, y axis) *Figure {
	p := gonum.New()
	p.BackgroundColor = nil
	for _, a := range []*gonum.Axis{&p.X, &p.Y} {
		a.Tick.Label.Color, a.Tick.Label.Font = soft, style(soft, smallText, false).Font
		a.LineStyle, a.Tick.LineStyle = pen(soft, 1, 0), pen(soft, 1, 0)
	}
	p.X.Padding, p.Y.Padding = 0, 3
	p.X.Tick.Length = 7 // otherwise the first label would touch that of the vertical axis
	p.Y.Width, p.Y.Tick.Width, p.Y.Tick.Length = 0, 0, 0
	p.Y.Tick.Label.YAlign = -0.62 // the middle of digits, which have no descenders
	p.X.Min, p.X.Max, p.X.Scale = x.min, x.max, x
	p.Y.Min, p.Y.Max, p.Y.Scale = y.min, y.max, y
	y.room = height
	p.Y.Tick.Marker = constant(y.ticks(int(height / 38)))
	f := &Figure{Title: text.Clean(title), desc: text.Clean(desc), width: width, height: height, plot: p, x: x, y: y, yLabel: fitted(y.label, height, textSize)}
	f.xTicks()
	f.grid = &plotter.Grid{Horizontal: pen(line, 1, 0)}
	f.add(f.grid)
	return f
}

// within returns the area within the axes if the plot with its axes has the given height.
func (f *Figure) within(height float64) vg.Rectangle {
	c := draw.Canvas{Rectangle: vg.Rectangle{Min: vg.Point{X: edge}, Max: vg.Point{X: vg.Length(f.width - edge), Y: vg.Length(height)}}}
	return f.plot.DataCanvas(f.unlabelled(c)).Rectangle
}

// labelGap is the distance between the label of an axis and its ticks.
const labelGap = 4

// unlabelled returns the canvas without the room for the labels of the axes.
func (f *Figure) unlabelled(c draw.Canvas) draw.Canvas {
	in := style(ink, textSize, false)
	if f.xLabel != "" {
		c.Min.Y += in.Height(f.xLabel) + labelGap
	}
	if f.yLabel != "" {
		c.Min.X += in.Height(f.yLabel) + labelGap
	}
	c.Max.X -= vg.Length(f.right)
	return c
}

// drawAxes draws the plot and the labels of its axes.
func (f *Figure) drawAxes(c draw.Canvas) {
	inner := f.unlabelled(c)
	f.plot.Draw(inner)
	within := f.plot.DataCanvas(inner)
	in := style(ink, textSize, false)
	in.XAlign, in.YAlign = draw.XCenter, draw.YTop
	c.FillText(in, vg.Point{X: within.Center().X, Y: inner.Min.Y - labelGap}, f.xLabel)
	in.Rotation = math.Pi / 2
	c.FillText(in, vg.Point{X: c.Min.X, Y: within.Center().Y}, f.yLabel)
}

// xTicks sets the label of the horizontal axis, and ticks whose labels do not touch.
func (f *Figure) xTicks() {
	p, x := f.plot, &f.x
	p.X.Tick.Marker = gonum.ConstantTicks{{Value: x.min, Label: "0"}} // a tick of the final height
	f.xLabel = wrapped(x.label, f.within(f.height).Size().X.Points()-textSize, textSize)
	within := f.within(f.height)
	left := within.Min.X.Points() - edge
	x.room = within.Size().X.Points()
	ticks := slices.Clone(x.ticks(int(x.room / 52)))
	for i, t := range ticks {
		ticks[i].Label = fitted(t.Label, max(0, min(x.room/4, 2*(x.pos(t.At)+left))), smallText)
	}
	p.X.Tick.Marker = constant(x.apart(ticks, 4))
}

func constant(ticks []Tick) (out gonum.ConstantTicks) {
	for _, t := range ticks {
		out = append(out, gonum.Tick{Value: t.At, Label: t.Label})
	}
	return out
}

func (f *Figure) key(name string, samples ...gonum.Thumbnailer) {
	f.keys = append(f.keys, key{text.Clean(name), samples})
}

// finish computes the layout. Nothing may be added after it.
func (f *Figure) finish() *Figure {
	const any = 1000
	f.axes = any - f.within(any).Size().Y.Points() + f.height
	f.layLegend()
	return f
}

// layLegend puts the keys into columns of equal width.
func (f *Figure) layLegend() {
	room, widest := f.width-2*edge, 0.0
	names := make([]string, len(f.keys))
	for i, k := range f.keys {
		names[i] = "\u00a0" + fitted(k.name, room-legendKey-6, textSize)
		widest = max(widest, legendKey+6+textWidth(names[i], textSize)+legendGap)
	}
	if len(names) == 0 {
		return
	}
	columns := max(1, min(len(names), int((room+legendGap)/widest)))
	rows := (len(names) + columns - 1) / columns
	for i, name := range names {
		if i%rows == 0 {
			l := gonum.NewLegend()
			l.Top, l.Left, l.ThumbnailWidth, l.YPosition = true, true, legendKey, draw.PosCenter
			l.TextStyle = style(ink, textSize, false)
			l.Padding = legendRow - l.TextStyle.Rectangle("x").Max.Y
			f.columns = append(f.columns, l)
		}
		f.columns[i/rows].Add(name, f.keys[i].samples...)
	}
	f.columnWidth, f.legend = vg.Length(widest), float64(rows)*legendRow+legendTop
}

// titleLines returns the title as a file shows it, with its height.
func (f *Figure) titleLines() (string, float64) {
	s := wrapped(f.Title, f.width-2*edge, titleSize)
	if s == "" {
		return "", 0
	}
	return s, style(ink, titleSize, true).Height(s).Points() + 8
}

// size returns the size of the drawing, in units.
func (f *Figure) size(titled bool) (width, height vg.Length) {
	h := edge + f.axes + f.legend + edge
	if f.bar != nil {
		h += 8 + f.bar.axes
	}
	if titled {
		_, title := f.titleLines()
		h += title
	}
	return vg.Length(f.width), vg.Length(h)
}

// draw draws on a canvas of that size.
func (f *Figure) draw(to vg.Canvas, titled bool) {
	width, height := f.size(titled)
	c := draw.Crop(draw.NewCanvas(to, width, height), edge, -edge, edge, -edge)
	if titled {
		title, h := f.titleLines()
		bold := style(ink, titleSize, true)
		bold.YAlign = draw.YTop
		c.FillText(bold, vg.Point{X: c.Min.X, Y: c.Max.Y}, title)
		c.Max.Y -= vg.Length(h)
	}
	axes := c
	axes.Min.Y = c.Max.Y - vg.Length(f.axes)
	f.drawAxes(axes)
	c.Max.Y = axes.Min.Y
	if f.bar != nil {
		bar := draw.Crop(c, f.plot.DataCanvas(f.unlabelled(axes)).Min.X-c.Min.X, 0, 0, -8)
		bar.Min.Y = bar.Max.Y - vg.Length(f.bar.axes)
		f.bar.drawAxes(bar)
		c.Max.Y = bar.Min.Y
	}
	c.Max.Y -= legendTop
	for i := range f.columns {
		f.columns[i].Draw(draw.Crop(c, vg.Length(i)*f.columnWidth, 0, 0, 0))
	}
}

// A plotFunc draws shapes that gonum's plotters cannot draw.
type plotFunc func(c draw.Canvas, p *gonum.Plot)

// Plot implements [gonum.Plotter].
func (f plotFunc) Plot(c draw.Canvas, p *gonum.Plot) { f(c, p) }

// add adds a plotter but hides its data range, so that gonum does not widen the axes. Points beyond them are drawn at
// their ends.
func (f *Figure) add(p gonum.Plotter) { f.plot.Add(plotFunc(p.Plot)) }

// haloed writes a text that is readable on any background.
func haloed(c draw.Canvas, in plottext.Style, at vg.Point, s string) {
	box := in.Rectangle(s)
	c.SetColor(tint{paper, 0.75})
	c.Fill(vg.Rectangle{Min: box.Min.Add(at).Sub(vg.Point{X: 2}), Max: box.Max.Add(at).Add(vg.Point{X: 2})}.Path())
	c.FillText(in, at, s)
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

// curve draws a line through points, interrupted where one is not finite.
func (f *Figure) curve(in draw.LineStyle, points plotter.XYs) {
	for run := range runs(points, drawable) {
		f.add(&plotter.Line{XYs: run, LineStyle: in})
	}
}

// marks draws glyphs at the finite points.
func (f *Figure) marks(in draw.GlyphStyle, points plotter.XYs) {
	points = slices.DeleteFunc(slices.Clone(points), func(p plotter.XY) bool { return !drawable(p) })
	f.add(&plotter.Scatter{XYs: points, GlyphStyle: in})
}

// seriesKey adds the i-th series to the legend.
func (f *Figure) seriesKey(i int, name string) {
	f.key(name, &plotter.Line{LineStyle: seriesPen(i)}, &plotter.Scatter{GlyphStyle: seriesMark(i)})
}
