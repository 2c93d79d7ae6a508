// Package report writes output for people. It has tables as aligned text for a terminal or as Markdown, and the
// formats of their numbers. It also has reports: one page with a verdict, tables and figures.
//
// A [Report] is plain data. The package plot draws its figures, which can be separate files too.
//
// # Invariants
//
// Output depends only on the input, not on terminal, locale or clock. Width is counted in runes, so wide and
// combining characters shift the text after them. Control characters in cells are shown as "�", so a file name cannot
// move the cursor. A cell of more than 200 characters loses its middle. In a page all text is escaped. Negative numbers
// have a true minus sign (U+2212).
//
// # Concurrency
//
// A Table must not be used by two goroutines at once while rows are added. A Report is only read.
package report

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

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
}

// Table collects rows of cells.
type Table struct {
	cols  []Column
	rows  [][]string
	notes []string
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

// Note adds a line below the table, unless it is empty.
func (t *Table) Note(note string) {
	if note != "" {
		t.notes = append(t.notes, text.Clean(note))
	}
}

// WriteText writes the table with aligned columns, two spaces apart.
func (t *Table) WriteText(w io.Writer) error {
	runes := utf8.RuneCountInString
	cells := make([][]string, len(t.rows)+1)
	for r := range cells {
		cells[r] = make([]string, len(t.cols))
	}
	for c, col := range t.cols {
		before, block := 0, 0 // widths of the part before the decimal point, and of all cells but the header
		for _, row := range t.rows {
			before = max(before, intWidth(row[c]))
		}
		cells[0][c] = col.Header
		for r, row := range t.rows {
			s := row[c]
			if col.Align == Decimal {
				s = pad(before-intWidth(s)) + s
			}
			cells[r+1][c], block = s, max(block, runes(s))
		}
		for r, row := range cells {
			if col.Align == Decimal && r > 0 { // under a wide header the column is a block at the right
				row[c] += pad(block - runes(row[c]))
			}
			if gap := pad(max(block, runes(col.Header)) - runes(row[c])); col.Align == Left {
				row[c] += gap
			} else {
				row[c] = gap + row[c]
			}
		}
	}
	var b strings.Builder
	for _, row := range cells {
		b.WriteString(strings.TrimRight(strings.Join(row, "  "), " ") + "\n")
	}
	for _, n := range t.notes {
		b.WriteString(n + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func pad(n int) string { return strings.Repeat(" ", n) }

// intWidth returns the width of s up to the end of its first integer, where the decimal point is or would be: 7 for
// "[−1,234.5, 6]". For text without a digit it returns the whole width, so that "—" stands over the units.
func intWidth(s string) int {
	i := strings.IndexFunc(s, unicode.IsDigit)
	if i < 0 {
		return utf8.RuneCountInString(s)
	}
	j := strings.IndexFunc(s[i:], func(r rune) bool { return !unicode.IsDigit(r) && r != ',' })
	if j < 0 {
		j = len(s) - i
	}
	return utf8.RuneCountInString(s[:i+j])
}

// WriteMarkdown writes a GitHub Markdown table, and each note as a paragraph.
func (t *Table) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	line := func(cell func(c int) string) {
		for c := range t.cols {
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
	for _, n := range t.notes {
		b.WriteString("\n" + escape(n) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

var escape = strings.NewReplacer(`\`, `\\`, `|`, `\|`, `*`, `\*`, `_`, `\_`, "`", "\\`", `<`, `&lt;`, `[`, `\[`).Replace
