package study

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/report/text"
)

// A Document is what a study says. A study fills it once. [WriteText], [Document.Page] and JSON show the same figures and sentences.
type Document struct {
	Title    string // of the page
	Heading  string // the settings, in one line
	Settings []report.Fact
	// BatchNorm has the warnings, and Notes are further ones of the page.
	BatchNorm *BatchNorm
	Notes     []string
	// Averages says what validation data found about other averages of the checkpoints, or is "".
	Averages string
	Verdict  []string      // in plain words, the result first
	Brief    []string      // the verdict beside the short table
	Answers  []report.Fact // short ones, of the page
	Next     []Step        // what to do next, in this order
	Code     []string      // lines of Python that come after the verdict
	Sections []Section
	Short    Section // few rows, for a screen with room for no more
	// Figures adds the figures to the page. It may be nil.
	Figures    func(*report.Report)
	Provenance []report.Fact
	JSON       Row
}

// Section shows rows as a table. It is left out without any.
type Section struct {
	Title, Explanation string // of the page
	Folded             bool
	// Columns are those of the cells with a header if it is nil. First is the header of the first one, instead of the cells' own.
	Columns []Column
	First   string
	Rows    []Row
	// Warnings always stand below the table, Notes only with -v.
	Warnings, Notes []string
	// Where says which forms show the table.
	Where Where
	// Order sorts the tables of a page. Those with the same number have the order of the text.
	Order int
	// Instead is a warning below the table before, where the text does not show this one.
	Instead string
}

// Note adds a note, and Warn a warning, unless it is empty.
func (s *Section) Note(note string)    { s.Notes = append(s.Notes, note) }
func (s *Section) Warn(warning string) { s.Warnings = append(s.Warnings, warning) }

// Where says which forms of a document show a table.
type Where int

const (
	Everywhere Where = iota
	OnlyPrinted
	OnlyOnPage
)

// Table returns the rows as a table.
func (s *Section) Table() *report.Table {
	columns := s.Columns
	if columns == nil {
		for _, r := range s.Rows {
			for _, c := range r {
				if of := (Column{Key: c.Key}); c.Header != "" && !slices.Contains(columns, of) {
					columns = append(columns, of)
				}
			}
		}
	}
	var head []report.Column
	columns = slices.DeleteFunc(slices.Clone(columns), func(of Column) bool {
		i := slices.IndexFunc(s.Rows, func(r Row) bool { return r.Cell(of.Key) != nil && r.Cell(of.Key).Header != "" })
		if i >= 0 {
			head = append(head, of.over(s.Rows[i].Cell(of.Key).Column))
		}
		return i < 0
	})
	if s.First != "" && head != nil {
		head[0].Header = s.First
	}
	t := report.NewTable(head...)
	for _, r := range s.Rows {
		cells := make([]string, len(columns))
		for i, of := range columns {
			if c := r.Cell(of.Key); c != nil {
				cells[i] = c.Text
				if of.Marked && c.Mark != "" {
					cells[i] += " " + c.Mark
				}
			}
		}
		t.Row(cells...)
	}
	for _, w := range s.Warnings {
		t.Warn(w)
	}
	for _, n := range s.Notes {
		t.Note(n)
	}
	return t
}

// over returns a column with the header and the order of c, if c has any.
func (c Column) over(own report.Column) report.Column {
	own.Header, own.Optional = cmp.Or(c.Header, own.Header), cmp.Or(c.Optional, own.Optional)
	return own
}

// Tables returns the printed tables.
func (d *Document) Tables() (tables []*report.Table) {
	for i := range d.Sections {
		switch s, last := &d.Sections[i], len(tables)-1; {
		case len(s.Rows) == 0:
		case s.Where != OnlyOnPage:
			tables = append(tables, s.Table())
		case s.Instead != "":
			tables[last].Warn(s.Instead)
		}
	}
	return tables
}

// Page returns the page.
func (d *Document) Page() *report.Report {
	page := &report.Report{
		Title:      d.Title,
		Verdict:    d.Verdict,
		Code:       d.Code,
		Answers:    d.Answers,
		Warnings:   append(d.BatchNorm.Warnings(), d.Notes...),
		Findings:   Findings(d.Averages, d.BatchNorm.Networks...),
		Facts:      append(d.Settings, d.BatchNorm.Facts()...),
		Provenance: d.Provenance,
	}
	shown := slices.DeleteFunc(slices.Clone(d.Sections), func(s Section) bool { return s.Where == OnlyPrinted || len(s.Rows) == 0 })
	slices.SortStableFunc(shown, func(a, b Section) int { return a.Order - b.Order })
	for _, s := range shown {
		page.Tables = append(page.Tables, report.NamedTable{Title: s.Title, Explanation: s.Explanation, Table: s.Table(), Folded: s.Folded})
	}
	if d.Figures != nil {
		d.Figures(page)
	}
	return page
}

// WriteText prints a document: warnings, verdict, settings, tables, code. Of the tables it prints the short one alone if the screen
// says where the rest is.
func WriteText(w io.Writer, s report.Screen, warnings []string, d *Document) error {
	var b bytes.Buffer
	for _, line := range warnings {
		fmt.Fprintf(&b, "%s\n\n", strings.Join(s.Hang("! ", line), "\n"))
	}
	prose := func(paragraphs ...string) {
		for _, p := range paragraphs {
			for _, line := range s.Lines(p) {
				text.Line(&b, "%s", line)
			}
		}
	}
	verdict, tables := d.Verdict, d.Tables()
	if s.Rest != "" {
		verdict, tables = d.Brief, []*report.Table{d.Short.Table()}
		tables[0].Warn(fmt.Sprintf("All methods and figures: %s", s.Rest))
	}
	prose(verdict...)
	b.WriteByte('\n')
	prose(d.Heading)
	for _, t := range tables {
		b.WriteByte('\n')
		t.WriteText(&b, s) // writing to memory cannot fail
	}
	if len(d.Code) > 0 {
		b.WriteByte('\n')
		for _, line := range d.Code {
			text.Line(&b, "    %s", line)
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}
