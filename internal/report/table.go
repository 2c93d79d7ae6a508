// Package report writes what a person reads: tables as aligned text for a
// terminal or as Markdown for documentation, the numbers in them, montages of
// images with their predictions, and reports: one page with a verdict, tables and
// figures, which are files of their own too.
//
// A [Report] is plain data. Package plot below draws its figures.
//
// # Invariants
//
// Output depends on the input only, not on terminal, locale or clock. Width is
// counted in runes, so wide and combining characters shift what follows them.
// Control characters in cells are shown as "�": a file name cannot move the
// cursor, and in a page it is text. Negative numbers carry a true minus sign
// (U+2212).
//
// # Concurrency
//
// A Table must not be used by two goroutines at once while rows are added, nor a
// Selection while examples are. A Report is only read.
package report

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/swagwrap/swagwrap/internal/report/text"
)

// Align says how the cells of a column stand below each other.
type Align int

const (
	Left Align = iota
	Right
	Decimal // decimal points below each other, what follows the number to the right
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

// Row adds a row; missing cells at its end are empty. It panics if there are
// more cells than columns.
func (t *Table) Row(cells ...string) {
	if len(cells) > len(t.cols) {
		panic("report: more cells than columns")
	}
	row := make([]string, len(t.cols))
	for i, c := range t.cols {
		if i < len(cells) {
			row[i] = text.Clean(cells[i])
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

// Note adds a line below the table.
func (t *Table) Note(note string) { t.notes = append(t.notes, text.Clean(note)) }

// WriteText writes the table with aligned columns, two spaces apart.
func (t *Table) WriteText(w io.Writer) error {
	// Pad cells around the decimal point first; then only widths matter.
	cells := make([][]string, len(t.rows)+1)
	for r := range cells {
		cells[r] = make([]string, len(t.cols))
	}
	for c, col := range t.cols {
		before := 0
		for _, row := range t.rows {
			before = max(before, intWidth(row[c]))
		}
		width := utf8.RuneCountInString(col.Header)
		for r, row := range t.rows {
			s := row[c]
			if col.Align == Decimal {
				s = pad(before-intWidth(s)) + s
			}
			cells[r+1][c] = s
			width = max(width, utf8.RuneCountInString(s))
		}
		// A decimal column is a block at the right under a wide header.
		block := 0
		for _, row := range cells[1:] {
			block = max(block, utf8.RuneCountInString(row[c]))
		}
		cells[0][c] = col.Header
		for r, row := range cells {
			gap := width - utf8.RuneCountInString(row[c])
			switch {
			case col.Align == Left:
				row[c] += pad(gap)
			case col.Align == Right || r == 0:
				row[c] = pad(gap) + row[c]
			default:
				row[c] = pad(width-block) + row[c] + pad(gap-(width-block))
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

// intWidth is the width of s up to the end of its first integer, where the
// decimal point stands or would stand: 7 for "[−1,234.5, 6]". Text without a
// digit ends there, so that "—" stands over the units.
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
