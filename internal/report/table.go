// Package report writes output for people. It has tables as aligned text for a terminal or as Markdown, and the
// formats of their numbers. It also has reports: one page with a verdict, tables and figures.
//
// A [Report] is plain data. The package plot draws its figures, which can be separate files too.
//
// # Invariants
//
// Output depends only on the input, not on the terminal, the locale or the clock: a [Screen] is an input. Width is
// counted in runes, so wide and combining characters shift the text after them. Control characters in cells are shown
// as "�", so a file name cannot move the cursor. A cell of more than 200 characters loses its middle. In a page all
// text is escaped. Negative numbers have a true minus sign (U+2212).
//
// # Concurrency
//
// A Table must not be used by two goroutines at once while rows are added. A Report is only read.
package report

import (
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/swagwrap/swagwrap/internal/report/text"
)

// Align is the horizontal alignment of the cells of a column.
type Align int

const (
	Left Align = iota
	Right
	Decimal // aligned at the decimal points, with any other text after the number
)

// Column describes a column of a [Table].
type Column struct {
	Header string
	Align  Align
	Empty  string // shown for an empty cell; "" means "—", " " leaves it blank
	// Optional columns are left out where a table is too wide for the screen: those with the highest number first, and
	// those with the same number together. A column with 0 is always shown.
	Optional int
}

// Table collects rows of cells.
type Table struct {
	cols            []Column
	rows            [][]string
	warnings, notes []string
}

// NewTable returns a table without rows.
func NewTable(cols ...Column) *Table { return &Table{cols: cols} }

// Row adds a row; missing cells at its end are empty. It panics if there are more cells than columns.
func (t *Table) Row(cells ...string) {
	if len(cells) > len(t.cols) {
		panic("report: more cells than columns")
	}
	row := make([]string, len(t.cols))
	for i, c := range t.cols {
		if i < len(cells) {
			row[i] = text.Cell(cells[i])
		}
		if row[i] == "" {
			row[i] = "—"
			if c.Empty != "" {
				row[i] = c.Empty
			}
		}
	}
	t.rows = append(t.rows, row)
}

// Note adds a line of background below the table, such as the meaning of a column, unless it is empty. A terminal shows
// it with -v only.
func (t *Table) Note(note string) {
	if note != "" {
		t.notes = append(t.notes, text.Clean(note))
	}
}

// Warn adds a line below the table that always stands there, unless it is empty.
func (t *Table) Warn(warning string) {
	if warning != "" {
		t.warnings = append(t.warnings, text.Clean(warning))
	}
}

// filled returns the places of the columns in which any row has something. The first column always has.
func (t *Table) filled() (places []int) {
	for c := range t.cols {
		if c == 0 || len(t.rows) == 0 || slices.ContainsFunc(t.rows, func(row []string) bool { return strings.Trim(row[c], "— ") != "" }) {
			places = append(places, c)
		}
	}
	return places
}

func pad(n int) string { return strings.Repeat(" ", n) }

// intWidth returns the width of s up to the end of its first integer, where the decimal point is or would be: 7 for
// "[−1,234.5, 6]". For text without a digit it returns the whole width, so that "—" stands over the units.
func intWidth(s string) int {
	i := strings.IndexFunc(s, unicode.IsDigit)
	if i < 0 {
		return runes(s)
	}
	j := strings.IndexFunc(s[i:], func(r rune) bool { return !unicode.IsDigit(r) && r != ',' })
	if j < 0 {
		j = len(s) - i
	}
	return runes(s[:i+j])
}

// WriteMarkdown writes a GitHub Markdown table, and each note as a paragraph.
func (t *Table) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	line := func(cell func(c int) string) {
		for _, c := range t.filled() {
			b.WriteString("| " + cell(c) + " ")
		}
		b.WriteString("|\n")
	}
	line(func(c int) string { return escape(t.cols[c].Header) })
	line(func(c int) string {
		if t.cols[c].Align == Left {
			return "---"
		}
		return "--:"
	})
	for _, row := range t.rows {
		line(func(c int) string { return escape(strings.TrimSpace(row[c])) })
	}
	for _, n := range slices.Concat(t.warnings, t.notes) {
		b.WriteString("\n" + escape(n) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

var escape = strings.NewReplacer(`\`, `\\`, `|`, `\|`, `*`, `\*`, `_`, `\_`, "`", "\\`", `<`, `&lt;`, `[`, `\[`).Replace
