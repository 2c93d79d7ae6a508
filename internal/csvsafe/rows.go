package csvsafe

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Rows reads the rows of a CSV file: a table of examples, or a list of files. Its errors name the line.
type Rows struct {
	*csv.Reader
	from  *bounded
	cells []string
}

// NewRows returns a reader of rows of at most the given number of bytes. comma chooses the sign between cells by the first line. If
// comments is set, lines that begin with # are skipped.
func NewRows(r io.Reader, most int, comments bool, comma func(first string) rune) *Rows {
	from := &bounded{in: UTF8(r), most: most, buffer: min(most, 1<<20)}
	body := bufio.NewReaderSize(from, from.buffer)
	in := &Rows{Reader: csv.NewReader(body), from: from}
	if in.ReuseRecord = true; comments {
		in.Comment = '#'
	}
	in.Comma = comma(PeekLine(body, byte(in.Comment)))
	in.TrimLeadingSpace = in.Comma != '\t'
	return in
}

// Next reads a row, and returns the number of its cells. After the last row it returns io.EOF.
func (r *Rows) Next() (cells int, err error) {
	r.from.start = r.InputOffset()
	r.cells, err = r.Read()
	if pe, ok := errors.AsType[*csv.ParseError](err); ok {
		begin := ""
		if pe.StartLine != pe.Line {
			begin = fmt.Sprintf(", of a row that begins in line %d", pe.StartLine)
		}
		err = fmt.Errorf("line %d, column %d%s: %w", pe.Line, pe.Column, begin, pe.Err)
	} else if err == nil && r.InputOffset()-r.from.start > int64(r.from.most) {
		err = r.from.tooLong()
	}
	return len(r.cells), err
}

// Cell returns a cell of the row as it was before [Guard], and its line.
func (r *Rows) Cell(i int) (text string, line int) {
	text = r.cells[i]
	if line, _ = r.FieldPos(i); line == 1 && i == 0 {
		text = strings.TrimPrefix(text, "\ufeff") // some editors write a byte order mark
	}
	return Bare(strings.TrimSpace(text)), line
}

// bounded fails if a row takes too many bytes. Without a bound a file without line breaks, or with an open quote, would be one row.
type bounded struct {
	in           io.Reader
	most, buffer int   // bytes of a row, and those that are read at once
	read, start  int64 // bytes that were read in all, and before the row
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.read-b.start > int64(b.most+b.buffer) {
		return 0, b.tooLong()
	}
	n, err := b.in.Read(p)
	b.read += int64(n)
	return n, err
}

func (b *bounded) tooLong() error {
	return fmt.Errorf("a row of more than %d bytes, want a line for each row", b.most)
}
