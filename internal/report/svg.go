package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"
)

const svgFont = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"

// svg writes the drawing as an element of a page. Its colours are those that the
// page gives to the classes of roleCSS; id must be unique in the page.
func (d *drawing) svg(id string) string {
	b := svgWriter{paper: "var(--paper)"}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="%s-t %s-d" viewBox="0 0 %s %s" font-family="%s">`,
		id, id, number(d.width), number(d.height), svgFont)
	fmt.Fprintf(&b, "\n<title id=\"%s-t\">%s</title><desc id=\"%s-d\">%s</desc>\n", id, escapeXML(d.title), id, escapeXML(d.desc))
	b.shapes(d.shapes)
	b.WriteString("</svg>\n")
	return b.String()
}

// file writes the drawing as a file of its own, on white.
func (d *drawing) file() []byte {
	b := svgWriter{paper: colourPaper.hex()}
	fmt.Fprintf(&b, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-labelledby=\"t d\" width=\"%s\" height=\"%s\" viewBox=\"0 0 %s %s\" font-family=\"%s\">\n",
		number(2*d.width), number(2*d.height), number(d.width), number(d.height), svgFont)
	fmt.Fprintf(&b, "<title id=\"t\">%s</title><desc id=\"d\">%s</desc>\n", escapeXML(d.title), escapeXML(d.desc))
	// Plain colours, not variables: drawing programs know no others.
	b.WriteString("<style>")
	for c := range surfaceColours {
		fmt.Fprintf(&b, ".%s{color:%s}", c.class(), c.hex())
	}
	fmt.Fprintf(&b, "</style>\n<rect width=\"%s\" height=\"%s\" fill=\"%s\"/>\n", number(d.width), number(d.height), colourPaper.hex())
	b.shapes(d.shapes)
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

// svgWriter collects the text of a drawing. What is hollow is filled with paper.
type svgWriter struct {
	strings.Builder
	paper string
}

func (b *svgWriter) shapes(shapes []shape) {
	for _, s := range shapes {
		if s.label != nil {
			b.label(s.colour, s.label)
		} else {
			b.path(&s)
		}
	}
}

func (b *svgWriter) path(s *shape) {
	fmt.Fprintf(b, `<path d="%s"`, pathData(s.paths, s.closed))
	colour := "currentColor"
	if class := s.colour.class(); class != "" {
		fmt.Fprintf(b, ` class="%s"`, class)
	} else {
		colour = s.colour.hex()
	}
	switch {
	case s.paper:
		fmt.Fprintf(b, ` fill="%s"`, b.paper)
	case s.fill > 0:
		fmt.Fprintf(b, ` fill="%s"`, colour)
		if s.fill < 1 {
			fmt.Fprintf(b, ` fill-opacity="%s"`, number(s.fill))
		}
	default:
		b.WriteString(` fill="none"`)
	}
	if s.stroke > 0 {
		fmt.Fprintf(b, ` stroke="%s" stroke-width="%s" stroke-linejoin="round"`, colour, number(s.stroke))
		if s.faint > 0 {
			fmt.Fprintf(b, ` stroke-opacity="%s"`, number(1-s.faint))
		}
		if pattern := dashes[s.dash]; pattern != nil {
			fmt.Fprintf(b, ` stroke-dasharray="%s %s"`, number(pattern[0]), number(pattern[1]))
		}
	}
	if s.tip == "" {
		b.WriteString("/>\n")
		return
	}
	fmt.Fprintf(b, "><title>%s</title></path>\n", escapeXML(s.tip))
}

func (b *svgWriter) label(c colour, l *label) {
	fmt.Fprintf(b, `<text class="%s" fill="currentColor" x="%s" y="%s" font-size="%s"`, c.class(), number(l.x), number(l.y), number(l.size))
	switch l.anchor {
	case 0.5:
		b.WriteString(` text-anchor="middle"`)
	case 1:
		b.WriteString(` text-anchor="end"`)
	}
	if l.bold {
		b.WriteString(` font-weight="600"`)
	}
	if l.vertical {
		fmt.Fprintf(b, ` transform="rotate(-90 %s %s)"`, number(l.x), number(l.y))
	}
	if l.halo {
		fmt.Fprintf(b, ` stroke="%s" stroke-width="3" stroke-linejoin="round" paint-order="stroke"`, b.paper)
	}
	fmt.Fprintf(b, ">%s</text>\n", escapeXML(l.text))
}

// pathData writes paths with two decimals, a hundredth of a pixel.
func pathData(paths [][]at, closed bool) string {
	var b strings.Builder
	for _, path := range paths {
		for i, p := range path {
			if i == 0 {
				b.WriteByte('M')
			} else {
				b.WriteByte('L')
			}
			b.WriteString(number(p.x) + " " + number(p.y))
		}
		if closed {
			b.WriteByte('Z')
		}
	}
	return b.String()
}

// number writes x with at most two decimals.
func number(x float64) string {
	return strconv.FormatFloat(math.Round(x*100)/100+0, 'f', -1, 64)
}

// escapeXML makes text of s, whatever it holds.
func escapeXML(s string) string {
	var b bytes.Buffer
	xml.EscapeText(&b, []byte(cleanText(s))) // a bytes.Buffer does not fail
	return b.String()
}
