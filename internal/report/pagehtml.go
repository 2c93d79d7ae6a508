package report

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/swagwrap/swagwrap/internal/report/plot"
	"github.com/swagwrap/swagwrap/internal/report/text"
)

//go:embed page.html
var pageText string

//go:embed page.js
var script string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"clean": text.Clean,
	"prose": prose,
	"words": func(s string) []word { return words(prose(s), map[*term]bool{}) },
	"svg":   func(f *plot.Figure) template.HTML { return template.HTML(f.SVG(f.Name)) }, // its text is escaped
}).Parse(pageText))

// maxProvenance is the largest number of facts that are all shown without folding. A posterior can have hundreds of
// checkpoints.
const maxProvenance = 12

// WriteHTML writes a self-contained file. Its only script copies commands and says where a box scrolls; the page is
// complete without it. The page follows the reader's light or dark setting, fits a phone, and prints. Texts are escaped.
// The same report gives the same bytes.
func (r *Report) WriteHTML(w io.Writer) error {
	parts := r.parts()
	var tables []htmlTable
	for _, t := range r.Tables {
		tables = append(tables, t.html())
	}
	seen := map[*term]bool{} // the terms at the top of the page
	answer, rest := "", r.Verdict
	if len(rest) > 0 {
		answer, rest = rest[0], rest[1:]
	}
	hash := sha256.Sum256([]byte(script))
	return pageTemplate.Execute(w, struct {
		*Report
		Answer      string
		Rest        []string
		Script      template.JS
		ScriptHash  string
		Top         func(string) []word
		Shown       []htmlTable
		Parts       []part
		Glossary    []term
		Folded      bool // Provenance is long
		Light, Dark template.CSS
	}{r, answer, rest, template.JS(script), base64.StdEncoding.EncodeToString(hash[:]), func(s string) []word { return words(prose(s), seen) }, tables, parts, r.glossaryOf(parts), len(r.Provenance) > maxProvenance,
		template.CSS(plot.PaletteCSS(false)), template.CSS(plot.PaletteCSS(true))})
}

// maxProse is the number of runes above which a text is shortened. It suffices for every meaningful text.
const maxProse = 1000

// prose prepares a text for the page and keeps percentages on one line.
func prose(s string) string {
	s = text.Shorten(text.Clean(s), func(s string) bool { return utf8.RuneCountInString(s) <= maxProse })
	return strings.ReplaceAll(s, " %", "\u00a0%")
}
