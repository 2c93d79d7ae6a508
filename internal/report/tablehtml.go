package report

import (
	"strings"
	"unicode/utf8"
)

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
