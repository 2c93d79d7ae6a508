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
	seriesRole  // and the following seriesRoles−1
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

// viridis holds points of the palette of that name (Smith and van der Walt 2015). Its lightness grows evenly, so it
// keeps its order in grey and for colour-blind readers. It is the same on light and dark backgrounds.
var viridis = [...][3]float64{
	{68, 1, 84}, {72, 40, 120}, {62, 74, 137}, {49, 104, 142}, {38, 130, 142},
	{31, 158, 137}, {53, 183, 121}, {109, 205, 89}, {180, 222, 44}, {253, 231, 37},
}

// heat returns the colour at part t of viridis, from 0 to 1.
func heat(t float64) color.NRGBA {
	t = min(max(t, 0), 1) * float64(len(viridis)-1)
	i := min(int(t), len(viridis)-2)
	var rgb [3]uint8
	for k := range rgb {
		a, b := viridis[i][k], viridis[i+1][k]
		rgb[k] = uint8(a + (b-a)*(t-float64(i)) + 0.5)
	}
	return color.NRGBA{rgb[0], rgb[1], rgb[2], 255}
}

// dashes are lengths of ink and of gaps, for a line about 2 wide.
var dashes = [...][]vg.Length{nil, {6, 3.5}, {1.8, 3}}

func pen(c color.Color, width float64, dash int) draw.LineStyle {
	return draw.LineStyle{Color: c, Width: vg.Length(width), Dashes: dashes[dash]}
}

// seriesPen returns the line style of the i-th series. Colours repeat after six, then with another dash. Marks differ
// too, so colour is never the only difference.
func seriesPen(i int) draw.LineStyle {
	return pen(seriesRole+role(i%seriesRoles), 1.8, i/seriesRoles%len(dashes))
}
