package report

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"regexp"
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
	"shell": folded,
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
	var shown, hidden []htmlTable
	for i, t := range r.Tables {
		h := t.html()
		h.ID = fmt.Sprintf("table-%d", i)
		if t.Folded {
			hidden = append(hidden, h)
		} else {
			shown = append(shown, h)
		}
	}
	seen := map[*term]bool{} // the terms at the top of the page
	answer, rest := r.answer()
	second := ""
	if len(rest) > 0 && answer != "" {
		second, rest = rest[0], rest[1:]
	}
	hash := sha256.Sum256([]byte(script))
	return pageTemplate.Execute(w, struct {
		*Report
		Answer      string
		Second      string
		Rest        []string
		Script      template.JS
		ScriptHash  string
		Top         func(string) []word
		Shown       []htmlTable
		Hidden      []htmlTable // behind the figures
		Parts       []part
		Glossary    []term
		Folded      bool // Provenance is long
		Light, Dark template.CSS
	}{r, answer, second, rest, template.JS(script), base64.StdEncoding.EncodeToString(hash[:]), func(s string) []word {
		return words(prose(s), seen)
	}, shown, hidden, parts, r.glossaryOf(parts), len(r.Provenance) > maxProvenance,
		template.CSS(plot.PaletteCSS(false)), template.CSS(plot.PaletteCSS(true))})
}

// sentence matches a sentence with another one behind it.
var sentence = regexp.MustCompile(`^(.*?\S{2}[.!?]) (\p{Lu}.*)$`)

// answer returns the first sentence of the verdict, and the rest of it.
func (r *Report) answer() (first string, rest []string) {
	if len(r.Verdict) == 0 {
		return "", nil
	}
	if m := sentence.FindStringSubmatch(r.Verdict[0]); m != nil {
		return m[1], append([]string{m[2]}, r.Verdict[1:]...)
	}
	return r.Verdict[0], r.Verdict[1:]
}

// commandWidth is the width to which commands are broken, in characters: those of a phone 390 pixels wide.
const commandWidth = 36

// shellWords matches the words of a command that the program wrote.
var shellWords = regexp.MustCompile(`(?:'[^']*'|\\'|[^\s'])+`)

// folded breaks a command into lines, which the shell takes as one. A flag and its value stay together.
func folded(command string) string {
	var groups, lines []string
	for _, word := range shellWords.FindAllString(text.Clean(command), -1) {
		if last := len(groups) - 1; last >= 0 && groups[last][0] == '-' && !strings.Contains(groups[last], " ") &&
			(word[0] != '-' || word == "-") {
			groups[last] += " " + word
		} else {
			groups = append(groups, word)
		}
	}
	for _, g := range groups {
		if last := len(lines) - 1; last >= 0 && utf8.RuneCountInString(lines[last]+" "+g) <= commandWidth {
			lines[last] += " " + g
		} else {
			lines = append(lines, strings.Repeat("  ", min(len(lines), 1))+g)
		}
	}
	return strings.Join(lines, " \\\n")
}

// maxProse is the number of runes above which a text is shortened. It suffices for every meaningful text.
const maxProse = 1000

// prose prepares a text for the page and keeps percentages on one line.
func prose(s string) string {
	s = text.Shorten(text.Clean(s), func(s string) bool { return utf8.RuneCountInString(s) <= maxProse })
	return strings.ReplaceAll(s, " %", "\u00a0%")
}

// A htmlCell is a cell of a table in a page. Pad is invisible text that aligns decimal points in a right-aligned
// column: the rest of the longest cell after its number. Name is the column's name, for phones.
type htmlCell struct {
	Text, Pad, Name string
	Number, Blank   bool
}

type htmlTable struct {
	NamedTable
	ID     string
	Wide   bool // a phone shows each row as a block
	Beside bool // there is room for the explanation at the right of the table
	Header []htmlCell
	Rows   [][]htmlCell

	Warnings, Notes []string
}

func (n NamedTable) html() htmlTable {
	h := htmlTable{NamedTable: n}
	t := n.Table
	if t == nil {
		return h
	}
	places := t.filled()
	h.Rows, h.Warnings, h.Notes, h.Wide, h.Beside = make([][]htmlCell, len(t.rows)), t.warnings, t.notes, len(places) > 4, len(places) <= 11
	for _, c := range places {
		col := t.cols[c]
		h.Header = append(h.Header, htmlCell{Text: col.Header, Number: col.Align != Left})
		tail := ""
		for _, row := range t.rows {
			if s := tailOf(row[c]); utf8.RuneCountInString(s) > utf8.RuneCountInString(tail) {
				tail = s
			}
		}
		for r, row := range t.rows {
			cell := htmlCell{
				Text:   prose(row[c]),
				Name:   prose(col.Header),
				Number: col.Align != Left,
				Blank:  strings.TrimSpace(row[c]) == "",
			}
			if col.Align == Decimal {
				cell.Pad = prose(string([]rune(tail)[utf8.RuneCountInString(tailOf(row[c])):]))
			}
			h.Rows[r] = append(h.Rows[r], cell)
		}
	}
	return h
}

// tailOf returns the part of a cell after its first integer.
func tailOf(s string) string { return string([]rune(s)[intWidth(s):]) }
