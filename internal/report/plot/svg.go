package plot

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"io"
	"regexp"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// svgFont begins with fonts that have the same widths as the font of the layout.
const svgFont = "Liberation Sans,Arial,Helvetica,sans-serif"

// body returns the drawing of vgsvg without the svg element around it.
func (f *Figure) body(titled bool) string {
	width, height := f.size(titled)
	c := vgsvg.New(width, height)
	f.draw(c, titled)
	var b bytes.Buffer
	c.WriteTo(&b) // a bytes.Buffer does not fail
	_, body, _ := strings.Cut(b.String(), "<g ")
	return svgText.ReplaceAllStringFunc("<g "+body, fixText)
}

// svgText matches a text of vgsvg with its size.
var svgText = regexp.MustCompile(`style="font-family:[^"]*?(font-weight:bold;)?font-style:normal;font-size:([\d.]+)px([^"]*)">([^<]*)<`)

// fixText removes the font family, which the svg element sets. It fixes the width of the text to that of the layout,
// so that the reader's font does not change it.
func fixText(s string) string {
	m := svgText.FindStringSubmatch(s)
	size, _ := strconv.ParseFloat(m[2], 64)
	width := style(ink, size, m[1] != "").Width(html.UnescapeString(m[4]))
	return fmt.Sprintf(`textLength="%.5g" lengthAdjust="spacingAndGlyphs" style="%sfont-size:%spx%s">%s<`, width.Points(), m[1],
		m[2], m[3], m[4])
}

// SVG returns the figure, without its title, as an element of a page. Its colours are the variables of [PaletteCSS].
// The id must be unique in the page.
func (f *Figure) SVG(id string) string {
	body := svgStyle.ReplaceAllStringFunc(f.body(false), func(s string) string { return svgColour.ReplaceAllStringFunc(s, variable) })
	return f.root(id, false, "") + body
}

var (
	svgStyle  = regexp.MustCompile(`style="[^"]*"`) // cannot match a text, because quotes are escaped there
	svgColour = regexp.MustCompile(`#[0-9A-F]{6}`)
)

// variable returns the CSS variable of a role's colour. It tolerates a difference of 1, because vgsvg rounds colours
// down.
func variable(hex string) string {
	near := func(a, b uint8) bool { return a-b+1 <= 2 }
	c := fromHex(strings.ToLower(hex))
	for r, p := range palette {
		if q := color.NRGBAModel.Convert(role(r)).(color.NRGBA); near(c.R, q.R) && near(c.G, q.G) && near(c.B, q.B) {
			return "var(--" + p.name + ")"
		}
	}
	return hex
}

// root returns the opening svg element, with a description for readers who cannot see it.
func (f *Figure) root(id string, titled bool, attributes string) string {
	width, height := f.size(titled)
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-labelledby=\"%s-t %s-d\" viewBox=\"0 0 %.5g %.5g\" "+
		"font-family=\"%s\"%s>\n<title id=\"%s-t\">%s</title><desc id=\"%s-d\">%s</desc>\n",
		id, id, width.Points(), height.Points(), svgFont, attributes, id, html.EscapeString(f.Title), id, html.EscapeString(f.desc))
}

// WriteSVG writes the figure with its title as an SVG file on white.
func (f *Figure) WriteSVG(w io.Writer) error {
	width, height := f.size(true)
	_, err := fmt.Fprintf(w, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n%s<rect width=\"100%%\" height=\"100%%\" fill=\"%s\"/>\n%s",
		f.root("figure", true, fmt.Sprintf(` width="%.5g" height="%.5g"`, 2*width.Points(), 2*height.Points())),
		palette[paper].light, f.body(true))
	return err
}

// pngDPI gives three pixels per unit, which is enough for print at the width of a column.
const pngDPI = 3 * 72

// WritePNG writes the figure with its title as a PNG file on white. Letters other than Latin, Greek and Cyrillic
// appear as boxes, so use SVG for them.
func (f *Figure) WritePNG(w io.Writer) error {
	width, height := f.size(true)
	c := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(pngDPI), vgimg.UseBackgroundColor(paper))
	f.draw(c, true)
	_, err := vgimg.PngCanvas{Canvas: c}.WriteTo(w)
	return err
}

// maxName is the length of a file name made from a title.
const maxName = 60

// fileName joins words to a name that is valid on every file system.
func fileName(words ...string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return r
		}
		return '-'
	}, strings.Join(words, "-"))
	name = strings.Join(strings.FieldsFunc(name, func(r rune) bool { return r == '-' }), "-")
	return strings.TrimRight(name[:min(len(name), maxName)], "-")
}
