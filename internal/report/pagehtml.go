package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/swagwrap/swagwrap/internal/report/plot"
	"github.com/swagwrap/swagwrap/internal/report/text"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// maxProvenance is the largest number of facts that are all shown without folding. A posterior can have hundreds of
// checkpoints.
const maxProvenance = 12

// WriteHTML writes a self-contained file without scripts. The page follows the reader's light or dark setting, fits a
// phone, and prints. Texts are escaped. The same report gives the same bytes.
func (r *Report) WriteHTML(w io.Writer) error {
	parts := r.parts()
	page := struct {
		Title                     string
		Headline                  []word
		Verdict                   [][]word
		Findings                  []htmlFinding
		Warnings                  []string
		Facts                     []htmlFact
		Provenance                []Fact
		Tables                    []htmlTable
		Parts                     []htmlPart
		Command, Program, Created string
		Glossary                  []term
		Folded                    bool // Provenance is long
		Light, Dark               template.CSS
	}{
		Title: prose(r.Title), Warnings: cleanAll(r.Warnings), Provenance: cleanFacts(r.Provenance),
		Command: text.Clean(r.Command), Program: text.Clean(r.Program), Glossary: r.glossaryOf(parts),
		Folded: len(r.Provenance) > maxProvenance,
		Light:  template.CSS(plot.PaletteCSS(false)), Dark: template.CSS(plot.PaletteCSS(true)),
	}
	seen := map[*term]bool{} // the terms at the top of the page
	if lines := paragraphs(r.Verdict, seen); len(lines) > 0 {
		page.Headline, page.Verdict = lines[0], lines[1:]
	}
	for _, f := range r.Findings {
		page.Findings = append(page.Findings, htmlFinding{words(prose(f.Text), seen), f.Serious})
	}
	for _, f := range cleanFacts(r.Facts) {
		page.Facts = append(page.Facts, htmlFact{words(f.Name, seen), f.Value})
	}
	if !r.Created.IsZero() {
		page.Created = r.Created.UTC().Format("2006-01-02 15:04 UTC")
	}
	for i := range r.Tables {
		page.Tables = append(page.Tables, r.Tables[i].html())
	}
	for _, p := range parts {
		page.Parts = append(page.Parts, p.html())
	}
	return pageTemplate.Execute(w, page)
}

type htmlFinding struct {
	Words   []word
	Serious bool
}

type htmlFact struct {
	Name  []word
	Value string
}

type htmlPart struct {
	ID, Heading string
	Lead        []word
	Groups      []htmlGroup
	One         bool // the only figure, with its text next to it
}

// A htmlGroup holds figures that share a grid. All or none of them are folded.
type htmlGroup struct {
	Folded  bool
	Figures []htmlFigure
}

type htmlFigure struct {
	SVG         template.HTML
	Title, Note string
}

func (p part) html() htmlPart {
	to := htmlPart{ID: p.ID, Heading: p.Heading, Lead: words(prose(p.Lead), map[*term]bool{}), One: len(p.figures) == 1}
	for i, f := range p.figures {
		if i == 0 || f.Folded != p.figures[i-1].Folded {
			to.Groups = append(to.Groups, htmlGroup{Folded: f.Folded})
		}
		group := &to.Groups[len(to.Groups)-1]
		svg := template.HTML(f.SVG(fmt.Sprintf("%s-%d", p.ID, i))) // its text is escaped
		group.Figures = append(group.Figures, htmlFigure{svg, f.Title, prose(f.Note)})
	}
	return to
}

// maxProse is the number of runes above which a text is shortened. It suffices for every meaningful text.
const maxProse = 1000

// prose prepares a text for the page and keeps percentages on one line.
func prose(s string) string {
	s = text.Shorten(text.Clean(s), func(s string) bool { return utf8.RuneCountInString(s) <= maxProse })
	return strings.ReplaceAll(s, " %", "\u00a0%")
}

func cleanAll(texts []string) []string {
	out := make([]string, len(texts))
	for i, s := range texts {
		out[i] = prose(s)
	}
	return out
}

func cleanFacts(facts []Fact) []Fact {
	out := make([]Fact, len(facts))
	for i, f := range facts {
		out[i] = Fact{prose(f.Name), prose(f.Value)}
	}
	return out
}
