package report

import (
	"strings"
	"unicode/utf8"

	"github.com/swagwrap/swagwrap/internal/report/text"
)

// A htmlCell is a cell of a table in a page. Pad is invisible text that aligns decimal points in a right-aligned
// column: the rest of the longest cell after its number. Name is the column's name, for phones.
type htmlCell struct {
	Text, Pad, Name string
	Words           []word // of a header
	Number, Blank   bool
}

// maxNarrow is the largest number of columns that fit a phone. There a wider table shows each row as a block.
const maxNarrow = 4

// maxBeside is the largest number of columns that leave room for the explanation at the right of the table.
const maxBeside = 11

type htmlTable struct {
	Title       string
	Explanation []word
	Wide        bool
	Beside      bool
	Header      []htmlCell
	Rows        [][]htmlCell
	Notes       []string
}

func (n *NamedTable) html() htmlTable {
	h := htmlTable{Title: text.Clean(n.Title), Explanation: words(prose(n.Explanation), map[*term]bool{})}
	t := n.Table
	if t == nil {
		return h
	}
	for _, note := range t.notes {
		h.Notes = append(h.Notes, prose(note))
	}
	h.Rows, h.Wide = make([][]htmlCell, len(t.rows)), len(t.cols) > maxNarrow
	h.Beside = len(t.cols) <= maxBeside
	for c, col := range t.cols {
		h.Header = append(h.Header, htmlCell{Text: prose(col.Header), Words: words(prose(col.Header), map[*term]bool{}), Number: col.Align != Left})
		tail := ""
		for _, row := range t.rows {
			if s := tailOf(row[c]); utf8.RuneCountInString(s) > utf8.RuneCountInString(tail) {
				tail = s
			}
		}
		for r, row := range t.rows {
			cell := htmlCell{Text: prose(row[c]), Name: h.Header[c].Text, Number: col.Align != Left, Blank: strings.TrimSpace(row[c]) == ""}
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
