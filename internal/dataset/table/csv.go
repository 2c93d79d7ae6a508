package table

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/csvsafe"
)

// lines returns a reader of the records of a CSV file. As in lists, lines that begin with # are skipped in tables of
// examples.
func (t *Table) lines(f *io.SectionReader) *records {
	from := &bounded{Reader: csvsafe.UTF8(f)}
	body := bufio.NewReaderSize(from, buffer)
	in := &records{csv.NewReader(body), from}
	if in.ReuseRecord = true; !t.gaps { // the path of a prediction may begin with #
		in.Comment = '#'
	}
	in.TrimLeadingSpace, in.Comma = true, csvsafe.Comma(csvsafe.PeekLine(body, byte(in.Comment)))
	if extension(t.Path) == ".tsv" || in.Comma == '\t' {
		in.TrimLeadingSpace, in.Comma = false, '\t'
	}
	return in
}

// buffer is the number of bytes that are read at once.
const buffer = 1 << 20

// records reads records of bounded size. Without a bound a file without line breaks, or with an open quote, would be one
// record.
type records struct {
	*csv.Reader
	from *bounded
}

func (r *records) Read() ([]string, error) {
	r.from.start = r.InputOffset()
	return r.Reader.Read()
}

// bounded fails if a record takes more than maxObject bytes.
type bounded struct {
	io.Reader
	read, start int64 // bytes that were read in all, and before the record
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.read-b.start > maxObject+buffer {
		return 0, fmt.Errorf("a row of more than %d bytes, want a line for each row", maxObject)
	}
	n, err := b.Reader.Read(p)
	b.read += int64(n)
	return n, err
}

// parseError returns err with the line number in front.
func parseError(err error) error {
	if pe, ok := errors.AsType[*csv.ParseError](err); ok {
		return fmt.Errorf("line %d, column %d: %w", pe.Line, pe.Column, pe.Err)
	}
	return err
}

func (t *Table) openCSV(f *io.SectionReader) error {
	record, err := t.lines(f).Read()
	if err == io.EOF {
		return errors.New("empty, want a first line with the names of the columns")
	}
	if err != nil {
		return parseError(err)
	}
	for i, name := range record {
		if i == 0 {
			name = strings.TrimPrefix(name, "\ufeff") // some editors write a byte order mark
		}
		t.Names = append(t.Names, strings.Clone(csvsafe.Bare(strings.TrimSpace(name))))
	}
	if !slices.ContainsFunc(t.Names, func(name string) bool { _, err := parseFloat(name); return err != nil && name != "" }) {
		return fmt.Errorf("first line %q, want the names of the columns", t.Names[:min(len(t.Names), 5)])
	}
	t.read = t.readCSV
	return nil
}

func (t *Table) readCSV(f *io.SectionReader, columns []*Column) (rows int, err error) {
	in, form := t.lines(f), csvsafe.Form{}
	if _, err := in.Read(); err != nil {
		return 0, parseError(err)
	}
	for ; ; rows++ {
		record, err := in.Read() // Read checks that it is as wide as the first
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return 0, parseError(err)
		}
		for i, c := range columns {
			if c == nil {
				continue
			}
			text := csvsafe.Bare(strings.TrimSpace(record[i]))
			line, _ := in.FieldPos(i)
			if in.Comma == ';' {
				if text, err = c.point(place{"line", line}, text, &form); err != nil {
					return 0, err
				}
			}
			if c.text {
				c.Texts = append(c.Texts, strings.Clone(text))
				continue
			}
			if err := c.add(place{"line", line}, text); err != nil {
				return 0, err
			}
		}
	}
}

// point returns a number with a decimal comma as one with a point, as the form of the file allows.
func (c *Column) point(where place, text string, of *csvsafe.Form) (string, error) {
	number, comma, err := of.Number(text, func() string { return fmt.Sprintf("%s, column %q", where, c.Name) })
	if err == nil && !comma && !c.text && strings.Contains(text, ",") && strings.Trim(text, "0123456789.,+-") == "" {
		err = c.fail(where, "%.40q, in a file with semicolons and decimal commas: %w", text, csvsafe.ErrDecimal)
	}
	return number, err
}

// parseInt parses an integer, or a boolean as pandas writes it.
func parseInt(text string) (int64, bool) {
	switch text {
	case "True", "true":
		return 1, true
	case "False", "false":
		return 0, true
	}
	v, err := strconv.ParseInt(text, 10, 64)
	return v, err == nil
}

// parseFloat parses a number. A number that is too large becomes infinite.
func parseFloat(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if math.IsInf(v, 0) {
		err = nil
	}
	return v, err
}
