package plot

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A role is a colour of a page that can be light or dark. In a file, and as a [color.Color], it has its colour for
// light backgrounds.
type role int

const (
	ink role = iota
	soft
	line
	paper
	seriesRole  // the first role of series; seriesRoles−1 more follow
	seriesRoles = 6
)

// palette holds the roles with their names in style sheets, for light and for dark backgrounds. The series have the
// colours of Okabe and Ito (2008), which colour-blind people can distinguish. They were made darker or lighter for a
// contrast of 3:1 with the background.
var palette = [seriesRole + seriesRoles]struct{ name, light, dark string }{
	{"ink", "#1b1f24", "#e6e9ec"},
	{"soft", "#57606a", "#a3acb6"},
	{"line", "#d8dee4", "#353c44"},
	{"paper", "#ffffff", "#14171b"},
	{"s0", "#0068b3", "#5aaaf0"},
	{"s1", "#cf5500", "#ff8a45"},
	{"s2", "#00875f", "#35c797"},
	{"s3", "#b0508f", "#e792c4"},
	{"s4", "#8f6f00", "#e0bb3a"},
	{"s5", "#5b6470", "#b9c2cc"},
}

// bandColours are viridis (Smith and van der Walt 2015). Its lightness grows evenly, so it keeps its order in grey and
// for colour-blind readers. It is the same on light and dark backgrounds.
var bandColours = [...]string{
	"#440154", "#472171", "#423e83", "#38588b", "#2e6f8e", "#25858e", "#209b89", "#2fb07d", "#54c368", "#87d349", "#c1e02b", "#fde725",
}

// RGBA implements [color.Color].
func (r role) RGBA() (red, green, blue, alpha uint32) { return fromHex(palette[r].light).RGBA() }

func fromHex(s string) color.NRGBA {
	c := color.NRGBA{A: 255}
	fmt.Sscanf(s, "#%02x%02x%02x", &c.R, &c.G, &c.B) // cannot fail, because the palette is ours
	return c
}

// A tint is a translucent role.
type tint struct {
	role
	opacity float64
}

// RGBA implements [color.Color].
func (t tint) RGBA() (red, green, blue, alpha uint32) {
	c := fromHex(palette[t.role].light)
	c.A = uint8(math.Round(255 * t.opacity))
	return c.RGBA()
}

// PaletteCSS declares the roles as variables of a style sheet, for light or for dark backgrounds.
func PaletteCSS(dark bool) string {
	css := ""
	for _, p := range palette {
		hex := p.light
		if dark {
			hex = p.dark
		}
		css += fmt.Sprintf("--%s:%s;", p.name, hex)
	}
	return css
}

// dashes are lengths of ink and of gaps, for a line about 2 wide.
var dashes = [...][]vg.Length{nil, {6, 3.5}, {1.8, 3}}

func pen(c color.Color, width float64, dash int) draw.LineStyle {
	return draw.LineStyle{Color: c, Width: vg.Length(width), Dashes: dashes[dash]}
}

// roleOf returns the colour of the i-th series. Colours repeat after six, then with another dash and another mark.
// Colour is never the only difference.
func roleOf(i int) role { return seriesRole + role(i%seriesRoles) }

func seriesPen(i int) draw.LineStyle { return pen(roleOf(i), 1.8, i/seriesRoles%len(dashes)) }

// markSize is half the width of a mark in a chart.
const markSize = 4.2

func seriesMark(i int) draw.GlyphStyle {
	shape := i + i/seriesRoles
	return draw.GlyphStyle{Color: roleOf(i), Radius: markSize, Shape: mark{shapes[shape%len(shapes)], shape/len(shapes)%2 == 1, false}}
}

// A mark is one of gonum's glyphs, which may be hollow or have a light outline that is visible on any colour.
type mark struct {
	draw.GlyphDrawer
	hollow, outlined bool
}

var disc, square, triangle = draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}

var shapes = []draw.GlyphDrawer{disc, square, triangle}

// DrawGlyph implements [draw.GlyphDrawer].
func (m mark) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	layer := func(of color.Color, radius vg.Length) {
		style.Color, style.Radius = of, radius
		c.SetColor(of)
		m.GlyphDrawer.DrawGlyph(c, style, at)
	}
	own, radius := style.Color, style.Radius
	if m.outlined {
		layer(paper, radius+1.2)
	}
	layer(own, radius)
	if m.hollow {
		layer(paper, radius-1.4)
	}
}
