package report

import (
	"fmt"
	"image/color"
)

// colour is a role, so that a page can be light or dark; from surfaceColours on it
// is a step of the surface palette, which is the same on both.
type colour int

const (
	colourInk colour = iota
	colourSoft
	colourLine
	colourPaper
	colourSeries // and the following seriesColours−1
)

const (
	seriesColours  = 6
	surfaceColours = colourSeries + seriesColours
)

// palette holds the roles on light and on dark ground. The series are those of
// Okabe and Ito (2008), which people with colour-blindness tell apart, made
// darker or lighter until they have a contrast of 3:1 with the ground.
var palette = [surfaceColours]struct{ light, dark string }{
	colourInk:        {"#1b1f24", "#e6e9ec"},
	colourSoft:       {"#57606a", "#a3acb6"},
	colourLine:       {"#d8dee4", "#353c44"},
	colourPaper:      {"#ffffff", "#14171b"},
	colourSeries:     {"#0068b3", "#5aaaf0"},
	colourSeries + 1: {"#cf5500", "#ff8a45"},
	colourSeries + 2: {"#00875f", "#35c797"},
	colourSeries + 3: {"#b0508f", "#e792c4"},
	colourSeries + 4: {"#8f6f00", "#e0bb3a"},
	colourSeries + 5: {"#5b6470", "#b9c2cc"},
}

// surfaceStops are places along viridis (Smith and van der Walt 2015), whose
// lightness grows evenly: it keeps its order in grey and for the colour-blind.
var surfaceStops = [...][3]float64{
	{68, 1, 84}, {72, 40, 120}, {62, 74, 137}, {49, 104, 142}, {38, 130, 142},
	{31, 158, 137}, {53, 183, 121}, {109, 205, 89}, {180, 222, 44}, {253, 231, 37},
}

// surfaceColour is the colour at part t of the palette, from 0 to 1, rounded to
// one of 256.
func surfaceColour(t float64) colour {
	return surfaceColours + colour(min(max(t, 0), 1)*255+0.5)
}

// class is the name by which a style sheet gives a role its colour, "" for a
// colour of the surface palette.
func (c colour) class() string {
	switch {
	case c >= surfaceColours:
		return ""
	case c >= colourSeries:
		return fmt.Sprintf("s%d", c-colourSeries)
	}
	return [...]string{"ink", "soft", "line", "paper"}[c]
}

// hex is the colour on light ground.
func (c colour) hex() string {
	if c < surfaceColours {
		return palette[c].light
	}
	t := float64(c-surfaceColours) / 255 * float64(len(surfaceStops)-1)
	i := min(int(t), len(surfaceStops)-2)
	var rgb [3]uint8
	for k := range rgb {
		a, b := surfaceStops[i][k], surfaceStops[i+1][k]
		rgb[k] = uint8(a + (b-a)*(t-float64(i)) + 0.5)
	}
	return fmt.Sprintf("#%02x%02x%02x", rgb[0], rgb[1], rgb[2])
}

// rgba is the colour on light ground.
func (c colour) rgba() color.RGBA {
	out := color.RGBA{A: 255}
	fmt.Sscanf(c.hex(), "#%02x%02x%02x", &out.R, &out.G, &out.B)
	return out
}

// seriesPen is how the i-th series is drawn. Colours repeat after six, then with
// another dash; markers differ too, so that colour alone never tells.
func seriesPen(i int) pen {
	return pen{colour: colourSeries + colour(i%seriesColours), stroke: 1.8, dash: dash(i / seriesColours % len(dashes))}
}

// paletteCSS declares the roles as variables, light or dark.
func paletteCSS(dark bool) string {
	css := ""
	for c, p := range palette {
		hex := p.light
		if dark {
			hex = p.dark
		}
		css += fmt.Sprintf("--%s:%s;", colour(c).class(), hex)
	}
	return css
}

// roleCSS gives each role's class its variable.
func roleCSS() string {
	css := ""
	for c := range palette {
		name := colour(c).class()
		css += fmt.Sprintf("svg .%s{color:var(--%s)}", name, name)
	}
	return css
}
