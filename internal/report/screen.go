package report

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/swagwrap/swagwrap/internal/report/text"
)

// Screen is what a text is written for. The zero value has no limits and shows no background.
type Screen struct {
	Width    int  // number of columns, or 0 if it does not matter
	Terminal bool // prose is broken between words at the width; in files and pipes a paragraph is a line
	Verbose  bool // show notes of background
	// Rest says where the rest of a study is, such as in a file. If it is not empty, the study shows a short table alone.
	Rest string
}

// hangWidth is the width of notes in files and pipes.
const hangWidth = 118

// Hang returns a note as lines without control characters. The first begins with what, such as "note: ", and the others are
// indented below its text.
func (s Screen) Hang(what, note string) []string {
	if !s.Terminal || s.Width == 0 {
		return text.Hang(what, note, hangWidth)
	}
	return text.Hang(what, note, min(hangWidth, s.Width))
}

// Lines returns a paragraph as lines for the screen, without control characters.
func (s Screen) Lines(paragraph string) []string {
	if !s.Terminal || s.Width == 0 {
		return []string{text.Clean(paragraph)}
	}
	return text.Wrap(text.Clean(paragraph), s.Width)
}

// WriteFacts writes a line for each fact that has a value. Values stand in a column behind names of a width.
func WriteFacts(w io.Writer, indent string, width int, facts ...Fact) {
	for _, f := range facts {
		if f.Value != "" {
			text.Line(w, "%s%-*s %s", indent, width, f.Name, f.Value)
		}
	}
}

const (
	// nameWidth is the width to which the texts of a table that is too wide are broken before a column is left out, and
	// leastName that to which they are broken if no more columns may be left out.
	nameWidth, leastName = 28, 12
	between              = "  " // columns
)

// WriteText writes the table with aligned columns, with two spaces between them. In a table that is too wide for the screen headers and
// texts are broken into lines, and optional columns are left out. Numbers are never broken.
func (t *Table) WriteText(w io.Writer, s Screen) error {
	places, most := t.filled(), 1<<20
	var left []string // headers of the columns that are left out
	l := t.layout(places, most, false)
	if s.Width > 0 && l.width() > s.Width {
		for most = s.Width; most > nameWidth && l.width() > s.Width; most-- {
			l = t.layout(places, most, true)
		}
		for l.width() > s.Width {
			if n := t.optional(places); n > 0 {
				var out []string
				places = slices.DeleteFunc(places, func(c int) bool {
					if t.cols[c].Optional == n {
						out = append(out, t.cols[c].Header)
					}
					return t.cols[c].Optional == n
				})
				left = append(out, left...)
				l = t.layout(places, nameWidth, true)
				continue
			}
			for most = nameWidth - 1; most >= leastName && l.width() > s.Width; most-- {
				l = t.layout(places, most, true)
			}
			break
		}
	}
	var b strings.Builder
	l.write(&b)
	notes := slices.Clone(t.warnings)
	if left != nil && s.Rest == "" {
		notes = append(notes, fmt.Sprintf("not shown for lack of room: %s. A wider terminal, JSON and pages have them.",
			strings.Join(left, ", ")))
	}
	if s.Verbose {
		notes = append(notes, t.notes...)
	}
	for _, n := range notes {
		b.WriteString(strings.Join(s.Lines(n), "\n") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// optional returns the highest number of optional columns, or 0 if all columns must be shown.
func (t *Table) optional(places []int) (n int) {
	for _, c := range places {
		n = max(n, t.cols[c].Optional)
	}
	return n
}

// A layout has the columns of a table as blocks of equally wide lines. heights has the number of lines of the header and
// of each row.
type layout struct {
	columns [][][]string // the lines of each cell, by column; the header is the first cell
	heights []int
}

// layout lays out some columns of the table. Texts are broken into lines of at most the given width, and headers, if
// asked for, to the width of their columns.
func (t *Table) layout(places []int, most int, headers bool) layout {
	l := layout{heights: make([]int, len(t.rows)+1)}
	for _, c := range places {
		col := t.cols[c]
		before, block := 0, 0 // widths of the part before the decimal point, and of all cells but the header
		for _, row := range t.rows {
			before = max(before, intWidth(row[c]))
		}
		cells := [][]string{{col.Header}}
		for _, row := range t.rows {
			cell := []string{row[c]}
			switch {
			case col.Align == Decimal:
				cell[0] = pad(before-intWidth(row[c])) + row[c]
			case col.Align == Left && runes(row[c]) > most && strings.ContainsFunc(row[c], unicode.IsLetter): // no interval
				cell = broken(row[c], most)
			}
			cells, block = append(cells, cell), max(block, widest(cell))
		}
		if headers {
			width := max(block, widest(strings.Fields(col.Header)))
			cells[0] = broken(col.Header, width)
		}
		width := max(block, widest(cells[0]))
		for r, cell := range cells {
			l.heights[r] = max(l.heights[r], len(cell))
			for i, line := range cell {
				if col.Align == Decimal && r > 0 { // under a wide header the column is a block at the right
					line += pad(block - runes(line))
				}
				if gap := pad(width - runes(line)); col.Align == Left {
					line += gap
				} else {
					line = gap + line
				}
				cell[i] = line
			}
		}
		l.columns = append(l.columns, cells)
	}
	return l
}

// inParentheses matches a text in parentheses, such as the numbers of a method. unbroken stands for a space in it while
// a text is broken. It is no character of a Clean text.
var inParentheses = regexp.MustCompile(`\([^()]*\)`)

const unbroken = "\x00"

// broken breaks a text into lines, and not in parentheses that fit a line. Words that are longer than a line lose
// their middle. There is at least one line.
func broken(s string, width int) []string {
	kept := inParentheses.ReplaceAllStringFunc(s, func(part string) string {
		if runes(part) > width {
			return part
		}
		return strings.ReplaceAll(part, " ", unbroken)
	})
	lines := text.Wrap(kept, width)
	for i, line := range lines {
		line = strings.ReplaceAll(line, unbroken, " ")
		lines[i] = text.Shorten(line, func(s string) bool { return runes(s) <= width })
	}
	if lines == nil {
		return []string{s}
	}
	return lines
}

func (l layout) width() int {
	n := -len(between)
	for _, cells := range l.columns {
		n += len(between) + runes(cells[0][0])
	}
	return n
}

// write writes the rows. A header stands at the bottom of its row, a cell at the top of its own.
func (l layout) write(b *strings.Builder) {
	for r, height := range l.heights {
		for i := range max(1, height) {
			var line []string
			for _, cells := range l.columns {
				k := i
				if r == 0 {
					k -= height - len(cells[0])
				}
				if k >= 0 && k < len(cells[r]) {
					line = append(line, cells[r][k])
				} else {
					line = append(line, pad(runes(cells[0][0])))
				}
			}
			b.WriteString(strings.TrimRight(strings.Join(line, between), " ") + "\n")
		}
	}
}

func runes(s string) int { return utf8.RuneCountInString(s) }

func widest(lines []string) (width int) {
	for _, line := range lines {
		width = max(width, runes(line))
	}
	return width
}
