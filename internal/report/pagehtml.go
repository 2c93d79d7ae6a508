package report

import (
	_ "embed"
	"html/template"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/swagwrap/swagwrap/internal/report/plot"
	"github.com/swagwrap/swagwrap/internal/report/text"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"clean": text.Clean,
	"prose": prose,
	"words": func(s string) []word { return words(prose(s), map[*term]bool{}) },
	"svg":   func(f *plot.Figure) template.HTML { return template.HTML(f.SVG(f.Name)) }, // its text is escaped
}).Parse(pageText))

// maxProvenance is the largest number of facts that are all shown without folding. A posterior can have hundreds of
// checkpoints.
const maxProvenance = 12

// WriteHTML writes a self-contained file without scripts. The page follows the reader's light or dark setting, fits a
// phone, and prints. Texts are escaped. The same report gives the same bytes.
func (r *Report) WriteHTML(w io.Writer) error {
	parts := r.parts()
	var tables []htmlTable
	for _, t := range r.Tables {
		tables = append(tables, t.html())
	}
	seen := map[*term]bool{} // the terms at the top of the page
	return pageTemplate.Execute(w, struct {
		*Report
		Top         func(string) []word
		Shown       []htmlTable
		Parts       []part
		Glossary    []term
		Folded      bool // Provenance is long
		Light, Dark template.CSS
	}{r, func(s string) []word { return words(prose(s), seen) }, tables, parts, r.glossaryOf(parts), len(r.Provenance) > maxProvenance,
		template.CSS(plot.PaletteCSS(false)), template.CSS(plot.PaletteCSS(true))})
}

// maxProse is the number of runes above which a text is shortened. It suffices for every meaningful text.
const maxProse = 1000

// prose prepares a text for the page and keeps percentages on one line.
func prose(s string) string {
	s = text.Shorten(text.Clean(s), func(s string) bool { return utf8.RuneCountInString(s) <= maxProse })
	return strings.ReplaceAll(s, " %", "\u00a0%")
}
