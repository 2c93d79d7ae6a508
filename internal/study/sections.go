package study

import (
	"slices"

	"github.com/swagwrap/swagwrap/internal/report"
)

// Sections are what a study says. A study declares them once, and [Sections.Result] renders them as text, as a page and as
// JSON.
type Sections struct {
	Title    string // of the page
	Heading  string // the settings, in one line
	Settings []report.Fact
	// BatchNorm has the warnings, and Notes are further ones of the page.
	BatchNorm *BatchNorm
	Notes     []string
	Verdict   []string      // in plain words, the result first
	Answers   []report.Fact // short ones, of the page
	Next      []Step        // what to do next, in this order
	Code      []string      // lines of Python that come after the verdict
	Tables    []Section
	// Figures adds the figures to the page. It may be nil.
	Figures    func(*report.Report)
	Provenance []report.Fact
	JSON       any
}

// Section is a table with its place in text and page.
type Section struct {
	report.NamedTable
	// Where says which forms show the table.
	Where Where
	// Order sorts the tables of a page. Those with the same number have the order of the text.
	Order int
	// Instead is a note below the table before, where the text does not show this one.
	Instead string
}

// Where says which forms of a result show a table.
type Where int

const (
	Everywhere Where = iota
	OnlyPrinted
	OnlyOnPage
)

// Result renders the sections.
func (s Sections) Result() Result { return rendered{&s} }

// rendered is a [Result] of sections.
type rendered struct{ of *Sections }

func (s rendered) Heading() string   { return s.of.Heading }
func (s rendered) Verdict() []string { return s.of.Verdict }
func (s rendered) Next() []Step      { return s.of.Next }
func (s rendered) Code() []string    { return s.of.Code }
func (s rendered) JSON() any         { return s.of.JSON }

// Tables returns the printed tables.
func (s rendered) Tables() (tables []*report.Table) {
	for _, t := range s.of.Tables {
		switch last := len(tables) - 1; {
		case t.Where != OnlyOnPage:
			tables = append(tables, t.Table)
		case t.Instead != "":
			tables[last] = tables[last].Warned(t.Instead)
		}
	}
	return tables
}

// Page returns the page.
func (s rendered) Page() *report.Report {
	page := s.of.BatchNorm.Page(s.of.Title, s, s.of.Notes, s.of.Settings...)
	page.Code, page.Answers, page.Provenance = s.of.Code, s.of.Answers, s.of.Provenance
	tables := slices.DeleteFunc(slices.Clone(s.of.Tables), func(t Section) bool { return t.Where == OnlyPrinted })
	slices.SortStableFunc(tables, func(a, b Section) int { return a.Order - b.Order })
	for _, t := range tables {
		page.Tables = append(page.Tables, t.NamedTable)
	}
	if s.of.Figures != nil {
		s.of.Figures(page)
	}
	return page
}
